// A grouped product: the rows of segment s are multiplied by the matrix of its
// slot. By definition it is the read-out of an additive recurrence whose keys
// are 0, so that its state stays what it was.
//
// RUN: tile-against-oracle %s --lengths=0,1,130,64,17

!x = tensor<?x1x256xf32>
!y = tensor<?x1x192xf32>
!w = tensor<?x1x256x192xf32, #hybrid.slots>

func.func @definition(%x: !x, %w: !w, %segments: !hybrid.segments) -> !y {
  %k = hybrid.fill 0.0 : !x
  %v = hybrid.fill 0.0 : !y
  %y, %same = hybrid.recurrence additive %x, %k, %v, %segments initial(%w) scale 1.0
      : (!x, !x, !y, !hybrid.segments, !w) -> (!y, !w)
  return %y : !y
}

func.func @dispatched(%x: !x, %w: !w, %segments: !hybrid.segments) -> !y {
  %a = hybrid.reshape %x : !x -> tensor<?x256xf32>
  %b = hybrid.reshape %w : !w -> tensor<?x256x192xf32, #hybrid.slots>
  %c = hybrid.dispatch @grouped_product(%a, %b, %segments)
      : (tensor<?x256xf32>, tensor<?x256x192xf32, #hybrid.slots>, !hybrid.segments)
      -> tensor<?x192xf32>
  %y = hybrid.reshape %c : tensor<?x192xf32> -> !y
  return %y : !y
}

// Blocks walk over (segment, row tile) pairs of the table, so that segments of
// very unlike lengths fill the card alike.
tile.schedule @grouped_product target("sm_90a")
    roles {producer = {warpgroups = 1, registers = 40},
           consumer = {warpgroups = 2, registers = 232}}
    ops {load_a = {role = "producer", stage = 0, buffers = 4, barrier = "mbarrier"},
         load_b = {role = "producer", stage = 0, buffers = 4, barrier = "mbarrier"},
         product = {role = "consumer", stage = 1, issue = 0, operand = "shared", wait = 1}}

tile.program @grouped_product(%arg0: !tile.view<?x256xf32>, %arg1: !tile.view<?x256x192xf32>, %arg2: !tile.view<?x4xi32>, %arg3: !tile.view<?xi32>, %arg4: !tile.view<?x192xf32>) grid affine_map<()[s0, s1, s2, s3, s4, s5] -> (s1, s2 ceildiv 128, 2)> order [parallel, parallel, parallel] {
  %c16 = arith.constant 16 : index
  %c256 = arith.constant 256 : index
  %c96 = arith.constant 96 : index
  %c3 = arith.constant 3 : index
  %c2 = arith.constant 2 : index
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %0 = tile.id 0
  %1 = tile.load_scalar %arg2[%0, %c0] : !tile.view<?x4xi32>
  %2 = arith.index_cast %1 : i32 to index
  %3 = tile.load_scalar %arg2[%0, %c1] : !tile.view<?x4xi32>
  %4 = arith.index_cast %3 : i32 to index
  %5 = tile.load_scalar %arg2[%0, %c2] : !tile.view<?x4xi32>
  %6 = arith.index_cast %5 : i32 to index
  %7 = tile.load_scalar %arg2[%0, %c3] : !tile.view<?x4xi32>
  %8 = arith.index_cast %7 : i32 to index
  %9 = tile.id 1
  %10 = arith.muli %9, %c128 : index
  %11 = arith.addi %2, %10 : index
  %12 = tile.id 2
  %13 = arith.muli %12, %c96 : index
  %14 = arith.addi %11, %c128 : index
  %15 = arith.cmpi sle, %14, %4 : index
  scf.if %15 {
    %cst = arith.constant dense<0.000000e+00> : tensor<128x96xf32>
    %17 = scf.for %arg5 = %c0 to %c256 step %c128 iter_args(%arg6 = %cst) -> (tensor<128x96xf32>) {
      %load_a = tile.load %arg0[%11, %arg5] dims [0, 1] {tile.name = "load_a"} : !tile.view<?x256xf32> -> tensor<128x128xf32>
      %load_b = tile.load %arg1[%6, %arg5, %13] dims [1, 2] {tile.name = "load_b"} : !tile.view<?x256x192xf32> -> tensor<128x96xf32>
      %product = tile.dot %load_a, %load_b, %arg6 {tile.name = "product"} : tensor<128x128xf32>, tensor<128x96xf32> -> tensor<128x96xf32>
      scf.yield %product : tensor<128x96xf32>
    }
    tile.store %17, %arg4[%11, %13] dims [0, 1] : tensor<128x96xf32>, !tile.view<?x192xf32>
  }
  %16 = arith.cmpi slt, %4, %14 : index
  scf.if %16 {
    scf.for %arg5 = %11 to %4 step %c16 {
      %cst = arith.constant dense<0.000000e+00> : tensor<16x96xf32>
      %17 = scf.for %arg6 = %c0 to %c256 step %c128 iter_args(%arg7 = %cst) -> (tensor<16x96xf32>) {
        %load_a_tail = tile.load %arg0[%arg5, %arg6] dims [0, 1] limit(%4) {tile.name = "load_a_tail"} : !tile.view<?x256xf32> -> tensor<16x128xf32>
        %load_b_tail = tile.load %arg1[%6, %arg6, %13] dims [1, 2] {tile.name = "load_b_tail"} : !tile.view<?x256x192xf32> -> tensor<128x96xf32>
        %product_tail = tile.dot %load_a_tail, %load_b_tail, %arg7 {tile.name = "product_tail"} : tensor<16x128xf32>, tensor<128x96xf32> -> tensor<16x96xf32>
        scf.yield %product_tail : tensor<16x96xf32>
      }
      tile.store %17, %arg4[%arg5, %13] dims [0, 1] limit(%4) : tensor<16x96xf32>, !tile.view<?x192xf32>
    }
  }
  tile.return
}
