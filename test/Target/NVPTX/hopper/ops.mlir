// RUN: hybrid-opt %s | hybrid-opt | FileCheck %s

// Everything that a kernel declares, and what its roles do with it.
// CHECK-LABEL: hopper.kernel @product
// CHECK-SAME: traversal [1, 0] descending [] group 4
hopper.kernel @product(%a: !tile.view<?x128xbf16>, %c: !tile.view<?x128xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 128, 1)>
    traversal [1, 0] descending [] group 4 {
  %c0 = arith.constant 0 : i32
  // CHECK: hopper.tensor_map %{{.*}} : !tile.view<?x128xbf16> -> !hopper.map<128x64xbf16>
  %m = hopper.tensor_map %a : !tile.view<?x128xbf16> -> !hopper.map<128x64xbf16>
  // CHECK: hopper.allocate : !hopper.buffer<4x128x64xbf16>
  %ring = hopper.allocate : !hopper.buffer<4x128x64xbf16>
  // CHECK: hopper.make_barriers arrivals 1 : !hopper.barriers<4>
  %full = hopper.make_barriers arrivals 1 : !hopper.barriers<4>
  %empty = hopper.make_barriers arrivals 8 : !hopper.barriers<4>
  %slot = arith.constant 2 : i32
  %parity = arith.constant 1 : i32
  // CHECK: hopper.roles [1, 2] [24, 240] [true, false] {
  hopper.roles [1, 2] [24, 240] [true, false] {
    // CHECK: %[[BLOCK:.*]] = hopper.id 0
    %block = hopper.id 0
    // Points of a persistent kernel.
    // CHECK: hopper.block
    %number = hopper.block
    // CHECK: %[[STEP:.*]] = hopper.blocks
    %step = hopper.blocks
    // CHECK: hopper.tasks
    %tasks = hopper.tasks
    // CHECK: hopper.id 1 of %[[STEP]]
    %other = hopper.id 1 of %step
    %row = arith.addi %block, %block : index
    %column = arith.constant 64 : index
    // CHECK: hopper.wait %{{.*}}[%{{.*}}] parity %{{.*}} : !hopper.barriers<4>
    hopper.wait %empty[%slot] parity %parity : !hopper.barriers<4>
    // CHECK: hopper.expect %{{.*}}[%{{.*}}] bytes 16384 : !hopper.barriers<4>
    hopper.expect %full[%slot] bytes 16384 : !hopper.barriers<4>
    // CHECK: hopper.tensor_load %{{.*}}[%{{.*}}, %{{.*}}] dims [0, 1] to %{{.*}}[%{{.*}}] signals %{{.*}}[%{{.*}}]
    hopper.tensor_load %m[%row, %column] dims [0, 1] to %ring[%slot] signals %full[%slot]
      : !hopper.map<128x64xbf16>, !hopper.buffer<4x128x64xbf16>, !hopper.barriers<4>
    hopper.yield
  }, {
    // CHECK: hopper.warpgroup
    %w = hopper.warpgroup
    %n = arith.index_cast %w : index to i32
    %r = arith.constant 64 : i32
    %first = arith.constant 100 : i32
    hopper.wait %full[%slot] parity %parity : !hopper.barriers<4>
    // CHECK: hopper.clear_rows %{{.*}}[%{{.*}}] from %{{.*}} : !hopper.buffer<4x128x64xbf16>
    hopper.clear_rows %ring[%slot] from %first : !hopper.buffer<4x128x64xbf16>
    // CHECK: hopper.sync %{{.*}} threads 256
    hopper.sync %n threads 256
    // CHECK: hopper.signal %{{.*}} threads 256
    hopper.signal %n threads 256
    // CHECK: hopper.submatrix %{{.*}}[%{{.*}}] row %{{.*}} -> !hopper.matrix<64x64x128xbf16>
    %left = hopper.submatrix %ring[%slot] row %r : !hopper.buffer<4x128x64xbf16> -> !hopper.matrix<64x64x128xbf16>
    %right = hopper.submatrix %ring[%slot] row %c0 : !hopper.buffer<4x128x64xbf16> -> !hopper.matrix<128x64x128xbf16>
    %zero = arith.constant dense<0.0> : tensor<64x128xf32>
    // CHECK: hopper.product_fence
    hopper.product_fence
    // CHECK: hopper.product %{{.*}}, %{{.*}} {transpose_b}
    %s = hopper.product %left, %right {transpose_b}
      : !hopper.matrix<64x64x128xbf16>, !hopper.matrix<128x64x128xbf16> -> !hopper.flight<64x128xf32>
    // A left operand in columns: 64 of them, and all rows as the depth.
    // CHECK: hopper.submatrix %{{.*}}[%{{.*}}] row %{{.*}} column %{{.*}} -> !hopper.matrix<128x64x128xbf16>
    %columns = hopper.submatrix %ring[%slot] row %c0 column %c0 : !hopper.buffer<4x128x64xbf16> -> !hopper.matrix<128x64x128xbf16>
    // CHECK: hopper.product %{{.*}}, %{{.*}} {transpose_a}
    %g = hopper.product %columns, %right {transpose_a}
      : !hopper.matrix<128x64x128xbf16>, !hopper.matrix<128x64x128xbf16> -> !hopper.flight<64x64xf32>
    // CHECK: hopper.product_commit
    hopper.product_commit
    // CHECK: hopper.accumulator %{{.*}} : tensor<64x128xf32> -> !hopper.flight<64x128xf32>
    %f = hopper.accumulator %zero : tensor<64x128xf32> -> !hopper.flight<64x128xf32>
    // CHECK: hopper.product_wait %{{.*}} pending 0 : !hopper.flight<64x128xf32> -> tensor<64x128xf32>
    %t = hopper.product_wait %s pending 0 : !hopper.flight<64x128xf32> -> tensor<64x128xf32>
    // The left operand in registers, and a sum that goes on.
    %p = arith.truncf %t : tensor<64x128xf32> to tensor<64x128xbf16>
    // CHECK: hopper.product %{{.*}}, %{{.*}} plus %{{.*}} : !hopper.flight<64x64xf32> : tensor<64x128xbf16>, !hopper.matrix<128x64x128xbf16>
    %few = arith.constant dense<0.0> : tensor<64x64xf32>
    %sum = hopper.accumulator %few : tensor<64x64xf32> -> !hopper.flight<64x64xf32>
    %o = hopper.product %p, %right plus %sum : !hopper.flight<64x64xf32>
      : tensor<64x128xbf16>, !hopper.matrix<128x64x128xbf16> -> !hopper.flight<64x64xf32>
    // CHECK: hopper.product_wait pending 1
    hopper.product_wait pending 1
    // CHECK: hopper.arrive %{{.*}}[%{{.*}}] : !hopper.barriers<4>
    hopper.arrive %empty[%slot] : !hopper.barriers<4>
    hopper.yield
  }
}

// A box has a size per dim of the view.
// CHECK-LABEL: hopper.kernel @heads
// CHECK-SAME: descending [0]
hopper.kernel @heads(%q: !tile.view<?x16x64xbf16>)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 128)>
    traversal [0] descending [0] group 1 {
  // CHECK: !hopper.map<128x1x64xbf16>
  %m = hopper.tensor_map %q : !tile.view<?x16x64xbf16> -> !hopper.map<128x1x64xbf16>
  hopper.roles [1, 2] [24, 240] [true, false] {
    hopper.yield
  }, {
    %w = hopper.warpgroup
    hopper.yield
  }
}

// How blocks start, beside a schedule.
tile.program @program(%x: !tile.view<?x64xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> order [parallel, parallel] {
  tile.return
}
// CHECK: hopper.descending = array<i64: 0>, hopper.group = 8 : i64, hopper.traversal = array<i64: 1, 0>
tile.schedule @program target("sm_90a") roles {} ops {}
  {hopper.traversal = array<i64: 1, 0>, hopper.descending = array<i64: 0>, hopper.group = 8}
