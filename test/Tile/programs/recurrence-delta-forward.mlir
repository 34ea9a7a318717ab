// RUN: hybrid-opt %s | FileCheck %s
// RUN: tile-against-oracle %s --lengths=65,0,1,64

// Gated delta rule, one decay per head, with a state that is read and written in
// place.
//
// sm_90a: scores and the triangular inverse need nothing of the state, so one warp
// group makes them a chunk ahead of the two that hold the state [128, 128] in
// their accumulators. In turn remain predict → updates → next_state; read_state
// runs beside predict and outputs beside next_state.

// CHECK-LABEL: tile.program @recurrence_forward
// CHECK:         tile.name = "load_state"
// CHECK:         tile.name = "inverse"
// CHECK:         tile.name = "predict"
// CHECK:         tile.name = "updates"
// CHECK:         tile.name = "next_state"
// CHECK:         tile.name = "store_state"
// CHECK:       tile.schedule @recurrence_forward target("sm_90a")

!x = tensor<?x2x128xf32>
!g = tensor<?x2x1xf32>
!b = tensor<?x2xf32>
!s = tensor<?x2x128x128xf32, #hybrid.slots>

func.func @definition(%q: !x, %k: !x {random.range = array<f64: -0.15, 0.15>}, %v: !x, %g: !g {random.range = array<f64: -0.3, 0.0>}, %b: !b {random.range = array<f64: 0.0, 1.0>}, %s0: !s, %segments: !hybrid.segments)
    -> (!x, !s) {
  %r:2 = hybrid.recurrence delta %q, %k, %v, %segments decay(%g) beta(%b) initial(%s0) scale 0.0883883461356163
      : (!x, !x, !x, !hybrid.segments, !g, !b, !s) -> (!x, !s)
  return %r#0, %r#1 : !x, !s
}

func.func @dispatched(%q: !x, %k: !x {random.range = array<f64: -0.15, 0.15>}, %v: !x, %g: !g {random.range = array<f64: -0.3, 0.0>}, %b: !b {random.range = array<f64: 0.0, 1.0>}, %s0: !s, %segments: !hybrid.segments)
    -> (!x, !s) {
  %r:2 = hybrid.dispatch @recurrence_forward(%q, %k, %v, %segments, %g, %b, %s0) ties = [1, 6]
      : (!x, !x, !x, !hybrid.segments, !g, !b, !s)
      -> (!x, !s)
  return %r#0, %r#1 : !x, !s
}

