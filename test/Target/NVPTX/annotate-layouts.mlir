// RUN: hybrid-opt %s -hybrid-nvptx-annotate-layouts | FileCheck %s

// Rows whose maximum is asked for lie whole in a warp; the maximum is the
// accumulator without its columns, and the other operand is read as the sum is.
// A mask is computed where it is used.
// CHECK-LABEL: tile.program @rows
// CHECK: tile.load %{{.*}} {gpu.layout = ["registers [4 x 1 of dim 1, 4 x 16 of dim 0] lanes [8 x 4 of dim 1, 4 x 1 of dim 0] warps [4 x 4 of dim 0]"]}
// CHECK: tile.iota dim 1 {gpu.layout = ["where used"]}
// CHECK: tile.dot {{.*}}gpu.layout = ["registers [2 x 1 of dim 1, 2 x 8 of dim 0, 8 x 8 of dim 1] lanes [4 x 2 of dim 1, 8 x 1 of dim 0] warps [4 x 16 of dim 0]"]
// CHECK: tile.reduce max {{.*}}gpu.layout = ["registers [2 x 8 of dim 0] lanes [4 copies, 8 x 1 of dim 0] warps [4 x 16 of dim 0]"]
// CHECK: arith.subf {{.*}}gpu.layout = ["registers [2 x 1 of dim 1, 2 x 8 of dim 0, 8 x 8 of dim 1]
!m = !tile.view<64x32xf32>
!s = !tile.view<64x64xf32>
tile.program @rows(%q: !m, %k: !m, %y: !s)
    grid affine_map<()[t, s, l, n, c, d] -> (1)> order [parallel] {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %a = tile.load %q[%c0, %c0] dims [0, 1] : !m -> tensor<64x32xf32>
  %b = tile.load %k[%c0, %c0] dims [0, 1] : !m -> tensor<64x32xf32>
  %column = tile.iota dim 1 : tensor<64x64xi32>
  %row = tile.iota dim 0 : tensor<64x64xi32>
  %seen = arith.cmpi sle, %column, %row : tensor<64x64xi32>
  %scores = tile.dot %a, %b, %zero {transpose_b} : tensor<64x32xf32>, tensor<64x32xf32> -> tensor<64x64xf32>
  %masked = arith.select %seen, %scores, %zero : tensor<64x64xi1>, tensor<64x64xf32>
  %max = tile.reduce max %masked dim 1 : tensor<64x64xf32>
  %wide = tile.broadcast %max : tensor<64x1xf32> to tensor<64x64xf32>
  %shifted = arith.subf %masked, %wide : tensor<64x64xf32>
  tile.store %shifted, %y[%c0, %c0] dims [0, 1] : tensor<64x64xf32>, !s
  tile.return
}

// In a kernel that begins early a column that is loaded to be stretched lies
// where the rows do, of which there are 16 in two turns: one load.
// CHECK-LABEL: tile.program @stretched
// CHECK: tile.load {{.*}}gpu.layout = ["registers [2 x 8 of dim 0] lanes [32 copies] warps [8 x 1 of dim 0]"]{{.*}}tensor<12x1xf32>
// CHECK: arith.mulf {{.*}}gpu.layout = ["registers [4 x 1 of dim 1, 2 x 8 of dim 0] lanes [32 x 4 of dim 1] warps [8 x 1 of dim 0]"]
// CHECK-LABEL: tile.program @stretched_late
// CHECK: tile.load {{.*}}gpu.layout = ["registers [] lanes [16 x 1 of dim 0, 2 copies] warps [8 copies]"]{{.*}}tensor<12x1xf32>
!part = !tile.view<12x128xf32>
!weight = !tile.view<12x1xf32>
!all = !tile.view<1536x16xf32>
tile.program @stretched(%x: !part, %w: !weight, %m: !all, %y: !part, %z: !all)
    grid affine_map<()[t, s, l, n, c, d] -> (1)> order [parallel]
    attributes {tile.overlap = array<i64>} {
  %c0 = arith.constant 0 : index
  %column = tile.load %w[%c0, %c0] dims [0, 1] : !weight -> tensor<12x1xf32>
  %wide = tile.broadcast %column : tensor<12x1xf32> to tensor<12x128xf32>
  %rows = tile.load %x[%c0, %c0] dims [0, 1] : !part -> tensor<12x128xf32>
  %product = arith.mulf %rows, %wide : tensor<12x128xf32>
  tile.store %product, %y[%c0, %c0] dims [0, 1] : tensor<12x128xf32>, !part
  %large = tile.load %m[%c0, %c0] dims [0, 1] : !all -> tensor<1536x16xf32>
  tile.store %large, %z[%c0, %c0] dims [0, 1] : tensor<1536x16xf32>, !all
  tile.return
}
tile.program @stretched_late(%x: !part, %w: !weight, %m: !all, %y: !part, %z: !all)
    grid affine_map<()[t, s, l, n, c, d] -> (1)> order [parallel] {
  %c0 = arith.constant 0 : index
  %column = tile.load %w[%c0, %c0] dims [0, 1] : !weight -> tensor<12x1xf32>
  %wide = tile.broadcast %column : tensor<12x1xf32> to tensor<12x128xf32>
  %rows = tile.load %x[%c0, %c0] dims [0, 1] : !part -> tensor<12x128xf32>
  %product = arith.mulf %rows, %wide : tensor<12x128xf32>
  tile.store %product, %y[%c0, %c0] dims [0, 1] : tensor<12x128xf32>, !part
  %large = tile.load %m[%c0, %c0] dims [0, 1] : !all -> tensor<1536x16xf32>
  tile.store %large, %z[%c0, %c0] dims [0, 1] : tensor<1536x16xf32>, !all
  tile.return
}
