// RUN: hybrid-opt %s | FileCheck %s
// RUN: tile-against-oracle %s --lengths=258,0,1

// Sliding window linear attention around the gated delta rule: window 256, stride
// 64. A chain first advances its state without outputs, then gives those of its
// last stride; chain 0 gives all of its first window. Chains are independent.
//
// sm_90a: both walks as in recurrence-delta-forward, one block per chain and head.

// CHECK-LABEL: tile.program @recurrence_forward
// CHECK:         tile.name = "advance.inverse"
// CHECK:         tile.name = "advance.next_state"
// CHECK:         tile.name = "inverse"
// CHECK:         tile.name = "outputs"
// CHECK:         tile.name = "next_state"
// CHECK:       tile.schedule @recurrence_forward target("sm_90a")

!x = tensor<?x2x128xf32>
!g = tensor<?x2x1xf32>
!b = tensor<?x2xf32>

func.func @definition(%q: !x, %k: !x {random.range = array<f64: -0.15, 0.15>}, %v: !x, %g: !g {random.range = array<f64: -0.3, 0.0>}, %b: !b {random.range = array<f64: 0.0, 1.0>}, %segments: !hybrid.segments)
    -> !x {
  %r = hybrid.recurrence delta %q, %k, %v, %segments decay(%g) beta(%b) scale 0.0883883461356163 window 256 stride 64
      : (!x, !x, !x, !hybrid.segments, !g, !b) -> !x
  return %r : !x
}

func.func @dispatched(%q: !x, %k: !x {random.range = array<f64: -0.15, 0.15>}, %v: !x, %g: !g {random.range = array<f64: -0.3, 0.0>}, %b: !b {random.range = array<f64: 0.0, 1.0>}, %segments: !hybrid.segments)
    -> !x {
  %r = hybrid.dispatch @recurrence_forward(%q, %k, %v, %segments, %g, %b)
      : (!x, !x, !x, !hybrid.segments, !g, !b)
      -> !x
  return %r : !x
}

