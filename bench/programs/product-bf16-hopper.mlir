// c = a bᵀ in bf16 with f32 sums, 8192 columns and depth: tiles of 128 x 256, a
// thread that loads four tiles of 64 of the depth ahead, two warpgroups that
// multiply. Groups of 16 row tiles share columns in the second-level cache.
!matrix = !tile.view<?x8192xbf16>
tile.program @product_bf16_hopper(%a: !matrix, %b: !tile.view<8192x8192xbf16>, %c: !matrix)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 128, 32)> order [parallel, parallel] {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %c8192 = arith.constant 8192 : index
  %rowBlock = tile.id 0
  %columnBlock = tile.id 1
  %row = arith.muli %rowBlock, %c128 : index
  %column = arith.muli %columnBlock, %c256 : index
  %rows = tile.dim %c, 0 : !matrix
  %inRows = tile.dim %a, 0 : !matrix
  %zero = arith.constant dense<0.0> : tensor<128x256xf32>
  %sum = scf.for %k = %c0 to %c8192 step %c64 iter_args(%acc = %zero) -> tensor<128x256xf32> {
    %x = tile.load %a[%row, %k] dims [0, 1] limit(%inRows) {tile.name = "load_a"} : !matrix -> tensor<128x64xbf16>
    %w = tile.load %b[%column, %k] dims [0, 1] {tile.name = "load_b"} : !tile.view<8192x8192xbf16> -> tensor<256x64xbf16>
    %next = tile.dot %x, %w, %acc {transpose_b, tile.name = "sum"} : tensor<128x64xbf16>, tensor<256x64xbf16> -> tensor<128x256xf32>
    scf.yield %next : tensor<128x256xf32>
  }
  %y = arith.truncf %sum : tensor<128x256xf32> to tensor<128x256xbf16>
  tile.store %y, %c[%row, %column] dims [0, 1] limit(%rows) : tensor<128x256xbf16>, !matrix
  tile.return
}
tile.schedule @product_bf16_hopper target("sm_90a")
    roles {load = {warpgroups = 1, registers = 24}, multiply = {warpgroups = 2, registers = 240}}
    ops {load_a = {role = "load", buffers = 4, barrier = "mbarrier"},
         load_b = {role = "load", buffers = 4, barrier = "mbarrier"},
         sum = {role = "multiply", wait = 1}}
    {hopper.traversal = array<i64: 1, 0>, hopper.group = 16}
