// RUN: hybrid-opt %s | FileCheck %s

// The outputs of all parts at once, each from the state before it.
//
// sm_90a: as recurrence-delta-forward, one block per part and head.

// CHECK-LABEL: tile.program @recurrence_apply
// CHECK:         tile.name = "load_state"
// CHECK:         tile.name = "inverse"
// CHECK:         tile.name = "outputs"
// CHECK:         tile.name = "next_state"
// CHECK:       tile.schedule @recurrence_apply target("sm_90a")

tile.program @recurrence_apply(%arg0: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg1: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg2: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg3: !tile.view<?x4xi32>, %arg4: !tile.view<?xi32>, %arg5: !tile.view<?x2x1xf32, strides = [?, 1, 1]>, %arg6: !tile.view<?x2xf32, strides = [?, 1]>, %arg7: !tile.view<?x2x128x128xf32>, %arg8: !tile.view<?x2x128xf32, strides = [?, 128, 1]>) grid affine_map<()[s0, s1, s2, s3, s4, s5] -> (s1, 2, s2 ceildiv 256)> order [parallel, parallel, parallel] attributes {tile.caution = "a delta update multiplies what the state holds along a key by 1 - beta times the key's squared length, so it grows without bound where that product is above 2; normalise the keys or lower beta"} {
  %c0 = arith.constant 0 : index
  %0 = tile.id 1
  %1 = tile.id 0
  %2 = tile.id 2
  %c0_0 = arith.constant 0 : index
  %3 = tile.load_scalar %arg3[%1, %c0_0] : !tile.view<?x4xi32>
  %4 = arith.index_cast %3 : i32 to index
  %c1 = arith.constant 1 : index
  %5 = tile.load_scalar %arg3[%1, %c1] : !tile.view<?x4xi32>
  %6 = arith.index_cast %5 : i32 to index
  %c2 = arith.constant 2 : index
  %7 = tile.load_scalar %arg3[%1, %c2] : !tile.view<?x4xi32>
  %8 = arith.index_cast %7 : i32 to index
  %c3 = arith.constant 3 : index
  %9 = tile.load_scalar %arg3[%1, %c3] : !tile.view<?x4xi32>
  %10 = arith.index_cast %9 : i32 to index
  %c256 = arith.constant 256 : index
  %11 = arith.muli %2, %c256 : index
  %12 = arith.addi %4, %11 : index
  %13 = arith.minsi %12, %6 : index
  %c256_1 = arith.constant 256 : index
  %14 = arith.addi %13, %c256_1 : index
  %15 = arith.minsi %14, %6 : index
  %c256_2 = arith.constant 256 : index
  %16 = arith.divsi %4, %c256_2 : index
  %17 = arith.addi %16, %1 : index
  %18 = arith.addi %17, %2 : index
  %19 = arith.cmpi slt, %13, %15 : index
  %c128 = arith.constant 128 : index
  %20 = arith.select %19, %c128, %c0 : index
  %load_state = tile.load %arg7[%18, %0, %c0, %c0] dims [2, 3] limit(%20) {tile.name = "load_state"} : !tile.view<?x2x128x128xf32> -> tensor<128x128xf32>
  %c64 = arith.constant 64 : index
  %21 = scf.for %arg9 = %13 to %15 step %c64 iter_args(%arg10 = %load_state) -> (tensor<128x128xf32>) {
    %load_key = tile.load %arg1[%arg9, %0, %c0] dims [0, 2] limit(%15) {tile.name = "load_key"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %load_value = tile.load %arg2[%arg9, %0, %c0] dims [0, 2] limit(%15) {tile.name = "load_value"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %load_query = tile.load %arg0[%arg9, %0, %c0] dims [0, 2] limit(%15) {tile.name = "load_query"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %cst = arith.constant dense<0.0883883461> : tensor<64x128xf32>
    %22 = arith.mulf %load_query, %cst : tensor<64x128xf32>
    %load_beta = tile.load %arg6[%arg9, %0] dims [0, 1] limit(%15) {tile.name = "load_beta"} : !tile.view<?x2xf32, strides = [?, 1]> -> tensor<64x1xf32>
    %load_decay = tile.load %arg5[%arg9, %0, %c0] dims [0, 2] limit(%15) {tile.name = "load_decay"} : !tile.view<?x2x1xf32, strides = [?, 1, 1]> -> tensor<64x1xf32>
    %23 = tile.prefix_sum %load_decay dim 0 {reverse} : tensor<64x1xf32>
    %24 = tile.slice %23 dim 0 offset 1 size 63 : tensor<64x1xf32>
    %25 = tile.prefix_sum %load_decay dim 0 : tensor<64x1xf32>
    %26 = math.exp %25 : tensor<64x1xf32>
    %cst_3 = arith.constant dense<0.000000e+00> : tensor<1x1xf32>
    %27 = tile.concat %24, %cst_3 dim 0 : tensor<63x1xf32>, tensor<1x1xf32>
    %28 = math.exp %27 : tensor<64x1xf32>
    %29 = tile.slice %26 dim 0 offset 63 size 1 : tensor<64x1xf32>
    %30 = tile.iota dim 1 : tensor<1x64xi32>
    %31 = tile.iota dim 0 : tensor<64x1xi32>
    %32 = tile.broadcast %30 : tensor<1x64xi32> to tensor<64x64xi32>
    %33 = tile.broadcast %31 : tensor<64x1xi32> to tensor<64x64xi32>
    %34 = arith.cmpi slt, %32, %33 : tensor<64x64xi32>
    %cst_4 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %35 = tile.broadcast %load_decay : tensor<64x1xf32> to tensor<64x64xf32>
    %36 = arith.select %34, %35, %cst_4 : tensor<64x64xi1>, tensor<64x64xf32>
    %37 = tile.prefix_sum %36 dim 0 : tensor<64x64xf32>
    %38 = tile.iota dim 1 : tensor<1x64xi32>
    %39 = tile.iota dim 0 : tensor<64x1xi32>
    %40 = tile.broadcast %38 : tensor<1x64xi32> to tensor<64x64xi32>
    %41 = tile.broadcast %39 : tensor<64x1xi32> to tensor<64x64xi32>
    %42 = arith.cmpi sle, %40, %41 : tensor<64x64xi32>
    %43 = math.exp %37 : tensor<64x64xf32>
    %cst_5 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %44 = arith.select %42, %43, %cst_5 : tensor<64x64xi1>, tensor<64x64xf32>
    %cst_6 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %query_scores = tile.dot %22, %load_key, %cst_6 {tile.name = "query_scores", transpose_b} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<64x64xf32>
    %45 = arith.mulf %query_scores, %44 : tensor<64x64xf32>
    %cst_7 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %key_scores = tile.dot %load_key, %load_key, %cst_7 {tile.name = "key_scores", transpose_b} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<64x64xf32>
    %46 = arith.mulf %key_scores, %44 : tensor<64x64xf32>
    %47 = tile.broadcast %load_beta : tensor<64x1xf32> to tensor<64x64xf32>
    %48 = arith.mulf %47, %46 : tensor<64x64xf32>
    %inverse = tile.unit_lower_inverse %48 {tile.name = "inverse"} : tensor<64x64xf32>
    %49 = tile.broadcast %26 : tensor<64x1xf32> to tensor<64x128xf32>
    %50 = arith.mulf %49, %load_key : tensor<64x128xf32>
    %cst_8 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %predict = tile.dot %50, %arg10, %cst_8 {tile.name = "predict"} : tensor<64x128xf32>, tensor<128x128xf32> -> tensor<64x128xf32>
    %51 = arith.subf %load_value, %predict : tensor<64x128xf32>
    %52 = tile.broadcast %load_beta : tensor<64x1xf32> to tensor<64x128xf32>
    %53 = arith.mulf %52, %51 : tensor<64x128xf32>
    %cst_9 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %updates = tile.dot %inverse, %53, %cst_9 {tile.name = "updates"} : tensor<64x64xf32>, tensor<64x128xf32> -> tensor<64x128xf32>
    %54 = tile.broadcast %26 : tensor<64x1xf32> to tensor<64x128xf32>
    %55 = arith.mulf %54, %22 : tensor<64x128xf32>
    %cst_10 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %read_state = tile.dot %55, %arg10, %cst_10 {tile.name = "read_state"} : tensor<64x128xf32>, tensor<128x128xf32> -> tensor<64x128xf32>
    %outputs = tile.dot %45, %updates, %read_state {tile.name = "outputs"} : tensor<64x64xf32>, tensor<64x128xf32> -> tensor<64x128xf32>
    tile.store %outputs, %arg8[%arg9, %0, %c0] dims [0, 2] limit(%15) {tile.name = "store_output"} : tensor<64x128xf32>, !tile.view<?x2x128xf32, strides = [?, 128, 1]>
    %56 = tile.broadcast %28 : tensor<64x1xf32> to tensor<64x128xf32>
    %57 = arith.mulf %56, %load_key : tensor<64x128xf32>
    %58 = tile.broadcast %29 : tensor<1x1xf32> to tensor<128x128xf32>
    %59 = arith.mulf %58, %arg10 : tensor<128x128xf32>
    %next_state = tile.dot %57, %updates, %59 {tile.name = "next_state", transpose_a} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<128x128xf32>
    scf.yield %next_state : tensor<128x128xf32>
  }
  tile.return
}

tile.schedule @recurrence_apply target("sm_90a")
    roles {load = {warpgroups = 1, registers = 24},
           local = {warpgroups = 1, registers = 160},
           state = {warpgroups = 2, registers = 160}}
    ops {
      load_state = {role = "load", stage = 0, buffers = 1, barrier = "mbarrier"},
      load_query = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      load_key = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      load_value = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      load_beta = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      load_decay = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      key_scores = {role = "local", stage = 1, issue = 0, operand = "shared"},
      query_scores = {role = "local", stage = 1, buffers = 2, issue = 1, barrier = "named", operand = "shared"},
      inverse = {role = "local", stage = 1, buffers = 2, issue = 2, barrier = "named"},
      predict = {role = "state", stage = 2, issue = 0, operand = "shared"},
      read_state = {role = "state", stage = 2, issue = 1, wait = 1, operand = "shared"},
      updates = {role = "state", stage = 2, issue = 2, operand = "shared"},
      next_state = {role = "state", stage = 2, issue = 3, operand = "shared"},
      outputs = {role = "state", stage = 2, issue = 4, wait = 1, operand = "shared"},
      store_output = {role = "state", stage = 2, buffers = 1, issue = 5}
    }
