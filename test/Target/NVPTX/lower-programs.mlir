// RUN: hybrid-opt %s -hybrid-nvptx-lower-programs | FileCheck %s

// Elements are dealt to the threads of a block, which wait for each other.
// CHECK-LABEL: func.func @double(%{{.*}}: !llvm.ptr {llvm.align = 8 : i64, llvm.byval = !llvm.array<176 x i8>})
// CHECK: %[[ID:.*]] = llvm.call_intrinsic "llvm.nvvm.read.ptx.sreg.tid.x"
// CHECK: %[[THREAD:.*]] = arith.extui %[[ID]]
// CHECK: llvm.call_intrinsic "llvm.nvvm.read.ptx.sreg.ctaid.x"
// CHECK: scf.for %{{.*}} = %[[THREAD]] to
// CHECK: llvm.load {{.*}} -> f32
// CHECK: arith.addf
// CHECK: llvm.store
// CHECK: llvm.call_intrinsic "llvm.nvvm.barrier.cta.sync.aligned.all"
// CHECK: return
// CHECK: llvm.mlir.global external @double_scratch() {addr_space = 3 : i32
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
