// RUN: hybrid-opt %s | FileCheck %s
// RUN: tile-against-oracle %s --lengths=130,0,1,64,65

// One decay per head, additive update (RetNet, simple GLA, Mamba-2): chunks of 64.
//
// sm_90a: the state [128, 128] stays in the accumulators of two warp groups, one
// per half of the value columns. The scores of the next chunk need nothing of the
// state, so a third warp group computes them while the two are busy; what remains
// in turn is read_state, outputs and next_state.

// CHECK-LABEL: tile.program @recurrence_forward
// CHECK:         tile.name = "query_scores"
// CHECK:         tile.name = "read_state"
// CHECK:         tile.name = "outputs"
// CHECK:         tile.name = "store_output"
// CHECK:         tile.name = "next_state"
// CHECK:       tile.schedule @recurrence_forward target("sm_90a")

!x = tensor<?x2x128xf32>
!g = tensor<?x2x1xf32>

func.func @definition(%q: !x, %k: !x {random.range = array<f64: -0.15, 0.15>}, %v: !x, %g: !g {random.range = array<f64: -0.3, 0.0>}, %segments: !hybrid.segments)
    -> !x {
  %r = hybrid.recurrence additive %q, %k, %v, %segments decay(%g) scale 0.0883883461356163
      : (!x, !x, !x, !hybrid.segments, !g) -> !x
  return %r : !x
}

func.func @dispatched(%q: !x, %k: !x {random.range = array<f64: -0.15, 0.15>}, %v: !x, %g: !g {random.range = array<f64: -0.3, 0.0>}, %segments: !hybrid.segments)
    -> !x {
  %r = hybrid.dispatch @recurrence_forward(%q, %k, %v, %segments, %g)
      : (!x, !x, !x, !hybrid.segments, !g)
      -> !x
  return %r : !x
}

