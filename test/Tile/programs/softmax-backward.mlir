// Softmax backward in one order of additions, and how sm_90a runs it.
//
// RUN: tile-against-oracle %s --lengths=0,1,130

!q = tensor<?x4x128xf32>
!kv = tensor<?x2x128xf32>
!lse = tensor<?x4xf32>

func.func @definition(%q: !q, %k: !kv, %v: !kv, %o: !q,
                      %lse: !lse {random.range = array<f64: 3.0, 5.0>}, %do: !q,
                      %segments: !hybrid.segments) -> (!q, !kv, !kv) {
  %dq, %dk, %dv = hybrid.attention_grad %q, %k, %v, %o, %lse, %do, %segments
      scale 0.125 windows [0, 0, 0, 0] sinks [0, 0, 0, 0]
      : (!q, !kv, !kv, !q, !lse, !q, !hybrid.segments) -> (!q, !kv, !kv)
  return %dq, %dk, %dv : !q, !kv, !kv
}

func.func @dispatched(%q: !q, %k: !kv, %v: !kv, %o: !q, %lse: !lse, %do: !q,
                      %segments: !hybrid.segments) -> (!q, !kv, !kv) {
  %dq, %dk, %dv = hybrid.dispatch @softmax_backward(%q, %k, %v, %o, %lse, %do, %segments)
      : (!q, !kv, !kv, !q, !lse, !q, !hybrid.segments) -> (!q, !kv, !kv)
  return %dq, %dk, %dv : !q, !kv, !kv
}

// Key tiles run side by side; what orders them is `add_dq`, which waits for its
// turn at the query tile (`turn`), in a warp group of its own so that nobody
// else waits with it. Two consumer warpgroups hold 64 keys each and keep dk and
// dv in registers; P and dS go to dv and dk as register operands and dS also to
// shared memory, for dq. Query tiles are double buffered.
tile.schedule @softmax_backward target("sm_90a")
    roles {producer = {warpgroups = 1, registers = 24},
           consumer = {warpgroups = 2, registers = 216},
           adder = {warpgroups = 1, registers = 56}}
    ops {load_k = {role = "producer", stage = 0, buffers = 1, barrier = "mbarrier"},
         load_v = {role = "producer", stage = 0, buffers = 1, barrier = "mbarrier"},
         load_q = {role = "producer", stage = 0, buffers = 2, barrier = "mbarrier"},
         load_do = {role = "producer", stage = 0, buffers = 2, barrier = "mbarrier"},
         load_o = {role = "producer", stage = 0, buffers = 1, barrier = "mbarrier"},
         scores = {role = "consumer", stage = 0, issue = 0, operand = "shared"},
         dp = {role = "consumer", stage = 0, issue = 1, operand = "shared"},
         mask = {role = "consumer", stage = 0, issue = 2},
         softmax = {role = "consumer", stage = 0, issue = 3},
         delta = {role = "consumer", stage = 0, issue = 4},
         dv = {role = "consumer", stage = 0, issue = 5, operand = "registers", wait = 1},
         ds = {role = "consumer", stage = 0, issue = 6, buffers = 1, barrier = "named"},
         dk = {role = "consumer", stage = 1, issue = 7, operand = "registers", wait = 1},
         dq = {role = "consumer", stage = 1, issue = 8, operand = "shared", buffers = 1, barrier = "named"},
         add_dq = {role = "adder", stage = 1, barrier = "turn"}}

