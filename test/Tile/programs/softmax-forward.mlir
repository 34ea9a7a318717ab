// Softmax forward, grouped heads, and how sm_90a runs it.
//
// RUN: tile-against-oracle %s --lengths=0,1,130

!q = tensor<?x4x128xf32>
!kv = tensor<?x2x128xf32>

func.func @definition(%q: !q, %k: !kv, %v: !kv, %segments: !hybrid.segments)
    -> (!q, tensor<?x4xf32>) {
  %o, %lse = hybrid.attention %q, %k, %v, %segments
      scale 0.125 windows [0, 0, 0, 0] sinks [0, 0, 0, 0]
      : (!q, !kv, !kv, !hybrid.segments) -> (!q, tensor<?x4xf32>)
  return %o, %lse : !q, tensor<?x4xf32>
}

func.func @dispatched(%q: !q, %k: !kv, %v: !kv, %segments: !hybrid.segments)
    -> (!q, tensor<?x4xf32>) {
  %o, %lse = hybrid.dispatch @softmax_forward(%q, %k, %v, %segments)
      : (!q, !kv, !kv, !hybrid.segments) -> (!q, tensor<?x4xf32>)
  return %o, %lse : !q, tensor<?x4xf32>
}

// One producer warpgroup issues the bulk loads; two consumer warpgroups take 64
// rows each and turns in issuing. The score product of the next key tile is
// issued before the value product of this one (`issue`), whose result is waited
// for after the softmax has run: one product stays in flight (`wait`). P goes
// from the softmax to the value product in registers. K is released after the
// score product, V after the value product, each with its own two buffers.
tile.schedule @softmax_forward target("sm_90a")
    roles {producer = {warpgroups = 1, registers = 24},
           consumer = {warpgroups = 2, registers = 240}}
    ops {load_q = {role = "producer", stage = 0, buffers = 1, barrier = "mbarrier"},
         load_k = {role = "producer", stage = 0, buffers = 2, barrier = "mbarrier"},
         load_v = {role = "producer", stage = 0, buffers = 2, barrier = "mbarrier"},
         scores = {role = "consumer", stage = 0, issue = 0, operand = "shared", barrier = "named"},
         values = {role = "consumer", stage = 1, issue = 1, operand = "registers", wait = 1},
         mask = {role = "consumer", stage = 1, issue = 2},
         row_max = {role = "consumer", stage = 1, issue = 3},
         correction = {role = "consumer", stage = 1, issue = 4},
         softmax = {role = "consumer", stage = 1, issue = 5},
         row_sum = {role = "consumer", stage = 1, issue = 6},
         output = {role = "consumer", stage = 1, issue = 7}}

