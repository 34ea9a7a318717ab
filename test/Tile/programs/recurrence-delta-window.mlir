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

tile.program @recurrence_forward(%arg0: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg1: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg2: !tile.view<?x2x128xf32, strides = [?, 128, 1]>, %arg3: !tile.view<?x4xi32>, %arg4: !tile.view<?xi32>, %arg5: !tile.view<?x2x1xf32, strides = [?, 1, 1]>, %arg6: !tile.view<?x2xf32, strides = [?, 1]>, %arg7: !tile.view<?x2x128xf32, strides = [?, 128, 1]>) grid affine_map<()[s0, s1, s2, s3, s4, s5] -> (s1, 2, (s2 + 254) floordiv 64 + 1)> order [parallel, parallel, parallel] {
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
    %36 = tile.load %arg1[%arg8, %0, %c0] dims [0, 2] limit(%32) {tile.name = "advance.load_key"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %37 = tile.load %arg2[%arg8, %0, %c0] dims [0, 2] limit(%32) {tile.name = "advance.load_value"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %38 = tile.load %arg6[%arg8, %0] dims [0, 1] limit(%32) {tile.name = "advance.load_beta"} : !tile.view<?x2xf32, strides = [?, 1]> -> tensor<64x1xf32>
    %39 = tile.load %arg5[%arg8, %0, %c0] dims [0, 2] limit(%32) {tile.name = "advance.load_decay"} : !tile.view<?x2x1xf32, strides = [?, 1, 1]> -> tensor<64x1xf32>
    %40 = tile.prefix_sum %39 dim 0 {reverse} : tensor<64x1xf32>
    %41 = tile.slice %40 dim 0 offset 1 size 63 : tensor<64x1xf32>
    %42 = tile.prefix_sum %39 dim 0 : tensor<64x1xf32>
    %43 = math.exp %42 : tensor<64x1xf32>
    %cst_3 = arith.constant dense<0.000000e+00> : tensor<1x1xf32>
    %44 = tile.concat %41, %cst_3 dim 0 : tensor<63x1xf32>, tensor<1x1xf32>
    %45 = math.exp %44 : tensor<64x1xf32>
    %46 = tile.slice %43 dim 0 offset 63 size 1 : tensor<64x1xf32>
    %47 = tile.iota dim 1 : tensor<1x64xi32>
    %48 = tile.iota dim 0 : tensor<64x1xi32>
    %49 = tile.broadcast %47 : tensor<1x64xi32> to tensor<64x64xi32>
    %50 = tile.broadcast %48 : tensor<64x1xi32> to tensor<64x64xi32>
    %51 = arith.cmpi slt, %49, %50 : tensor<64x64xi32>
    %cst_4 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %52 = tile.broadcast %39 : tensor<64x1xf32> to tensor<64x64xf32>
    %53 = arith.select %51, %52, %cst_4 : tensor<64x64xi1>, tensor<64x64xf32>
    %54 = tile.prefix_sum %53 dim 0 : tensor<64x64xf32>
    %55 = tile.iota dim 1 : tensor<1x64xi32>
    %56 = tile.iota dim 0 : tensor<64x1xi32>
    %57 = tile.broadcast %55 : tensor<1x64xi32> to tensor<64x64xi32>
    %58 = tile.broadcast %56 : tensor<64x1xi32> to tensor<64x64xi32>
    %59 = arith.cmpi sle, %57, %58 : tensor<64x64xi32>
    %60 = math.exp %54 : tensor<64x64xf32>
    %cst_5 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %61 = arith.select %59, %60, %cst_5 : tensor<64x64xi1>, tensor<64x64xf32>
    %cst_6 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %62 = tile.dot %36, %36, %cst_6 {tile.name = "advance.key_scores", transpose_b} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<64x64xf32>
    %63 = arith.mulf %62, %61 : tensor<64x64xf32>
    %64 = tile.broadcast %38 : tensor<64x1xf32> to tensor<64x64xf32>
    %65 = arith.mulf %64, %63 : tensor<64x64xf32>
    %66 = tile.unit_lower_inverse %65 {tile.name = "advance.inverse"} : tensor<64x64xf32>
    %67 = tile.broadcast %43 : tensor<64x1xf32> to tensor<64x128xf32>
    %68 = arith.mulf %67, %36 : tensor<64x128xf32>
    %cst_7 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %69 = tile.dot %68, %arg9, %cst_7 {tile.name = "advance.predict"} : tensor<64x128xf32>, tensor<128x128xf32> -> tensor<64x128xf32>
    %70 = arith.subf %37, %69 : tensor<64x128xf32>
    %71 = tile.broadcast %38 : tensor<64x1xf32> to tensor<64x128xf32>
    %72 = arith.mulf %71, %70 : tensor<64x128xf32>
    %cst_8 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %73 = tile.dot %66, %72, %cst_8 {tile.name = "advance.updates"} : tensor<64x64xf32>, tensor<64x128xf32> -> tensor<64x128xf32>
    %74 = tile.broadcast %45 : tensor<64x1xf32> to tensor<64x128xf32>
    %75 = arith.mulf %74, %36 : tensor<64x128xf32>
    %76 = tile.broadcast %46 : tensor<1x1xf32> to tensor<128x128xf32>
    %77 = arith.mulf %76, %arg9 : tensor<128x128xf32>
    %78 = tile.dot %75, %73, %77 {tile.name = "advance.next_state", transpose_a} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<128x128xf32>
    scf.yield %78 : tensor<128x128xf32>
  }
  %c64_2 = arith.constant 64 : index
  %35 = scf.for %arg8 = %32 to %33 step %c64_2 iter_args(%arg9 = %34) -> (tensor<128x128xf32>) {
    %36 = tile.load %arg1[%arg8, %0, %c0] dims [0, 2] limit(%33) {tile.name = "load_key"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %37 = tile.load %arg2[%arg8, %0, %c0] dims [0, 2] limit(%33) {tile.name = "load_value"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %38 = tile.load %arg0[%arg8, %0, %c0] dims [0, 2] limit(%33) {tile.name = "load_query"} : !tile.view<?x2x128xf32, strides = [?, 128, 1]> -> tensor<64x128xf32>
    %cst_3 = arith.constant dense<0.0883883461> : tensor<64x128xf32>
    %39 = arith.mulf %38, %cst_3 : tensor<64x128xf32>
    %40 = tile.load %arg6[%arg8, %0] dims [0, 1] limit(%33) {tile.name = "load_beta"} : !tile.view<?x2xf32, strides = [?, 1]> -> tensor<64x1xf32>
    %41 = tile.load %arg5[%arg8, %0, %c0] dims [0, 2] limit(%33) {tile.name = "load_decay"} : !tile.view<?x2x1xf32, strides = [?, 1, 1]> -> tensor<64x1xf32>
    %42 = tile.prefix_sum %41 dim 0 {reverse} : tensor<64x1xf32>
    %43 = tile.slice %42 dim 0 offset 1 size 63 : tensor<64x1xf32>
    %44 = tile.prefix_sum %41 dim 0 : tensor<64x1xf32>
    %45 = math.exp %44 : tensor<64x1xf32>
    %cst_4 = arith.constant dense<0.000000e+00> : tensor<1x1xf32>
    %46 = tile.concat %43, %cst_4 dim 0 : tensor<63x1xf32>, tensor<1x1xf32>
    %47 = math.exp %46 : tensor<64x1xf32>
    %48 = tile.slice %45 dim 0 offset 63 size 1 : tensor<64x1xf32>
    %49 = tile.iota dim 1 : tensor<1x64xi32>
    %50 = tile.iota dim 0 : tensor<64x1xi32>
    %51 = tile.broadcast %49 : tensor<1x64xi32> to tensor<64x64xi32>
    %52 = tile.broadcast %50 : tensor<64x1xi32> to tensor<64x64xi32>
    %53 = arith.cmpi slt, %51, %52 : tensor<64x64xi32>
    %cst_5 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %54 = tile.broadcast %41 : tensor<64x1xf32> to tensor<64x64xf32>
    %55 = arith.select %53, %54, %cst_5 : tensor<64x64xi1>, tensor<64x64xf32>
    %56 = tile.prefix_sum %55 dim 0 : tensor<64x64xf32>
    %57 = tile.iota dim 1 : tensor<1x64xi32>
    %58 = tile.iota dim 0 : tensor<64x1xi32>
    %59 = tile.broadcast %57 : tensor<1x64xi32> to tensor<64x64xi32>
    %60 = tile.broadcast %58 : tensor<64x1xi32> to tensor<64x64xi32>
    %61 = arith.cmpi sle, %59, %60 : tensor<64x64xi32>
    %62 = math.exp %56 : tensor<64x64xf32>
    %cst_6 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %63 = arith.select %61, %62, %cst_6 : tensor<64x64xi1>, tensor<64x64xf32>
    %cst_7 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %64 = tile.dot %39, %36, %cst_7 {tile.name = "query_scores", transpose_b} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<64x64xf32>
    %65 = arith.mulf %64, %63 : tensor<64x64xf32>
    %cst_8 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %66 = tile.dot %36, %36, %cst_8 {tile.name = "key_scores", transpose_b} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<64x64xf32>
    %67 = arith.mulf %66, %63 : tensor<64x64xf32>
    %68 = tile.broadcast %40 : tensor<64x1xf32> to tensor<64x64xf32>
    %69 = arith.mulf %68, %67 : tensor<64x64xf32>
    %70 = tile.unit_lower_inverse %69 {tile.name = "inverse"} : tensor<64x64xf32>
    %71 = tile.broadcast %45 : tensor<64x1xf32> to tensor<64x128xf32>
    %72 = arith.mulf %71, %36 : tensor<64x128xf32>
    %cst_9 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %73 = tile.dot %72, %arg9, %cst_9 {tile.name = "predict"} : tensor<64x128xf32>, tensor<128x128xf32> -> tensor<64x128xf32>
    %74 = arith.subf %37, %73 : tensor<64x128xf32>
    %75 = tile.broadcast %40 : tensor<64x1xf32> to tensor<64x128xf32>
    %76 = arith.mulf %75, %74 : tensor<64x128xf32>
    %cst_10 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %77 = tile.dot %70, %76, %cst_10 {tile.name = "updates"} : tensor<64x64xf32>, tensor<64x128xf32> -> tensor<64x128xf32>
    %78 = tile.broadcast %45 : tensor<64x1xf32> to tensor<64x128xf32>
    %79 = arith.mulf %78, %39 : tensor<64x128xf32>
    %cst_11 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
    %80 = tile.dot %79, %arg9, %cst_11 {tile.name = "read_state"} : tensor<64x128xf32>, tensor<128x128xf32> -> tensor<64x128xf32>
    %81 = tile.dot %65, %77, %80 {tile.name = "outputs"} : tensor<64x64xf32>, tensor<64x128xf32> -> tensor<64x128xf32>
    tile.store %81, %arg7[%arg8, %0, %c0] dims [0, 2] limit(%33) {tile.name = "store_output"} : tensor<64x128xf32>, !tile.view<?x2x128xf32, strides = [?, 128, 1]>
    %82 = tile.broadcast %47 : tensor<64x1xf32> to tensor<64x128xf32>
    %83 = arith.mulf %82, %36 : tensor<64x128xf32>
    %84 = tile.broadcast %48 : tensor<1x1xf32> to tensor<128x128xf32>
    %85 = arith.mulf %84, %arg9 : tensor<128x128xf32>
    %86 = tile.dot %83, %77, %85 {tile.name = "next_state", transpose_a} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<128x128xf32>
    scf.yield %86 : tensor<128x128xf32>
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
