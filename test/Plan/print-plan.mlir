// RUN: hybrid-opt %s --hybrid-print-plan --split-input-file -o /dev/null | FileCheck %s

// A product into the arena, then a row-wise program into the caller's logits.

#grid = affine_map<()[tokens, segments, longest, slots, context, depth]
                   -> (tokens ceildiv 64)>
tile.program @product(%x: !tile.view<?x64xf32>, %w: !tile.view<32x64xf32>,
                      %y: !tile.view<?x32xf32>) grid #grid order [parallel] {
  tile.return
}
tile.program @rows(%x: !tile.view<?x32xf32>, %t: !tile.view<?x4xi32>,
                   %s: !tile.view<?xi32>, %y: !tile.view<?x32xf32>)
    grid #grid order [parallel] {
  tile.return
}

// CHECK-LABEL: "extend_all": {
// CHECK:       "buffers": [
// CHECK:         "kind": "state",
// CHECK:         "kind": "param",
// CHECK-NEXT:    "name": "layers.0.mixer.q_proj.weight",
// CHECK-NEXT:    "path": "layers.0.mixer.q_proj.weight",
// CHECK-NEXT:    "sizes": [
// CHECK-NEXT:      32,
// CHECK-NEXT:      64
// CHECK:         "kind": "segment_table",
// CHECK:         "kind": "token_segment",
// CHECK:         "kind": "logits",
// CHECK:         "first": 0,
// CHECK-NEXT:    "kind": "arena",
// CHECK-NEXT:    "last": 1,
// CHECK-NEXT:    "name": "layers.0.mixer.q_proj",
// CHECK-NEXT:    "sizes": [
// CHECK-NEXT:      "tokens",
// CHECK-NEXT:      32
// CHECK-NEXT:    ],
// CHECK-NEXT:    "type": "f32"
// CHECK:       "launches": [
// CHECK:         "guard": null,
// CHECK-NEXT:    "kernel": 0,
// CHECK:         "layer": 0,
// CHECK-NEXT:    "op": "mixer.q_proj"
// CHECK:         "kernel": 1,
// CHECK:         "layer": -1,
// CHECK-NEXT:    "op": "head"
// CHECK:       "kernels": [
// CHECK:         "grid": [
// CHECK-NEXT:      [
// CHECK-NEXT:        "ceildiv",
// CHECK-NEXT:        "tokens",
// CHECK-NEXT:        64
// CHECK:         "parallel": [
// CHECK-NEXT:      true
func.func @extend_all(
    %x: tensor<?x64xf32, #hybrid.slots> {hybrid.role = "state", hybrid.path = "s"},
    %w: tensor<32x64xf32> {hybrid.role = "param",
                           hybrid.path = "layers.0.mixer.q_proj.weight"},
    %segments: !hybrid.segments {hybrid.role = "segments"})
    -> (tensor<?x32xf32> {hybrid.role = "logits"})
    attributes {hybrid.entry = "extend_all"} {
  %0 = hybrid.dispatch @product(%x, %w)
      : (tensor<?x64xf32, #hybrid.slots>, tensor<32x64xf32>) -> tensor<?x32xf32>
      loc("layers.0.mixer.q_proj")
  %1 = hybrid.dispatch @rows(%0, %segments)
      : (tensor<?x32xf32>, !hybrid.segments) -> tensor<?x32xf32> loc("head")
  return %1 : tensor<?x32xf32>
}
