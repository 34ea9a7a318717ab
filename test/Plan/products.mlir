// RUN: hybrid-opt %s -split-input-file --hybrid-print-plan -o /dev/null | FileCheck %s

// A product names the views of its factors and of its result.

#grid = affine_map<()[tokens, segments, longest, slots, context, depth] -> (tokens)>
tile.program @product(%a: !tile.view<?x8xf32>, %b: !tile.view<4x8xf32>, %c: !tile.view<?x4xf32>)
    grid #grid order [parallel] {
  tile.return
}

// CHECK:      "launches": [
// CHECK:        "kernel": 0,
// CHECK-NEXT:   "product": {
// CHECK-NEXT:     "a": 0,
// CHECK-NEXT:     "b": 1,
// CHECK-NEXT:     "c": 2,
// CHECK-NEXT:     "transpose_b": true
// CHECK-NEXT:   },
// CHECK-NEXT:   "views": [
func.func @project(%x: tensor<?x8xf32> {hybrid.role = "input", hybrid.path = "x"},
                   %w: tensor<4x8xf32> {hybrid.role = "param", hybrid.path = "w"})
    -> (tensor<?x4xf32> {hybrid.role = "output", hybrid.path = "y"})
    attributes {hybrid.entry = "project"} {
  %y = hybrid.dispatch @product(%x, %w) product(#hybrid.plain_product<transpose_b = true>)
      : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}

// -----

// A sum of parts stands for both launches, and is added where it is tied. What the
// parts are made of lives until the sum, where the product may be computed whole.

#grid = affine_map<()[tokens, segments, longest, slots, context, depth] -> (tokens)>
tile.program @make(%x: !tile.view<?x8xf32>) grid #grid order [parallel] {
  tile.return
}
tile.program @parts(%a: !tile.view<?x8xf32>, %b: !tile.view<?x8xf32>, %p: !tile.view<2x8x8xf32>)
    grid #grid order [parallel] {
  tile.return
}
tile.program @sum(%p: !tile.view<2x8x8xf32>, %g: !tile.view<8x8xf32>)
    grid #grid order [parallel] {
  tile.return
}

// CHECK:      "first": 1,
// CHECK-NEXT: "kind": "arena",
// CHECK-NEXT: "last": 2,
// CHECK:      "first": 0,
// CHECK-NEXT: "kind": "arena",
// CHECK-NEXT: "last": 2,
// CHECK:      "launches": [
// CHECK-NOT:    "product"
// CHECK:        "product": {
// CHECK-NEXT:     "a": 0,
// CHECK-NEXT:     "accumulate": true,
// CHECK-NEXT:     "b": 1,
// CHECK-NEXT:     "c": 1,
// CHECK-NEXT:     "parts": true,
// CHECK-NEXT:     "transpose_a": true
// CHECK-NEXT:   },
// CHECK-NOT:    "product"
func.func @gradient(%g: tensor<8x8xf32> {hybrid.role = "gradient", hybrid.path = "w"})
    -> (tensor<8x8xf32> {hybrid.role = "gradient", hybrid.path = "w"})
    attributes {hybrid.entry = "gradient"} {
  %x = hybrid.dispatch @make() : () -> tensor<?x8xf32>
  %p = hybrid.dispatch @parts(%x, %x)
      : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<2x8x8xf32>
  %s = hybrid.dispatch @sum(%p, %g) ties = [0, 1]
      product(#hybrid.plain_product<transpose_a = true, parts = true>)
      : (tensor<2x8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %s : tensor<8x8xf32>
}

// -----

// With a launch between parts and sum they are kernels, whoever runs the plan.

#grid = affine_map<()[tokens, segments, longest, slots, context, depth] -> (tokens)>
tile.program @parts(%a: !tile.view<?x8xf32>, %b: !tile.view<?x8xf32>, %p: !tile.view<2x8x8xf32>)
    grid #grid order [parallel] {
  tile.return
}
tile.program @sum(%p: !tile.view<2x8x8xf32>, %g: !tile.view<8x8xf32>)
    grid #grid order [parallel] {
  tile.return
}

// CHECK:     "launches": [
// CHECK-NOT:   "product"
func.func @apart(%x: tensor<?x8xf32> {hybrid.role = "input", hybrid.path = "x"})
    -> (tensor<8x8xf32> {hybrid.role = "output", hybrid.path = "a"},
        tensor<8x8xf32> {hybrid.role = "output", hybrid.path = "b"})
    attributes {hybrid.entry = "apart"} {
  %p = hybrid.dispatch @parts(%x, %x)
      : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<2x8x8xf32>
  %a = hybrid.dispatch @sum(%p) : (tensor<2x8x8xf32>) -> tensor<8x8xf32>
  %b = hybrid.dispatch @sum(%p) product(#hybrid.plain_product<transpose_a = true, parts = true>)
      : (tensor<2x8x8xf32>) -> tensor<8x8xf32>
  return %a, %b : tensor<8x8xf32>, tensor<8x8xf32>
}
