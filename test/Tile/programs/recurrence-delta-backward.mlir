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

tile.program @recurrence_backward(%arg0: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg1: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg2: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg3: !tile.view<?x4xi32>, %arg4: !tile.view<?xi32>, %arg5: !tile.view<?x2x1xf32, strides = [?, 1, 1]>, %arg6: !tile.view<?x2xf32, strides = [?, 1]>, %arg7: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg8: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg9: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg10: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg11: !tile.view<?x2x1xf32, strides = [?, 1, 1]>, %arg12: !tile.view<?x2xf32, strides = [?, 1]>, %arg13: !tile.view<?x2x128x128xf32>, %arg14: !tile.view<?x2x64x64xf32>, %arg15: !tile.view<?x2x64x128xf32>) grid affine_map<()[s0, s1, s2, s3, s4, s5] -> (s1, 2)> order [parallel, parallel] attributes {tile.caution = "a delta update multiplies what the state holds along a key by 1 - beta times the key's squared length, so it grows without bound where that product is above 2; normalise the keys or lower beta"} {
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
    %record.load_key = tile.load %arg1[%arg16, %0, %c0] dims [0, 2] limit(%5) {tile.name = "record.load_key"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %record.load_value = tile.load %arg2[%arg16, %0, %c0] dims [0, 2] limit(%5) {tile.name = "record.load_value"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %record.load_beta = tile.load %arg6[%arg16, %0] dims [0, 1] limit(%5) {tile.name = "record.load_beta"} : !tile.view<?x2xf32, strides = [?, 1]> -> tensor<64x1xf32>
    %record.load_decay = tile.load %arg5[%arg16, %0, %c0] dims [0, 2] limit(%5) {tile.name = "record.load_decay"} : !tile.view<?x2x1xf32, strides = [?, 1, 1]> -> tensor<64x1xf32>
    %22 = tile.prefix_sum %record.load_decay dim 0 {reverse} : tensor<64x1xf32>
    %23 = tile.slice %22 dim 0 offset 1 size 63 : tensor<64x1xf32>
    %24 = tile.prefix_sum %record.load_decay dim 0 : tensor<64x1xf32>
    %25 = math.exp %24 : tensor<64x1xf32>
    %cst_8 = arith.constant dense<0.000000e+00> : tensor<1x1xf32>
    %26 = tile.concat %23, %cst_8 dim 0 : tensor<63x1xf32>, tensor<1x1xf32>
    %27 = math.exp %26 : tensor<64x1xf32>
    %28 = tile.slice %25 dim 0 offset 63 size 1 : tensor<64x1xf32>
    tile.store %arg17, %arg13[%21, %0, %c0, %c0] dims [2, 3] {tile.name = "record.keep_state"} : tensor<128x128xf32>, !tile.view<?x2x128x128xf32>
    %29 = tile.iota dim 1 : tensor<1x64xi32>
    %30 = tile.iota dim 0 : tensor<64x1xi32>
    %31 = tile.broadcast %29 : tensor<1x64xi32> to tensor<64x64xi32>
    %32 = tile.broadcast %30 : tensor<64x1xi32> to tensor<64x64xi32>
    %33 = arith.cmpi slt, %31, %32 : tensor<64x64xi32>
    %cst_9 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %34 = tile.broadcast %record.load_decay : tensor<64x1xf32> to tensor<64x64xf32>
    %35 = arith.select %33, %34, %cst_9 : tensor<64x64xi1>, tensor<64x64xf32>
    %36 = tile.prefix_sum %35 dim 0 : tensor<64x64xf32>
    %37 = tile.iota dim 1 : tensor<1x64xi32>
    %38 = tile.iota dim 0 : tensor<64x1xi32>
    %39 = tile.broadcast %37 : tensor<1x64xi32> to tensor<64x64xi32>
    %40 = tile.broadcast %38 : tensor<64x1xi32> to tensor<64x64xi32>
    %41 = arith.cmpi sle, %39, %40 : tensor<64x64xi32>
    %42 = math.exp %36 : tensor<64x64xf32>
    %cst_10 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %43 = arith.select %41, %42, %cst_10 : tensor<64x64xi1>, tensor<64x64xf32>
    %cst_11 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %record.key_scores = tile.dot %record.load_key, %record.load_key, %cst_11 {tile.name = "record.key_scores", transpose_b} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<64x64xf32>
    %44 = arith.mulf %record.key_scores, %43 : tensor<64x64xf32>
    %45 = tile.broadcast %record.load_beta : tensor<64x1xf32> to tensor<64x64xf32>
    %46 = arith.mulf %45, %44 : tensor<64x64xf32>
    %record.inverse = tile.unit_lower_inverse %46 {tile.name = "record.inverse"} : tensor<64x64xf32>
    %47 = tile.broadcast %25 : tensor<64x1xf32> to tensor<64x128xf32>
    %48 = arith.mulf %47, %record.load_key : tensor<64x128xf32>
    %cst_12 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %record.predict = tile.dot %48, %arg17, %cst_12 {tile.name = "record.predict"} : tensor<64x128xf32>, tensor<128x128xf32> -> tensor<64x128xf32>
    %49 = arith.subf %record.load_value, %record.predict : tensor<64x128xf32>
    %50 = tile.broadcast %record.load_beta : tensor<64x1xf32> to tensor<64x128xf32>
    %51 = arith.mulf %50, %49 : tensor<64x128xf32>
    %cst_13 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %record.updates = tile.dot %record.inverse, %51, %cst_13 {tile.name = "record.updates"} : tensor<64x64xf32>, tensor<64x128xf32> -> tensor<64x128xf32>
    tile.store %record.inverse, %arg14[%21, %0, %c0, %c0] dims [2, 3] {tile.name = "record.keep_inverse"} : tensor<64x64xf32>, !tile.view<?x2x64x64xf32>
    tile.store %record.updates, %arg15[%21, %0, %c0, %c0] dims [2, 3] {tile.name = "record.keep_updates"} : tensor<64x128xf32>, !tile.view<?x2x64x128xf32>
    %52 = tile.broadcast %27 : tensor<64x1xf32> to tensor<64x128xf32>
    %53 = arith.mulf %52, %record.load_key : tensor<64x128xf32>
    %54 = tile.broadcast %28 : tensor<1x1xf32> to tensor<128x128xf32>
    %55 = arith.mulf %54, %arg17 : tensor<128x128xf32>
    %record.next_state = tile.dot %53, %record.updates, %55 {tile.name = "record.next_state", transpose_a} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<128x128xf32>
    scf.yield %record.next_state : tensor<128x128xf32>
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
    %back.load_key = tile.load %arg1[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.load_key"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %back.load_value = tile.load %arg2[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.load_value"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %back.load_query = tile.load %arg0[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.load_query"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %cst_8 = arith.constant dense<0.0883883461> : tensor<64x128xf32>
    %22 = arith.mulf %back.load_query, %cst_8 : tensor<64x128xf32>
    %back.load_beta = tile.load %arg6[%21, %0] dims [0, 1] limit(%5) {tile.name = "back.load_beta"} : !tile.view<?x2xf32, strides = [?, 1]> -> tensor<64x1xf32>
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
    %back.load_state = tile.load %arg13[%30, %0, %c0, %c0] dims [2, 3] {tile.name = "back.load_state"} : !tile.view<?x2x128x128xf32> -> tensor<128x128xf32>
    %back.load_inverse = tile.load %arg14[%30, %0, %c0, %c0] dims [2, 3] {tile.name = "back.load_inverse"} : !tile.view<?x2x64x64xf32> -> tensor<64x64xf32>
    %back.load_updates = tile.load %arg15[%30, %0, %c0, %c0] dims [2, 3] {tile.name = "back.load_updates"} : !tile.view<?x2x64x128xf32> -> tensor<64x128xf32>
    %back.load_d_output = tile.load %arg7[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.load_d_output"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %31 = arith.mulf %back.load_state, %arg17 : tensor<128x128xf32>
    %32 = tile.reduce sum %31 dim 1 : tensor<128x128xf32>
    %33 = tile.broadcast %29 : tensor<1x1xf32> to tensor<128x1xf32>
    %34 = arith.mulf %33, %32 : tensor<128x1xf32>
    %35 = tile.broadcast %28 : tensor<64x1xf32> to tensor<64x128xf32>
    %36 = arith.mulf %35, %back.load_key : tensor<64x128xf32>
    %cst_10 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %back.d_updates = tile.dot %36, %arg17, %cst_10 {tile.name = "back.d_updates"} : tensor<64x128xf32>, tensor<128x128xf32> -> tensor<64x128xf32>
    %37 = tile.broadcast %29 : tensor<1x1xf32> to tensor<128x128xf32>
    %38 = arith.mulf %37, %arg17 : tensor<128x128xf32>
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
    %back.key_scores = tile.dot %back.load_key, %back.load_key, %cst_14 {tile.name = "back.key_scores", transpose_b} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<64x64xf32>
    %55 = arith.mulf %back.key_scores, %53 : tensor<64x64xf32>
    %cst_15 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %back.d_scores = tile.dot %back.load_d_output, %back.load_updates, %cst_15 {tile.name = "back.d_scores", transpose_b} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<64x64xf32>
    %56 = tile.dot %54, %back.load_d_output, %back.d_updates {transpose_a} : tensor<64x64xf32>, tensor<64x128xf32> -> tensor<64x128xf32>
    %57 = tile.broadcast %26 : tensor<64x1xf32> to tensor<64x128xf32>
    %58 = arith.mulf %57, %22 : tensor<64x128xf32>
    %back.d_state = tile.dot %58, %back.load_d_output, %38 {tile.name = "back.d_state", transpose_a} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<128x128xf32>
    %cst_16 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %back.d_errors = tile.dot %back.load_inverse, %56, %cst_16 {tile.name = "back.d_errors", transpose_a} : tensor<64x64xf32>, tensor<64x128xf32> -> tensor<64x128xf32>
    %cst_17 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %back.d_inverse = tile.dot %back.d_errors, %back.load_updates, %cst_17 {tile.name = "back.d_inverse", transpose_b} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<64x64xf32>
    %59 = tile.iota dim 1 : tensor<1x64xi32>
    %60 = tile.iota dim 0 : tensor<64x1xi32>
    %61 = tile.broadcast %59 : tensor<1x64xi32> to tensor<64x64xi32>
    %62 = tile.broadcast %60 : tensor<64x1xi32> to tensor<64x64xi32>
    %63 = arith.cmpi slt, %61, %62 : tensor<64x64xi32>
    %64 = arith.negf %back.d_inverse : tensor<64x64xf32>
    %cst_18 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %65 = arith.select %63, %64, %cst_18 : tensor<64x64xi1>, tensor<64x64xf32>
    %66 = tile.broadcast %back.load_beta : tensor<64x1xf32> to tensor<64x128xf32>
    %67 = arith.mulf %66, %back.d_errors : tensor<64x128xf32>
    %68 = tile.broadcast %26 : tensor<64x1xf32> to tensor<64x128xf32>
    %69 = arith.mulf %68, %back.load_key : tensor<64x128xf32>
    %cst_19 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %back.predict = tile.dot %69, %back.load_state, %cst_19 {tile.name = "back.predict"} : tensor<64x128xf32>, tensor<128x128xf32> -> tensor<64x128xf32>
    %70 = arith.subf %back.load_value, %back.predict : tensor<64x128xf32>
    %71 = arith.mulf %back.d_errors, %70 : tensor<64x128xf32>
    %72 = tile.reduce sum %71 dim 1 : tensor<64x128xf32>
    %73 = arith.mulf %65, %55 : tensor<64x64xf32>
    %74 = tile.reduce sum %73 dim 1 : tensor<64x64xf32>
    %75 = arith.addf %72, %74 : tensor<64x1xf32>
    %76 = tile.broadcast %back.load_beta : tensor<64x1xf32> to tensor<64x64xf32>
    %77 = arith.mulf %76, %65 : tensor<64x64xf32>
    %78 = tile.broadcast %26 : tensor<64x1xf32> to tensor<64x128xf32>
    %79 = arith.mulf %78, %back.load_key : tensor<64x128xf32>
    %80 = arith.negf %67 : tensor<64x128xf32>
    %81 = tile.dot %79, %80, %back.d_state {transpose_a} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<128x128xf32>
    %82 = arith.mulf %back.d_scores, %53 : tensor<64x64xf32>
    %cst_20 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %back.d_query = tile.dot %82, %back.load_key, %cst_20 {tile.name = "back.d_query"} : tensor<64x64xf32>, tensor<64x128xf32> -> tensor<64x128xf32>
    %cst_21 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %back.d_key = tile.dot %82, %22, %cst_21 {tile.name = "back.d_key", transpose_a} : tensor<64x64xf32>, tensor<64x128xf32> -> tensor<64x128xf32>
    %83 = arith.mulf %back.d_scores, %54 : tensor<64x64xf32>
    %84 = arith.mulf %77, %53 : tensor<64x64xf32>
    %85 = tile.dot %84, %back.load_key, %back.d_key : tensor<64x64xf32>, tensor<64x128xf32> -> tensor<64x128xf32>
    %86 = tile.dot %84, %back.load_key, %85 {transpose_a} : tensor<64x64xf32>, tensor<64x128xf32> -> tensor<64x128xf32>
    %87 = arith.mulf %77, %55 : tensor<64x64xf32>
    %88 = arith.addf %83, %87 : tensor<64x64xf32>
    %cst_22 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %back.d_key_end = tile.dot %back.load_updates, %arg17, %cst_22 {tile.name = "back.d_key_end", transpose_b} : tensor<64x128xf32>, tensor<128x128xf32> -> tensor<64x128xf32>
    %89 = tile.broadcast %28 : tensor<64x1xf32> to tensor<64x128xf32>
    %90 = arith.mulf %89, %back.d_key_end : tensor<64x128xf32>
    %91 = arith.addf %86, %90 : tensor<64x128xf32>
    %92 = arith.mulf %back.load_key, %90 : tensor<64x128xf32>
    %cst_23 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %back.d_query_start = tile.dot %back.load_d_output, %back.load_state, %cst_23 {tile.name = "back.d_query_start", transpose_b} : tensor<64x128xf32>, tensor<128x128xf32> -> tensor<64x128xf32>
    %93 = tile.broadcast %26 : tensor<64x1xf32> to tensor<64x128xf32>
    %94 = arith.mulf %93, %back.d_query_start : tensor<64x128xf32>
    %95 = arith.addf %back.d_query, %94 : tensor<64x128xf32>
    %96 = arith.mulf %22, %94 : tensor<64x128xf32>
    %97 = arith.negf %67 : tensor<64x128xf32>
    %cst_24 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %back.d_key_start = tile.dot %97, %back.load_state, %cst_24 {tile.name = "back.d_key_start", transpose_b} : tensor<64x128xf32>, tensor<128x128xf32> -> tensor<64x128xf32>
    %98 = tile.broadcast %26 : tensor<64x1xf32> to tensor<64x128xf32>
    %99 = arith.mulf %98, %back.d_key_start : tensor<64x128xf32>
    %100 = arith.addf %91, %99 : tensor<64x128xf32>
    %101 = arith.mulf %back.load_key, %99 : tensor<64x128xf32>
    %102 = arith.addf %96, %101 : tensor<64x128xf32>
    %103 = tile.reduce sum %92 dim 1 : tensor<64x128xf32>
    %104 = tile.reshape %103 : tensor<64x1xf32> to tensor<1x64xf32>
    %105 = tile.prefix_sum %88 dim 0 {reverse} : tensor<64x64xf32>
    %106 = tile.broadcast %104 : tensor<1x64xf32> to tensor<64x64xf32>
    %107 = arith.addf %105, %106 : tensor<64x64xf32>
    %108 = tile.iota dim 1 : tensor<1x64xi32>
    %109 = tile.iota dim 0 : tensor<64x1xi32>
    %110 = tile.broadcast %108 : tensor<1x64xi32> to tensor<64x64xi32>
    %111 = tile.broadcast %109 : tensor<64x1xi32> to tensor<64x64xi32>
    %112 = arith.cmpi slt, %110, %111 : tensor<64x64xi32>
    %cst_25 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %113 = arith.select %112, %107, %cst_25 : tensor<64x64xi1>, tensor<64x64xf32>
    %114 = tile.reduce sum %113 dim 1 : tensor<64x64xf32>
    %115 = tile.reduce sum %102 dim 1 : tensor<64x128xf32>
    %116 = tile.prefix_sum %115 dim 0 {reverse} : tensor<64x1xf32>
    %117 = arith.addf %114, %116 : tensor<64x1xf32>
    %118 = tile.reduce sum %34 dim 0 : tensor<128x1xf32>
    %119 = tile.broadcast %118 : tensor<1x1xf32> to tensor<64x1xf32>
    %120 = arith.addf %117, %119 : tensor<64x1xf32>
    %cst_26 = arith.constant dense<0.0883883461> : tensor<64x128xf32>
    %121 = arith.mulf %95, %cst_26 : tensor<64x128xf32>
    tile.store %121, %arg8[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.store_d_query"} : tensor<64x128xf32>, !tile.view<?x2x128xf32, strides = [?, 128, 1]>
    tile.store %100, %arg9[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.store_d_key"} : tensor<64x128xf32>, !tile.view<?x2x128xf32, strides = [?, 128, 1]>
    tile.store %67, %arg10[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.store_d_value"} : tensor<64x128xf32>, !tile.view<?x2x128xf32, strides = [?, 128, 1]>
    tile.store %120, %arg11[%21, %0, %c0] dims [0, 2] limit(%5) {tile.name = "back.store_d_decay"} : tensor<64x1xf32>, !tile.view<?x2x1xf32, strides = [?, 1, 1]>
    tile.store %75, %arg12[%21, %0] dims [0, 1] limit(%5) {tile.name = "back.store_d_beta"} : tensor<64x1xf32>, !tile.view<?x2xf32, strides = [?, 1]>
    scf.yield %81 : tensor<128x128xf32>
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
