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
    %22 = tile.load %arg1[%arg12, %0, %c0] dims [0, 2] limit(%5) {tile.name = "record.load_key"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<16x128xf32>
    %23 = tile.load %arg2[%arg12, %0, %c0] dims [0, 2] limit(%5) {tile.name = "record.load_value"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<16x128xf32>
    %24 = tile.load %arg5[%arg12, %0, %c0] dims [0, 2] limit(%5) {tile.name = "record.load_decay"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<16x128xf32>
    %25 = tile.prefix_sum %24 dim 0 {reverse} : tensor<16x128xf32>
    %26 = tile.slice %25 dim 0 offset 1 size 15 : tensor<16x128xf32>
    %27 = tile.prefix_sum %24 dim 0 : tensor<16x128xf32>
    %28 = math.exp %27 : tensor<16x128xf32>
    %cst_8 = arith.constant dense<0.000000e+00> : tensor<1x128xf32>
    %29 = tile.concat %26, %cst_8 dim 0 : tensor<15x128xf32>, tensor<1x128xf32>
    %30 = math.exp %29 : tensor<16x128xf32>
    %31 = tile.slice %28 dim 0 offset 15 size 1 : tensor<16x128xf32>
    %32 = tile.reshape %31 : tensor<1x128xf32> to tensor<128x1xf32>
    tile.store %arg13, %arg11[%21, %0, %c0, %c0] dims [2, 3] {tile.name = "record.keep_state"} : tensor<128x128xf32>, !tile.view<?x2x128x128xf32>
    %33 = arith.mulf %30, %22 : tensor<16x128xf32>
    %34 = tile.broadcast %32 : tensor<128x1xf32> to tensor<128x128xf32>
    %35 = arith.mulf %34, %arg13 : tensor<128x128xf32>
    %36 = tile.dot %33, %23, %35 {tile.name = "record.next_state", transpose_a} : tensor<16x128xf32>, tensor<16x128xf32> -> tensor<128x128xf32>
    scf.yield %36 : tensor<128x128xf32>
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
    %22 = tile.load %arg1[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.load_key"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<16x128xf32>
    %23 = tile.load %arg2[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.load_value"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<16x128xf32>
    %24 = tile.load %arg0[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.load_query"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<16x128xf32>
    %cst_8 = arith.constant dense<0.0883883461> : tensor<16x128xf32>
    %25 = arith.mulf %24, %cst_8 : tensor<16x128xf32>
    %26 = tile.load %arg5[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.load_decay"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<16x128xf32>
    %27 = tile.prefix_sum %26 dim 0 {reverse} : tensor<16x128xf32>
    %28 = tile.slice %27 dim 0 offset 1 size 15 : tensor<16x128xf32>
    %29 = tile.prefix_sum %26 dim 0 : tensor<16x128xf32>
    %30 = math.exp %29 : tensor<16x128xf32>
    %cst_9 = arith.constant dense<0.000000e+00> : tensor<1x128xf32>
    %31 = tile.concat %28, %cst_9 dim 0 : tensor<15x128xf32>, tensor<1x128xf32>
    %32 = math.exp %31 : tensor<16x128xf32>
    %33 = tile.slice %30 dim 0 offset 15 size 1 : tensor<16x128xf32>
    %34 = tile.reshape %33 : tensor<1x128xf32> to tensor<128x1xf32>
    %35 = arith.addi %13, %19 : index
    %36 = tile.load %arg11[%35, %0, %c0, %c0] dims [2, 3] {tile.name = "back.load_state"} : !tile.view<?x2x128x128xf32> -> tensor<128x128xf32>
    %37 = tile.load %arg6[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.load_d_output"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<16x128xf32>
    %38 = arith.mulf %32, %22 : tensor<16x128xf32>
    %cst_10 = arith.constant dense<0.000000e+00> : tensor<16x128xf32>
    %39 = tile.dot %38, %arg13, %cst_10 {tile.name = "back.d_updates"} : tensor<16x128xf32>, tensor<128x128xf32> -> tensor<16x128xf32>
    %cst_11 = arith.constant dense<0.000000e+00> : tensor<16x128xf32>
    %40 = tile.dot %23, %arg13, %cst_11 {tile.name = "back.d_key_end", transpose_b} : tensor<16x128xf32>, tensor<128x128xf32> -> tensor<16x128xf32>
    %41 = tile.broadcast %34 : tensor<128x1xf32> to tensor<128x128xf32>
    %42 = arith.mulf %41, %arg13 : tensor<128x128xf32>
    %cst_12 = arith.constant dense<0.000000e+00> : tensor<16x16xf32>
    %cst_13 = arith.constant dense<0.000000e+00> : tensor<16x128xf32>
    %c0_14 = arith.constant 0 : index
    %c16_15 = arith.constant 16 : index
    %c1_16 = arith.constant 1 : index
    %43:2 = scf.for %arg14 = %c0_14 to %c16_15 step %c1_16 iter_args(%arg15 = %cst_13, %arg16 = %cst_12) -> (tensor<16x128xf32>, tensor<16x16xf32>) {
      %85 = arith.addi %21, %arg14 : index
      %86 = tile.load %arg5[%85, %0, %c0] dims [0, 2] limit(%5) : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<1x128xf32>
      %87 = math.exp %86 : tensor<1x128xf32>
      %88 = tile.broadcast %87 : tensor<1x128xf32> to tensor<16x128xf32>
      %89 = arith.mulf %arg15, %88 : tensor<16x128xf32>
      %90 = tile.iota dim 0 : tensor<16x1xi32>
      %91 = arith.index_cast %arg14 : index to i32
      %92 = tile.splat %91 : tensor<16x1xi32>
      %93 = arith.cmpi eq, %90, %92 : tensor<16x1xi32>
      %cst_26 = arith.constant dense<1.000000e+00> : tensor<16x128xf32>
      %94 = tile.broadcast %93 : tensor<16x1xi1> to tensor<16x128xi1>
      %95 = arith.select %94, %cst_26, %89 : tensor<16x128xi1>, tensor<16x128xf32>
      %cst_27 = arith.constant dense<1.000000e+00> : tensor<16x128xf32>
      %96 = tile.broadcast %93 : tensor<16x1xi1> to tensor<16x128xi1>
      %97 = arith.select %96, %cst_27, %89 : tensor<16x128xi1>, tensor<16x128xf32>
      %98 = arith.mulf %97, %22 : tensor<16x128xf32>
      %99 = arith.addi %21, %arg14 : index
      %100 = tile.load %arg0[%99, %0, %c0] dims [0, 2] limit(%5) : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<1x128xf32>
      %cst_28 = arith.constant dense<0.0883883461> : tensor<1x128xf32>
      %101 = arith.mulf %100, %cst_28 : tensor<1x128xf32>
      %102 = tile.broadcast %101 : tensor<1x128xf32> to tensor<16x128xf32>
      %103 = arith.mulf %98, %102 : tensor<16x128xf32>
      %104 = tile.reduce  sum %103 dim 1 : tensor<16x128xf32>
      %105 = tile.reshape %104 : tensor<16x1xf32> to tensor<1x16xf32>
      %106 = tile.broadcast %93 : tensor<16x1xi1> to tensor<16x16xi1>
      %107 = tile.broadcast %105 : tensor<1x16xf32> to tensor<16x16xf32>
      %108 = arith.select %106, %107, %arg16 : tensor<16x16xi1>, tensor<16x16xf32>
      scf.yield %95, %108 : tensor<16x128xf32>, tensor<16x16xf32>
    } {tile.name = "back.score_rows"}
    %cst_17 = arith.constant dense<0.000000e+00> : tensor<16x16xf32>
    %44 = tile.dot %37, %23, %cst_17 {tile.name = "back.d_scores", transpose_b} : tensor<16x128xf32>, tensor<16x128xf32> -> tensor<16x16xf32>
    %45 = tile.dot %43#1, %37, %39 {transpose_a} : tensor<16x16xf32>, tensor<16x128xf32> -> tensor<16x128xf32>
    %cst_18 = arith.constant dense<0.000000e+00> : tensor<16x128xf32>
    %46 = tile.dot %37, %36, %cst_18 {tile.name = "back.d_query_start", transpose_b} : tensor<16x128xf32>, tensor<128x128xf32> -> tensor<16x128xf32>
    %47 = arith.mulf %30, %25 : tensor<16x128xf32>
    %48 = tile.dot %47, %37, %42 {tile.name = "back.d_state", transpose_a} : tensor<16x128xf32>, tensor<16x128xf32> -> tensor<128x128xf32>
    %cst_19 = arith.constant dense<0.000000e+00> : tensor<16x128xf32>
    %cst_20 = arith.constant dense<0.000000e+00> : tensor<16x128xf32>
    %c0_21 = arith.constant 0 : index
    %c16_22 = arith.constant 16 : index
    %c1_23 = arith.constant 1 : index
    %49:3 = scf.for %arg14 = %c0_21 to %c16_22 step %c1_23 iter_args(%arg15 = %cst_20, %arg16 = %cst_19, %arg17 = %cst_19) -> (tensor<16x128xf32>, tensor<16x128xf32>, tensor<16x128xf32>) {
      %85 = arith.addi %21, %arg14 : index
      %86 = tile.load %arg5[%85, %0, %c0] dims [0, 2] limit(%5) : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<1x128xf32>
      %87 = math.exp %86 : tensor<1x128xf32>
      %88 = tile.broadcast %87 : tensor<1x128xf32> to tensor<16x128xf32>
      %89 = arith.mulf %arg15, %88 : tensor<16x128xf32>
      %90 = tile.iota dim 0 : tensor<16x1xi32>
      %91 = arith.index_cast %arg14 : index to i32
      %92 = tile.splat %91 : tensor<16x1xi32>
      %93 = arith.cmpi eq, %90, %92 : tensor<16x1xi32>
      %cst_26 = arith.constant dense<1.000000e+00> : tensor<16x128xf32>
      %94 = tile.broadcast %93 : tensor<16x1xi1> to tensor<16x128xi1>
      %95 = arith.select %94, %cst_26, %89 : tensor<16x128xi1>, tensor<16x128xf32>
      %96 = arith.mulf %89, %22 : tensor<16x128xf32>
      %cst_27 = arith.constant dense<0.000000e+00> : tensor<16x16xf32>
      %97 = tile.broadcast %93 : tensor<16x1xi1> to tensor<16x16xi1>
      %98 = arith.select %97, %44, %cst_27 : tensor<16x16xi1>, tensor<16x16xf32>
      %99 = tile.reduce  sum %98 dim 0 : tensor<16x16xf32>
      %100 = tile.reshape %99 : tensor<1x16xf32> to tensor<16x1xf32>
      %101 = arith.addi %21, %arg14 : index
      %102 = tile.load %arg0[%101, %0, %c0] dims [0, 2] limit(%5) : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<1x128xf32>
      %cst_28 = arith.constant dense<0.0883883461> : tensor<1x128xf32>
      %103 = arith.mulf %102, %cst_28 : tensor<1x128xf32>
      %104 = tile.broadcast %100 : tensor<16x1xf32> to tensor<16x128xf32>
      %105 = tile.broadcast %103 : tensor<1x128xf32> to tensor<16x128xf32>
      %106 = arith.mulf %104, %105 : tensor<16x128xf32>
      %107 = arith.mulf %89, %106 : tensor<16x128xf32>
      %108 = arith.addf %arg16, %107 : tensor<16x128xf32>
      %109 = tile.broadcast %100 : tensor<16x1xf32> to tensor<16x128xf32>
      %110 = arith.mulf %109, %96 : tensor<16x128xf32>
      %111 = tile.reduce  sum %110 dim 0 : tensor<16x128xf32>
      %112 = tile.broadcast %93 : tensor<16x1xi1> to tensor<16x128xi1>
      %113 = tile.broadcast %111 : tensor<1x128xf32> to tensor<16x128xf32>
      %114 = arith.select %112, %113, %arg17 : tensor<16x128xi1>, tensor<16x128xf32>
      scf.yield %95, %108, %114 : tensor<16x128xf32>, tensor<16x128xf32>, tensor<16x128xf32>
    } {tile.name = "back.d_score_rows"}
    %50 = arith.mulf %22, %49#1 : tensor<16x128xf32>
    %51 = arith.negf %50 : tensor<16x128xf32>
    %52 = arith.mulf %25, %49#2 : tensor<16x128xf32>
    %53 = arith.addf %51, %52 : tensor<16x128xf32>
    %54 = tile.iota dim 1 : tensor<1x16xi32>
    %55 = tile.iota dim 0 : tensor<16x1xi32>
    %56 = tile.broadcast %54 : tensor<1x16xi32> to tensor<16x16xi32>
    %57 = tile.broadcast %55 : tensor<16x1xi32> to tensor<16x16xi32>
    %58 = arith.cmpi eq, %56, %57 : tensor<16x16xi32>
    %cst_24 = arith.constant dense<0.000000e+00> : tensor<16x16xf32>
    %59 = arith.select %58, %44, %cst_24 : tensor<16x16xi1>, tensor<16x16xf32>
    %60 = tile.reduce  sum %59 dim 1 : tensor<16x16xf32>
    %61 = tile.broadcast %60 : tensor<16x1xf32> to tensor<16x128xf32>
    %62 = arith.mulf %61, %22 : tensor<16x128xf32>
    %63 = arith.addf %49#2, %62 : tensor<16x128xf32>
    %64 = tile.broadcast %60 : tensor<16x1xf32> to tensor<16x128xf32>
    %65 = arith.mulf %64, %25 : tensor<16x128xf32>
    %66 = arith.addf %49#1, %65 : tensor<16x128xf32>
    %67 = arith.mulf %32, %40 : tensor<16x128xf32>
    %68 = arith.addf %66, %67 : tensor<16x128xf32>
    %69 = arith.mulf %30, %46 : tensor<16x128xf32>
    %70 = arith.addf %63, %69 : tensor<16x128xf32>
    %71 = arith.mulf %25, %69 : tensor<16x128xf32>
    %72 = arith.mulf %36, %arg13 : tensor<128x128xf32>
    %73 = tile.reduce  sum %72 dim 1 : tensor<128x128xf32>
    %74 = arith.mulf %34, %73 : tensor<128x1xf32>
    %75 = arith.mulf %22, %67 : tensor<16x128xf32>
    %76 = tile.prefix_sum %75 dim 0 : tensor<16x128xf32>
    %77 = arith.subf %76, %75 : tensor<16x128xf32>
    %78 = arith.addf %53, %71 : tensor<16x128xf32>
    %79 = tile.prefix_sum %78 dim 0 {reverse} : tensor<16x128xf32>
    %80 = arith.addf %77, %79 : tensor<16x128xf32>
    %81 = tile.reshape %74 : tensor<128x1xf32> to tensor<1x128xf32>
    %82 = tile.broadcast %81 : tensor<1x128xf32> to tensor<16x128xf32>
    %83 = arith.addf %80, %82 : tensor<16x128xf32>
    %cst_25 = arith.constant dense<0.0883883461> : tensor<16x128xf32>
    %84 = arith.mulf %70, %cst_25 : tensor<16x128xf32>
    tile.store %84, %arg7[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.store_d_query"} : tensor<16x128xf32>, !tile.view<?x2x128xf32, strides = [?, 128, 1]>
    tile.store %68, %arg8[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.store_d_key"} : tensor<16x128xf32>, !tile.view<?x2x128xf32, strides = [?, 128, 1]>
    tile.store %45, %arg9[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.store_d_value"} : tensor<16x128xf32>, !tile.view<?x2x128xf32, strides = [?, 128, 1]>
    tile.store %83, %arg10[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.store_d_decay"} : tensor<16x128xf32>, !tile.view<?x2x128xf32, strides = [?, 128, 1]>
    scf.yield %48 : tensor<128x128xf32>
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
