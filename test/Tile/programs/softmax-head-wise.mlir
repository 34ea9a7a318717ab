// A head-wise mix in one launch: heads with and without a window, one of them
// with sinks. The rules are two constant tables, read at the head's index; a
// head visits the key tiles that it sees and no others.
//
// RUN: tile-against-oracle %s --lengths=130,0,1,64,65 --positions=0,0,0,0,3

!q = tensor<?x4x64xf32>
!kv = tensor<?x2x64xf32>

func.func @definition(%q: !q, %k: !kv, %v: !kv, %segments: !hybrid.segments)
    -> (!q, tensor<?x4xf32>) {
  %o, %lse = hybrid.attention %q, %k, %v, %segments
      scale 0.125 windows [0, 40, 40, 0] sinks [0, 4, 0, 0]
      : (!q, !kv, !kv, !hybrid.segments) -> (!q, tensor<?x4xf32>)
  return %o, %lse : !q, tensor<?x4xf32>
}

func.func @dispatched(%q: !q, %k: !kv, %v: !kv, %segments: !hybrid.segments)
    -> (!q, tensor<?x4xf32>) {
  %o, %lse = hybrid.dispatch @softmax_forward(%q, %k, %v, %segments)
      : (!q, !kv, !kv, !hybrid.segments) -> (!q, tensor<?x4xf32>)
  return %o, %lse : !q, tensor<?x4xf32>
}

// As the uniform case with tiles of 64, so that a short window does not leave
// most of a tile masked: one consumer warpgroup, and a third buffer to cover the
// loads of a loop that is only two or three tiles long.
tile.schedule @softmax_forward target("sm_90a")
    roles {producer = {warpgroups = 1, registers = 24},
           consumer = {warpgroups = 1, registers = 240}}
    ops {load_q = {role = "producer", stage = 0, buffers = 1, barrier = "mbarrier"},
         load_k = {role = "producer", stage = 0, buffers = 3, barrier = "mbarrier"},
         load_v = {role = "producer", stage = 0, buffers = 3, barrier = "mbarrier"},
         scores = {role = "consumer", stage = 0, issue = 0, operand = "shared"},
         values = {role = "consumer", stage = 1, issue = 1, operand = "registers", wait = 1},
         mask = {role = "consumer", stage = 1, issue = 2},
         softmax = {role = "consumer", stage = 1, issue = 3},
         output = {role = "consumer", stage = 1, issue = 4}}

