// RUN: hybrid-opt %s | hybrid-opt | FileCheck %s
// RUN: hybrid-opt %s --mlir-print-op-generic | hybrid-opt | FileCheck %s

#blocks = affine_map<()[tokens, segments, longest, slots, context, depth] -> (tokens ceildiv 16)>
#two = affine_map<()[tokens, segments, longest, slots, context, depth] -> (segments, longest ceildiv 64)>

// CHECK: #[[$BLOCKS:.+]] = affine_map<()[{{.*}}] -> (s0 ceildiv 16)>
// CHECK: #[[$TWO:.+]] = affine_map<()[{{.*}}] -> (s1, s2 ceildiv 64)>

// CHECK-LABEL: tile.program @double
// CHECK-SAME: (%[[X:.*]]: !tile.view<?x64xf32>, %[[Y:.*]]: !tile.view<?x64xf32>)
// CHECK-SAME: grid #[[$BLOCKS]] order [parallel] {
tile.program @double(%x: !tile.view<?x64xf32>, %y: !tile.view<?x64xf32>)
    grid #blocks order [parallel] {
  // CHECK: %[[C0:.*]] = arith.constant 0
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  // CHECK: tile.id 0
  %block = tile.id 0
  // CHECK: %[[ROW:.*]] = arith.muli
  %row = arith.muli %block, %c16 : index
  // CHECK: %[[TOKENS:.*]] = tile.dim %[[X]], 0 : !tile.view<?x64xf32>
  %tokens = tile.dim %x, 0 : !tile.view<?x64xf32>
  // CHECK: tile.load %[[X]][%[[ROW]], %[[C0]]] dims [0, 1] limit(%[[TOKENS]])
  // CHECK-SAME: {tile.name = "read"} : !tile.view<?x64xf32> -> tensor<16x64xf32>
  %a = tile.load %x[%row, %c0] dims [0, 1] limit(%tokens) {tile.name = "read"} : !tile.view<?x64xf32> -> tensor<16x64xf32>
  // CHECK: arith.addf {{.*}} {tile.name = "sum"}
  %b = arith.addf %a, %a {tile.name = "sum"} : tensor<16x64xf32>
  // CHECK: tile.store %{{.*}}, %[[Y]][%[[ROW]], %[[C0]]] dims [0, 1] limit(%[[TOKENS]])
  // CHECK-SAME: : tensor<16x64xf32>, !tile.view<?x64xf32>
  tile.store %b, %y[%row, %c0] dims [0, 1] limit(%tokens) : tensor<16x64xf32>, !tile.view<?x64xf32>
  // CHECK: tile.return
  tile.return
}

// CHECK: tile.schedule @double target("sm_90a")
// CHECK-SAME: roles {all = {registers = 168 : i64, warpgroups = 1 : i64}}
// CHECK-SAME: ops {read = {barrier = "mbarrier", buffers = 2 : i64, role = "all", stage = 0 : i64}, sum = {role = "all", stage = 1 : i64}}
tile.schedule @double target("sm_90a")
    roles {all = {warpgroups = 1, registers = 168}}
    ops {read = {role = "all", stage = 0, buffers = 2, barrier = "mbarrier"},
         sum = {role = "all", stage = 1}}

// CHECK-LABEL: tile.program @memory
// CHECK-SAME: !tile.view<?x4xi32>
// CHECK-SAME: !tile.view<?x8x64xf32, strides = [?, 64, 1]>
// CHECK-SAME: %[[CACHE:[a-z0-9]+]]: !tile.view<?x8x?x64xf32>
// CHECK-SAME: grid #[[$TWO]] order [parallel, ordered]
tile.program @memory(%table: !tile.view<?x4xi32>,
                     %keys: !tile.view<?x8x64xf32, strides = [?, 64, 1]>,
                     // A contiguous view may spell out its strides.
                     %cache: !tile.view<?x8x?x64xf32, strides = [?, ?, 64, 1]>,
                     %grad: !tile.view<?x8x64xf32>, %sums: !tile.view<?xf32>)
    grid #two order [parallel, ordered] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %segment = tile.id 0
  %turn = tile.id 1
  // CHECK: tile.load_scalar %{{.*}}[%{{.*}}, %{{.*}}] : !tile.view<?x4xi32>
  %end32 = tile.load_scalar %table[%segment, %c1] : !tile.view<?x4xi32>
  %end = arith.index_cast %end32 : i32 to index
  // CHECK: tile.load %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] dims [0, 2] limit(%{{.*}})
  // CHECK-SAME: !tile.view<?x8x64xf32, strides = [?, 64, 1]> -> tensor<64x64xf32>
  %k = tile.load %keys[%c0, %c1, %c0] dims [0, 2] limit(%end) : !tile.view<?x8x64xf32, strides = [?, 64, 1]> -> tensor<64x64xf32>
  // One limit per tile dim, from the first.
  // CHECK: tile.load {{.*}} dims [0, 1, 2] limit(%{{.*}}, %{{.*}})
  %all = tile.load %keys[%c0, %c0, %c0] dims [0, 1, 2] limit(%end, %c1) : !tile.view<?x8x64xf32, strides = [?, 64, 1]> -> tensor<4x2x64xf32>
  %r = tile.iota dim 0 : tensor<64xi32>
  %m = arith.constant dense<true> : tensor<64xi1>
  // CHECK: tile.load_rows %[[CACHE]][{{.*}}] rows(%{{.*}}) mask(%{{.*}}) dims [2, 3] : !tile.view<?x8x?x64xf32> -> tensor<64x64xf32>
  %g = tile.load_rows %cache[%segment, %c1, %c0, %c0] rows(%r) mask(%m) dims [2, 3] : !tile.view<?x8x?x64xf32> -> tensor<64x64xf32>
  // CHECK: tile.store_rows %{{.*}}, %[[CACHE]][{{.*}}] rows(%{{.*}}) mask(%{{.*}}) dims [2, 3] : tensor<64x64xf32>, !tile.view<?x8x?x64xf32>
  tile.store_rows %k, %cache[%segment, %c1, %c0, %c0] rows(%r) mask(%m) dims [2, 3] : tensor<64x64xf32>, !tile.view<?x8x?x64xf32>
  %first = arith.cmpi eq, %turn, %c0 : index
  // CHECK: tile.accumulate {{.*}} dims [0, 2] limit(%{{.*}}) first(%{{.*}}) : tensor<64x64xf32>, !tile.view<?x8x64xf32>
  tile.accumulate %g, %grad[%c0, %c1, %c0] dims [0, 2] limit(%end) first(%first) : tensor<64x64xf32>, !tile.view<?x8x64xf32>
  // CHECK: tile.accumulate %{{[^f]*}} dims [0, 2] limit(%{{.*}}) : tensor
  tile.accumulate %k, %grad[%c0, %c0, %c0] dims [0, 2] limit(%end) : tensor<64x64xf32>, !tile.view<?x8x64xf32>
  %x = tensor.extract %k[%c0, %c1] : tensor<64x64xf32>
  // CHECK: tile.store_scalar %{{.*}}, %{{.*}}[%{{.*}}] : !tile.view<?xf32>
  tile.store_scalar %x, %sums[%segment] : !tile.view<?xf32>
  tile.return
}

