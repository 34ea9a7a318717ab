// RUN: hybrid-opt %s -hybrid-cpu-lower-programs -hybrid-cpu-expand-math -split-input-file -verify-diagnostics

func.func @unknown_function(%x: f32) -> f32 {
  // expected-error @+1 {{has no expansion for 'f32' on the CPU; write it with exp, log and arithmetic on f32}}
  %0 = math.atan %x : f32
  return %0 : f32
}

// -----

tile.program @exchange(%x: !tile.view<2x16xf32>, %y: !tile.view<2x16xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (1)> order [parallel] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = tile.load %x[%c0, %c0] dims [0, 1] : !tile.view<2x16xf32> -> tensor<1x16xf32>
  %b = tile.load %x[%c1, %c0] dims [0, 1] : !tile.view<2x16xf32> -> tensor<1x16xf32>
  %r:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%u = %a, %v = %b) -> (tensor<1x16xf32>, tensor<1x16xf32>) {
    // expected-error @+1 {{hands tile 1 of the loop over as tile 0, which the CPU cannot do in place; write a new tile, such as its sum with 0}}
    scf.yield %v, %u : tensor<1x16xf32>, tensor<1x16xf32>
  }
  tile.store %r#0, %y[%c0, %c0] dims [0, 1] : tensor<1x16xf32>, !tile.view<2x16xf32>
  tile.return
}

// -----

tile.program @narrow_product(%x: !tile.view<1x16xbf16>, %w: !tile.view<4x16xbf16>, %y: !tile.view<1x4xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (1)> order [parallel] {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%c0, %c0] dims [0, 1] : !tile.view<1x16xbf16> -> tensor<1x16xbf16>
  %b = tile.load %w[%c0, %c0] dims [0, 1] : !tile.view<4x16xbf16> -> tensor<4x16xbf16>
  %zero = arith.constant 0.0 : f32
  %start = tile.splat %zero : tensor<1x4xf32>
  // expected-error @+1 {{multiplies tiles of 'bf16', the CPU multiplies f32; widen them with arith.extf}}
  %s = tile.dot %a, %b, %start {transpose_b} : tensor<1x16xbf16>, tensor<4x16xbf16> -> tensor<1x4xf32>
  tile.store %s, %y[%c0, %c0] dims [0, 1] : tensor<1x4xf32>, !tile.view<1x4xf32>
  tile.return
}
