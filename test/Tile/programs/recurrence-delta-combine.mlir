// RUN: hybrid-opt %s | FileCheck %s

// The state before every part of a segment, from the maps of the parts.
//
// sm_90a: a chain of one product per part; the state stays in the accumulators of
// two warp groups, maps and increments come two parts ahead.

// CHECK-LABEL: tile.program @recurrence_combine
// CHECK:         tile.name = "load_increment"
// CHECK:         tile.name = "load_map"
// CHECK:         tile.name = "combine"
// CHECK:       tile.schedule @recurrence_combine target("sm_90a")

tile.program @recurrence_combine(%arg0: !tile.view<?x4xi32>, %arg1: !tile.view<?xi32>, %arg2: !tile.view<?x2x128x128xf32>, %arg3: !tile.view<?x2x128x128xf32>, %arg4: !tile.view<?x2x128x128xf32>, %arg5: !tile.view<?x2x128x128xf32>) grid affine_map<()[s0, s1, s2, s3, s4, s5] -> (s1, 2)> order [parallel, parallel] {
  %0 = tile.id 0
  %1 = tile.id 1
  %c0 = arith.constant 0 : index
  %c0_0 = arith.constant 0 : index
  %2 = tile.load_scalar %arg0[%0, %c0_0] : !tile.view<?x4xi32>
  %3 = arith.index_cast %2 : i32 to index
  %c1 = arith.constant 1 : index
  %4 = tile.load_scalar %arg0[%0, %c1] : !tile.view<?x4xi32>
  %5 = arith.index_cast %4 : i32 to index
  %c2 = arith.constant 2 : index
  %6 = tile.load_scalar %arg0[%0, %c2] : !tile.view<?x4xi32>
  %7 = arith.index_cast %6 : i32 to index
  %c3 = arith.constant 3 : index
  %8 = tile.load_scalar %arg0[%0, %c3] : !tile.view<?x4xi32>
  %9 = arith.index_cast %8 : i32 to index
  %c256 = arith.constant 256 : index
  %10 = arith.divsi %3, %c256 : index
  %11 = arith.addi %10, %0 : index
  %12 = arith.subi %5, %3 : index
  %c256_1 = arith.constant 256 : index
  %13 = arith.ceildivsi %12, %c256_1 : index
  %14 = tile.load %arg4[%7, %1, %c0, %c0] dims [2, 3] : !tile.view<?x2x128x128xf32> -> tensor<128x128xf32>
  %c1_2 = arith.constant 1 : index
  %15 = scf.for %arg6 = %c0 to %13 step %c1_2 iter_args(%arg7 = %14) -> (tensor<128x128xf32>) {
    %16 = arith.addi %11, %arg6 : index
    tile.store %arg7, %arg5[%16, %1, %c0, %c0] dims [2, 3] : tensor<128x128xf32>, !tile.view<?x2x128x128xf32>
    %load_increment = tile.load %arg3[%16, %1, %c0, %c0] dims [2, 3] {tile.name = "load_increment"} : !tile.view<?x2x128x128xf32> -> tensor<128x128xf32>
    %load_map = tile.load %arg2[%16, %1, %c0, %c0] dims [2, 3] {tile.name = "load_map"} : !tile.view<?x2x128x128xf32> -> tensor<128x128xf32>
    %combine = tile.dot %load_map, %arg7, %load_increment {tile.name = "combine"} : tensor<128x128xf32>, tensor<128x128xf32> -> tensor<128x128xf32>
    scf.yield %combine : tensor<128x128xf32>
  }
  tile.store %15, %arg4[%7, %1, %c0, %c0] dims [2, 3] : tensor<128x128xf32>, !tile.view<?x2x128x128xf32>
  tile.return
}

tile.schedule @recurrence_combine target("sm_90a")
    roles {load = {warpgroups = 1, registers = 24},
           state = {warpgroups = 2, registers = 240}}
    ops {
      load_increment = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      load_map = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      combine = {role = "state", stage = 1, issue = 0, operand = "shared"}
    }