// CHECK-LABEL: tile.program @values
tile.program @values(%in: !tile.view<16x64xf32>, %out: !tile.view<16x32xf32>)
    grid affine_map<()[tokens, segments, longest, slots, context, depth] -> ()> order [] {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %x = tile.load %in[%c0, %c0] dims [0, 1] : !tile.view<16x64xf32> -> tensor<16x64xf32>
  // CHECK: tile.splat %{{.*}} : tensor<16x32xf32>
  %z = tile.splat %zero : tensor<16x32xf32>
  // CHECK: tile.slice %{{.*}} dim 1 offset 32 size 32 : tensor<16x64xf32>
  %h = tile.slice %x dim 1 offset 32 size 32 : tensor<16x64xf32>
  // CHECK: tile.concat %{{.*}}, %{{.*}} dim 1 : tensor<16x32xf32>, tensor<16x32xf32>
  %w = tile.concat %h, %z dim 1 : tensor<16x32xf32>, tensor<16x32xf32>
  // CHECK: tile.transpose %{{.*}} [1, 0] : tensor<16x64xf32>
  %t = tile.transpose %x [1, 0] : tensor<16x64xf32>
  // CHECK: tile.slice %{{.*}} dim 1 offset 0 size 4 : tensor<64x16xf32>
  %n = tile.slice %t dim 1 offset 0 size 4 : tensor<64x16xf32>
  %z4 = tile.splat %zero : tensor<16x4xf32>
  // CHECK: tile.dot %{{.*}}, %{{.*}}, %{{.*}} : tensor<16x64xf32>, tensor<64x4xf32> -> tensor<16x4xf32>
  %d = tile.dot %w, %n, %z4 : tensor<16x64xf32>, tensor<64x4xf32> -> tensor<16x4xf32>
  %z16 = tile.splat %zero : tensor<16x16xf32>
  // CHECK: tile.dot %{{.*}}, %{{.*}}, %{{.*}} precision split3 {transpose_b} : tensor<16x64xf32>, tensor<16x64xf32> -> tensor<16x16xf32>
  %s = tile.dot %x, %x, %z16 precision split3 {transpose_b} : tensor<16x64xf32>, tensor<16x64xf32> -> tensor<16x16xf32>
  // CHECK: tile.unit_lower_inverse %{{.*}} : tensor<16x16xf32>
  %i = tile.unit_lower_inverse %s : tensor<16x16xf32>
  // CHECK: tile.prefix_sum %{{.*}} dim 0 : tensor<16x16xf32>
  %p = tile.prefix_sum %i dim 0 : tensor<16x16xf32>
  // CHECK: tile.prefix_sum %{{.*}} dim 0 {reverse} : tensor<16x16xf32>
  %q = tile.prefix_sum %p dim 0 {reverse} : tensor<16x16xf32>
  // CHECK: tile.reduce max %{{.*}} dim 1 : tensor<16x16xf32>
  %m = tile.reduce max %q dim 1 : tensor<16x16xf32>
  // CHECK: tile.reduce sum %{{.*}} dim 0 : tensor<16x4xf32>
  %c = tile.reduce sum %d dim 0 : tensor<16x4xf32>
  // CHECK: tile.broadcast %{{.*}} : tensor<16x1xf32> to tensor<16x32xf32>
  %b = tile.broadcast %m : tensor<16x1xf32> to tensor<16x32xf32>
  // CHECK: tile.iota dim 1 : tensor<16x32xi32>
  %col = tile.iota dim 1 : tensor<16x32xi32>
  // CHECK: tile.reshape %{{.*}} : tensor<1x4xf32> to tensor<4xf32>
  %flat = tile.reshape %c : tensor<1x4xf32> to tensor<4xf32>
  %f = arith.sitofp %col : tensor<16x32xi32> to tensor<16x32xf32>
  %y = arith.mulf %f, %b : tensor<16x32xf32>
  tile.store %y, %out[%c0, %c0] dims [0, 1] : tensor<16x32xf32>, !tile.view<16x32xf32>
  tile.return
}
