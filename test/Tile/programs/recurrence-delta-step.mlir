// RUN: hybrid-opt %s | FileCheck %s
// RUN: tile-against-oracle %s --lengths=1,0,3,1

// Gated delta rule, token by token: decode.
//
// sm_90a: bound by reading and writing the state once, so no pipeline: one warp
// group holds it in registers, and a block per head is enough at batch 256.

// CHECK-LABEL: tile.program @recurrence_step
// CHECK:         tile.name = "load_state"
// CHECK:         tile.name = "predict"
// CHECK:         tile.name = "next_state"
// CHECK:         tile.name = "outputs"
// CHECK:         tile.name = "store_state"
// CHECK:       tile.schedule @recurrence_step target("sm_90a")

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
  %r:2 = hybrid.dispatch @recurrence_step(%q, %k, %v, %segments, %g, %b, %s0) ties = [1, 6]
      : (!x, !x, !x, !hybrid.segments, !g, !b, !s)
      -> (!x, !s)
  return %r#0, %r#1 : !x, !s
}

tile.program @recurrence_step(%arg0: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg1: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg2: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg3: !tile.view<?x4xi32>, %arg4: !tile.view<?xi32>, %arg5: !tile.view<?x2x1xf32, strides = [?, 1, 1]>, %arg6: !tile.view<?x2xf32, strides = [?, 1]>, %arg7: !tile.view<?x2x128x128xf32>, %arg8: !tile.view<?x2x128xf32, strides = [?, 128, 1]>) grid affine_map<()[s0, s1, s2, s3, s4, s5] -> (s1, 2)> order [parallel, parallel] attributes {tile.caution = "a delta update multiplies what the state holds along a key by 1 - beta times the key's squared length, so it grows without bound where that product is above 2; normalise the keys or lower beta"} {
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
  %c1_1 = arith.constant 1 : index
  %10 = scf.for %arg9 = %3 to %5 step %c1_1 iter_args(%arg10 = %load_state) -> (tensor<128x128xf32>) {
    %load_key = tile.load %arg1[%arg9, %0, %c0] dims [0, 2] limit(%5) {tile.name = "load_key"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<1x128xf32>
    %11 = tile.reshape %load_key : tensor<1x128xf32> to tensor<128x1xf32>
    %load_value = tile.load %arg2[%arg9, %0, %c0] dims [0, 2] limit(%5) {tile.name = "load_value"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<1x128xf32>
    %load_decay = tile.load %arg5[%arg9, %0, %c0] dims [0, 2] limit(%5) {tile.name = "load_decay"} : !tile.view<?x2x1xf32, strides = [?, 1, 1]> -> tensor<1x1xf32>
    %load_beta = tile.load %arg6[%arg9, %0] dims [0, 1] limit(%5) {tile.name = "load_beta"} : !tile.view<?x2xf32, strides = [?, 1]> -> tensor<1x1xf32>
    %load_query = tile.load %arg0[%arg9, %0, %c0] dims [0, 2] limit(%5) {tile.name = "load_query"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<1x128xf32>
    %12 = tile.reshape %load_query : tensor<1x128xf32> to tensor<128x1xf32>
    %13 = math.exp %load_decay : tensor<1x1xf32>
    %14 = tile.broadcast %13 : tensor<1x1xf32> to tensor<128x128xf32>
    %15 = arith.mulf %14, %arg10 : tensor<128x128xf32>
    %cst = arith.constant dense<0.0883883461> : tensor<128x1xf32>
    %16 = arith.mulf %12, %cst : tensor<128x1xf32>
    %17 = tile.broadcast %11 : tensor<128x1xf32> to tensor<128x128xf32>
    %18 = arith.mulf %17, %15 : tensor<128x128xf32>
    %predict = tile.reduce sum %18 dim 0 {tile.name = "predict"} : tensor<128x128xf32>
    %19 = arith.subf %load_value, %predict : tensor<1x128xf32>
    %20 = tile.broadcast %load_beta : tensor<1x1xf32> to tensor<1x128xf32>
    %21 = arith.mulf %20, %19 : tensor<1x128xf32>
    %22 = tile.broadcast %11 : tensor<128x1xf32> to tensor<128x128xf32>
    %23 = tile.broadcast %21 : tensor<1x128xf32> to tensor<128x128xf32>
    %24 = arith.mulf %22, %23 : tensor<128x128xf32>
    %25 = arith.addf %15, %24 {tile.name = "next_state"} : tensor<128x128xf32>
    %26 = tile.broadcast %16 : tensor<128x1xf32> to tensor<128x128xf32>
    %27 = arith.mulf %26, %25 : tensor<128x128xf32>
    %outputs = tile.reduce sum %27 dim 0 {tile.name = "outputs"} : tensor<128x128xf32>
    tile.store %outputs, %arg8[%arg9, %0, %c0] dims [0, 2] limit(%5) {tile.name = "store_output"} : tensor<1x128xf32>, !tile.view<?x2x128xf32, strides = [?, 128, 1]>
    scf.yield %25 : tensor<128x128xf32>
  }
  tile.store %10, %arg7[%7, %0, %c0, %c0] dims [2, 3] {tile.name = "store_state"} : tensor<128x128xf32>, !tile.view<?x2x128x128xf32>
  tile.return
}

tile.schedule @recurrence_step target("sm_90a")
    roles {all = {warpgroups = 1, registers = 168}}
    ops {
      load_state = {role = "all", stage = 0},
      load_key = {role = "all", stage = 0},
      load_value = {role = "all", stage = 0},
      load_decay = {role = "all", stage = 0},
      predict = {role = "all", stage = 0},
      load_beta = {role = "all", stage = 0},
      next_state = {role = "all", stage = 0},
      load_query = {role = "all", stage = 0},
      outputs = {role = "all", stage = 0},
      store_output = {role = "all", stage = 0},
      store_state = {role = "all", stage = 0}
    }
