// RUN: hybrid-opt %s | FileCheck %s
// RUN: tile-against-oracle %s --lengths=65,0,1,64

// Adjoint of the additive update with one decay per head.
//
// sm_90a: the walk forward (record) only carries the state, the walk back carries
// its gradient; both stay in the accumulators of two warp groups. Everything that
// needs neither is a third group's, one chunk ahead.

// CHECK-LABEL: tile.program @recurrence_backward
// CHECK:         tile.name = "record.keep_state"
// CHECK:         tile.name = "record.next_state"
// CHECK:         tile.name = "back.d_scores"
// CHECK:         tile.name = "back.d_state"
// CHECK:         tile.name = "back.store_d_decay"
// CHECK:       tile.schedule @recurrence_backward target("sm_90a")

!x = tensor<?x2x128xf32>
!g = tensor<?x2x1xf32>

func.func @definition(%q: !x, %k: !x {random.range = array<f64: -0.15, 0.15>}, %v: !x, %g: !g {random.range = array<f64: -0.3, 0.0>}, %do: !x, %segments: !hybrid.segments)
    -> (!x, !x, !x, !g) {
  %r:4 = hybrid.recurrence_grad additive %q, %k, %v, %segments, %do decay(%g) scale 0.0883883461356163
      : (!x, !x, !x, !hybrid.segments, !x, !g) -> (!x, !x, !x, !g)
  return %r#0, %r#1, %r#2, %r#3 : !x, !x, !x, !g
}

