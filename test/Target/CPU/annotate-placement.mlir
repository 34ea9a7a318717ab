// RUN: hybrid-opt %s -hybrid-cpu-annotate-placement -split-input-file | FileCheck %s

// A chain with one reader runs in the nest of its reader, from the view to the
// reduction; a costly op does so unless it is stretched.
// CHECK-LABEL: tile.program @chain
// CHECK: tile.load {{.*}}cpu.home = ["in_view"]
// CHECK: arith.mulf {{.*}}cpu.home = ["fused"]
// CHECK: tile.reduce max {{.*}}cpu.home = ["buffer 0"]
// CHECK: math.exp {{.*}}cpu.home = ["buffer 0"]
// CHECK: tile.broadcast {{.*}}cpu.home = ["fused"]
// CHECK: arith.addf {{.*}}cpu.home = ["fused"]
tile.program @chain(%x: !tile.view<?x64xf32>, %y: !tile.view<?x64xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 16)> order [parallel] {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %block = tile.id 0
  %row = arith.muli %block, %c16 : index
  %a = tile.load %x[%row, %c0] dims [0, 1] : !tile.view<?x64xf32> -> tensor<16x64xf32>
  %b = arith.mulf %a, %a : tensor<16x64xf32>
  %m = tile.reduce max %b dim 1 : tensor<16x64xf32>
  %e = math.exp %m : tensor<16x1xf32>
  %w = tile.broadcast %e : tensor<16x1xf32> to tensor<16x64xf32>
  %r = arith.addf %a, %w : tensor<16x64xf32>
  tile.store %r, %y[%row, %c0] dims [0, 1] : tensor<16x64xf32>, !tile.view<?x64xf32>
  tile.return
}

// -----

// The accumulator of a product stays where it is through the loop: init,
// argument, scaled value, product and result are one buffer.
// CHECK-LABEL: tile.program @carried
// CHECK: cpu.scratch_bytes
// CHECK: arith.mulf {{.*}}cpu.home = ["buffer [[AT:[0-9]+]]"]
// CHECK: tile.dot {{.*}}cpu.home = ["buffer [[AT]]"]
// CHECK: cpu.home = ["buffer [[AT]]"]
// CHECK: tile.store
tile.program @carried(%x: !tile.view<?x16xf32>, %y: !tile.view<?x16xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (1)> order [parallel] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %half = arith.constant dense<0.5> : tensor<16x16xf32>
  %a = tile.load %x[%c0, %c0] dims [0, 1] : !tile.view<?x16xf32> -> tensor<16x16xf32>
  %sum = scf.for %i = %c0 to %c4 step %c1 iter_args(%acc = %zero) -> (tensor<16x16xf32>) {
    %scaled = arith.mulf %acc, %half : tensor<16x16xf32>
    %next = tile.dot %a, %a, %scaled : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
    scf.yield %next : tensor<16x16xf32>
  }
  tile.store %sum, %y[%c0, %c0] dims [0, 1] : tensor<16x16xf32>, !tile.view<?x16xf32>
  tile.return
}

// -----

// Must not: memory that is written before the last use is copied first, since an
// output may be tied to an input.
// CHECK-LABEL: tile.program @overwritten
// CHECK: tile.load {{.*}}cpu.home = ["buffer {{[0-9]+}}"]
tile.program @overwritten(%x: !tile.view<?x64xf32>, %y: !tile.view<?x64xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (1)> order [parallel] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = tile.load %x[%c0, %c0] dims [0, 1] : !tile.view<?x64xf32> -> tensor<1x64xf32>
  tile.store %a, %y[%c0, %c0] dims [0, 1] : tensor<1x64xf32>, !tile.view<?x64xf32>
  tile.store %a, %y[%c1, %c0] dims [0, 1] : tensor<1x64xf32>, !tile.view<?x64xf32>
  tile.return
}

// -----

// Must not: the factor of a product is read until its end, so the product does
// not overwrite it.
// CHECK-LABEL: tile.program @factor
// CHECK: arith.addf {{.*}}cpu.home = ["buffer [[FACTOR:[0-9]+]]"]
// CHECK-NOT: tile.dot {{.*}}cpu.home = ["buffer [[FACTOR]]"]
// CHECK: tile.dot
tile.program @factor(%x: !tile.view<?x16xf32>, %y: !tile.view<?x16xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (1)> order [parallel] {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%c0, %c0] dims [0, 1] : !tile.view<?x16xf32> -> tensor<16x16xf32>
  %b = arith.addf %a, %a : tensor<16x16xf32>
  %p = tile.dot %b, %a, %b : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
  tile.store %p, %y[%c0, %c0] dims [0, 1] : tensor<16x16xf32>, !tile.view<?x16xf32>
  tile.return
}
