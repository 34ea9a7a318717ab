// RUN: hybrid-opt %s | FileCheck %s
// RUN: tile-against-oracle %s --lengths=65,0,1

// Adjoint of the gated delta rule. The walk forward keeps S, T and N of every chunk
// in workspaces; the walk back reads them.
//
// sm_90a: T of the walk forward and all scores are made a chunk ahead; the chain of
// the walk back is d_updates → d_errors → d_state.

// CHECK-LABEL: tile.program @recurrence_backward
// CHECK:         tile.name = "record.keep_inverse"
// CHECK:         tile.name = "record.keep_updates"
// CHECK:         tile.name = "back.d_errors"
// CHECK:         tile.name = "back.d_inverse"
// CHECK:         tile.name = "back.store_d_beta"
// CHECK:       tile.schedule @recurrence_backward target("sm_90a")

!x = tensor<?x2x128xf32>
!g = tensor<?x2x1xf32>
!b = tensor<?x2xf32>

func.func @definition(%q: !x, %k: !x {random.range = array<f64: -0.15, 0.15>}, %v: !x, %g: !g {random.range = array<f64: -0.3, 0.0>}, %b: !b {random.range = array<f64: 0.0, 1.0>}, %do: !x, %segments: !hybrid.segments)
    -> (!x, !x, !x, !g, !b) {
  %r:5 = hybrid.recurrence_grad delta %q, %k, %v, %segments, %do decay(%g) beta(%b) scale 0.0883883461356163
      : (!x, !x, !x, !hybrid.segments, !x, !g, !b) -> (!x, !x, !x, !g, !b)
  return %r#0, %r#1, %r#2, %r#3, %r#4 : !x, !x, !x, !g, !b
}

