// RUN: hybrid-opt %s -hybrid-cpu-lower-programs="level=x86-64-v4" | FileCheck %s --check-prefixes=CHECK,V4
// RUN: hybrid-opt %s -hybrid-cpu-lower-programs="level=x86-64-v3" | FileCheck %s --check-prefixes=CHECK,V3
// RUN: hybrid-opt %s -hybrid-cpu-lower-programs="level=x86-64" | FileCheck %s --check-prefixes=CHECK,BASE

// Without a limit dims merge into one loop of vectors, with no scratch.
// CHECK-LABEL: func.func @double
// CHECK-SAME: (%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: !llvm.ptr {llvm.noalias})
// CHECK-SAME: hybrid.scratch_bytes = 0
// CHECK: scf.for
// V4: llvm.load {{.*}} -> vector<16xf32>
// V3: llvm.load {{.*}} -> vector<8xf32>
// BASE: llvm.load {{.*}} -> vector<4xf32>
// CHECK: arith.addf {{.*}} fastmath<contract>
// CHECK: llvm.store
// CHECK-NOT: scf.for
// CHECK: return
tile.program @double(%x: !tile.view<?x64xf32>, %y: !tile.view<?x64xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 16)> order [parallel] {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %block = tile.id 0
  %row = arith.muli %block, %c16 : index
  %a = tile.load %x[%row, %c0] dims [0, 1] : !tile.view<?x64xf32> -> tensor<16x64xf32>
  %b = arith.addf %a, %a : tensor<16x64xf32>
  tile.store %b, %y[%row, %c0] dims [0, 1] : tensor<16x64xf32>, !tile.view<?x64xf32>
  tile.return
}

// An ordered dim is a loop inside the task; accumulating is a load, a sum and a
// store, and the first turn stores.
// CHECK-LABEL: func.func @ordered
// CHECK: scf.for
// CHECK: scf.for
// CHECK: llvm.store
// CHECK: scf.for
// CHECK: %[[NEW:.*]] = llvm.load {{.*}} -> vector
// CHECK: %[[OLD:.*]] = llvm.load {{.*}} -> vector
// CHECK: %[[SUM:.*]] = arith.addf %[[OLD]], %[[NEW]]
// CHECK: arith.select %{{.*}}, %[[NEW]], %[[SUM]]
// CHECK: llvm.store
tile.program @ordered(%x: !tile.view<?x64xf32>, %y: !tile.view<1x64xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t)> order [ordered] {
  %c0 = arith.constant 0 : index
  %t = tile.id 0
  %first = arith.cmpi eq, %t, %c0 : index
  %a = tile.load %x[%t, %c0] dims [0, 1] : !tile.view<?x64xf32> -> tensor<1x64xf32>
  tile.accumulate %a, %y[%c0, %c0] dims [0, 1] first(%first) : tensor<1x64xf32>, !tile.view<1x64xf32>
  tile.return
}

// Equal products share one function, which keeps its sums in registers.
// CHECK-LABEL: func.func @products
// CHECK: call @[[DOT:dot_16x16x16[a-z0-9_]*]]
// CHECK: call @[[DOT]]
// CHECK: func.func private @[[DOT]]
// CHECK-SAME: passthrough = ["noinline"]
// CHECK: llvm.intr.fmuladd
tile.program @products(%x: !tile.view<?x16xf32>, %y: !tile.view<?x16xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (1)> order [parallel] {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %a = tile.load %x[%c0, %c0] dims [0, 1] : !tile.view<?x16xf32> -> tensor<16x16xf32>
  %p = tile.dot %a, %a, %zero : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
  %q = tile.dot %p, %p, %zero : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
  tile.store %q, %y[%c0, %c0] dims [0, 1] : tensor<16x16xf32>, !tile.view<?x16xf32>
  tile.return
}