tile.program @softmax_forward(%arg0: !tile.view<?x4x128xf32>, %arg1: !tile.view<?x2x128xf32>, %arg2: !tile.view<?x2x128xf32>, %arg3: !tile.view<?x4xi32>, %arg4: !tile.view<?xi32>, %arg5: !tile.view<?x4x128xf32>, %arg6: !tile.view<?x4xf32>) grid affine_map<()[s0, s1, s2, s3, s4, s5] -> (s1, 4, s2 ceildiv 128)> order [parallel, parallel, parallel] {
  %c128 = arith.constant 128 : index
  %c3 = arith.constant 3 : index
  %c2 = arith.constant 2 : index
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %0 = tile.id 0
  %1 = tile.load_scalar %arg3[%0, %c0] : !tile.view<?x4xi32>
  %2 = arith.index_cast %1 : i32 to index
  %3 = tile.load_scalar %arg3[%0, %c1] : !tile.view<?x4xi32>
  %4 = arith.index_cast %3 : i32 to index
  %5 = tile.load_scalar %arg3[%0, %c2] : !tile.view<?x4xi32>
  %6 = arith.index_cast %5 : i32 to index
  %7 = tile.load_scalar %arg3[%0, %c3] : !tile.view<?x4xi32>
  %8 = arith.index_cast %7 : i32 to index
  %9 = tile.id 1
  %10 = tile.id 2
  %11 = arith.muli %10, %c128 : index
  %12 = arith.addi %2, %11 : index
  %13 = arith.cmpi slt, %12, %4 : index
  scf.if %13 {
    %14 = arith.addi %2, %11 : index
    %load_q = tile.load %arg0[%14, %9, %c0] dims [0, 2] limit(%4) {tile.name = "load_q"} : !tile.view<?x4x128xf32> -> tensor<128x128xf32>
    %15 = arith.divsi %9, %c2 : index
    %16 = arith.subi %4, %2 : index
    %17 = arith.addi %11, %c128 : index
    %18 = arith.minsi %16, %17 : index
    %19 = arith.maxsi %18, %c0 : index
    %20 = arith.ceildivsi %19, %c128 : index
    %21 = arith.index_cast %11 : index to i32
    %22 = tile.splat %21 : tensor<128x1xi32>
    %23 = tile.iota dim 0 : tensor<128x1xi32>
    %24 = arith.addi %22, %23 : tensor<128x1xi32>
    %cst = arith.constant dense<0xFF800000> : tensor<128x1xf32>
    %cst_0 = arith.constant dense<0.000000e+00> : tensor<128x1xf32>
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<128x128xf32>
    %25:3 = scf.for %arg7 = %c0 to %20 step %c1 iter_args(%arg8 = %cst, %arg9 = %cst_0, %arg10 = %cst_1) -> (tensor<128x1xf32>, tensor<128x1xf32>, tensor<128x128xf32>) {
      %36 = arith.muli %arg7, %c128 : index
      %37 = arith.addi %2, %36 : index
      %load_k = tile.load %arg1[%37, %15, %c0] dims [0, 2] limit(%4) {tile.name = "load_k"} : !tile.view<?x2x128xf32> -> tensor<128x128xf32>
      %cst_6 = arith.constant dense<0.000000e+00> : tensor<128x128xf32>
      %scores = tile.dot %load_q, %load_k, %cst_6 {tile.name = "scores", transpose_b} : tensor<128x128xf32>, tensor<128x128xf32> -> tensor<128x128xf32>
      %cst_7 = arith.constant dense<1.250000e-01> : tensor<128x128xf32>
      %38 = arith.mulf %scores, %cst_7 : tensor<128x128xf32>
      %39 = arith.index_cast %36 : index to i32
      %40 = tile.splat %39 : tensor<1x128xi32>
      %41 = tile.iota dim 1 : tensor<1x128xi32>
      %42 = arith.addi %40, %41 : tensor<1x128xi32>
      %43 = tile.broadcast %42 : tensor<1x128xi32> to tensor<128x128xi32>
      %44 = tile.broadcast %24 : tensor<128x1xi32> to tensor<128x128xi32>
      %45 = arith.cmpi sle, %43, %44 : tensor<128x128xi32>
      %cst_8 = arith.constant dense<0xFF800000> : tensor<128x128xf32>
      %46 = arith.select %45, %38, %cst_8 {tile.name = "mask"} : tensor<128x128xi1>, tensor<128x128xf32>
      %load_v = tile.load %arg2[%37, %15, %c0] dims [0, 2] limit(%4) {tile.name = "load_v"} : !tile.view<?x2x128xf32> -> tensor<128x128xf32>
      %47 = tile.reduce  max %46 dim 1 : tensor<128x128xf32>
      %48 = arith.maximumf %arg8, %47 {tile.name = "row_max"} : tensor<128x1xf32>
      %cst_9 = arith.constant dense<0xFF800000> : tensor<128x1xf32>
      %49 = arith.cmpf oeq, %48, %cst_9 : tensor<128x1xf32>
      %cst_10 = arith.constant dense<0.000000e+00> : tensor<128x1xf32>
      %50 = arith.select %49, %cst_10, %48 : tensor<128x1xi1>, tensor<128x1xf32>
      %51 = arith.subf %arg8, %50 : tensor<128x1xf32>
      %52 = math.exp %51 {tile.name = "correction"} : tensor<128x1xf32>
      %53 = tile.broadcast %50 : tensor<128x1xf32> to tensor<128x128xf32>
      %54 = arith.subf %46, %53 : tensor<128x128xf32>
      %55 = math.exp %54 {tile.name = "softmax"} : tensor<128x128xf32>
      %56 = arith.mulf %arg9, %52 : tensor<128x1xf32>
      %57 = tile.reduce  sum %55 dim 1 : tensor<128x128xf32>
      %58 = arith.addf %56, %57 {tile.name = "row_sum"} : tensor<128x1xf32>
      %59 = tile.broadcast %52 : tensor<128x1xf32> to tensor<128x128xf32>
      %60 = arith.mulf %arg10, %59 : tensor<128x128xf32>
      %values = tile.dot %55, %load_v, %60 {tile.name = "values"} : tensor<128x128xf32>, tensor<128x128xf32> -> tensor<128x128xf32>
      scf.yield %48, %58, %values : tensor<128x1xf32>, tensor<128x1xf32>, tensor<128x128xf32>
    }
    %cst_2 = arith.constant dense<1.000000e+00> : tensor<128x1xf32>
    %cst_3 = arith.constant dense<0.000000e+00> : tensor<128x1xf32>
    %26 = arith.cmpf oeq, %25#1, %cst_3 : tensor<128x1xf32>
    %27 = arith.select %26, %cst_2, %25#1 : tensor<128x1xi1>, tensor<128x1xf32>
    %28 = arith.divf %cst_2, %27 : tensor<128x1xf32>
    %29 = tile.broadcast %28 : tensor<128x1xf32> to tensor<128x128xf32>
    %30 = arith.mulf %25#2, %29 {tile.name = "output"} : tensor<128x128xf32>
    tile.store %30, %arg5[%12, %9, %c0] dims [0, 2] limit(%4) : tensor<128x128xf32>, !tile.view<?x4x128xf32>
    %cst_4 = arith.constant dense<0xFF800000> : tensor<128x1xf32>
    %31 = arith.cmpf oeq, %25#0, %cst_4 : tensor<128x1xf32>
    %cst_5 = arith.constant dense<0.000000e+00> : tensor<128x1xf32>
    %32 = arith.select %31, %cst_5, %25#0 : tensor<128x1xi1>, tensor<128x1xf32>
    %33 = math.log %25#1 : tensor<128x1xf32>
    %34 = arith.addf %32, %33 : tensor<128x1xf32>
    %35 = tile.reshape %34 : tensor<128x1xf32> to tensor<128xf32>
    tile.store %35, %arg6[%12, %9] dims [0] limit(%4) : tensor<128xf32>, !tile.view<?x4xf32>
  }
  tile.return
}