tile.program @softmax_backward(%arg0: !tile.view<?x4x128xf32>, %arg1: !tile.view<?x2x128xf32>, %arg2: !tile.view<?x2x128xf32>, %arg3: !tile.view<?x4x128xf32>, %arg4: !tile.view<?x4xf32>, %arg5: !tile.view<?x4x128xf32>, %arg6: !tile.view<?x4xi32>, %arg7: !tile.view<?xi32>, %arg8: !tile.view<?x4x128xf32>, %arg9: !tile.view<?x2x128xf32>, %arg10: !tile.view<?x2x128xf32>) grid affine_map<()[s0, s1, s2, s3, s4, s5] -> (s1, 2, s2 ceildiv 128)> order [parallel, parallel, ordered] {
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c3 = arith.constant 3 : index
  %c2 = arith.constant 2 : index
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %0 = tile.id 0
  %1 = tile.load_scalar %arg6[%0, %c0] : !tile.view<?x4xi32>
  %2 = arith.index_cast %1 : i32 to index
  %3 = tile.load_scalar %arg6[%0, %c1] : !tile.view<?x4xi32>
  %4 = arith.index_cast %3 : i32 to index
  %5 = tile.load_scalar %arg6[%0, %c2] : !tile.view<?x4xi32>
  %6 = arith.index_cast %5 : i32 to index
  %7 = tile.load_scalar %arg6[%0, %c3] : !tile.view<?x4xi32>
  %8 = arith.index_cast %7 : i32 to index
  %9 = tile.id 1
  %10 = tile.id 2
  %11 = arith.muli %10, %c128 : index
  %12 = arith.addi %2, %11 : index
  %13 = arith.cmpi slt, %12, %4 : index
  scf.if %13 {
    %load_k = tile.load %arg1[%12, %9, %c0] dims [0, 2] limit(%4) {tile.name = "load_k"} : !tile.view<?x2x128xf32> -> tensor<128x128xf32>
    %load_v = tile.load %arg2[%12, %9, %c0] dims [0, 2] limit(%4) {tile.name = "load_v"} : !tile.view<?x2x128xf32> -> tensor<128x128xf32>
    %cst = arith.constant dense<0.000000e+00> : tensor<128x128xf32>
    %cst_0 = arith.constant dense<0.000000e+00> : tensor<128x128xf32>
    %14 = arith.muli %9, %c2 : index
    %15 = arith.addi %14, %c2 : index
    %16:2 = scf.for %arg11 = %14 to %15 step %c1 iter_args(%arg12 = %cst, %arg13 = %cst_0) -> (tensor<128x128xf32>, tensor<128x128xf32>) {
      %17 = arith.subi %4, %2 : index
      %18 = arith.divsi %11, %c64 : index
      %19 = arith.muli %18, %c64 : index
      %20:2 = scf.for %arg14 = %19 to %17 step %c64 iter_args(%arg15 = %arg12, %arg16 = %arg13) -> (tensor<128x128xf32>, tensor<128x128xf32>) {
        %21 = arith.addi %2, %arg14 : index
        %load_q = tile.load %arg0[%21, %arg11, %c0] dims [0, 2] limit(%4) {tile.name = "load_q"} : !tile.view<?x4x128xf32> -> tensor<64x128xf32>
        %load_do = tile.load %arg5[%21, %arg11, %c0] dims [0, 2] limit(%4) {tile.name = "load_do"} : !tile.view<?x4x128xf32> -> tensor<64x128xf32>
        %load_o = tile.load %arg3[%21, %arg11, %c0] dims [0, 2] limit(%4) {tile.name = "load_o"} : !tile.view<?x4x128xf32> -> tensor<64x128xf32>
        %22 = tile.load %arg4[%21, %arg11] dims [0] limit(%4) : !tile.view<?x4xf32> -> tensor<64xf32>
        %23 = tile.reshape %22 : tensor<64xf32> to tensor<64x1xf32>
        %cst_1 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
        %scores = tile.dot %load_q, %load_k, %cst_1 {tile.name = "scores", transpose_b} : tensor<64x128xf32>, tensor<128x128xf32> -> tensor<64x128xf32>
        %cst_2 = arith.constant dense<1.250000e-01> : tensor<64x128xf32>
        %24 = arith.mulf %scores, %cst_2 : tensor<64x128xf32>
        %25 = arith.index_cast %arg14 : index to i32
        %26 = tile.splat %25 : tensor<64x1xi32>
        %27 = tile.iota dim 0 : tensor<64x1xi32>
        %28 = arith.addi %26, %27 : tensor<64x1xi32>
        %29 = arith.index_cast %11 : index to i32
        %30 = tile.splat %29 : tensor<1x128xi32>
        %31 = tile.iota dim 1 : tensor<1x128xi32>
        %32 = arith.addi %30, %31 : tensor<1x128xi32>
        %33 = tile.broadcast %32 : tensor<1x128xi32> to tensor<64x128xi32>
        %34 = tile.broadcast %28 : tensor<64x1xi32> to tensor<64x128xi32>
        %35 = arith.cmpi sle, %33, %34 : tensor<64x128xi32>
        %cst_3 = arith.constant dense<0xFF800000> : tensor<64x128xf32>
        %36 = arith.select %35, %24, %cst_3 {tile.name = "mask"} : tensor<64x128xi1>, tensor<64x128xf32>
        %cst_4 = arith.constant dense<0xFF800000> : tensor<64x1xf32>
        %37 = arith.cmpf oeq, %23, %cst_4 : tensor<64x1xf32>
        %cst_5 = arith.constant dense<0.000000e+00> : tensor<64x1xf32>
        %38 = arith.select %37, %cst_5, %23 : tensor<64x1xi1>, tensor<64x1xf32>
        %39 = tile.broadcast %38 : tensor<64x1xf32> to tensor<64x128xf32>
        %40 = arith.subf %36, %39 : tensor<64x128xf32>
        %41 = math.exp %40 {tile.name = "softmax"} : tensor<64x128xf32>
        %42 = arith.mulf %load_do, %load_o : tensor<64x128xf32>
        %delta = tile.reduce  sum %42 dim 1 {tile.name = "delta"} : tensor<64x128xf32>
        %cst_6 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
        %dp = tile.dot %load_do, %load_v, %cst_6 {tile.name = "dp", transpose_b} : tensor<64x128xf32>, tensor<128x128xf32> -> tensor<64x128xf32>
        %43 = tile.broadcast %delta : tensor<64x1xf32> to tensor<64x128xf32>
        %44 = arith.subf %dp, %43 : tensor<64x128xf32>
        %45 = arith.mulf %41, %44 : tensor<64x128xf32>
        %cst_7 = arith.constant dense<1.250000e-01> : tensor<64x128xf32>
        %46 = arith.mulf %45, %cst_7 {tile.name = "ds"} : tensor<64x128xf32>
        %dk = tile.dot %46, %load_q, %arg15 {tile.name = "dk", transpose_a} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<128x128xf32>
        %dv = tile.dot %41, %load_do, %arg16 {tile.name = "dv", transpose_a} : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<128x128xf32>
        %cst_8 = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
        %dq = tile.dot %46, %load_k, %cst_8 {tile.name = "dq"} : tensor<64x128xf32>, tensor<128x128xf32> -> tensor<64x128xf32>
        %47 = arith.cmpi eq, %11, %c0 : index
        tile.accumulate %dq, %arg8[%21, %arg11, %c0] dims [0, 2] limit(%4) first(%47) {tile.name = "add_dq"} : tensor<64x128xf32>, !tile.view<?x4x128xf32>
        scf.yield %dk, %dv : tensor<128x128xf32>, tensor<128x128xf32>
      }
      scf.yield %20#0, %20#1 : tensor<128x128xf32>, tensor<128x128xf32>
    }
    tile.store %16#0, %arg9[%12, %9, %c0] dims [0, 2] limit(%4) : tensor<128x128xf32>, !tile.view<?x2x128xf32>
    tile.store %16#1, %arg10[%12, %9, %c0] dims [0, 2] limit(%4) : tensor<128x128xf32>, !tile.view<?x2x128xf32>
  }
  tile.return
}