tile.program @softmax_forward(%arg0: !tile.view<?x4x64xf32>, %arg1: !tile.view<?x2x64xf32>, %arg2: !tile.view<?x2x64xf32>, %arg3: !tile.view<?x4xi32>, %arg4: !tile.view<?xi32>, %arg5: !tile.view<?x4x64xf32>, %arg6: !tile.view<?x4xf32>) grid affine_map<()[s0, s1, s2, s3, s4, s5] -> (s1, 4, s2 ceildiv 64)> order [parallel, parallel, parallel] {
  %c2147483647 = arith.constant 2147483647 : index
  %c64 = arith.constant 64 : index
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
  %11 = arith.muli %10, %c64 : index
  %12 = arith.addi %2, %11 : index
  %13 = arith.cmpi slt, %12, %4 : index
  scf.if %13 {
    %14 = arith.addi %2, %11 : index
    %load_q = tile.load %arg0[%14, %9, %c0] dims [0, 2] limit(%4) {tile.name = "load_q"} : !tile.view<?x4x64xf32> -> tensor<64x64xf32>
    %15 = arith.divsi %9, %c2 : index
    %cst = arith.constant dense<[1073741824, 40, 40, 1073741824]> : tensor<4xi32>
    %extracted = tensor.extract %cst[%9] : tensor<4xi32>
    %16 = arith.index_cast %extracted : i32 to index
    %cst_0 = arith.constant dense<[0, 4, 0, 0]> : tensor<4xi32>
    %extracted_1 = tensor.extract %cst_0[%9] : tensor<4xi32>
    %17 = arith.index_cast %extracted_1 : i32 to index
    %18 = arith.subi %17, %8 : index
    %19 = arith.maxsi %18, %c0 : index
    %20 = arith.subi %4, %2 : index
    %21 = arith.addi %11, %c64 : index
    %22 = arith.minsi %20, %21 : index
    %23 = arith.addi %11, %c1 : index
    %24 = arith.subi %23, %16 : index
    %25 = arith.maxsi %24, %c0 : index
    %26 = arith.subi %22, %25 : index
    %27 = arith.maxsi %26, %c0 : index
    %28 = arith.ceildivsi %27, %c64 : index
    %29 = arith.minsi %19, %25 : index
    %30 = arith.ceildivsi %29, %c64 : index
    %31 = arith.addi %30, %28 : index
    %32 = arith.index_cast %11 : index to i32
    %33 = tile.splat %32 : tensor<64x1xi32>
    %34 = tile.iota dim 0 : tensor<64x1xi32>
    %35 = arith.addi %33, %34 : tensor<64x1xi32>
    %cst_2 = arith.constant dense<0xFF800000> : tensor<64x1xf32>
    %cst_3 = arith.constant dense<0.000000e+00> : tensor<64x1xf32>
    %cst_4 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %36:3 = scf.for %arg7 = %c0 to %31 step %c1 iter_args(%arg8 = %cst_2, %arg9 = %cst_3, %arg10 = %cst_4) -> (tensor<64x1xf32>, tensor<64x1xf32>, tensor<64x64xf32>) {
      %47 = arith.subi %arg7, %30 : index
      %48 = arith.muli %47, %c64 : index
      %49 = arith.addi %25, %48 : index
      %50 = arith.cmpi slt, %arg7, %30 : index
      %51 = arith.muli %arg7, %c64 : index
      %52 = arith.select %50, %51, %49 : index
      %53 = arith.select %50, %29, %c2147483647 : index
      %54 = arith.addi %2, %52 : index
      %load_k = tile.load %arg1[%54, %15, %c0] dims [0, 2] limit(%4) {tile.name = "load_k"} : !tile.view<?x2x64xf32> -> tensor<64x64xf32>
      %cst_9 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
      %scores = tile.dot %load_q, %load_k, %cst_9 {tile.name = "scores", transpose_b} : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
      %cst_10 = arith.constant dense<1.250000e-01> : tensor<64x64xf32>
      %55 = arith.mulf %scores, %cst_10 : tensor<64x64xf32>
      %56 = arith.index_cast %52 : index to i32
      %57 = tile.splat %56 : tensor<1x64xi32>
      %58 = tile.iota dim 1 : tensor<1x64xi32>
      %59 = arith.addi %57, %58 : tensor<1x64xi32>
      %60 = tile.broadcast %59 : tensor<1x64xi32> to tensor<64x64xi32>
      %61 = tile.broadcast %35 : tensor<64x1xi32> to tensor<64x64xi32>
      %62 = arith.cmpi sle, %60, %61 : tensor<64x64xi32>
      %63 = arith.subi %61, %60 : tensor<64x64xi32>
      %64 = arith.index_cast %16 : index to i32
      %65 = tile.splat %64 : tensor<64x64xi32>
      %66 = arith.cmpi slt, %63, %65 : tensor<64x64xi32>
      %67 = arith.index_cast %19 : index to i32
      %68 = tile.splat %67 : tensor<64x64xi32>
      %69 = arith.cmpi slt, %60, %68 : tensor<64x64xi32>
      %70 = arith.ori %66, %69 : tensor<64x64xi1>
      %71 = arith.andi %62, %70 : tensor<64x64xi1>
      %72 = arith.index_cast %53 : index to i32
      %73 = tile.splat %72 : tensor<64x64xi32>
      %74 = arith.cmpi slt, %60, %73 : tensor<64x64xi32>
      %75 = arith.andi %71, %74 : tensor<64x64xi1>
      %cst_11 = arith.constant dense<0xFF800000> : tensor<64x64xf32>
      %76 = arith.select %75, %55, %cst_11 {tile.name = "mask"} : tensor<64x64xi1>, tensor<64x64xf32>
      %load_v = tile.load %arg2[%54, %15, %c0] dims [0, 2] limit(%4) {tile.name = "load_v"} : !tile.view<?x2x64xf32> -> tensor<64x64xf32>
      %77 = tile.reduce  max %76 dim 1 : tensor<64x64xf32>
      %78 = arith.maximumf %arg8, %77 {tile.name = "row_max"} : tensor<64x1xf32>
      %cst_12 = arith.constant dense<0xFF800000> : tensor<64x1xf32>
      %79 = arith.cmpf oeq, %78, %cst_12 : tensor<64x1xf32>
      %cst_13 = arith.constant dense<0.000000e+00> : tensor<64x1xf32>
      %80 = arith.select %79, %cst_13, %78 : tensor<64x1xi1>, tensor<64x1xf32>
      %81 = arith.subf %arg8, %80 : tensor<64x1xf32>
      %82 = math.exp %81 {tile.name = "correction"} : tensor<64x1xf32>
      %83 = tile.broadcast %80 : tensor<64x1xf32> to tensor<64x64xf32>
      %84 = arith.subf %76, %83 : tensor<64x64xf32>
      %85 = math.exp %84 {tile.name = "softmax"} : tensor<64x64xf32>
      %86 = arith.mulf %arg9, %82 : tensor<64x1xf32>
      %87 = tile.reduce  sum %85 dim 1 : tensor<64x64xf32>
      %88 = arith.addf %86, %87 {tile.name = "row_sum"} : tensor<64x1xf32>
      %89 = tile.broadcast %82 : tensor<64x1xf32> to tensor<64x64xf32>
      %90 = arith.mulf %arg10, %89 : tensor<64x64xf32>
      %values = tile.dot %85, %load_v, %90 {tile.name = "values"} : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
      scf.yield %78, %88, %values : tensor<64x1xf32>, tensor<64x1xf32>, tensor<64x64xf32>
    }
    %cst_5 = arith.constant dense<1.000000e+00> : tensor<64x1xf32>
    %cst_6 = arith.constant dense<0.000000e+00> : tensor<64x1xf32>
    %37 = arith.cmpf oeq, %36#1, %cst_6 : tensor<64x1xf32>
    %38 = arith.select %37, %cst_5, %36#1 : tensor<64x1xi1>, tensor<64x1xf32>
    %39 = arith.divf %cst_5, %38 : tensor<64x1xf32>
    %40 = tile.broadcast %39 : tensor<64x1xf32> to tensor<64x64xf32>
    %41 = arith.mulf %36#2, %40 {tile.name = "output"} : tensor<64x64xf32>
    tile.store %41, %arg5[%12, %9, %c0] dims [0, 2] limit(%4) : tensor<64x64xf32>, !tile.view<?x4x64xf32>
    %cst_7 = arith.constant dense<0xFF800000> : tensor<64x1xf32>
    %42 = arith.cmpf oeq, %36#0, %cst_7 : tensor<64x1xf32>
    %cst_8 = arith.constant dense<0.000000e+00> : tensor<64x1xf32>
    %43 = arith.select %42, %cst_8, %36#0 : tensor<64x1xi1>, tensor<64x1xf32>
    %44 = math.log %36#1 : tensor<64x1xf32>
    %45 = arith.addf %43, %44 : tensor<64x1xf32>
    %46 = tile.reshape %45 : tensor<64x1xf32> to tensor<64xf32>
    tile.store %46, %arg6[%12, %9] dims [0] limit(%4) : tensor<64xf32>, !tile.view<?x4xf32>
  }
  tile.return
}
