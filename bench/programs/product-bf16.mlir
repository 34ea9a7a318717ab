// c = a bᵀ in bf16 with f32 sums, 4096 columns and depth.
!matrix = !tile.view<?x4096xbf16>
tile.program @product_bf16(%a: !matrix, %b: !tile.view<4096x4096xbf16>, %c: !matrix)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 128, 32)> order [parallel, parallel] {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c4096 = arith.constant 4096 : index
  %rowBlock = tile.id 0
  %columnBlock = tile.id 1
  %row = arith.muli %rowBlock, %c128 : index
  %column = arith.muli %columnBlock, %c128 : index
  %rows = tile.dim %c, 0 : !matrix
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %k = %c0 to %c4096 step %c64 iter_args(%acc = %zero) -> tensor<128x128xf32> {
    %x = tile.load %a[%row, %k] dims [0, 1] limit(%rows) : !matrix -> tensor<128x64xbf16>
    %w = tile.load %b[%column, %k] dims [0, 1] : !tile.view<4096x4096xbf16> -> tensor<128x64xbf16>
    %next = tile.dot %x, %w, %acc {transpose_b} : tensor<128x64xbf16>, tensor<128x64xbf16> -> tensor<128x128xf32>
    scf.yield %next : tensor<128x128xf32>
  }
  %y = arith.truncf %sum : tensor<128x128xf32> to tensor<128x128xbf16>
  tile.store %y, %c[%row, %column] dims [0, 1] limit(%rows) : tensor<128x128xbf16>, !matrix
  tile.return
}
