// RUN: hybrid-opt %s | FileCheck %s

// What a part of 256 tokens does to a state, S ↦ M S + Δ: Δ is the walk from zero,
// M the walk of the identity without values.
//
// sm_90a: one block per part and head, both walks side by side: they share keys,
// scores and inverse.

// CHECK-LABEL: tile.program @recurrence_summary
// CHECK:         tile.name = "next_state"
// CHECK:         tile.name = "map.next_state"
// CHECK:       tile.schedule @recurrence_summary target("sm_90a")

tile.program @recurrence_summary(%arg0: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg1: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg2: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg3: !tile.view<?x4xi32>, %arg4: !tile.view<?xi32>, %arg5: !tile.view<?x2x1xf32, strides = [?, 1, 1]>, %arg6: !tile.view<?x2xf32, strides = [?, 1]>, %arg7: !tile.view<?x2x128x128xf32>, %arg8: !tile.view<?x2x128x128xf32>) grid affine_map<()[s0, s1, s2, s3, s4, s5] -> (s1, 2, s2 ceildiv 256)> order [parallel, parallel, parallel] attributes {tile.caution = "a delta update multiplies what the state holds along a key by 1 - beta times the key's squared length, so it grows without bound where that product is above 2; normalise the keys or lower beta"} {
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
  %cst = arith.constant dense<0.000000e+00> : tensor<128x128xf32>
  %c64 = arith.constant 64 : index
  %21 = scf.for %arg9 = %13 to %15 step %c64 iter_args(%arg10 = %cst) -> (tensor<128x128xf32>) {
    %load_key = tile.load %arg1[%arg9, %0, %c0] dims [0, 2] limit(%15) {tile.name = "load_key"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %load_value = tile.load %arg2[%arg9, %0, %c0] dims [0, 2] limit(%15) {tile.name = "load_value"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %load_beta = tile.load %arg6[%arg9, %0] dims [0, 1] limit(%15) {tile.name = "load_beta"} : !tile.view<?x2xf32, strides = [?, 1]> -> tensor<64x1xf32>
    %load_decay = tile.load %arg5[%arg9, %0, %c0] dims [0, 2] limit(%15) {tile.name = "load_decay"} : !tile.view<?x2x1xf32, strides = [?, 1, 1]> -> tensor<64x1xf32>
    %29 = tile.prefix_sum %load_decay dim 0 {reverse} : tensor<64x1xf32>
    %30 = tile.slice %29 dim 0 offset 1 size 63 : tensor<64x1xf32>
    %31 = tile.prefix_sum %load_decay dim 0 : tensor<64x1xf32>
    %32 = math.exp %31 : tensor<64x1xf32>
    %cst_6 = arith.constant dense<0.000000e+00> : tensor<1x1xf32>
    %33 = tile.concat %30, %cst_6 dim 0 : tensor<63x1xf32>, tensor<1x1xf32>
    %34 = math.exp %33 : tensor<64x1xf32>
    %35 = tile.slice %32 dim 0 offset 63 size 1 : tensor<64x1xf32>
    %36 = tile.iota dim 1 : tensor<1x64xi32>
    %37 = tile.iota dim 0 : tensor<64x1xi32>
    %38 = tile.broadcast %36 : tensor<1x64xi32> to tensor<64x64xi32>
    %39 = tile.broadcast %37 : tensor<64x1xi32> to tensor<64x64xi32>
    %40 = arith.cmpi slt, %38, %39 : tensor<64x64xi32>
    %cst_7 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %41 = tile.broadcast %load_decay : tensor<64x1xf32> to tensor<64x64xf32>
    %42 = arith.select %40, %41, %cst_7 : tensor<64x64xi1>, tensor<64x64xf32>
    %43 = tile.prefix_sum %42 dim 0 : tensor<64x64xf32>
    %44 = tile.iota dim 1 : tensor<1x64xi32>
    %45 = tile.iota dim 0 : tensor<64x1xi32>
    %46 = tile.broadcast %44 : tensor<1x64xi32> to tensor<64x64xi32>
    %47 = tile.broadcast %45 : tensor<64x1xi32> to tensor<64x64xi32>
    %48 = arith.cmpi sle, %46, %47 : tensor<64x64xi32>
    %49 = math.exp %43 : tensor<64x64xf32>
    %cst_8 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %50 = arith.select %48, %49, %cst_8 : tensor<64x64xi1>, tensor<64x64xf32>
    %cst_9 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %key_scores = tile.dot %load_key, %load_key, %cst_9 {tile.name = "key_scores", transpose_b} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<64x64xf32>
    %51 = arith.mulf %key_scores, %50 : tensor<64x64xf32>
    %52 = tile.broadcast %load_beta : tensor<64x1xf32> to tensor<64x64xf32>
    %53 = arith.mulf %52, %51 : tensor<64x64xf32>
    %inverse = tile.unit_lower_inverse %53 {tile.name = "inverse"} : tensor<64x64xf32>
    %54 = tile.broadcast %32 : tensor<64x1xf32> to tensor<64x128xf32>
    %55 = arith.mulf %54, %load_key : tensor<64x128xf32>
    %cst_10 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %predict = tile.dot %55, %arg10, %cst_10 {tile.name = "predict"} : tensor<64x128xf32>, tensor<128x128xf32> -> tensor<64x128xf32>
    %56 = arith.subf %load_value, %predict : tensor<64x128xf32>
    %57 = tile.broadcast %load_beta : tensor<64x1xf32> to tensor<64x128xf32>
    %58 = arith.mulf %57, %56 : tensor<64x128xf32>
    %cst_11 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %updates = tile.dot %inverse, %58, %cst_11 {tile.name = "updates"} : tensor<64x64xf32>, tensor<64x128xf32> -> tensor<64x128xf32>
    %59 = tile.broadcast %34 : tensor<64x1xf32> to tensor<64x128xf32>
    %60 = arith.mulf %59, %load_key : tensor<64x128xf32>
    %61 = tile.broadcast %35 : tensor<1x1xf32> to tensor<128x128xf32>
    %62 = arith.mulf %61, %arg10 : tensor<128x128xf32>
    %next_state = tile.dot %60, %updates, %62 {tile.name = "next_state", transpose_a} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<128x128xf32>
    scf.yield %next_state : tensor<128x128xf32>
  }
  tile.store %21, %arg8[%18, %0, %c0, %c0] dims [2, 3] limit(%20) : tensor<128x128xf32>, !tile.view<?x2x128x128xf32>
  %22 = tile.iota dim 0 : tensor<128x1xi32>
  %23 = tile.iota dim 1 : tensor<1x128xi32>
  %24 = tile.broadcast %22 : tensor<128x1xi32> to tensor<128x128xi32>
  %25 = tile.broadcast %23 : tensor<1x128xi32> to tensor<128x128xi32>
  %26 = arith.cmpi eq, %24, %25 : tensor<128x128xi32>
  %cst_3 = arith.constant dense<1.000000e+00> : tensor<128x128xf32>
  %cst_4 = arith.constant dense<0.000000e+00> : tensor<128x128xf32>
  %27 = arith.select %26, %cst_3, %cst_4 : tensor<128x128xi1>, tensor<128x128xf32>
  %c64_5 = arith.constant 64 : index
  %28 = scf.for %arg9 = %13 to %15 step %c64_5 iter_args(%arg10 = %27) -> (tensor<128x128xf32>) {
    %map.load_key = tile.load %arg1[%arg9, %0, %c0] dims [0, 2] limit(%15) {tile.name = "map.load_key"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %map.load_value = tile.load %arg2[%arg9, %0, %c0] dims [0, 2] limit(%15) {tile.name = "map.load_value"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %map.load_beta = tile.load %arg6[%arg9, %0] dims [0, 1] limit(%15) {tile.name = "map.load_beta"} : !tile.view<?x2xf32, strides = [?, 1]> -> tensor<64x1xf32>
    %map.load_decay = tile.load %arg5[%arg9, %0, %c0] dims [0, 2] limit(%15) {tile.name = "map.load_decay"} : !tile.view<?x2x1xf32, strides = [?, 1, 1]> -> tensor<64x1xf32>
    %29 = tile.prefix_sum %map.load_decay dim 0 {reverse} : tensor<64x1xf32>
    %30 = tile.slice %29 dim 0 offset 1 size 63 : tensor<64x1xf32>
    %31 = tile.prefix_sum %map.load_decay dim 0 : tensor<64x1xf32>
    %32 = math.exp %31 : tensor<64x1xf32>
    %cst_6 = arith.constant dense<0.000000e+00> : tensor<1x1xf32>
    %33 = tile.concat %30, %cst_6 dim 0 : tensor<63x1xf32>, tensor<1x1xf32>
    %34 = math.exp %33 : tensor<64x1xf32>
    %35 = tile.slice %32 dim 0 offset 63 size 1 : tensor<64x1xf32>
    %36 = tile.iota dim 1 : tensor<1x64xi32>
    %37 = tile.iota dim 0 : tensor<64x1xi32>
    %38 = tile.broadcast %36 : tensor<1x64xi32> to tensor<64x64xi32>
    %39 = tile.broadcast %37 : tensor<64x1xi32> to tensor<64x64xi32>
    %40 = arith.cmpi slt, %38, %39 : tensor<64x64xi32>
    %cst_7 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %41 = tile.broadcast %map.load_decay : tensor<64x1xf32> to tensor<64x64xf32>
    %42 = arith.select %40, %41, %cst_7 : tensor<64x64xi1>, tensor<64x64xf32>
    %43 = tile.prefix_sum %42 dim 0 : tensor<64x64xf32>
    %44 = tile.iota dim 1 : tensor<1x64xi32>
    %45 = tile.iota dim 0 : tensor<64x1xi32>
    %46 = tile.broadcast %44 : tensor<1x64xi32> to tensor<64x64xi32>
    %47 = tile.broadcast %45 : tensor<64x1xi32> to tensor<64x64xi32>
    %48 = arith.cmpi sle, %46, %47 : tensor<64x64xi32>
    %49 = math.exp %43 : tensor<64x64xf32>
    %cst_8 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %50 = arith.select %48, %49, %cst_8 : tensor<64x64xi1>, tensor<64x64xf32>
    %cst_9 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %map.key_scores = tile.dot %map.load_key, %map.load_key, %cst_9 {tile.name = "map.key_scores", transpose_b} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<64x64xf32>
    %51 = arith.mulf %map.key_scores, %50 : tensor<64x64xf32>
    %52 = tile.broadcast %map.load_beta : tensor<64x1xf32> to tensor<64x64xf32>
    %53 = arith.mulf %52, %51 : tensor<64x64xf32>
    %map.inverse = tile.unit_lower_inverse %53 {tile.name = "map.inverse"} : tensor<64x64xf32>
    %cst_10 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %54 = tile.broadcast %32 : tensor<64x1xf32> to tensor<64x128xf32>
    %55 = arith.mulf %54, %map.load_key : tensor<64x128xf32>
    %cst_11 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %map.predict = tile.dot %55, %arg10, %cst_11 {tile.name = "map.predict"} : tensor<64x128xf32>, tensor<128x128xf32> -> tensor<64x128xf32>
    %56 = arith.subf %cst_10, %map.predict : tensor<64x128xf32>
    %57 = tile.broadcast %map.load_beta : tensor<64x1xf32> to tensor<64x128xf32>
    %58 = arith.mulf %57, %56 : tensor<64x128xf32>
    %cst_12 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %map.updates = tile.dot %map.inverse, %58, %cst_12 {tile.name = "map.updates"} : tensor<64x64xf32>, tensor<64x128xf32> -> tensor<64x128xf32>
    %59 = tile.broadcast %34 : tensor<64x1xf32> to tensor<64x128xf32>
    %60 = arith.mulf %59, %map.load_key : tensor<64x128xf32>
    %61 = tile.broadcast %35 : tensor<1x1xf32> to tensor<128x128xf32>
    %62 = arith.mulf %61, %arg10 : tensor<128x128xf32>
    %map.next_state = tile.dot %60, %map.updates, %62 {tile.name = "map.next_state", transpose_a} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<128x128xf32>
    scf.yield %map.next_state : tensor<128x128xf32>
  }
  tile.store %28, %arg7[%18, %0, %c0, %c0] dims [2, 3] limit(%20) : tensor<128x128xf32>, !tile.view<?x2x128x128xf32>
  tile.return
}

tile.schedule @recurrence_summary target("sm_90a")
    roles {load = {warpgroups = 1, registers = 24},
           local = {warpgroups = 1, registers = 160},
           state = {warpgroups = 2, registers = 160}}
    ops {
      load_key = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      load_value = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      load_beta = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      load_decay = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      key_scores = {role = "local", stage = 1, issue = 0, operand = "shared"},
      inverse = {role = "local", stage = 1, buffers = 2, issue = 2, barrier = "named"},
      predict = {role = "state", stage = 2, issue = 0, operand = "shared"},
      updates = {role = "state", stage = 2, issue = 2, operand = "shared"},
      next_state = {role = "state", stage = 2, issue = 3, operand = "shared"},
      "map.load_key" = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      "map.load_beta" = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      "map.load_decay" = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      "map.key_scores" = {role = "local", stage = 1, issue = 0, operand = "shared"},
      "map.inverse" = {role = "local", stage = 1, buffers = 2, issue = 2, barrier = "named"},
      "map.predict" = {role = "state", stage = 2, issue = 0, operand = "shared"},
      "map.updates" = {role = "state", stage = 2, issue = 2, operand = "shared"},
      "map.next_state" = {role = "state", stage = 2, issue = 3, operand = "shared"}
    }