tile.program @recurrence_forward(%arg0: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg1: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg2: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg3: !tile.view<?x4xi32>, %arg4: !tile.view<?xi32>, %arg5: !tile.view<?x2x1xf32, strides = [?, 1, 1]>, %arg6: !tile.view<?x2xf32, strides = [?, 1]>, %arg7: !tile.view<?x2x128xf32, strides = [?, 128, 1]>) grid affine_map<()[s0, s1, s2, s3, s4, s5] -> (s1, 2, (s2 + 254) floordiv 64 + 1)> order [parallel, parallel, parallel] attributes {tile.caution = "a delta update multiplies what the state holds along a key by 1 - beta times the key's squared length, so it grows without bound where that product is above 2; normalise the keys or lower beta"} {
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
  %c64 = arith.constant 64 : index
  %11 = arith.subi %6, %4 : index
  %12 = arith.addi %10, %11 : index
  %13 = arith.subi %c256, %c64 : index
  %14 = arith.subi %10, %13 : index
  %15 = arith.maxsi %14, %c0 : index
  %16 = arith.divsi %15, %c64 : index
  %17 = arith.addi %16, %2 : index
  %18 = arith.muli %17, %c64 : index
  %19 = arith.addi %18, %c256 : index
  %20 = arith.cmpi eq, %17, %c0 : index
  %21 = arith.subi %19, %c64 : index
  %22 = arith.select %20, %c0, %21 : index
  %23 = arith.maxsi %10, %18 : index
  %24 = arith.minsi %12, %19 : index
  %25 = arith.maxsi %23, %22 : index
  %26 = arith.minsi %25, %24 : index
  %27 = arith.cmpi slt, %26, %24 : index
  %28 = arith.select %27, %26, %23 : index
  %29 = arith.select %27, %24, %23 : index
  %30 = arith.subi %4, %10 : index
  %31 = arith.addi %23, %30 : index
  %32 = arith.addi %28, %30 : index
  %33 = arith.addi %29, %30 : index
  %cst = arith.constant dense<0.000000e+00> : tensor<128x128xf32>
  %c64_1 = arith.constant 64 : index
  %34 = scf.for %arg8 = %31 to %32 step %c64_1 iter_args(%arg9 = %cst) -> (tensor<128x128xf32>) {
    %advance.load_key = tile.load %arg1[%arg8, %0, %c0] dims [0, 2] limit(%32) {tile.name = "advance.load_key"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %advance.load_value = tile.load %arg2[%arg8, %0, %c0] dims [0, 2] limit(%32) {tile.name = "advance.load_value"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %advance.load_beta = tile.load %arg6[%arg8, %0] dims [0, 1] limit(%32) {tile.name = "advance.load_beta"} : !tile.view<?x2xf32, strides = [?, 1]> -> tensor<64x1xf32>
    %advance.load_decay = tile.load %arg5[%arg8, %0, %c0] dims [0, 2] limit(%32) {tile.name = "advance.load_decay"} : !tile.view<?x2x1xf32, strides = [?, 1, 1]> -> tensor<64x1xf32>
    %36 = tile.prefix_sum %advance.load_decay dim 0 {reverse} : tensor<64x1xf32>
    %37 = tile.slice %36 dim 0 offset 1 size 63 : tensor<64x1xf32>
    %38 = tile.prefix_sum %advance.load_decay dim 0 : tensor<64x1xf32>
    %39 = math.exp %38 : tensor<64x1xf32>
    %cst_3 = arith.constant dense<0.000000e+00> : tensor<1x1xf32>
    %40 = tile.concat %37, %cst_3 dim 0 : tensor<63x1xf32>, tensor<1x1xf32>
    %41 = math.exp %40 : tensor<64x1xf32>
    %42 = tile.slice %39 dim 0 offset 63 size 1 : tensor<64x1xf32>
    %43 = tile.iota dim 1 : tensor<1x64xi32>
    %44 = tile.iota dim 0 : tensor<64x1xi32>
    %45 = tile.broadcast %43 : tensor<1x64xi32> to tensor<64x64xi32>
    %46 = tile.broadcast %44 : tensor<64x1xi32> to tensor<64x64xi32>
    %47 = arith.cmpi slt, %45, %46 : tensor<64x64xi32>
    %cst_4 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %48 = tile.broadcast %advance.load_decay : tensor<64x1xf32> to tensor<64x64xf32>
    %49 = arith.select %47, %48, %cst_4 : tensor<64x64xi1>, tensor<64x64xf32>
    %50 = tile.prefix_sum %49 dim 0 : tensor<64x64xf32>
    %51 = tile.iota dim 1 : tensor<1x64xi32>
    %52 = tile.iota dim 0 : tensor<64x1xi32>
    %53 = tile.broadcast %51 : tensor<1x64xi32> to tensor<64x64xi32>
    %54 = tile.broadcast %52 : tensor<64x1xi32> to tensor<64x64xi32>
    %55 = arith.cmpi sle, %53, %54 : tensor<64x64xi32>
    %56 = math.exp %50 : tensor<64x64xf32>
    %cst_5 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %57 = arith.select %55, %56, %cst_5 : tensor<64x64xi1>, tensor<64x64xf32>
    %cst_6 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %advance.key_scores = tile.dot %advance.load_key, %advance.load_key, %cst_6 {tile.name = "advance.key_scores", transpose_b} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<64x64xf32>
    %58 = arith.mulf %advance.key_scores, %57 : tensor<64x64xf32>
    %59 = tile.broadcast %advance.load_beta : tensor<64x1xf32> to tensor<64x64xf32>
    %60 = arith.mulf %59, %58 : tensor<64x64xf32>
    %advance.inverse = tile.unit_lower_inverse %60 {tile.name = "advance.inverse"} : tensor<64x64xf32>
    %61 = tile.broadcast %39 : tensor<64x1xf32> to tensor<64x128xf32>
    %62 = arith.mulf %61, %advance.load_key : tensor<64x128xf32>
    %cst_7 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %advance.predict = tile.dot %62, %arg9, %cst_7 {tile.name = "advance.predict"} : tensor<64x128xf32>, tensor<128x128xf32> -> tensor<64x128xf32>
    %63 = arith.subf %advance.load_value, %advance.predict : tensor<64x128xf32>
    %64 = tile.broadcast %advance.load_beta : tensor<64x1xf32> to tensor<64x128xf32>
    %65 = arith.mulf %64, %63 : tensor<64x128xf32>
    %cst_8 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %advance.updates = tile.dot %advance.inverse, %65, %cst_8 {tile.name = "advance.updates"} : tensor<64x64xf32>, tensor<64x128xf32> -> tensor<64x128xf32>
    %66 = tile.broadcast %41 : tensor<64x1xf32> to tensor<64x128xf32>
    %67 = arith.mulf %66, %advance.load_key : tensor<64x128xf32>
    %68 = tile.broadcast %42 : tensor<1x1xf32> to tensor<128x128xf32>
    %69 = arith.mulf %68, %arg9 : tensor<128x128xf32>
    %advance.next_state = tile.dot %67, %advance.updates, %69 {tile.name = "advance.next_state", transpose_a} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<128x128xf32>
    scf.yield %advance.next_state : tensor<128x128xf32>
  }
  %c64_2 = arith.constant 64 : index
  %35 = scf.for %arg8 = %32 to %33 step %c64_2 iter_args(%arg9 = %34) -> (tensor<128x128xf32>) {
    %load_key = tile.load %arg1[%arg8, %0, %c0] dims [0, 2] limit(%33) {tile.name = "load_key"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %load_value = tile.load %arg2[%arg8, %0, %c0] dims [0, 2] limit(%33) {tile.name = "load_value"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %load_query = tile.load %arg0[%arg8, %0, %c0] dims [0, 2] limit(%33) {tile.name = "load_query"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %cst_3 = arith.constant dense<0.0883883461> : tensor<64x128xf32>
    %36 = arith.mulf %load_query, %cst_3 : tensor<64x128xf32>
    %load_beta = tile.load %arg6[%arg8, %0] dims [0, 1] limit(%33) {tile.name = "load_beta"} : !tile.view<?x2xf32, strides = [?, 1]> -> tensor<64x1xf32>
    %load_decay = tile.load %arg5[%arg8, %0, %c0] dims [0, 2] limit(%33) {tile.name = "load_decay"} : !tile.view<?x2x1xf32, strides = [?, 1, 1]> -> tensor<64x1xf32>
    %37 = tile.prefix_sum %load_decay dim 0 {reverse} : tensor<64x1xf32>
    %38 = tile.slice %37 dim 0 offset 1 size 63 : tensor<64x1xf32>
    %39 = tile.prefix_sum %load_decay dim 0 : tensor<64x1xf32>
    %40 = math.exp %39 : tensor<64x1xf32>
    %cst_4 = arith.constant dense<0.000000e+00> : tensor<1x1xf32>
    %41 = tile.concat %38, %cst_4 dim 0 : tensor<63x1xf32>, tensor<1x1xf32>
    %42 = math.exp %41 : tensor<64x1xf32>
    %43 = tile.slice %40 dim 0 offset 63 size 1 : tensor<64x1xf32>
    %44 = tile.iota dim 1 : tensor<1x64xi32>
    %45 = tile.iota dim 0 : tensor<64x1xi32>
    %46 = tile.broadcast %44 : tensor<1x64xi32> to tensor<64x64xi32>
    %47 = tile.broadcast %45 : tensor<64x1xi32> to tensor<64x64xi32>
    %48 = arith.cmpi slt, %46, %47 : tensor<64x64xi32>
    %cst_5 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %49 = tile.broadcast %load_decay : tensor<64x1xf32> to tensor<64x64xf32>
    %50 = arith.select %48, %49, %cst_5 : tensor<64x64xi1>, tensor<64x64xf32>
    %51 = tile.prefix_sum %50 dim 0 : tensor<64x64xf32>
    %52 = tile.iota dim 1 : tensor<1x64xi32>
    %53 = tile.iota dim 0 : tensor<64x1xi32>
    %54 = tile.broadcast %52 : tensor<1x64xi32> to tensor<64x64xi32>
    %55 = tile.broadcast %53 : tensor<64x1xi32> to tensor<64x64xi32>
    %56 = arith.cmpi sle, %54, %55 : tensor<64x64xi32>
    %57 = math.exp %51 : tensor<64x64xf32>
    %cst_6 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %58 = arith.select %56, %57, %cst_6 : tensor<64x64xi1>, tensor<64x64xf32>
    %cst_7 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %query_scores = tile.dot %36, %load_key, %cst_7 {tile.name = "query_scores", transpose_b} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<64x64xf32>
    %59 = arith.mulf %query_scores, %58 : tensor<64x64xf32>
    %cst_8 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %key_scores = tile.dot %load_key, %load_key, %cst_8 {tile.name = "key_scores", transpose_b} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<64x64xf32>
    %60 = arith.mulf %key_scores, %58 : tensor<64x64xf32>
    %61 = tile.broadcast %load_beta : tensor<64x1xf32> to tensor<64x64xf32>
    %62 = arith.mulf %61, %60 : tensor<64x64xf32>
    %inverse = tile.unit_lower_inverse %62 {tile.name = "inverse"} : tensor<64x64xf32>
    %63 = tile.broadcast %40 : tensor<64x1xf32> to tensor<64x128xf32>
    %64 = arith.mulf %63, %load_key : tensor<64x128xf32>
    %cst_9 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %predict = tile.dot %64, %arg9, %cst_9 {tile.name = "predict"} : tensor<64x128xf32>, tensor<128x128xf32> -> tensor<64x128xf32>
    %65 = arith.subf %load_value, %predict : tensor<64x128xf32>
    %66 = tile.broadcast %load_beta : tensor<64x1xf32> to tensor<64x128xf32>
    %67 = arith.mulf %66, %65 : tensor<64x128xf32>
    %cst_10 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %updates = tile.dot %inverse, %67, %cst_10 {tile.name = "updates"} : tensor<64x64xf32>, tensor<64x128xf32> -> tensor<64x128xf32>
    %68 = tile.broadcast %40 : tensor<64x1xf32> to tensor<64x128xf32>
    %69 = arith.mulf %68, %36 : tensor<64x128xf32>
    %cst_11 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %read_state = tile.dot %69, %arg9, %cst_11 {tile.name = "read_state"} : tensor<64x128xf32>, tensor<128x128xf32> -> tensor<64x128xf32>
    %outputs = tile.dot %59, %updates, %read_state {tile.name = "outputs"} : tensor<64x64xf32>, tensor<64x128xf32> -> tensor<64x128xf32>
    tile.store %outputs, %arg7[%arg8, %0, %c0] dims [0, 2] limit(%33) {tile.name = "store_output"} : tensor<64x128xf32>, !tile.view<?x2x128xf32, strides = [?, 128, 1]>
    %70 = tile.broadcast %42 : tensor<64x1xf32> to tensor<64x128xf32>
    %71 = arith.mulf %70, %load_key : tensor<64x128xf32>
    %72 = tile.broadcast %43 : tensor<1x1xf32> to tensor<128x128xf32>
    %73 = arith.mulf %72, %arg9 : tensor<128x128xf32>
    %next_state = tile.dot %71, %updates, %73 {tile.name = "next_state", transpose_a} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<128x128xf32>
    scf.yield %next_state : tensor<128x128xf32>
  }
  tile.return
}

tile.schedule @recurrence_forward target("sm_90a")
    roles {load = {warpgroups = 1, registers = 24},
           local = {warpgroups = 1, registers = 160},
           state = {warpgroups = 2, registers = 160}}
    ops {
      "advance.load_key" = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      "advance.load_value" = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      "advance.load_beta" = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      "advance.load_decay" = {role = "load", stage = 0, buffers = 2, barrier = "mbarrier"},
      "advance.key_scores" = {role = "local", stage = 1, issue = 0, operand = "shared"},
      "advance.inverse" = {role = "local", stage = 1, buffers = 2, issue = 2, barrier = "named"},
      "advance.predict" = {role = "state", stage = 2, issue = 0, operand = "shared"},
      "advance.updates" = {role = "state", stage = 2, issue = 2, operand = "shared"},
      "advance.next_state" = {role = "state", stage = 2, issue = 3, operand = "shared"},
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
      store_output = {role = "state", stage = 2, buffers = 1, issue = 5}
    }
