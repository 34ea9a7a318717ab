// A few new tokens against a long cache: append, split keys, combine.
//
// RUN: tile-against-oracle %s --lengths=1,0,3,1 --positions=200,9,64,0 --context=320

!q = tensor<?x4x64xf32>
!kv = tensor<?x2x64xf32>
!cache = tensor<?x2x?x64xf32, #hybrid.slots<rows = affine_map<()[t, s, l, n, c, d] -> (c)>>>

func.func @definition(%q: !q, %k: !kv, %v: !kv, %kc: !cache, %vc: !cache,
                      %segments: !hybrid.segments) -> (!q, !cache, !cache) {
  %o, %kc2, %vc2 = hybrid.attention_cached %q, %k, %v, %kc, %vc, %segments
      scale 0.125 windows [0, 0, 0, 0] sinks [0, 0, 0, 0]
      : (!q, !kv, !kv, !cache, !cache, !hybrid.segments) -> (!q, !cache, !cache)
  return %o, %kc2, %vc2 : !q, !cache, !cache
}

func.func @dispatched(%q: !q, %k: !kv, %v: !kv, %kc: !cache, %vc: !cache,
                      %segments: !hybrid.segments) -> (!q, !cache, !cache) {
  %c:2 = hybrid.dispatch @softmax_append(%k, %v, %kc, %vc, %segments) ties = [0, 2, 1, 3]
      : (!kv, !kv, !cache, !cache, !hybrid.segments) -> (!cache, !cache)
  %p:2 = hybrid.dispatch @softmax_split(%q, %c#0, %c#1, %segments)
      : (!q, !cache, !cache, !hybrid.segments) -> (tensor<?x4x4x64xf32>, tensor<?x4x4xf32>)
  %o = hybrid.dispatch @softmax_combine(%p#0, %p#1)
      : (tensor<?x4x4x64xf32>, tensor<?x4x4xf32>) -> !q
  return %o, %c#0, %c#1 : !q, !cache, !cache
}

// Decoding waits for memory: one warpgroup, four key tiles in flight, and a
// range of keys per block, as many as fill the card. The heads of a group are
// rows of one tile, so that the cache is read once.
tile.schedule @softmax_split target("sm_90a")
    roles {all = {warpgroups = 1, registers = 168}}
    ops {load_q = {role = "all", stage = 0, buffers = 1, barrier = "mbarrier"},
         load_k = {role = "all", stage = 0, buffers = 4, barrier = "mbarrier"},
         load_v = {role = "all", stage = 0, buffers = 4, barrier = "mbarrier"},
         scores = {role = "all", stage = 1, issue = 0, operand = "shared"},
         mask = {role = "all", stage = 1, issue = 1},
         softmax = {role = "all", stage = 1, issue = 2},
         values = {role = "all", stage = 1, issue = 3, operand = "registers"}}

// Started by programmatic launch while the ranges finish.
tile.schedule @softmax_combine target("sm_90a")
    roles {all = {warpgroups = 1, registers = 64}}
    ops {load_lse = {role = "all", stage = 0}, weights = {role = "all", stage = 0},
         output = {role = "all", stage = 0}}

tile.program @softmax_append(%arg0: !tile.view<?x2x64xf32>, %arg1: !tile.view<?x2x64xf32>, %arg2: !tile.view<?x2x?x64xf32>, %arg3: !tile.view<?x2x?x64xf32>, %arg4: !tile.view<?x4xi32>, %arg5: !tile.view<?xi32>) grid affine_map<()[s0, s1, s2, s3, s4, s5] -> (s1, 2, s2 ceildiv 4)> order [parallel, parallel, parallel] {
  %c4 = arith.constant 4 : index
  %c3 = arith.constant 3 : index
  %c2 = arith.constant 2 : index
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %0 = tile.id 0
  %1 = tile.load_scalar %arg4[%0, %c0] : !tile.view<?x4xi32>
  %2 = arith.index_cast %1 : i32 to index
  %3 = tile.load_scalar %arg4[%0, %c1] : !tile.view<?x4xi32>
  %4 = arith.index_cast %3 : i32 to index
  %5 = tile.load_scalar %arg4[%0, %c2] : !tile.view<?x4xi32>
  %6 = arith.index_cast %5 : i32 to index
  %7 = tile.load_scalar %arg4[%0, %c3] : !tile.view<?x4xi32>
  %8 = arith.index_cast %7 : i32 to index
  %9 = tile.id 1
  %10 = tile.id 2
  %11 = arith.muli %10, %c4 : index
  %12 = arith.addi %2, %11 : index
  %13 = arith.addi %8, %11 : index
  %14 = arith.cmpi slt, %12, %4 : index
  scf.if %14 {
    %15 = tile.load %arg0[%12, %9, %c0] dims [0, 2] limit(%4) : !tile.view<?x2x64xf32> -> tensor<4x64xf32>
    %16 = arith.subi %4, %2 : index
    %17 = arith.addi %8, %16 : index
    tile.store %15, %arg2[%6, %9, %13, %c0] dims [2, 3] limit(%17) : tensor<4x64xf32>, !tile.view<?x2x?x64xf32>
    %18 = tile.load %arg1[%12, %9, %c0] dims [0, 2] limit(%4) : !tile.view<?x2x64xf32> -> tensor<4x64xf32>
    %19 = arith.subi %4, %2 : index
    %20 = arith.addi %8, %19 : index
    tile.store %18, %arg3[%6, %9, %13, %c0] dims [2, 3] limit(%20) : tensor<4x64xf32>, !tile.view<?x2x?x64xf32>
  }
  tile.return
}

tile.program @softmax_split(%arg0: !tile.view<?x4x64xf32>, %arg1: !tile.view<?x2x?x64xf32>, %arg2: !tile.view<?x2x?x64xf32>, %arg3: !tile.view<?x4xi32>, %arg4: !tile.view<?xi32>, %arg5: !tile.view<?x4x4x64xf32>, %arg6: !tile.view<?x4x4xf32>) grid affine_map<()[s0, s1, s2, s3, s4, s5] -> (s1, 2, s2 ceildiv 4, 4)> order [parallel, parallel, parallel, parallel] {
  %c64 = arith.constant 64 : index
  %c4 = arith.constant 4 : index
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
  %10 = arith.muli %9, %c2 : index
  %11 = tile.id 1
  %12 = tile.id 2
  %13 = arith.muli %12, %c4 : index
  %14 = arith.addi %2, %13 : index
  %15 = arith.cmpi slt, %14, %4 : index
  scf.if %15 {
    %16 = arith.addi %8, %13 : index
    %17 = tile.load %arg0[%14, %10, %c0] dims [0, 1, 2] limit(%4) : !tile.view<?x4x64xf32> -> tensor<4x2x64xf32>
    %load_q = tile.reshape %17 {tile.name = "load_q"} : tensor<4x2x64xf32> to tensor<8x64xf32>
    %18 = arith.subi %4, %2 : index
    %19 = arith.addi %8, %18 : index
    %20 = arith.addi %16, %c4 : index
    %21 = arith.minsi %19, %20 : index
    %22 = arith.maxsi %21, %c0 : index
    %23 = arith.ceildivsi %22, %c64 : index
    %24 = arith.ceildivsi %23, %c4 : index
    %25 = tile.id 3
    %26 = arith.muli %25, %24 : index
    %27 = arith.addi %26, %24 : index
    %28 = arith.minsi %23, %27 : index
    %29 = tile.iota dim 0 : tensor<4x2xi32>
    %30 = tile.reshape %29 : tensor<4x2xi32> to tensor<8x1xi32>
    %31 = arith.index_cast %16 : index to i32
    %32 = tile.splat %31 : tensor<8x1xi32>
    %33 = arith.addi %30, %32 : tensor<8x1xi32>
    %cst = arith.constant dense<0xFF800000> : tensor<8x1xf32>
    %cst_0 = arith.constant dense<0.000000e+00> : tensor<8x1xf32>
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<8x64xf32>
    %34:3 = scf.for %arg7 = %26 to %28 step %c1 iter_args(%arg8 = %cst, %arg9 = %cst_0, %arg10 = %cst_1) -> (tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x64xf32>) {
      %48 = arith.muli %arg7, %c64 : index
      %load_k = tile.load %arg1[%6, %11, %48, %c0] dims [2, 3] limit(%21) {tile.name = "load_k"} : !tile.view<?x2x?x64xf32> -> tensor<64x64xf32>
      %cst_6 = arith.constant dense<0.000000e+00> : tensor<8x64xf32>
      %scores = tile.dot %load_q, %load_k, %cst_6 {tile.name = "scores", transpose_b} : tensor<8x64xf32>, tensor<64x64xf32> -> tensor<8x64xf32>
      %cst_7 = arith.constant dense<1.250000e-01> : tensor<8x64xf32>
      %49 = arith.mulf %scores, %cst_7 : tensor<8x64xf32>
      %50 = arith.index_cast %48 : index to i32
      %51 = tile.splat %50 : tensor<1x64xi32>
      %52 = tile.iota dim 1 : tensor<1x64xi32>
      %53 = arith.addi %51, %52 : tensor<1x64xi32>
      %54 = tile.broadcast %53 : tensor<1x64xi32> to tensor<8x64xi32>
      %55 = tile.broadcast %33 : tensor<8x1xi32> to tensor<8x64xi32>
      %56 = arith.cmpi sle, %54, %55 : tensor<8x64xi32>
      %cst_8 = arith.constant dense<0xFF800000> : tensor<8x64xf32>
      %57 = arith.select %56, %49, %cst_8 {tile.name = "mask"} : tensor<8x64xi1>, tensor<8x64xf32>
      %load_v = tile.load %arg2[%6, %11, %48, %c0] dims [2, 3] limit(%21) {tile.name = "load_v"} : !tile.view<?x2x?x64xf32> -> tensor<64x64xf32>
      %58 = tile.reduce  max %57 dim 1 : tensor<8x64xf32>
      %59 = arith.maximumf %arg8, %58 {tile.name = "row_max"} : tensor<8x1xf32>
      %cst_9 = arith.constant dense<0xFF800000> : tensor<8x1xf32>
      %60 = arith.cmpf oeq, %59, %cst_9 : tensor<8x1xf32>
      %cst_10 = arith.constant dense<0.000000e+00> : tensor<8x1xf32>
      %61 = arith.select %60, %cst_10, %59 : tensor<8x1xi1>, tensor<8x1xf32>
      %62 = arith.subf %arg8, %61 : tensor<8x1xf32>
      %63 = math.exp %62 {tile.name = "correction"} : tensor<8x1xf32>
      %64 = tile.broadcast %61 : tensor<8x1xf32> to tensor<8x64xf32>
      %65 = arith.subf %57, %64 : tensor<8x64xf32>
      %66 = math.exp %65 {tile.name = "softmax"} : tensor<8x64xf32>
      %67 = arith.mulf %arg9, %63 : tensor<8x1xf32>
      %68 = tile.reduce  sum %66 dim 1 : tensor<8x64xf32>
      %69 = arith.addf %67, %68 {tile.name = "row_sum"} : tensor<8x1xf32>
      %70 = tile.broadcast %63 : tensor<8x1xf32> to tensor<8x64xf32>
      %71 = arith.mulf %arg10, %70 : tensor<8x64xf32>
      %values = tile.dot %66, %load_v, %71 {tile.name = "values"} : tensor<8x64xf32>, tensor<64x64xf32> -> tensor<8x64xf32>
      scf.yield %59, %69, %values : tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x64xf32>
    }
    %cst_2 = arith.constant dense<1.000000e+00> : tensor<8x1xf32>
    %cst_3 = arith.constant dense<0.000000e+00> : tensor<8x1xf32>
    %35 = arith.cmpf oeq, %34#1, %cst_3 : tensor<8x1xf32>
    %36 = arith.select %35, %cst_2, %34#1 : tensor<8x1xi1>, tensor<8x1xf32>
    %37 = arith.divf %cst_2, %36 : tensor<8x1xf32>
    %38 = tile.broadcast %37 : tensor<8x1xf32> to tensor<8x64xf32>
    %39 = arith.mulf %34#2, %38 {tile.name = "output"} : tensor<8x64xf32>
    %40 = tile.reshape %39 : tensor<8x64xf32> to tensor<4x2x64xf32>
    %cst_4 = arith.constant dense<0xFF800000> : tensor<8x1xf32>
    %41 = arith.cmpf oeq, %34#0, %cst_4 : tensor<8x1xf32>
    %cst_5 = arith.constant dense<0.000000e+00> : tensor<8x1xf32>
    %42 = arith.select %41, %cst_5, %34#0 : tensor<8x1xi1>, tensor<8x1xf32>
    %43 = math.log %34#1 : tensor<8x1xf32>
    %44 = arith.addf %42, %43 : tensor<8x1xf32>
    %45 = tile.reshape %44 : tensor<8x1xf32> to tensor<4x2xf32>
    %46 = tile.id 3
    tile.store %40, %arg5[%14, %10, %46, %c0] dims [0, 1, 3] limit(%4) : tensor<4x2x64xf32>, !tile.view<?x4x4x64xf32>
    %47 = tile.id 3
    tile.store %45, %arg6[%14, %10, %47] dims [0, 1] limit(%4) : tensor<4x2xf32>, !tile.view<?x4x4xf32>
  }
  tile.return
}

tile.program @softmax_combine(%arg0: !tile.view<?x4x4x64xf32>, %arg1: !tile.view<?x4x4xf32>, %arg2: !tile.view<?x4x64xf32>) grid affine_map<()[s0, s1, s2, s3, s4, s5] -> (s0)> order [parallel] {
  %c3 = arith.constant 3 : index
  %c2 = arith.constant 2 : index
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %0 = tile.id 0
  %load_lse = tile.load %arg1[%0, %c0, %c0] dims [1, 2] {tile.name = "load_lse"} : !tile.view<?x4x4xf32> -> tensor<4x4xf32>
  %1 = tile.reduce  max %load_lse dim 1 : tensor<4x4xf32>
  %cst = arith.constant dense<0xFF800000> : tensor<4x1xf32>
  %2 = arith.cmpf oeq, %1, %cst : tensor<4x1xf32>
  %cst_0 = arith.constant dense<0.000000e+00> : tensor<4x1xf32>
  %3 = arith.select %2, %cst_0, %1 : tensor<4x1xi1>, tensor<4x1xf32>
  %4 = tile.broadcast %3 : tensor<4x1xf32> to tensor<4x4xf32>
  %5 = arith.subf %load_lse, %4 : tensor<4x4xf32>
  %6 = math.exp %5 {tile.name = "weights"} : tensor<4x4xf32>
  %cst_1 = arith.constant dense<0.000000e+00> : tensor<4x64xf32>
  %7 = tile.load %arg0[%0, %c0, %c0, %c0] dims [1, 3] : !tile.view<?x4x4x64xf32> -> tensor<4x64xf32>
  %8 = tile.slice %6 dim 1 offset 0 size 1 : tensor<4x4xf32>
  %9 = tile.broadcast %8 : tensor<4x1xf32> to tensor<4x64xf32>
  %10 = arith.mulf %7, %9 : tensor<4x64xf32>
  %11 = arith.addf %cst_1, %10 : tensor<4x64xf32>
  %12 = tile.load %arg0[%0, %c0, %c1, %c0] dims [1, 3] : !tile.view<?x4x4x64xf32> -> tensor<4x64xf32>
  %13 = tile.slice %6 dim 1 offset 1 size 1 : tensor<4x4xf32>
  %14 = tile.broadcast %13 : tensor<4x1xf32> to tensor<4x64xf32>
  %15 = arith.mulf %12, %14 : tensor<4x64xf32>
  %16 = arith.addf %11, %15 : tensor<4x64xf32>
  %17 = tile.load %arg0[%0, %c0, %c2, %c0] dims [1, 3] : !tile.view<?x4x4x64xf32> -> tensor<4x64xf32>
  %18 = tile.slice %6 dim 1 offset 2 size 1 : tensor<4x4xf32>
  %19 = tile.broadcast %18 : tensor<4x1xf32> to tensor<4x64xf32>
  %20 = arith.mulf %17, %19 : tensor<4x64xf32>
  %21 = arith.addf %16, %20 : tensor<4x64xf32>
  %22 = tile.load %arg0[%0, %c0, %c3, %c0] dims [1, 3] : !tile.view<?x4x4x64xf32> -> tensor<4x64xf32>
  %23 = tile.slice %6 dim 1 offset 3 size 1 : tensor<4x4xf32>
  %24 = tile.broadcast %23 : tensor<4x1xf32> to tensor<4x64xf32>
  %25 = arith.mulf %22, %24 : tensor<4x64xf32>
  %26 = arith.addf %21, %25 : tensor<4x64xf32>
  %27 = tile.reduce  sum %6 dim 1 : tensor<4x4xf32>
  %cst_2 = arith.constant dense<1.000000e+00> : tensor<4x1xf32>
  %cst_3 = arith.constant dense<0.000000e+00> : tensor<4x1xf32>
  %28 = arith.cmpf oeq, %27, %cst_3 : tensor<4x1xf32>
  %29 = arith.select %28, %cst_2, %27 : tensor<4x1xi1>, tensor<4x1xf32>
  %30 = arith.divf %cst_2, %29 : tensor<4x1xf32>
  %31 = tile.broadcast %30 : tensor<4x1xf32> to tensor<4x64xf32>
  %32 = arith.mulf %26, %31 {tile.name = "output"} : tensor<4x64xf32>
  tile.store %32, %arg2[%0, %c0, %c0] dims [1, 2] : tensor<4x64xf32>, !tile.view<?x4x64xf32>
  tile.return
}
