// RUN: hybrid-opt %s | FileCheck %s
// RUN: tile-against-oracle %s --lengths=33,0,1,16,17

// One decay per key channel, additive update (GLA, HGRN-2): chunks of 16, whose
// pair decays are carried from row to row.
//
// sm_90a: score_rows has no matrix product; a group of its own computes it two
// chunks ahead. (Chunks of 64 with a product per pair of sub-chunks are the other
// decomposition: docs/rationale/recurrence.md.)

// CHECK-LABEL: tile.program @recurrence_forward
// CHECK:         tile.name = "score_rows"
// CHECK:         tile.name = "read_state"
// CHECK:         tile.name = "outputs"
// CHECK:         tile.name = "store_output"
// CHECK:         tile.name = "next_state"
// CHECK:       tile.schedule @recurrence_forward target("sm_90a")

!x = tensor<?x2x128xf32>
!g = tensor<?x2x128xf32>

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

tile.program @recurrence_forward(%arg0: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg1: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg2: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg3: !tile.view<?x4xi32>, %arg4: !tile.view<?xi32>, %arg5: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg6: !tile.view<?x2x128xf32, strides = [?, 128, 1]>) grid affine_map<()[s0, s1, s2, s3, s4, s5] -> (s1, 2)> order [parallel, parallel] {
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
  %c16 = arith.constant 16 : index
  %10 = scf.for %arg7 = %3 to %5 step %c16 iter_args(%arg8 = %cst) -> (tensor<128x128xf32>) {
    %load_key = tile.load %arg1[%arg7, %0, %c0] dims [0, 2] limit(%5) {tile.name = "load_key"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<16x128xf32>
    %load_value = tile.load %arg2[%arg7, %0, %c0] dims [0, 2] limit(%5) {tile.name = "load_value"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<16x128xf32>
    %load_query = tile.load %arg0[%arg7, %0, %c0] dims [0, 2] limit(%5) {tile.name = "load_query"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<16x128xf32>
    %cst_1 = arith.constant dense<0.0883883461> : tensor<16x128xf32>
    %11 = arith.mulf %load_query, %cst_1 : tensor<16x128xf32>
    %load_decay = tile.load %arg5[%arg7, %0, %c0] dims [0, 2] limit(%5) {tile.name = "load_decay"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<16x128xf32>
    %12 = tile.prefix_sum %load_decay dim 0 {reverse} : tensor<16x128xf32>
    %13 = tile.slice %12 dim 0 offset 1 size 15 : tensor<16x128xf32>
    %14 = tile.prefix_sum %load_decay dim 0 : tensor<16x128xf32>
    %15 = math.exp %14 : tensor<16x128xf32>
    %cst_2 = arith.constant dense<0.000000e+00> : tensor<1x128xf32>
    %16 = tile.concat %13, %cst_2 dim 0 : tensor<15x128xf32>, tensor<1x128xf32>
    %17 = math.exp %16 : tensor<16x128xf32>
    %18 = tile.slice %15 dim 0 offset 15 size 1 : tensor<16x128xf32>
    %19 = tile.reshape %18 : tensor<1x128xf32> to tensor<128x1xf32>
    %cst_3 = arith.constant dense<0.000000e+00> : tensor<16x16xf32>
    %cst_4 = arith.constant dense<0.000000e+00> : tensor<16x128xf32>
    %c0_5 = arith.constant 0 : index
    %c16_6 = arith.constant 16 : index
    %c1_7 = arith.constant 1 : index
    %20:2 = scf.for %arg9 = %c0_5 to %c16_6 step %c1_7 iter_args(%arg10 = %cst_4, %arg11 = %cst_3) -> (tensor<16x128xf32>, tensor<16x16xf32>) {
      %25 = arith.addi %arg7, %arg9 : index
      %26 = tile.load %arg5[%25, %0, %c0] dims [0, 2] limit(%5) : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<1x128xf32>
      %27 = math.exp %26 : tensor<1x128xf32>
      %28 = tile.broadcast %27 : tensor<1x128xf32> to tensor<16x128xf32>
      %29 = arith.mulf %arg10, %28 : tensor<16x128xf32>
      %30 = tile.iota dim 0 : tensor<16x1xi32>
      %31 = arith.index_cast %arg9 : index to i32
      %32 = tile.splat %31 : tensor<16x1xi32>
      %33 = arith.cmpi eq, %30, %32 : tensor<16x1xi32>
      %cst_9 = arith.constant dense<1.000000e+00> : tensor<16x128xf32>
      %34 = tile.broadcast %33 : tensor<16x1xi1> to tensor<16x128xi1>
      %35 = arith.select %34, %cst_9, %29 : tensor<16x128xi1>, tensor<16x128xf32>
      %cst_10 = arith.constant dense<1.000000e+00> : tensor<16x128xf32>
      %36 = tile.broadcast %33 : tensor<16x1xi1> to tensor<16x128xi1>
      %37 = arith.select %36, %cst_10, %29 : tensor<16x128xi1>, tensor<16x128xf32>
      %38 = arith.mulf %37, %load_key : tensor<16x128xf32>
      %39 = arith.addi %arg7, %arg9 : index
      %40 = tile.load %arg0[%39, %0, %c0] dims [0, 2] limit(%5) : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<1x128xf32>
      %cst_11 = arith.constant dense<0.0883883461> : tensor<1x128xf32>
      %41 = arith.mulf %40, %cst_11 : tensor<1x128xf32>
      %42 = tile.broadcast %41 : tensor<1x128xf32> to tensor<16x128xf32>
      %43 = arith.mulf %38, %42 : tensor<16x128xf32>
      %44 = tile.reduce sum %43 dim 1 : tensor<16x128xf32>
      %45 = tile.reshape %44 : tensor<16x1xf32> to tensor<1x16xf32>
      %46 = tile.broadcast %33 : tensor<16x1xi1> to tensor<16x16xi1>
      %47 = tile.broadcast %45 : tensor<1x16xf32> to tensor<16x16xf32>
      %48 = arith.select %46, %47, %arg11 : tensor<16x16xi1>, tensor<16x16xf32>
      scf.yield %35, %48 : tensor<16x128xf32>, tensor<16x16xf32>
    } {tile.name = "score_rows"}
    %21 = arith.mulf %15, %11 : tensor<16x128xf32>
    %cst_8 = arith.constant dense<0.000000e+00> : tensor<16x128xf32>
    %read_state = tile.dot %21, %arg8, %cst_8 {tile.name = "read_state"} : tensor<16x128xf32>, tensor<128x128xf32> -> tensor<16x128xf32>
    %outputs = tile.dot %20#1, %load_value, %read_state {tile.name = "outputs"} : tensor<16x16xf32>, tensor<16x128xf32> -> tensor<16x128xf32>
    tile.store %outputs, %arg6[%arg7, %0, %c0] dims [0, 2] limit(%5) {tile.name = "store_output"} : tensor<16x128xf32>, !tile.view<?x2x128xf32, strides = [?, 128, 1]>
    %22 = arith.mulf %17, %load_key : tensor<16x128xf32>
    %23 = tile.broadcast %19 : tensor<128x1xf32> to tensor<128x128xf32>
    %24 = arith.mulf %23, %arg8 : tensor<128x128xf32>
    %next_state = tile.dot %22, %load_value, %24 {tile.name = "next_state", transpose_a} : tensor<16x128xf32>, tensor<16x128xf32> -> tensor<128x128xf32>
    scf.yield %next_state : tensor<128x128xf32>
  }
  tile.return
}

tile.schedule @recurrence_forward target("sm_90a")
    roles {load = {warpgroups = 1, registers = 24},
           local = {warpgroups = 1, registers = 160},
           state = {warpgroups = 2, registers = 160}}
    ops {
      load_query = {role = "load", stage = 0, buffers = 4, barrier = "mbarrier"},
      load_key = {role = "load", stage = 0, buffers = 4, barrier = "mbarrier"},
      load_value = {role = "load", stage = 0, buffers = 4, barrier = "mbarrier"},
      load_decay = {role = "load", stage = 0, buffers = 4, barrier = "mbarrier"},
      score_rows = {role = "local", stage = 1, buffers = 3, issue = 0, barrier = "named"},
      read_state = {role = "state", stage = 2, issue = 0, operand = "shared"},
      next_state = {role = "state", stage = 2, issue = 1, operand = "shared"},
      outputs = {role = "state", stage = 2, issue = 2, wait = 1, operand = "shared"},
      store_output = {role = "state", stage = 2, buffers = 1, issue = 3}
    }