func.func @dispatched(%q: !x, %k: !x {random.range = array<f64: -0.15, 0.15>}, %v: !x, %g: !g {random.range = array<f64: -0.3, 0.0>}, %b: !b {random.range = array<f64: 0.0, 1.0>}, %do: !x, %segments: !hybrid.segments)
    -> (!x, !x, !x, !g, !b) {
  %r:8 = hybrid.dispatch @recurrence_backward(%q, %k, %v, %segments, %g, %b, %do)
      : (!x, !x, !x, !hybrid.segments, !g, !b, !x)
      -> (!x, !x, !x, !g, !b, tensor<?x2x128x128xf32, #hybrid.sized<affine_map<()[t, n, l, s, c, d] -> (t floordiv 64 + n)>>>, tensor<?x2x64x64xf32, #hybrid.sized<affine_map<()[t, n, l, s, c, d] -> (t floordiv 64 + n)>>>, tensor<?x2x64x128xf32, #hybrid.sized<affine_map<()[t, n, l, s, c, d] -> (t floordiv 64 + n)>>>)
  return %r#0, %r#1, %r#2, %r#3, %r#4 : !x, !x, !x, !g, !b
}

tile.program @recurrence_backward(%arg0: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg1: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg2: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg3: !tile.view<?x4xi32>, %arg4: !tile.view<?xi32>, %arg5: !tile.view<?x2x1xf32, strides = [?, 1, 1]>, %arg6: !tile.view<?x2xf32, strides = [?, 1]>, %arg7: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg8: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg9: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg10: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg11: !tile.view<?x2x1xf32, strides = [?, 1, 1]>, %arg12: !tile.view<?x2xf32, strides = [?, 1]>, %arg13: !tile.view<?x2x128x128xf32>, %arg14: !tile.view<?x2x64x64xf32>, %arg15: !tile.view<?x2x64x128xf32>) grid affine_map<()[s0, s1, s2, s3, s4, s5] -> (s1, 2)> order [parallel, parallel] {
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
  %14 = scf.for %arg16 = %3 to %5 step %c64_3 iter_args(%arg17 = %cst) -> (tensor<128x128xf32>) {
    %19 = arith.subi %arg16, %3 : index
    %20 = arith.divsi %19, %c64_2 : index
    %21 = arith.addi %13, %20 : index
    %22 = tile.load %arg1[%arg16, %0, %c0] dims [0, 2] limit(%5) {tile.name = "record.load_key"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %23 = tile.load %arg2[%arg16, %0, %c0] dims [0, 2] limit(%5) {tile.name = "record.load_value"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %24 = tile.load %arg6[%arg16, %0] dims [0, 1] limit(%5) {tile.name = "record.load_beta"} : !tile.view<?x2xf32, strides = [?, 1]> -> tensor<64x1xf32>
    %25 = tile.load %arg5[%arg16, %0, %c0] dims [0, 2] limit(%5) {tile.name = "record.load_decay"} : !tile.view<?x2x1xf32, strides = [?, 1, 1]> -> tensor<64x1xf32>
    %26 = tile.prefix_sum %25 dim 0 {reverse} : tensor<64x1xf32>
    %27 = tile.slice %26 dim 0 offset 1 size 63 : tensor<64x1xf32>
    %28 = tile.prefix_sum %25 dim 0 : tensor<64x1xf32>
    %29 = math.exp %28 : tensor<64x1xf32>
    %cst_8 = arith.constant dense<0.000000e+00> : tensor<1x1xf32>
    %30 = tile.concat %27, %cst_8 dim 0 : tensor<63x1xf32>, tensor<1x1xf32>
    %31 = math.exp %30 : tensor<64x1xf32>
    %32 = tile.slice %29 dim 0 offset 63 size 1 : tensor<64x1xf32>
    tile.store %arg17, %arg13[%21, %0, %c0, %c0] dims [2, 3] {tile.name = "record.keep_state"} : tensor<128x128xf32>, !tile.view<?x2x128x128xf32>
    %33 = tile.iota dim 1 : tensor<1x64xi32>
    %34 = tile.iota dim 0 : tensor<64x1xi32>
    %35 = tile.broadcast %33 : tensor<1x64xi32> to tensor<64x64xi32>
    %36 = tile.broadcast %34 : tensor<64x1xi32> to tensor<64x64xi32>
    %37 = arith.cmpi slt, %35, %36 : tensor<64x64xi32>
    %cst_9 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %38 = tile.broadcast %25 : tensor<64x1xf32> to tensor<64x64xf32>
    %39 = arith.select %37, %38, %cst_9 : tensor<64x64xi1>, tensor<64x64xf32>
    %40 = tile.prefix_sum %39 dim 0 : tensor<64x64xf32>
    %41 = tile.iota dim 1 : tensor<1x64xi32>
    %42 = tile.iota dim 0 : tensor<64x1xi32>
    %43 = tile.broadcast %41 : tensor<1x64xi32> to tensor<64x64xi32>
    %44 = tile.broadcast %42 : tensor<64x1xi32> to tensor<64x64xi32>
    %45 = arith.cmpi sle, %43, %44 : tensor<64x64xi32>
    %46 = math.exp %40 : tensor<64x64xf32>
    %cst_10 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %47 = arith.select %45, %46, %cst_10 : tensor<64x64xi1>, tensor<64x64xf32>
    %cst_11 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %48 = tile.dot %22, %22, %cst_11 {tile.name = "record.key_scores", transpose_b} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<64x64xf32>
    %49 = arith.mulf %48, %47 : tensor<64x64xf32>
    %50 = tile.broadcast %24 : tensor<64x1xf32> to tensor<64x64xf32>
    %51 = arith.mulf %50, %49 : tensor<64x64xf32>
    %52 = tile.unit_lower_inverse %51 {tile.name = "record.inverse"} : tensor<64x64xf32>
    %53 = tile.broadcast %29 : tensor<64x1xf32> to tensor<64x128xf32>
    %54 = arith.mulf %53, %22 : tensor<64x128xf32>
    %cst_12 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %55 = tile.dot %54, %arg17, %cst_12 {tile.name = "record.predict"} : tensor<64x128xf32>, tensor<128x128xf32> -> tensor<64x128xf32>
    %56 = arith.subf %23, %55 : tensor<64x128xf32>
    %57 = tile.broadcast %24 : tensor<64x1xf32> to tensor<64x128xf32>
    %58 = arith.mulf %57, %56 : tensor<64x128xf32>
    %cst_13 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %59 = tile.dot %52, %58, %cst_13 {tile.name = "record.updates"} : tensor<64x64xf32>, tensor<64x128xf32> -> tensor<64x128xf32>
    tile.store %52, %arg14[%21, %0, %c0, %c0] dims [2, 3] {tile.name = "record.keep_inverse"} : tensor<64x64xf32>, !tile.view<?x2x64x64xf32>
    tile.store %59, %arg15[%21, %0, %c0, %c0] dims [2, 3] {tile.name = "record.keep_updates"} : tensor<64x128xf32>, !tile.view<?x2x64x128xf32>
    %60 = tile.broadcast %31 : tensor<64x1xf32> to tensor<64x128xf32>
    %61 = arith.mulf %60, %22 : tensor<64x128xf32>
    %62 = tile.broadcast %32 : tensor<1x1xf32> to tensor<128x128xf32>
    %63 = arith.mulf %62, %arg17 : tensor<128x128xf32>
    %64 = tile.dot %61, %59, %63 {tile.name = "record.next_state", transpose_a} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<128x128xf32>
    scf.yield %64 : tensor<128x128xf32>
  }
  %cst_4 = arith.constant dense<0.000000e+00> : tensor<128x128xf32>
  %c64_5 = arith.constant 64 : index
  %15 = arith.subi %5, %3 : index
  %16 = arith.ceildivsi %15, %c64_5 : index
  %c1_6 = arith.constant 1 : index
  %17 = arith.subi %16, %c1_6 : index
  %c1_7 = arith.constant 1 : index
  %18 = scf.for %arg16 = %c0 to %16 step %c1_7 iter_args(%arg17 = %cst_4) -> (tensor<128x128xf32>) {
    %19 = arith.subi %17, %arg16 : index
    %20 = arith.muli %19, %c64_5 : index
    %21 = arith.addi %3, %20 : index
    %22 = tile.load %arg1[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.load_key"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %23 = tile.load %arg2[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.load_value"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %24 = tile.load %arg0[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.load_query"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %cst_8 = arith.constant dense<0.0883883461> : tensor<64x128xf32>
    %25 = arith.mulf %24, %cst_8 : tensor<64x128xf32>
    %26 = tile.load %arg6[%21, %0] dims [0, 1] limit(%5) {tile.name = "back.load_beta"} : !tile.view<?x2xf32, strides = [?, 1]> -> tensor<64x1xf32>
    %27 = tile.load %arg5[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.load_decay"} : !tile.view<?x2x1xf32, strides = [?, 1, 1]> -> tensor<64x1xf32>
    %28 = tile.prefix_sum %27 dim 0 {reverse} : tensor<64x1xf32>
    %29 = tile.slice %28 dim 0 offset 1 size 63 : tensor<64x1xf32>
    %30 = tile.prefix_sum %27 dim 0 : tensor<64x1xf32>
    %31 = math.exp %30 : tensor<64x1xf32>
    %cst_9 = arith.constant dense<0.000000e+00> : tensor<1x1xf32>
    %32 = tile.concat %29, %cst_9 dim 0 : tensor<63x1xf32>, tensor<1x1xf32>
    %33 = math.exp %32 : tensor<64x1xf32>
    %34 = tile.slice %31 dim 0 offset 63 size 1 : tensor<64x1xf32>
    %35 = arith.addi %13, %19 : index
    %36 = tile.load %arg13[%35, %0, %c0, %c0] dims [2, 3] {tile.name = "back.load_state"} : !tile.view<?x2x128x128xf32> -> tensor<128x128xf32>
    %37 = tile.load %arg14[%35, %0, %c0, %c0] dims [2, 3] {tile.name = "back.load_inverse"} : !tile.view<?x2x64x64xf32> -> tensor<64x64xf32>
    %38 = tile.load %arg15[%35, %0, %c0, %c0] dims [2, 3] {tile.name = "back.load_updates"} : !tile.view<?x2x64x128xf32> -> tensor<64x128xf32>
    %39 = tile.load %arg7[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.load_d_output"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %40 = tile.broadcast %33 : tensor<64x1xf32> to tensor<64x128xf32>
    %41 = arith.mulf %40, %22 : tensor<64x128xf32>
    %cst_10 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %42 = tile.dot %41, %arg17, %cst_10 {tile.name = "back.d_updates"} : tensor<64x128xf32>, tensor<128x128xf32> -> tensor<64x128xf32>
    %cst_11 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %43 = tile.dot %38, %arg17, %cst_11 {tile.name = "back.d_key_end", transpose_b} : tensor<64x128xf32>, tensor<128x128xf32> -> tensor<64x128xf32>
    %44 = tile.broadcast %34 : tensor<1x1xf32> to tensor<128x128xf32>
    %45 = arith.mulf %44, %arg17 : tensor<128x128xf32>
    %46 = tile.iota dim 1 : tensor<1x64xi32>
    %47 = tile.iota dim 0 : tensor<64x1xi32>
    %48 = tile.broadcast %46 : tensor<1x64xi32> to tensor<64x64xi32>
    %49 = tile.broadcast %47 : tensor<64x1xi32> to tensor<64x64xi32>
    %50 = arith.cmpi slt, %48, %49 : tensor<64x64xi32>
    %cst_12 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %51 = tile.broadcast %27 : tensor<64x1xf32> to tensor<64x64xf32>
    %52 = arith.select %50, %51, %cst_12 : tensor<64x64xi1>, tensor<64x64xf32>
    %53 = tile.prefix_sum %52 dim 0 : tensor<64x64xf32>
    %54 = tile.iota dim 1 : tensor<1x64xi32>
    %55 = tile.iota dim 0 : tensor<64x1xi32>
    %56 = tile.broadcast %54 : tensor<1x64xi32> to tensor<64x64xi32>
    %57 = tile.broadcast %55 : tensor<64x1xi32> to tensor<64x64xi32>
    %58 = arith.cmpi sle, %56, %57 : tensor<64x64xi32>
    %59 = math.exp %53 : tensor<64x64xf32>
    %cst_13 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %60 = arith.select %58, %59, %cst_13 : tensor<64x64xi1>, tensor<64x64xf32>
    %cst_14 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %61 = tile.dot %25, %22, %cst_14 {tile.name = "back.query_scores", transpose_b} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<64x64xf32>
    %62 = arith.mulf %61, %60 : tensor<64x64xf32>
    %cst_15 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %63 = tile.dot %22, %22, %cst_15 {tile.name = "back.key_scores", transpose_b} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<64x64xf32>
    %64 = arith.mulf %63, %60 : tensor<64x64xf32>
    %cst_16 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %65 = tile.dot %39, %38, %cst_16 {tile.name = "back.d_scores", transpose_b} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<64x64xf32>
    %66 = tile.dot %62, %39, %42 {transpose_a} : tensor<64x64xf32>, tensor<64x128xf32> -> tensor<64x128xf32>
    %cst_17 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %67 = tile.dot %39, %36, %cst_17 {tile.name = "back.d_query_start", transpose_b} : tensor<64x128xf32>, tensor<128x128xf32> -> tensor<64x128xf32>
    %68 = tile.broadcast %31 : tensor<64x1xf32> to tensor<64x128xf32>
    %69 = arith.mulf %68, %25 : tensor<64x128xf32>
    %70 = tile.dot %69, %39, %45 {tile.name = "back.d_state", transpose_a} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<128x128xf32>
    %cst_18 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %71 = tile.dot %37, %66, %cst_18 {tile.name = "back.d_errors", transpose_a} : tensor<64x64xf32>, tensor<64x128xf32> -> tensor<64x128xf32>
    %cst_19 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %72 = tile.dot %71, %38, %cst_19 {tile.name = "back.d_inverse", transpose_b} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<64x64xf32>
    %73 = tile.iota dim 1 : tensor<1x64xi32>
    %74 = tile.iota dim 0 : tensor<64x1xi32>
    %75 = tile.broadcast %73 : tensor<1x64xi32> to tensor<64x64xi32>
    %76 = tile.broadcast %74 : tensor<64x1xi32> to tensor<64x64xi32>
    %77 = arith.cmpi slt, %75, %76 : tensor<64x64xi32>
    %78 = arith.negf %72 : tensor<64x64xf32>
    %cst_20 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %79 = arith.select %77, %78, %cst_20 : tensor<64x64xi1>, tensor<64x64xf32>
    %80 = tile.broadcast %26 : tensor<64x1xf32> to tensor<64x128xf32>
    %81 = arith.mulf %80, %71 : tensor<64x128xf32>
    %82 = tile.broadcast %31 : tensor<64x1xf32> to tensor<64x128xf32>
    %83 = arith.mulf %82, %22 : tensor<64x128xf32>
    %cst_21 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %84 = tile.dot %83, %36, %cst_21 {tile.name = "back.predict"} : tensor<64x128xf32>, tensor<128x128xf32> -> tensor<64x128xf32>
    %85 = arith.subf %23, %84 : tensor<64x128xf32>
    %86 = arith.mulf %71, %85 : tensor<64x128xf32>
    %87 = tile.reduce  sum %86 dim 1 : tensor<64x128xf32>
    %88 = arith.mulf %79, %64 : tensor<64x64xf32>
    %89 = tile.reduce  sum %88 dim 1 : tensor<64x64xf32>
    %90 = arith.addf %87, %89 : tensor<64x1xf32>
    %91 = tile.broadcast %26 : tensor<64x1xf32> to tensor<64x64xf32>
    %92 = arith.mulf %91, %79 : tensor<64x64xf32>
    %93 = arith.negf %81 : tensor<64x128xf32>
    %cst_22 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %94 = tile.dot %93, %36, %cst_22 {tile.name = "back.d_key_start", transpose_b} : tensor<64x128xf32>, tensor<128x128xf32> -> tensor<64x128xf32>
    %95 = tile.broadcast %31 : tensor<64x1xf32> to tensor<64x128xf32>
    %96 = arith.mulf %95, %22 : tensor<64x128xf32>
    %97 = arith.negf %81 : tensor<64x128xf32>
    %98 = tile.dot %96, %97, %70 {transpose_a} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<128x128xf32>
    %99 = arith.mulf %65, %60 : tensor<64x64xf32>
    %cst_23 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %100 = tile.dot %99, %22, %cst_23 {tile.name = "back.d_query"} : tensor<64x64xf32>, tensor<64x128xf32> -> tensor<64x128xf32>
    %cst_24 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %101 = tile.dot %99, %25, %cst_24 {tile.name = "back.d_key", transpose_a} : tensor<64x64xf32>, tensor<64x128xf32> -> tensor<64x128xf32>
    %102 = arith.mulf %65, %62 : tensor<64x64xf32>
    %103 = arith.mulf %92, %60 : tensor<64x64xf32>
    %104 = tile.dot %103, %22, %101 : tensor<64x64xf32>, tensor<64x128xf32> -> tensor<64x128xf32>
    %105 = tile.dot %103, %22, %104 {transpose_a} : tensor<64x64xf32>, tensor<64x128xf32> -> tensor<64x128xf32>
    %106 = arith.mulf %92, %64 : tensor<64x64xf32>
    %107 = arith.addf %102, %106 : tensor<64x64xf32>
    %108 = tile.broadcast %33 : tensor<64x1xf32> to tensor<64x128xf32>
    %109 = arith.mulf %108, %43 : tensor<64x128xf32>
    %110 = arith.addf %105, %109 : tensor<64x128xf32>
    %111 = tile.broadcast %31 : tensor<64x1xf32> to tensor<64x128xf32>
    %112 = arith.mulf %111, %67 : tensor<64x128xf32>
    %113 = arith.addf %100, %112 : tensor<64x128xf32>
    %114 = arith.mulf %25, %112 : tensor<64x128xf32>
    %115 = tile.broadcast %31 : tensor<64x1xf32> to tensor<64x128xf32>
    %116 = arith.mulf %115, %94 : tensor<64x128xf32>
    %117 = arith.addf %110, %116 : tensor<64x128xf32>
    %118 = arith.mulf %22, %116 : tensor<64x128xf32>
    %119 = arith.addf %114, %118 : tensor<64x128xf32>
    %120 = arith.mulf %36, %arg17 : tensor<128x128xf32>
    %121 = tile.reduce  sum %120 dim 1 : tensor<128x128xf32>
    %122 = tile.broadcast %34 : tensor<1x1xf32> to tensor<128x1xf32>
    %123 = arith.mulf %122, %121 : tensor<128x1xf32>
    %124 = arith.mulf %22, %109 : tensor<64x128xf32>
    %125 = tile.reduce  sum %124 dim 1 : tensor<64x128xf32>
    %126 = tile.reshape %125 : tensor<64x1xf32> to tensor<1x64xf32>
    %127 = tile.prefix_sum %107 dim 0 {reverse} : tensor<64x64xf32>
    %128 = tile.broadcast %126 : tensor<1x64xf32> to tensor<64x64xf32>
    %129 = arith.addf %127, %128 : tensor<64x64xf32>
    %130 = tile.iota dim 1 : tensor<1x64xi32>
    %131 = tile.iota dim 0 : tensor<64x1xi32>
    %132 = tile.broadcast %130 : tensor<1x64xi32> to tensor<64x64xi32>
    %133 = tile.broadcast %131 : tensor<64x1xi32> to tensor<64x64xi32>
    %134 = arith.cmpi slt, %132, %133 : tensor<64x64xi32>
    %cst_25 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %135 = arith.select %134, %129, %cst_25 : tensor<64x64xi1>, tensor<64x64xf32>
    %136 = tile.reduce  sum %135 dim 1 : tensor<64x64xf32>
    %137 = tile.reduce  sum %119 dim 1 : tensor<64x128xf32>
    %138 = tile.prefix_sum %137 dim 0 {reverse} : tensor<64x1xf32>
    %139 = arith.addf %136, %138 : tensor<64x1xf32>
    %140 = tile.reduce  sum %123 dim 0 : tensor<128x1xf32>
    %141 = tile.broadcast %140 : tensor<1x1xf32> to tensor<64x1xf32>
    %142 = arith.addf %139, %141 : tensor<64x1xf32>
    %cst_26 = arith.constant dense<0.0883883461> : tensor<64x128xf32>
    %143 = arith.mulf %113, %cst_26 : tensor<64x128xf32>
    tile.store %143, %arg8[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.store_d_query"} : tensor<64x128xf32>, !tile.view<?x2x128xf32, strides = [?, 128, 1]>
    tile.store %117, %arg9[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.store_d_key"} : tensor<64x128xf32>, !tile.view<?x2x128xf32, strides = [?, 128, 1]>
    tile.store %81, %arg10[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.store_d_value"} : tensor<64x128xf32>, !tile.view<?x2x128xf32, strides = [?, 128, 1]>
    tile.store %142, %arg11[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.store_d_decay"} : tensor<64x1xf32>, !tile.view<?x2x1xf32, strides = [?, 1, 1]>
    tile.store %90, %arg12[%21, %0] dims [0, 1] limit(%5) {tile.name = "back.store_d_beta"} : tensor<64x1xf32>, !tile.view<?x2xf32, strides = [?, 1]>
    scf.yield %98 : tensor<128x128xf32>
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
      "record.load_beta" = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      "record.load_decay" = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      "record.key_scores" = {role = "local", stage = 1, issue = 0, operand = "shared"},
      "record.inverse" = {role = "local", stage = 1, buffers = 2, issue = 1, barrier = "named"},
      "record.predict" = {role = "state", stage = 2, issue = 0, operand = "shared"},
      "record.updates" = {role = "state", stage = 2, issue = 1, operand = "shared"},
      "record.next_state" = {role = "state", stage = 2, issue = 2, operand = "shared"},
      "record.keep_state" = {role = "state", stage = 2, buffers = 1, issue = 3},
      "record.keep_inverse" = {role = "local", stage = 1, issue = 2},
      "record.keep_updates" = {role = "state", stage = 2, buffers = 1, issue = 4},
      "back.load_query" = {role = "load", stage = 0, buffers = 1, barrier = "mbarrier"},
      "back.load_key" = {role = "load", stage = 0, buffers = 1, barrier = "mbarrier"},
      "back.load_value" = {role = "load", stage = 0, buffers = 1, barrier = "mbarrier"},
      "back.load_beta" = {role = "load", stage = 0, buffers = 1, barrier = "mbarrier"},
      "back.load_decay" = {role = "load", stage = 0, buffers = 1, barrier = "mbarrier"},
      "back.load_d_output" = {role = "load", stage = 0, buffers = 1, barrier = "mbarrier"},
      "back.load_state" = {role = "load", stage = 0, buffers = 1, barrier = "mbarrier"},
      "back.load_inverse" = {role = "load", stage = 0, buffers = 1, barrier = "mbarrier"},
      "back.load_updates" = {role = "load", stage = 0, buffers = 1, barrier = "mbarrier"},
      "back.query_scores" = {role = "local", stage = 1, issue = 0, operand = "shared"},
      "back.key_scores" = {role = "local", stage = 1, issue = 1, operand = "shared"},
      "back.d_scores" = {role = "local", stage = 1, issue = 2, operand = "shared"},
      "back.predict" = {role = "local", stage = 1, issue = 3, operand = "shared"},
      "back.d_updates" = {role = "state", stage = 2, issue = 0, operand = "shared"},
      "back.d_query_start" = {role = "state", stage = 2, issue = 1, wait = 1, operand = "shared"},
      "back.d_errors" = {role = "state", stage = 2, issue = 2, operand = "shared"},
      "back.d_key_end" = {role = "state", stage = 2, issue = 3, wait = 1, operand = "shared"},
      "back.d_inverse" = {role = "state", stage = 2, issue = 4, operand = "shared"},
      "back.d_key_start" = {role = "state", stage = 2, issue = 5, operand = "shared"},
      "back.d_state" = {role = "state", stage = 2, issue = 6, wait = 1, operand = "shared"},
      "back.d_query" = {role = "state", stage = 2, issue = 7, operand = "shared"},
      "back.d_key" = {role = "state", stage = 2, issue = 8, operand = "shared"},
      "back.store_d_query" = {role = "state", stage = 2, issue = 9},
      "back.store_d_key" = {role = "state", stage = 2, issue = 10, barrier = "turn"},
      "back.store_d_value" = {role = "state", stage = 2, issue = 11, barrier = "turn"},
      "back.store_d_decay" = {role = "state", stage = 2, issue = 12},
      "back.store_d_beta" = {role = "state", stage = 2, issue = 13}
    }
