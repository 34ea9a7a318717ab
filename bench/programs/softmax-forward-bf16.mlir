// Causal attention in bf16: tiles of 128 queries and 64 keys, 16 heads of 128.
tile.program @softmax_forward_bf16(%arg0: !tile.view<?x16x128xbf16>, %arg1: !tile.view<?x16x128xbf16>, %arg2: !tile.view<?x16x128xbf16>, %arg3: !tile.view<?x4xi32>, %arg4: !tile.view<?xi32>, %arg5: !tile.view<?x16x128xbf16>, %arg6: !tile.view<?x16xf32>) grid affine_map<()[s0, s1, s2, s3, s4, s5] -> (s1, 16, s2 ceildiv 128)> order [parallel, parallel, parallel] {
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
    %load_q = tile.load %arg0[%14, %9, %c0] dims [0, 2] limit(%4) {tile.name = "load_q"} : !tile.view<?x16x128xbf16> -> tensor<128x128xbf16>
    %15 = arith.muli %9, %c1 : index
    %16 = arith.subi %4, %2 : index
    %17 = arith.addi %11, %c128 : index
    %18 = arith.minsi %16, %17 : index
    %19 = arith.maxsi %18, %c0 : index
    %c64 = arith.constant 64 : index
    %20 = arith.ceildivsi %19, %c64 : index
    %21 = arith.index_cast %11 : index to i32
    %22 = tile.splat %21 : tensor<128x1xi32>
    %23 = tile.iota dim 0 : tensor<128x1xi32>
    %24 = arith.addi %22, %23 : tensor<128x1xi32>
    %cst = arith.constant dense<0xFF800000> : tensor<128x1xf32>
    %cst_0 = arith.constant dense<0.000000e+00> : tensor<128x1xf32>
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<128x128xf32>
    %25:3 = scf.for %arg7 = %c0 to %20 step %c1 iter_args(%arg8 = %cst, %arg9 = %cst_0, %arg10 = %cst_1) -> (tensor<128x1xf32>, tensor<128x1xf32>, tensor<128x128xf32>) {
      %36 = arith.muli %arg7, %c64 : index
      %37 = arith.addi %2, %36 : index
      %load_k = tile.load %arg1[%37, %15, %c0] dims [0, 2] limit(%4) {tile.name = "load_k"} : !tile.view<?x16x128xbf16> -> tensor<64x128xbf16>
      %cst_6 = arith.constant dense<0.000000e+00> : tensor<128x64xf32>
      %scores = tile.dot %load_q, %load_k, %cst_6 {tile.name = "scores", transpose_b} : tensor<128x128xbf16>, tensor<64x128xbf16> -> tensor<128x64xf32>
      %cst_7 = arith.constant dense<0.0883883461> : tensor<128x64xf32>
      %38 = arith.mulf %scores, %cst_7 : tensor<128x64xf32>
      %39 = arith.index_cast %36 : index to i32
      %40 = tile.splat %39 : tensor<1x64xi32>
      %41 = tile.iota dim 1 : tensor<1x64xi32>
      %42 = arith.addi %40, %41 : tensor<1x64xi32>
      %43 = tile.broadcast %42 : tensor<1x64xi32> to tensor<128x64xi32>
      %44 = tile.broadcast %24 : tensor<128x1xi32> to tensor<128x64xi32>
      %45 = arith.cmpi sle, %43, %44 : tensor<128x64xi32>
      %cst_8 = arith.constant dense<0xFF800000> : tensor<128x64xf32>
      %46 = arith.select %45, %38, %cst_8 {tile.name = "mask"} : tensor<128x64xi1>, tensor<128x64xf32>
      %load_v = tile.load %arg2[%37, %15, %c0] dims [0, 2] limit(%4) {tile.name = "load_v"} : !tile.view<?x16x128xbf16> -> tensor<64x128xbf16>
      %47 = tile.reduce  max %46 dim 1 : tensor<128x64xf32>
      %48 = arith.maximumf %arg8, %47 {tile.name = "row_max"} : tensor<128x1xf32>
      %cst_9 = arith.constant dense<0xFF800000> : tensor<128x1xf32>
      %49 = arith.cmpf oeq, %48, %cst_9 : tensor<128x1xf32>
      %cst_10 = arith.constant dense<0.000000e+00> : tensor<128x1xf32>
      %50 = arith.select %49, %cst_10, %48 : tensor<128x1xi1>, tensor<128x1xf32>
      %51 = arith.subf %arg8, %50 : tensor<128x1xf32>
      %52 = math.exp %51 {tile.name = "correction"} : tensor<128x1xf32>
      %53 = tile.broadcast %50 : tensor<128x1xf32> to tensor<128x64xf32>
      %54 = arith.subf %46, %53 : tensor<128x64xf32>
      %55 = math.exp %54 {tile.name = "softmax"} : tensor<128x64xf32>
      %56 = arith.mulf %arg9, %52 : tensor<128x1xf32>
      %57 = tile.reduce  sum %55 dim 1 : tensor<128x64xf32>
      %58 = arith.addf %56, %57 {tile.name = "row_sum"} : tensor<128x1xf32>
      %59 = tile.broadcast %52 : tensor<128x1xf32> to tensor<128x128xf32>
      %60 = arith.mulf %arg10, %59 : tensor<128x128xf32>
      %p16 = arith.truncf %55 : tensor<128x64xf32> to tensor<128x64xbf16>
      %values = tile.dot %p16, %load_v, %60 {tile.name = "values"} : tensor<128x64xbf16>, tensor<64x128xbf16> -> tensor<128x128xf32>
      scf.yield %48, %58, %values : tensor<128x1xf32>, tensor<128x1xf32>, tensor<128x128xf32>
    }
    %cst_2 = arith.constant dense<1.000000e+00> : tensor<128x1xf32>
    %cst_3 = arith.constant dense<0.000000e+00> : tensor<128x1xf32>
    %26 = arith.cmpf oeq, %25#1, %cst_3 : tensor<128x1xf32>
    %27 = arith.select %26, %cst_2, %25#1 : tensor<128x1xi1>, tensor<128x1xf32>
    %28 = arith.divf %cst_2, %27 : tensor<128x1xf32>
    %29 = tile.broadcast %28 : tensor<128x1xf32> to tensor<128x128xf32>
    %30 = arith.mulf %25#2, %29 {tile.name = "output"} : tensor<128x128xf32>
    %o16 = arith.truncf %30 : tensor<128x128xf32> to tensor<128x128xbf16>
    tile.store %o16, %arg5[%12, %9, %c0] dims [0, 2] limit(%4) : tensor<128x128xbf16>, !tile.view<?x16x128xbf16>
    %cst_4 = arith.constant dense<0xFF800000> : tensor<128x1xf32>
    %31 = arith.cmpf oeq, %25#0, %cst_4 : tensor<128x1xf32>
    %cst_5 = arith.constant dense<0.000000e+00> : tensor<128x1xf32>
    %32 = arith.select %31, %cst_5, %25#0 : tensor<128x1xi1>, tensor<128x1xf32>
    %33 = math.log %25#1 : tensor<128x1xf32>
    %34 = arith.addf %32, %33 : tensor<128x1xf32>
    %35 = tile.reshape %34 : tensor<128x1xf32> to tensor<128xf32>
    tile.store %35, %arg6[%12, %9] dims [0] limit(%4) : tensor<128xf32>, !tile.view<?x16xf32>
  }
  tile.return
}