tile.program @recurrence_forward(%arg0: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg1: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg2: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg3: !tile.view<?x4xi32>, %arg4: !tile.view<?xi32>, %arg5: !tile.view<?x2x1xf32, strides = [?, 1, 1]>, %arg6: !tile.view<?x2x128xf32, strides = [?, 128, 1]>) grid affine_map<()[s0, s1, s2, s3, s4, s5] -> (s1, 2)> order [parallel, parallel] {
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
  %cst = arith.constant dense<0.000000e+00> : tensor<128x128xf32>
  %c64 = arith.constant 64 : index
  %10 = scf.for %arg7 = %3 to %5 step %c64 iter_args(%arg8 = %cst) -> (tensor<128x128xf32>) {
    %load_key = tile.load %arg1[%arg7, %0, %c0] dims [0, 2] limit(%5) {tile.name = "load_key"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %load_value = tile.load %arg2[%arg7, %0, %c0] dims [0, 2] limit(%5) {tile.name = "load_value"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %load_query = tile.load %arg0[%arg7, %0, %c0] dims [0, 2] limit(%5) {tile.name = "load_query"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %cst_1 = arith.constant dense<0.0883883461> : tensor<64x128xf32>
    %11 = arith.mulf %load_query, %cst_1 : tensor<64x128xf32>
    %load_decay = tile.load %arg5[%arg7, %0, %c0] dims [0, 2] limit(%5) {tile.name = "load_decay"} : !tile.view<?x2x1xf32, strides = [?, 1, 1]> -> tensor<64x1xf32>
    %12 = tile.prefix_sum %load_decay dim 0 {reverse} : tensor<64x1xf32>
    %13 = tile.slice %12 dim 0 offset 1 size 63 : tensor<64x1xf32>
    %14 = tile.prefix_sum %load_decay dim 0 : tensor<64x1xf32>
    %15 = math.exp %14 : tensor<64x1xf32>
    %cst_2 = arith.constant dense<0.000000e+00> : tensor<1x1xf32>
    %16 = tile.concat %13, %cst_2 dim 0 : tensor<63x1xf32>, tensor<1x1xf32>
    %17 = math.exp %16 : tensor<64x1xf32>
    %18 = tile.slice %15 dim 0 offset 63 size 1 : tensor<64x1xf32>
    %19 = tile.iota dim 1 : tensor<1x64xi32>
    %20 = tile.iota dim 0 : tensor<64x1xi32>
    %21 = tile.broadcast %19 : tensor<1x64xi32> to tensor<64x64xi32>
    %22 = tile.broadcast %20 : tensor<64x1xi32> to tensor<64x64xi32>
    %23 = arith.cmpi slt, %21, %22 : tensor<64x64xi32>
    %cst_3 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %24 = tile.broadcast %load_decay : tensor<64x1xf32> to tensor<64x64xf32>
    %25 = arith.select %23, %24, %cst_3 : tensor<64x64xi1>, tensor<64x64xf32>
    %26 = tile.prefix_sum %25 dim 0 : tensor<64x64xf32>
    %27 = tile.iota dim 1 : tensor<1x64xi32>
    %28 = tile.iota dim 0 : tensor<64x1xi32>
    %29 = tile.broadcast %27 : tensor<1x64xi32> to tensor<64x64xi32>
    %30 = tile.broadcast %28 : tensor<64x1xi32> to tensor<64x64xi32>
    %31 = arith.cmpi sle, %29, %30 : tensor<64x64xi32>
    %32 = math.exp %26 : tensor<64x64xf32>
    %cst_4 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %33 = arith.select %31, %32, %cst_4 : tensor<64x64xi1>, tensor<64x64xf32>
    %cst_5 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %query_scores = tile.dot %11, %load_key, %cst_5 {tile.name = "query_scores", transpose_b} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<64x64xf32>
    %34 = arith.mulf %query_scores, %33 : tensor<64x64xf32>
    %35 = tile.broadcast %15 : tensor<64x1xf32> to tensor<64x128xf32>
    %36 = arith.mulf %35, %11 : tensor<64x128xf32>
    %cst_6 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %read_state = tile.dot %36, %arg8, %cst_6 {tile.name = "read_state"} : tensor<64x128xf32>, tensor<128x128xf32> -> tensor<64x128xf32>
    %outputs = tile.dot %34, %load_value, %read_state {tile.name = "outputs"} : tensor<64x64xf32>, tensor<64x128xf32> -> tensor<64x128xf32>
    tile.store %outputs, %arg6[%arg7, %0, %c0] dims [0, 2] limit(%5) {tile.name = "store_output"} : tensor<64x128xf32>, !tile.view<?x2x128xf32, strides = [?, 128, 1]>
    %37 = tile.broadcast %17 : tensor<64x1xf32> to tensor<64x128xf32>
    %38 = arith.mulf %37, %load_key : tensor<64x128xf32>
    %39 = tile.broadcast %18 : tensor<1x1xf32> to tensor<128x128xf32>
    %40 = arith.mulf %39, %arg8 : tensor<128x128xf32>
    %next_state = tile.dot %38, %load_value, %40 {tile.name = "next_state", transpose_a} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<128x128xf32>
    scf.yield %next_state : tensor<128x128xf32>
  }
  tile.return
}

tile.schedule @recurrence_forward target("sm_90a")
    roles {load = {warpgroups = 1, registers = 24},
           local = {warpgroups = 1, registers = 160},
           state = {warpgroups = 2, registers = 160}}
    ops {
      load_query = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      load_key = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      load_value = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      load_decay = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      query_scores = {role = "local", stage = 1, buffers = 2, issue = 0, barrier = "named", operand = "shared"},
      read_state = {role = "state", stage = 2, issue = 0, operand = "shared"},
      next_state = {role = "state", stage = 2, issue = 1, operand = "shared"},
      outputs = {role = "state", stage = 2, issue = 2, wait = 1, operand = "shared"},
      store_output = {role = "state", stage = 2, buffers = 1, issue = 3}
    }
