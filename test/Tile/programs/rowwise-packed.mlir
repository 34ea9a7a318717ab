// A row-wise region over a packed stream whose last block of rows is ragged:
// norm, weight and rotation, with positions from the segment table.
//
// RUN: tile-against-oracle %s --lengths=63,0,1,65,2 --positions=0,7,4000,0,1 --tolerance=1e-5

!x = tensor<?x4x64xf32>

func.func @definition(%x: !x, %w: tensor<64xf32>, %segments: !hybrid.segments) -> !x {
  %y = hybrid.rowwise (%a = %x : !x, %b = %w : tensor<64xf32>, %s = %segments : !hybrid.segments) -> !x {
    %n = hybrid.normalize rms %a epsilon 1.0e-06 : !x
    %m = hybrid.mul %n, %b : !x, tensor<64xf32>
    %r = hybrid.rotary %m, %s base 10000.0 dim 64 : !x
    hybrid.yield %r : !x
  }
  return %y : !x
}

func.func @dispatched(%x: !x, %w: tensor<64xf32>, %segments: !hybrid.segments) -> !x {
  %y = hybrid.dispatch @rowwise(%x, %w, %segments)
      : (!x, tensor<64xf32>, !hybrid.segments) -> !x
  return %y : !x
}

// Bound by memory: no roles to split, loads ahead of the arithmetic.
tile.schedule @rowwise target("sm_90a")
    roles {all = {warpgroups = 1, registers = 96}}
    ops {load_0 = {role = "all", stage = 0, buffers = 2}, load_1 = {role = "all", stage = 0}}

tile.program @rowwise(%arg0: !tile.view<?x4x64xf32>, %arg1: !tile.view<64xf32>, %arg2: !tile.view<?x4xi32>, %arg3: !tile.view<?xi32>, %arg4: !tile.view<?x4x64xf32>) grid affine_map<()[s0, s1, s2, s3, s4, s5] -> (s0 ceildiv 32)> order [parallel] {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %0 = tile.id 0
  %1 = arith.muli %0, %c32 : index
  %2 = tile.dim %arg4, 0 : !tile.view<?x4x64xf32>
  %load_0 = tile.load %arg0[%1, %c0, %c0] dims [0, 1, 2] limit(%2) {tile.name = "load_0"} : !tile.view<?x4x64xf32> -> tensor<32x4x64xf32>
  %load_1 = tile.load %arg1[%c0] dims [0] {tile.name = "load_1"} : !tile.view<64xf32> -> tensor<64xf32>
  %3 = arith.mulf %load_0, %load_0 : tensor<32x4x64xf32>
  %4 = tile.reduce  sum %3 dim 2 : tensor<32x4x64xf32>
  %cst = arith.constant dense<1.562500e-02> : tensor<32x4x1xf32>
  %5 = arith.mulf %4, %cst : tensor<32x4x1xf32>
  %cst_0 = arith.constant dense<9.99999997E-7> : tensor<32x4x1xf32>
  %6 = arith.addf %5, %cst_0 : tensor<32x4x1xf32>
  %7 = math.rsqrt %6 : tensor<32x4x1xf32>
  %8 = tile.broadcast %7 : tensor<32x4x1xf32> to tensor<32x4x64xf32>
  %9 = arith.mulf %load_0, %8 : tensor<32x4x64xf32>
  %10 = tile.reshape %load_1 : tensor<64xf32> to tensor<1x1x64xf32>
  %11 = tile.broadcast %10 : tensor<1x1x64xf32> to tensor<32x4x64xf32>
  %12 = arith.mulf %9, %11 : tensor<32x4x64xf32>
  %13 = arith.index_cast %1 : index to i32
  %14 = tile.splat %13 : tensor<32x1xi32>
  %15 = tile.iota dim 0 : tensor<32x1xi32>
  %16 = arith.addi %14, %15 : tensor<32x1xi32>
  %17 = tile.load %arg3[%1] dims [0] limit(%2) : !tile.view<?xi32> -> tensor<32xi32>
  %18 = arith.subi %2, %1 : index
  %19 = arith.index_cast %18 : index to i32
  %20 = tile.splat %19 : tensor<32xi32>
  %21 = tile.iota dim 0 : tensor<32xi32>
  %22 = arith.cmpi slt, %21, %20 : tensor<32xi32>
  %23 = tile.load_rows %arg2[%c0, %c0] rows(%17) mask(%22) dims [0, 1] : !tile.view<?x4xi32> -> tensor<32x4xi32>
  %24 = tile.slice %23 dim 1 offset 0 size 1 : tensor<32x4xi32>
  %25 = arith.subi %16, %24 : tensor<32x1xi32>
  %26 = tile.slice %23 dim 1 offset 3 size 1 : tensor<32x4xi32>
  %27 = arith.addi %25, %26 : tensor<32x1xi32>
  %cst_1 = arith.constant dense<[683565276, 512601642, 384397003, 288257087, 216162320, 162098872, 121557005, 91154895, 68356528, 51260164, 38439700, 28825709, 21616232, 16209887, 12155701, 9115489, 6835653, 5126016, 3843970, 2882571, 2161623, 1620989, 1215570, 911549, 683565, 512602, 384397, 288257, 216162, 162099, 121557, 91155]> : tensor<32xi32>
  %28 = tile.reshape %cst_1 : tensor<32xi32> to tensor<1x32xi32>
  %29 = tile.broadcast %28 : tensor<1x32xi32> to tensor<32x32xi32>
  %30 = tile.broadcast %27 : tensor<32x1xi32> to tensor<32x32xi32>
  %31 = arith.muli %29, %30 : tensor<32x32xi32>
  %32 = arith.sitofp %31 : tensor<32x32xi32> to tensor<32x32xf32>
  %cst_2 = arith.constant dense<1.46291812E-9> : tensor<32x32xf32>
  %33 = arith.mulf %32, %cst_2 : tensor<32x32xf32>
  %34 = math.cos %33 : tensor<32x32xf32>
  %35 = tile.reshape %34 : tensor<32x32xf32> to tensor<32x1x32xf32>
  %36 = tile.broadcast %35 : tensor<32x1x32xf32> to tensor<32x4x32xf32>
  %37 = math.sin %33 : tensor<32x32xf32>
  %38 = tile.reshape %37 : tensor<32x32xf32> to tensor<32x1x32xf32>
  %39 = tile.broadcast %38 : tensor<32x1x32xf32> to tensor<32x4x32xf32>
  %40 = tile.slice %12 dim 2 offset 0 size 32 : tensor<32x4x64xf32>
  %41 = tile.slice %12 dim 2 offset 32 size 32 : tensor<32x4x64xf32>
  %42 = arith.mulf %40, %36 : tensor<32x4x32xf32>
  %43 = arith.mulf %41, %39 : tensor<32x4x32xf32>
  %44 = arith.subf %42, %43 : tensor<32x4x32xf32>
  %45 = arith.mulf %41, %36 : tensor<32x4x32xf32>
  %46 = arith.mulf %40, %39 : tensor<32x4x32xf32>
  %47 = arith.addf %45, %46 : tensor<32x4x32xf32>
  %48 = tile.concat %44, %47 dim 2 : tensor<32x4x32xf32>, tensor<32x4x32xf32>
  tile.store %48, %arg4[%1, %c0, %c0] dims [0, 1, 2] limit(%2) : tensor<32x4x64xf32>, !tile.view<?x4x64xf32>
  tile.return
}
