// RUN: hybrid-opt %s | FileCheck %s
// RUN: tile-against-oracle %s --lengths=33,0,1,16

// Adjoint of the additive update with one decay per key channel.
//
// sm_90a: as with one decay per head; score_rows and d_score_rows are a group's of
// their own.

// CHECK-LABEL: tile.program @recurrence_backward
// CHECK:         tile.name = "record.keep_state"
// CHECK:         tile.name = "back.score_rows"
// CHECK:         tile.name = "back.d_score_rows"
// CHECK:         tile.name = "back.store_d_decay"
// CHECK:       tile.schedule @recurrence_backward target("sm_90a")

!x = tensor<?x2x128xf32>
!g = tensor<?x2x128xf32>

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
      -> (!x, !x, !x, !g, tensor<?x2x128x128xf32, #hybrid.sized<affine_map<()[t, n, l, s, c, d] -> (t floordiv 16 + n)>>>)
  return %r#0, %r#1, %r#2, %r#3 : !x, !x, !x, !g
}

tile.program @recurrence_backward(%arg0: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg1: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg2: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg3: !tile.view<?x4xi32>, %arg4: !tile.view<?xi32>, %arg5: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg6: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg7: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg8: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg9: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg10: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg11: !tile.view<?x2x128x128xf32>) grid affine_map<()[s0, s1, s2, s3, s4, s5] -> (s1, 2)> order [parallel, parallel] {
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
  %c16 = arith.constant 16 : index
  %10 = arith.divsi %3, %c16 : index
  %11 = tile.id 0
  %c1_1 = arith.constant 1 : index
  %12 = arith.muli %11, %c1_1 : index
  %13 = arith.addi %10, %12 : index
  %cst = arith.constant dense<0.000000e+00> : tensor<128x128xf32>
  %c16_2 = arith.constant 16 : index
  %c16_3 = arith.constant 16 : index
  %14 = scf.for %arg12 = %3 to %5 step %c16_3 iter_args(%arg13 = %cst) -> (tensor<128x128xf32>) {
    %19 = arith.subi %arg12, %3 : index
    %20 = arith.divsi %19, %c16_2 : index
    %21 = arith.addi %13, %20 : index
    %record.load_key = tile.load %arg1[%arg12, %0, %c0] dims [0, 2] limit(%5) {tile.name = "record.load_key"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<16x128xf32>
    %record.load_value = tile.load %arg2[%arg12, %0, %c0] dims [0, 2] limit(%5) {tile.name = "record.load_value"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<16x128xf32>
    %record.load_decay = tile.load %arg5[%arg12, %0, %c0] dims [0, 2] limit(%5) {tile.name = "record.load_decay"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<16x128xf32>
    %22 = tile.prefix_sum %record.load_decay dim 0 {reverse} : tensor<16x128xf32>
    %23 = tile.slice %22 dim 0 offset 1 size 15 : tensor<16x128xf32>
    %24 = tile.prefix_sum %record.load_decay dim 0 : tensor<16x128xf32>
    %25 = math.exp %24 : tensor<16x128xf32>
    %cst_8 = arith.constant dense<0.000000e+00> : tensor<1x128xf32>
    %26 = tile.concat %23, %cst_8 dim 0 : tensor<15x128xf32>, tensor<1x128xf32>
    %27 = math.exp %26 : tensor<16x128xf32>
    %28 = tile.slice %25 dim 0 offset 15 size 1 : tensor<16x128xf32>
    %29 = tile.reshape %28 : tensor<1x128xf32> to tensor<128x1xf32>
    tile.store %arg13, %arg11[%21, %0, %c0, %c0] dims [2, 3] {tile.name = "record.keep_state"} : tensor<128x128xf32>, !tile.view<?x2x128x128xf32>
    %30 = arith.mulf %27, %record.load_key : tensor<16x128xf32>
    %31 = tile.broadcast %29 : tensor<128x1xf32> to tensor<128x128xf32>
    %32 = arith.mulf %31, %arg13 : tensor<128x128xf32>
    %record.next_state = tile.dot %30, %record.load_value, %32 {tile.name = "record.next_state", transpose_a} : tensor<16x128xf32>, tensor<16x128xf32> -> tensor<128x128xf32>
    scf.yield %record.next_state : tensor<128x128xf32>
  }
  %cst_4 = arith.constant dense<0.000000e+00> : tensor<128x128xf32>
  %c16_5 = arith.constant 16 : index
  %15 = arith.subi %5, %3 : index
  %16 = arith.ceildivsi %15, %c16_5 : index
  %c1_6 = arith.constant 1 : index
  %17 = arith.subi %16, %c1_6 : index
  %c1_7 = arith.constant 1 : index
  %18 = scf.for %arg12 = %c0 to %16 step %c1_7 iter_args(%arg13 = %cst_4) -> (tensor<128x128xf32>) {
    %19 = arith.subi %17, %arg12 : index
    %20 = arith.muli %19, %c16_5 : index
    %21 = arith.addi %3, %20 : index
    %back.load_key = tile.load %arg1[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.load_key"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<16x128xf32>
    %back.load_value = tile.load %arg2[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.load_value"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<16x128xf32>
    %back.load_query = tile.load %arg0[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.load_query"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<16x128xf32>
    %cst_8 = arith.constant dense<0.0883883461> : tensor<16x128xf32>
    %22 = arith.mulf %back.load_query, %cst_8 : tensor<16x128xf32>
    %back.load_decay = tile.load %arg5[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.load_decay"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<16x128xf32>
    %23 = tile.prefix_sum %back.load_decay dim 0 {reverse} : tensor<16x128xf32>
    %24 = tile.slice %23 dim 0 offset 1 size 15 : tensor<16x128xf32>
    %25 = tile.prefix_sum %back.load_decay dim 0 : tensor<16x128xf32>
    %26 = math.exp %25 : tensor<16x128xf32>
    %cst_9 = arith.constant dense<0.000000e+00> : tensor<1x128xf32>
    %27 = tile.concat %24, %cst_9 dim 0 : tensor<15x128xf32>, tensor<1x128xf32>
    %28 = math.exp %27 : tensor<16x128xf32>
    %29 = tile.slice %26 dim 0 offset 15 size 1 : tensor<16x128xf32>
    %30 = tile.reshape %29 : tensor<1x128xf32> to tensor<128x1xf32>
    %31 = arith.addi %13, %19 : index
    %back.load_state = tile.load %arg11[%31, %0, %c0, %c0] dims [2, 3] {tile.name = "back.load_state"} : !tile.view<?x2x128x128xf32> -> tensor<128x128xf32>
    %back.load_d_output = tile.load %arg6[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.load_d_output"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<16x128xf32>
    %32 = arith.mulf %back.load_state, %arg13 : tensor<128x128xf32>
    %33 = tile.reduce sum %32 dim 1 : tensor<128x128xf32>
    %34 = arith.mulf %30, %33 : tensor<128x1xf32>
    %35 = arith.mulf %28, %back.load_key : tensor<16x128xf32>
    %cst_10 = arith.constant dense<0.000000e+00> : tensor<16x128xf32>
    %back.d_updates = tile.dot %35, %arg13, %cst_10 {tile.name = "back.d_updates"} : tensor<16x128xf32>, tensor<128x128xf32> -> tensor<16x128xf32>
    %36 = tile.broadcast %30 : tensor<128x1xf32> to tensor<128x128xf32>
    %37 = arith.mulf %36, %arg13 : tensor<128x128xf32>
    %cst_11 = arith.constant dense<0.000000e+00> : tensor<16x16xf32>
    %cst_12 = arith.constant dense<0.000000e+00> : tensor<16x128xf32>
    %c0_13 = arith.constant 0 : index
    %c16_14 = arith.constant 16 : index
    %c1_15 = arith.constant 1 : index
    %38:2 = scf.for %arg14 = %c0_13 to %c16_14 step %c1_15 iter_args(%arg15 = %cst_12, %arg16 = %cst_11) -> (tensor<16x128xf32>, tensor<16x16xf32>) {
      %74 = arith.addi %21, %arg14 : index
      %75 = tile.load %arg5[%74, %0, %c0] dims [0, 2] limit(%5) : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<1x128xf32>
      %76 = math.exp %75 : tensor<1x128xf32>
      %77 = tile.broadcast %76 : tensor<1x128xf32> to tensor<16x128xf32>
      %78 = arith.mulf %arg15, %77 : tensor<16x128xf32>
      %79 = tile.iota dim 0 : tensor<16x1xi32>
      %80 = arith.index_cast %arg14 : index to i32
      %81 = tile.splat %80 : tensor<16x1xi32>
      %82 = arith.cmpi eq, %79, %81 : tensor<16x1xi32>
      %cst_26 = arith.constant dense<1.000000e+00> : tensor<16x128xf32>
      %83 = tile.broadcast %82 : tensor<16x1xi1> to tensor<16x128xi1>
      %84 = arith.select %83, %cst_26, %78 : tensor<16x128xi1>, tensor<16x128xf32>
      %cst_27 = arith.constant dense<1.000000e+00> : tensor<16x128xf32>
      %85 = tile.broadcast %82 : tensor<16x1xi1> to tensor<16x128xi1>
      %86 = arith.select %85, %cst_27, %78 : tensor<16x128xi1>, tensor<16x128xf32>
      %87 = arith.mulf %86, %back.load_key : tensor<16x128xf32>
      %88 = arith.addi %21, %arg14 : index
      %89 = tile.load %arg0[%88, %0, %c0] dims [0, 2] limit(%5) : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<1x128xf32>
      %cst_28 = arith.constant dense<0.0883883461> : tensor<1x128xf32>
      %90 = arith.mulf %89, %cst_28 : tensor<1x128xf32>
      %91 = tile.broadcast %90 : tensor<1x128xf32> to tensor<16x128xf32>
      %92 = arith.mulf %87, %91 : tensor<16x128xf32>
      %93 = tile.reduce sum %92 dim 1 : tensor<16x128xf32>
      %94 = tile.reshape %93 : tensor<16x1xf32> to tensor<1x16xf32>
      %95 = tile.broadcast %82 : tensor<16x1xi1> to tensor<16x16xi1>
      %96 = tile.broadcast %94 : tensor<1x16xf32> to tensor<16x16xf32>
      %97 = arith.select %95, %96, %arg16 : tensor<16x16xi1>, tensor<16x16xf32>
      scf.yield %84, %97 : tensor<16x128xf32>, tensor<16x16xf32>
    } {tile.name = "back.score_rows"}
    %cst_16 = arith.constant dense<0.000000e+00> : tensor<16x16xf32>
    %back.d_scores = tile.dot %back.load_d_output, %back.load_value, %cst_16 {tile.name = "back.d_scores", transpose_b} : tensor<16x128xf32>, tensor<16x128xf32> -> tensor<16x16xf32>
    %39 = tile.dot %38#1, %back.load_d_output, %back.d_updates {transpose_a} : tensor<16x16xf32>, tensor<16x128xf32> -> tensor<16x128xf32>
    %40 = arith.mulf %26, %22 : tensor<16x128xf32>
    %back.d_state = tile.dot %40, %back.load_d_output, %37 {tile.name = "back.d_state", transpose_a} : tensor<16x128xf32>, tensor<16x128xf32> -> tensor<128x128xf32>
    %cst_17 = arith.constant dense<0.000000e+00> : tensor<16x128xf32>
    %cst_18 = arith.constant dense<0.000000e+00> : tensor<16x128xf32>
    %c0_19 = arith.constant 0 : index
    %c16_20 = arith.constant 16 : index
    %c1_21 = arith.constant 1 : index
    %41:3 = scf.for %arg14 = %c0_19 to %c16_20 step %c1_21 iter_args(%arg15 = %cst_18, %arg16 = %cst_17, %arg17 = %cst_17) -> (tensor<16x128xf32>, tensor<16x128xf32>, tensor<16x128xf32>) {
      %74 = arith.addi %21, %arg14 : index
      %75 = tile.load %arg5[%74, %0, %c0] dims [0, 2] limit(%5) : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<1x128xf32>
      %76 = math.exp %75 : tensor<1x128xf32>
      %77 = tile.broadcast %76 : tensor<1x128xf32> to tensor<16x128xf32>
      %78 = arith.mulf %arg15, %77 : tensor<16x128xf32>
      %79 = tile.iota dim 0 : tensor<16x1xi32>
      %80 = arith.index_cast %arg14 : index to i32
      %81 = tile.splat %80 : tensor<16x1xi32>
      %82 = arith.cmpi eq, %79, %81 : tensor<16x1xi32>
      %cst_26 = arith.constant dense<1.000000e+00> : tensor<16x128xf32>
      %83 = tile.broadcast %82 : tensor<16x1xi1> to tensor<16x128xi1>
      %84 = arith.select %83, %cst_26, %78 : tensor<16x128xi1>, tensor<16x128xf32>
      %85 = arith.mulf %78, %back.load_key : tensor<16x128xf32>
      %cst_27 = arith.constant dense<0.000000e+00> : tensor<16x16xf32>
      %86 = tile.broadcast %82 : tensor<16x1xi1> to tensor<16x16xi1>
      %87 = arith.select %86, %back.d_scores, %cst_27 : tensor<16x16xi1>, tensor<16x16xf32>
      %88 = tile.reduce sum %87 dim 0 : tensor<16x16xf32>
      %89 = tile.reshape %88 : tensor<1x16xf32> to tensor<16x1xf32>
      %90 = arith.addi %21, %arg14 : index
      %91 = tile.load %arg0[%90, %0, %c0] dims [0, 2] limit(%5) : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<1x128xf32>
      %cst_28 = arith.constant dense<0.0883883461> : tensor<1x128xf32>
      %92 = arith.mulf %91, %cst_28 : tensor<1x128xf32>
      %93 = tile.broadcast %89 : tensor<16x1xf32> to tensor<16x128xf32>
      %94 = tile.broadcast %92 : tensor<1x128xf32> to tensor<16x128xf32>
      %95 = arith.mulf %93, %94 : tensor<16x128xf32>
      %96 = arith.mulf %78, %95 : tensor<16x128xf32>
      %97 = arith.addf %arg16, %96 : tensor<16x128xf32>
      %98 = tile.broadcast %89 : tensor<16x1xf32> to tensor<16x128xf32>
      %99 = arith.mulf %98, %85 : tensor<16x128xf32>
      %100 = tile.reduce sum %99 dim 0 : tensor<16x128xf32>
      %101 = tile.broadcast %82 : tensor<16x1xi1> to tensor<16x128xi1>
      %102 = tile.broadcast %100 : tensor<1x128xf32> to tensor<16x128xf32>
      %103 = arith.select %101, %102, %arg17 : tensor<16x128xi1>, tensor<16x128xf32>
      scf.yield %84, %97, %103 : tensor<16x128xf32>, tensor<16x128xf32>, tensor<16x128xf32>
    } {tile.name = "back.d_score_rows"}
    %42 = arith.mulf %back.load_key, %41#1 : tensor<16x128xf32>
    %43 = arith.negf %42 : tensor<16x128xf32>
    %44 = arith.mulf %22, %41#2 : tensor<16x128xf32>
    %45 = arith.addf %43, %44 : tensor<16x128xf32>
    %46 = tile.iota dim 1 : tensor<1x16xi32>
    %47 = tile.iota dim 0 : tensor<16x1xi32>
    %48 = tile.broadcast %46 : tensor<1x16xi32> to tensor<16x16xi32>
    %49 = tile.broadcast %47 : tensor<16x1xi32> to tensor<16x16xi32>
    %50 = arith.cmpi eq, %48, %49 : tensor<16x16xi32>
    %cst_22 = arith.constant dense<0.000000e+00> : tensor<16x16xf32>
    %51 = arith.select %50, %back.d_scores, %cst_22 : tensor<16x16xi1>, tensor<16x16xf32>
    %52 = tile.reduce sum %51 dim 1 : tensor<16x16xf32>
    %53 = tile.broadcast %52 : tensor<16x1xf32> to tensor<16x128xf32>
    %54 = arith.mulf %53, %back.load_key : tensor<16x128xf32>
    %55 = arith.addf %41#2, %54 : tensor<16x128xf32>
    %56 = tile.broadcast %52 : tensor<16x1xf32> to tensor<16x128xf32>
    %57 = arith.mulf %56, %22 : tensor<16x128xf32>
    %58 = arith.addf %41#1, %57 : tensor<16x128xf32>
    %cst_23 = arith.constant dense<0.000000e+00> : tensor<16x128xf32>
    %back.d_key_end = tile.dot %back.load_value, %arg13, %cst_23 {tile.name = "back.d_key_end", transpose_b} : tensor<16x128xf32>, tensor<128x128xf32> -> tensor<16x128xf32>
    %59 = arith.mulf %28, %back.d_key_end : tensor<16x128xf32>
    %60 = arith.addf %58, %59 : tensor<16x128xf32>
    %61 = arith.mulf %back.load_key, %59 : tensor<16x128xf32>
    %cst_24 = arith.constant dense<0.000000e+00> : tensor<16x128xf32>
    %back.d_query_start = tile.dot %back.load_d_output, %back.load_state, %cst_24 {tile.name = "back.d_query_start", transpose_b} : tensor<16x128xf32>, tensor<128x128xf32> -> tensor<16x128xf32>
    %62 = arith.mulf %26, %back.d_query_start : tensor<16x128xf32>
    %63 = arith.addf %55, %62 : tensor<16x128xf32>
    %64 = arith.mulf %22, %62 : tensor<16x128xf32>
    %65 = tile.prefix_sum %61 dim 0 : tensor<16x128xf32>
    %66 = arith.subf %65, %61 : tensor<16x128xf32>
    %67 = arith.addf %45, %64 : tensor<16x128xf32>
    %68 = tile.prefix_sum %67 dim 0 {reverse} : tensor<16x128xf32>
    %69 = arith.addf %66, %68 : tensor<16x128xf32>
    %70 = tile.reshape %34 : tensor<128x1xf32> to tensor<1x128xf32>
    %71 = tile.broadcast %70 : tensor<1x128xf32> to tensor<16x128xf32>
    %72 = arith.addf %69, %71 : tensor<16x128xf32>
    %cst_25 = arith.constant dense<0.0883883461> : tensor<16x128xf32>
    %73 = arith.mulf %63, %cst_25 : tensor<16x128xf32>
    tile.store %73, %arg7[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.store_d_query"} : tensor<16x128xf32>, !tile.view<?x2x128xf32, strides = [?, 128, 1]>
    tile.store %60, %arg8[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.store_d_key"} : tensor<16x128xf32>, !tile.view<?x2x128xf32, strides = [?, 128, 1]>
    tile.store %39, %arg9[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.store_d_value"} : tensor<16x128xf32>, !tile.view<?x2x128xf32, strides = [?, 128, 1]>
    tile.store %72, %arg10[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.store_d_decay"} : tensor<16x128xf32>, !tile.view<?x2x128xf32, strides = [?, 128, 1]>
    scf.yield %back.d_state : tensor<128x128xf32>
  }
  tile.return
}

tile.schedule @recurrence_backward target("sm_90a")
    roles {load = {warpgroups = 1, registers = 24},
           local = {warpgroups = 1, registers = 160},
           state = {warpgroups = 2, registers = 160}}
    ops {
      "record.load_key" = {role = "load", stage = 0, buffers = 4, barrier = "mbarrier"},
      "record.load_value" = {role = "load", stage = 0, buffers = 4, barrier = "mbarrier"},
      "record.load_decay" = {role = "load", stage = 0, buffers = 4, barrier = "mbarrier"},
      "record.next_state" = {role = "state", stage = 1, issue = 0, operand = "shared"},
      "record.keep_state" = {role = "state", stage = 1, buffers = 1, issue = 1},
      "back.load_query" = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      "back.load_key" = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      "back.load_value" = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      "back.load_decay" = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      "back.load_d_output" = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      "back.load_state" = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      "back.score_rows" = {role = "local", stage = 1, buffers = 2, issue = 0, barrier = "named"},
      "back.d_scores" = {role = "local", stage = 1, issue = 1, operand = "shared"},
      "back.d_score_rows" = {role = "local", stage = 1, buffers = 2, issue = 2, barrier = "named"},
      "back.d_updates" = {role = "state", stage = 2, issue = 0, operand = "shared"},
      "back.d_key_end" = {role = "state", stage = 2, issue = 1, wait = 1, operand = "shared"},
      "back.d_query_start" = {role = "state", stage = 2, issue = 2, operand = "shared"},
      "back.d_state" = {role = "state", stage = 2, issue = 3, wait = 1, operand = "shared"},
      "back.store_d_query" = {role = "state", stage = 2, issue = 4},
      "back.store_d_key" = {role = "state", stage = 2, issue = 5, barrier = "turn"},
      "back.store_d_value" = {role = "state", stage = 2, issue = 6, barrier = "turn"},
      "back.store_d_decay" = {role = "state", stage = 2, issue = 7}
    }