func.func @dispatched(%q: !x, %k: !x {random.range = array<f64: -0.15, 0.15>}, %v: !x, %g: !g {random.range = array<f64: -0.3, 0.0>}, %do: !x, %segments: !hybrid.segments)
    -> (!x, !x, !x, !g) {
  %r:5 = hybrid.dispatch @recurrence_backward(%q, %k, %v, %segments, %g, %do)
      : (!x, !x, !x, !hybrid.segments, !g, !x)
      -> (!x, !x, !x, !g, tensor<?x2x128x128xf32, #hybrid.sized<affine_map<()[t, n, l, s, c, d] -> (t floordiv 64 + n)>>>)
  return %r#0, %r#1, %r#2, %r#3 : !x, !x, !x, !g
}

tile.program @recurrence_backward(%arg0: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg1: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg2: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg3: !tile.view<?x4xi32>, %arg4: !tile.view<?xi32>, %arg5: !tile.view<?x2x1xf32, strides = [?, 1, 1]>, %arg6: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg7: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg8: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg9: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg10: !tile.view<?x2x1xf32, strides = [?, 1, 1]>, %arg11: !tile.view<?x2x128x128xf32>) grid affine_map<()[s0, s1, s2, s3, s4, s5] -> (s1, 2)> order [parallel, parallel] {
  %c0 = arith.constant 0 : index
  %0 = tile.id 1
  %1 = tile.id 0
  %c0_0 = arith.constant 0 : index
  %2 = tile.load_scalar %arg3[%1, %c0_0] : !tile.view<?x4xi32>
  %3 = arith.index_cast %2 : i32 to index
  %c1 = arith.constant 1 : index
  %4 = tile.load_scalar %arg3[%1, %c1] : !tile.view<?x4xi32>
  %5 = arith.index_cast %4 : i32 to index
  %c2 = arith.constant 2 : index
  %6 = tile.load_scalar %arg3[%1, %c2] : !tile.view<?x4xi32>
  %7 = arith.index_cast %6 : i32 to index
  %c3 = arith.constant 3 : index
  %8 = tile.load_scalar %arg3[%1, %c3] : !tile.view<?x4xi32>
  %9 = arith.index_cast %8 : i32 to index
  %c64 = arith.constant 64 : index
  %10 = arith.divsi %3, %c64 : index
  %11 = tile.id 0
  %c1_1 = arith.constant 1 : index
  %12 = arith.muli %11, %c1_1 : index
  %13 = arith.addi %10, %12 : index
  %cst = arith.constant dense<0.000000e+00> : tensor<128x128xf32>
  %c64_2 = arith.constant 64 : index
  %c64_3 = arith.constant 64 : index
  %14 = scf.for %arg12 = %3 to %5 step %c64_3 iter_args(%arg13 = %cst) -> (tensor<128x128xf32>) {
    %19 = arith.subi %arg12, %3 : index
    %20 = arith.divsi %19, %c64_2 : index
    %21 = arith.addi %13, %20 : index
    %record.load_key = tile.load %arg1[%arg12, %0, %c0] dims [0, 2] limit(%5) {tile.name = "record.load_key"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %record.load_value = tile.load %arg2[%arg12, %0, %c0] dims [0, 2] limit(%5) {tile.name = "record.load_value"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %record.load_decay = tile.load %arg5[%arg12, %0, %c0] dims [0, 2] limit(%5) {tile.name = "record.load_decay"} : !tile.view<?x2x1xf32, strides = [?, 1, 1]> -> tensor<64x1xf32>
    %22 = tile.prefix_sum %record.load_decay dim 0 {reverse} : tensor<64x1xf32>
    %23 = tile.slice %22 dim 0 offset 1 size 63 : tensor<64x1xf32>
    %24 = tile.prefix_sum %record.load_decay dim 0 : tensor<64x1xf32>
    %25 = math.exp %24 : tensor<64x1xf32>
    %cst_8 = arith.constant dense<0.000000e+00> : tensor<1x1xf32>
    %26 = tile.concat %23, %cst_8 dim 0 : tensor<63x1xf32>, tensor<1x1xf32>
    %27 = math.exp %26 : tensor<64x1xf32>
    %28 = tile.slice %25 dim 0 offset 63 size 1 : tensor<64x1xf32>
    tile.store %arg13, %arg11[%21, %0, %c0, %c0] dims [2, 3] {tile.name = "record.keep_state"} : tensor<128x128xf32>, !tile.view<?x2x128x128xf32>
    %29 = tile.broadcast %27 : tensor<64x1xf32> to tensor<64x128xf32>
    %30 = arith.mulf %29, %record.load_key : tensor<64x128xf32>
    %31 = tile.broadcast %28 : tensor<1x1xf32> to tensor<128x128xf32>
    %32 = arith.mulf %31, %arg13 : tensor<128x128xf32>
    %record.next_state = tile.dot %30, %record.load_value, %32 {tile.name = "record.next_state", transpose_a} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<128x128xf32>
    scf.yield %record.next_state : tensor<128x128xf32>
  }
  %cst_4 = arith.constant dense<0.000000e+00> : tensor<128x128xf32>
  %c64_5 = arith.constant 64 : index
  %15 = arith.subi %5, %3 : index
  %16 = arith.ceildivsi %15, %c64_5 : index
  %c1_6 = arith.constant 1 : index
  %17 = arith.subi %16, %c1_6 : index
  %c1_7 = arith.constant 1 : index
  %18 = scf.for %arg12 = %c0 to %16 step %c1_7 iter_args(%arg13 = %cst_4) -> (tensor<128x128xf32>) {
    %19 = arith.subi %17, %arg12 : index
    %20 = arith.muli %19, %c64_5 : index
    %21 = arith.addi %3, %20 : index
    %back.load_key = tile.load %arg1[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.load_key"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %back.load_value = tile.load %arg2[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.load_value"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %back.load_query = tile.load %arg0[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.load_query"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %cst_8 = arith.constant dense<0.0883883461> : tensor<64x128xf32>
    %22 = arith.mulf %back.load_query, %cst_8 : tensor<64x128xf32>
    %back.load_decay = tile.load %arg5[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.load_decay"} : !tile.view<?x2x1xf32, strides = [?, 1, 1]> -> tensor<64x1xf32>
    %23 = tile.prefix_sum %back.load_decay dim 0 {reverse} : tensor<64x1xf32>
    %24 = tile.slice %23 dim 0 offset 1 size 63 : tensor<64x1xf32>
    %25 = tile.prefix_sum %back.load_decay dim 0 : tensor<64x1xf32>
    %26 = math.exp %25 : tensor<64x1xf32>
    %cst_9 = arith.constant dense<0.000000e+00> : tensor<1x1xf32>
    %27 = tile.concat %24, %cst_9 dim 0 : tensor<63x1xf32>, tensor<1x1xf32>
    %28 = math.exp %27 : tensor<64x1xf32>
    %29 = tile.slice %26 dim 0 offset 63 size 1 : tensor<64x1xf32>
    %30 = arith.addi %13, %19 : index
    %back.load_state = tile.load %arg11[%30, %0, %c0, %c0] dims [2, 3] {tile.name = "back.load_state"} : !tile.view<?x2x128x128xf32> -> tensor<128x128xf32>
    %back.load_d_output = tile.load %arg6[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.load_d_output"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %31 = arith.mulf %back.load_state, %arg13 : tensor<128x128xf32>
    %32 = tile.reduce sum %31 dim 1 : tensor<128x128xf32>
    %33 = tile.broadcast %29 : tensor<1x1xf32> to tensor<128x1xf32>
    %34 = arith.mulf %33, %32 : tensor<128x1xf32>
    %35 = tile.broadcast %28 : tensor<64x1xf32> to tensor<64x128xf32>
    %36 = arith.mulf %35, %back.load_key : tensor<64x128xf32>
    %cst_10 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %back.d_updates = tile.dot %36, %arg13, %cst_10 {tile.name = "back.d_updates"} : tensor<64x128xf32>, tensor<128x128xf32> -> tensor<64x128xf32>
    %37 = tile.broadcast %29 : tensor<1x1xf32> to tensor<128x128xf32>
    %38 = arith.mulf %37, %arg13 : tensor<128x128xf32>
    %39 = tile.iota dim 1 : tensor<1x64xi32>
    %40 = tile.iota dim 0 : tensor<64x1xi32>
    %41 = tile.broadcast %39 : tensor<1x64xi32> to tensor<64x64xi32>
    %42 = tile.broadcast %40 : tensor<64x1xi32> to tensor<64x64xi32>
    %43 = arith.cmpi slt, %41, %42 : tensor<64x64xi32>
    %cst_11 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %44 = tile.broadcast %back.load_decay : tensor<64x1xf32> to tensor<64x64xf32>
    %45 = arith.select %43, %44, %cst_11 : tensor<64x64xi1>, tensor<64x64xf32>
    %46 = tile.prefix_sum %45 dim 0 : tensor<64x64xf32>
    %47 = tile.iota dim 1 : tensor<1x64xi32>
    %48 = tile.iota dim 0 : tensor<64x1xi32>
    %49 = tile.broadcast %47 : tensor<1x64xi32> to tensor<64x64xi32>
    %50 = tile.broadcast %48 : tensor<64x1xi32> to tensor<64x64xi32>
    %51 = arith.cmpi sle, %49, %50 : tensor<64x64xi32>
    %52 = math.exp %46 : tensor<64x64xf32>
    %cst_12 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %53 = arith.select %51, %52, %cst_12 : tensor<64x64xi1>, tensor<64x64xf32>
    %cst_13 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %back.query_scores = tile.dot %22, %back.load_key, %cst_13 {tile.name = "back.query_scores", transpose_b} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<64x64xf32>
    %54 = arith.mulf %back.query_scores, %53 : tensor<64x64xf32>
    %cst_14 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %back.d_scores = tile.dot %back.load_d_output, %back.load_value, %cst_14 {tile.name = "back.d_scores", transpose_b} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<64x64xf32>
    %55 = tile.dot %54, %back.load_d_output, %back.d_updates {transpose_a} : tensor<64x64xf32>, tensor<64x128xf32> -> tensor<64x128xf32>
    %56 = tile.broadcast %26 : tensor<64x1xf32> to tensor<64x128xf32>
    %57 = arith.mulf %56, %22 : tensor<64x128xf32>
    %back.d_state = tile.dot %57, %back.load_d_output, %38 {tile.name = "back.d_state", transpose_a} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<128x128xf32>
    %58 = arith.mulf %back.d_scores, %53 : tensor<64x64xf32>
    %cst_15 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %back.d_query = tile.dot %58, %back.load_key, %cst_15 {tile.name = "back.d_query"} : tensor<64x64xf32>, tensor<64x128xf32> -> tensor<64x128xf32>
    %cst_16 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %back.d_key = tile.dot %58, %22, %cst_16 {tile.name = "back.d_key", transpose_a} : tensor<64x64xf32>, tensor<64x128xf32> -> tensor<64x128xf32>
    %59 = arith.mulf %back.d_scores, %54 : tensor<64x64xf32>
    %cst_17 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %back.d_key_end = tile.dot %back.load_value, %arg13, %cst_17 {tile.name = "back.d_key_end", transpose_b} : tensor<64x128xf32>, tensor<128x128xf32> -> tensor<64x128xf32>
    %60 = tile.broadcast %28 : tensor<64x1xf32> to tensor<64x128xf32>
    %61 = arith.mulf %60, %back.d_key_end : tensor<64x128xf32>
    %62 = arith.addf %back.d_key, %61 : tensor<64x128xf32>
    %63 = arith.mulf %back.load_key, %61 : tensor<64x128xf32>
    %cst_18 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %back.d_query_start = tile.dot %back.load_d_output, %back.load_state, %cst_18 {tile.name = "back.d_query_start", transpose_b} : tensor<64x128xf32>, tensor<128x128xf32> -> tensor<64x128xf32>
    %64 = tile.broadcast %26 : tensor<64x1xf32> to tensor<64x128xf32>
    %65 = arith.mulf %64, %back.d_query_start : tensor<64x128xf32>
    %66 = arith.addf %back.d_query, %65 : tensor<64x128xf32>
    %67 = arith.mulf %22, %65 : tensor<64x128xf32>
    %68 = tile.reduce sum %63 dim 1 : tensor<64x128xf32>
    %69 = tile.reshape %68 : tensor<64x1xf32> to tensor<1x64xf32>
    %70 = tile.prefix_sum %59 dim 0 {reverse} : tensor<64x64xf32>
    %71 = tile.broadcast %69 : tensor<1x64xf32> to tensor<64x64xf32>
    %72 = arith.addf %70, %71 : tensor<64x64xf32>
    %73 = tile.iota dim 1 : tensor<1x64xi32>
    %74 = tile.iota dim 0 : tensor<64x1xi32>
    %75 = tile.broadcast %73 : tensor<1x64xi32> to tensor<64x64xi32>
    %76 = tile.broadcast %74 : tensor<64x1xi32> to tensor<64x64xi32>
    %77 = arith.cmpi slt, %75, %76 : tensor<64x64xi32>
    %cst_19 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %78 = arith.select %77, %72, %cst_19 : tensor<64x64xi1>, tensor<64x64xf32>
    %79 = tile.reduce sum %78 dim 1 : tensor<64x64xf32>
    %80 = tile.reduce sum %67 dim 1 : tensor<64x128xf32>
    %81 = tile.prefix_sum %80 dim 0 {reverse} : tensor<64x1xf32>
    %82 = arith.addf %79, %81 : tensor<64x1xf32>
    %83 = tile.reduce sum %34 dim 0 : tensor<128x1xf32>
    %84 = tile.broadcast %83 : tensor<1x1xf32> to tensor<64x1xf32>
    %85 = arith.addf %82, %84 : tensor<64x1xf32>
    %cst_20 = arith.constant dense<0.0883883461> : tensor<64x128xf32>
    %86 = arith.mulf %66, %cst_20 : tensor<64x128xf32>
    tile.store %86, %arg7[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.store_d_query"} : tensor<64x128xf32>, !tile.view<?x2x128xf32, strides = [?, 128, 1]>
    tile.store %62, %arg8[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.store_d_key"} : tensor<64x128xf32>, !tile.view<?x2x128xf32, strides = [?, 128, 1]>
    tile.store %55, %arg9[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.store_d_value"} : tensor<64x128xf32>, !tile.view<?x2x128xf32, strides = [?, 128, 1]>
    tile.store %85, %arg10[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.store_d_decay"} : tensor<64x1xf32>, !tile.view<?x2x1xf32, strides = [?, 1, 1]>
    scf.yield %back.d_state : tensor<128x128xf32>
  }
  tile.return
}

tile.schedule @recurrence_backward target("sm_90a")
    roles {load = {warpgroups = 1, registers = 24},
           local = {warpgroups = 1, registers = 160},
           state = {warpgroups = 2, registers = 160}}
    ops {
      "record.load_key" = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      "record.load_value" = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      "record.load_decay" = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      "record.next_state" = {role = "state", stage = 1, issue = 0, operand = "shared"},
      "record.keep_state" = {role = "state", stage = 1, buffers = 1, issue = 1},
      "back.load_query" = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      "back.load_key" = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      "back.load_value" = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      "back.load_decay" = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      "back.load_d_output" = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      "back.load_state" = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      "back.query_scores" = {role = "local", stage = 1, issue = 0, operand = "shared"},
      "back.d_scores" = {role = "local", stage = 1, issue = 1, operand = "shared"},
      "back.d_query" = {role = "local", stage = 1, issue = 2, operand = "shared"},
      "back.d_key" = {role = "local", stage = 1, issue = 3, operand = "shared"},
      "back.d_updates" = {role = "state", stage = 2, issue = 0, operand = "shared"},
      "back.d_key_end" = {role = "state", stage = 2, issue = 1, wait = 1, operand = "shared"},
      "back.d_query_start" = {role = "state", stage = 2, issue = 2, operand = "shared"},
      "back.d_state" = {role = "state", stage = 2, issue = 3, wait = 1, operand = "shared"},
      "back.store_d_query" = {role = "local", stage = 2, issue = 4},
      "back.store_d_key" = {role = "state", stage = 2, issue = 5, barrier = "turn"},
      "back.store_d_value" = {role = "state", stage = 2, issue = 6, barrier = "turn"},
      "back.store_d_decay" = {role = "state", stage = 2, issue = 7}
    }