tile.program @recurrence_forward(%arg0: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg1: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg2: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg3: !tile.view<?x4xi32>, %arg4: !tile.view<?xi32>, %arg5: !tile.view<?x2x1xf32, strides = [?, 1, 1]>, %arg6: !tile.view<?x2xf32, strides = [?, 1]>, %arg7: !tile.view<?x2x128x128xf32>, %arg8: !tile.view<?x2x128xf32, strides = [?, 128, 1]>) grid affine_map<()[s0, s1, s2, s3, s4, s5] -> (s1, 2)> order [parallel, parallel] attributes {tile.caution = "a delta update multiplies what the state holds along a key by 1 - beta times the key's squared length, so it grows without bound where that product is above 2; normalise the keys or lower beta"} {
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
  %load_state = tile.load %arg7[%7, %0, %c0, %c0] dims [2, 3] {tile.name = "load_state"} : !tile.view<?x2x128x128xf32> -> tensor<128x128xf32>
  %c64 = arith.constant 64 : index
  %10 = scf.for %arg9 = %3 to %5 step %c64 iter_args(%arg10 = %load_state) -> (tensor<128x128xf32>) {
    %load_key = tile.load %arg1[%arg9, %0, %c0] dims [0, 2] limit(%5) {tile.name = "load_key"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %load_value = tile.load %arg2[%arg9, %0, %c0] dims [0, 2] limit(%5) {tile.name = "load_value"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %load_query = tile.load %arg0[%arg9, %0, %c0] dims [0, 2] limit(%5) {tile.name = "load_query"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %cst = arith.constant dense<0.0883883461> : tensor<64x128xf32>
    %11 = arith.mulf %load_query, %cst : tensor<64x128xf32>
    %load_beta = tile.load %arg6[%arg9, %0] dims [0, 1] limit(%5) {tile.name = "load_beta"} : !tile.view<?x2xf32, strides = [?, 1]> -> tensor<64x1xf32>
    %load_decay = tile.load %arg5[%arg9, %0, %c0] dims [0, 2] limit(%5) {tile.name = "load_decay"} : !tile.view<?x2x1xf32, strides = [?, 1, 1]> -> tensor<64x1xf32>
    %12 = tile.prefix_sum %load_decay dim 0 {reverse} : tensor<64x1xf32>
    %13 = tile.slice %12 dim 0 offset 1 size 63 : tensor<64x1xf32>
    %14 = tile.prefix_sum %load_decay dim 0 : tensor<64x1xf32>
    %15 = math.exp %14 : tensor<64x1xf32>
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<1x1xf32>
    %16 = tile.concat %13, %cst_1 dim 0 : tensor<63x1xf32>, tensor<1x1xf32>
    %17 = math.exp %16 : tensor<64x1xf32>
    %18 = tile.slice %15 dim 0 offset 63 size 1 : tensor<64x1xf32>
    %19 = tile.iota dim 1 : tensor<1x64xi32>
    %20 = tile.iota dim 0 : tensor<64x1xi32>
    %21 = tile.broadcast %19 : tensor<1x64xi32> to tensor<64x64xi32>
    %22 = tile.broadcast %20 : tensor<64x1xi32> to tensor<64x64xi32>
    %23 = arith.cmpi slt, %21, %22 : tensor<64x64xi32>
    %cst_2 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %24 = tile.broadcast %load_decay : tensor<64x1xf32> to tensor<64x64xf32>
    %25 = arith.select %23, %24, %cst_2 : tensor<64x64xi1>, tensor<64x64xf32>
    %26 = tile.prefix_sum %25 dim 0 : tensor<64x64xf32>
    %27 = tile.iota dim 1 : tensor<1x64xi32>
    %28 = tile.iota dim 0 : tensor<64x1xi32>
    %29 = tile.broadcast %27 : tensor<1x64xi32> to tensor<64x64xi32>
    %30 = tile.broadcast %28 : tensor<64x1xi32> to tensor<64x64xi32>
    %31 = arith.cmpi sle, %29, %30 : tensor<64x64xi32>
    %32 = math.exp %26 : tensor<64x64xf32>
    %cst_3 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %33 = arith.select %31, %32, %cst_3 : tensor<64x64xi1>, tensor<64x64xf32>
    %cst_4 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %query_scores = tile.dot %11, %load_key, %cst_4 {tile.name = "query_scores", transpose_b} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<64x64xf32>
    %34 = arith.mulf %query_scores, %33 : tensor<64x64xf32>
    %cst_5 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %key_scores = tile.dot %load_key, %load_key, %cst_5 {tile.name = "key_scores", transpose_b} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<64x64xf32>
    %35 = arith.mulf %key_scores, %33 : tensor<64x64xf32>
    %36 = tile.broadcast %load_beta : tensor<64x1xf32> to tensor<64x64xf32>
    %37 = arith.mulf %36, %35 : tensor<64x64xf32>
    %inverse = tile.unit_lower_inverse %37 {tile.name = "inverse"} : tensor<64x64xf32>
    %38 = tile.broadcast %15 : tensor<64x1xf32> to tensor<64x128xf32>
    %39 = arith.mulf %38, %load_key : tensor<64x128xf32>
    %cst_6 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %predict = tile.dot %39, %arg10, %cst_6 {tile.name = "predict"} : tensor<64x128xf32>, tensor<128x128xf32> -> tensor<64x128xf32>
    %40 = arith.subf %load_value, %predict : tensor<64x128xf32>
    %41 = tile.broadcast %load_beta : tensor<64x1xf32> to tensor<64x128xf32>
    %42 = arith.mulf %41, %40 : tensor<64x128xf32>
    %cst_7 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %updates = tile.dot %inverse, %42, %cst_7 {tile.name = "updates"} : tensor<64x64xf32>, tensor<64x128xf32> -> tensor<64x128xf32>
    %43 = tile.broadcast %15 : tensor<64x1xf32> to tensor<64x128xf32>
    %44 = arith.mulf %43, %11 : tensor<64x128xf32>
    %cst_8 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %read_state = tile.dot %44, %arg10, %cst_8 {tile.name = "read_state"} : tensor<64x128xf32>, tensor<128x128xf32> -> tensor<64x128xf32>
    %outputs = tile.dot %34, %updates, %read_state {tile.name = "outputs"} : tensor<64x64xf32>, tensor<64x128xf32> -> tensor<64x128xf32>
    tile.store %outputs, %arg8[%arg9, %0, %c0] dims [0, 2] limit(%5) {tile.name = "store_output"} : tensor<64x128xf32>, !tile.view<?x2x128xf32, strides = [?, 128, 1]>
    %45 = tile.broadcast %17 : tensor<64x1xf32> to tensor<64x128xf32>
    %46 = arith.mulf %45, %load_key : tensor<64x128xf32>
    %47 = tile.broadcast %18 : tensor<1x1xf32> to tensor<128x128xf32>
    %48 = arith.mulf %47, %arg10 : tensor<128x128xf32>
    %next_state = tile.dot %46, %updates, %48 {tile.name = "next_state", transpose_a} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<128x128xf32>
    scf.yield %next_state : tensor<128x128xf32>
  }
  tile.store %10, %arg7[%7, %0, %c0, %c0] dims [2, 3] {tile.name = "store_state"} : tensor<128x128xf32>, !tile.view<?x2x128x128xf32>
  tile.return
}

tile.schedule @recurrence_forward target("sm_90a")
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
      store_output = {role = "state", stage = 2, buffers = 1, issue = 5},
      store_state = {role = "state", stage = 2, issue = 6}
    }
