// With recompute=selective row-wise operations are computed again; products,
// attention and recurrences are kept, with what their adjoints read made again.
// RUN: hybrid-opt %s -split-input-file -verify-diagnostics -hybrid-differentiate=recompute=selective | FileCheck %s

#l0 = loc("layers.0.mlp"("m.mlir":2:1))

// CHECK-LABEL: func.func @backward(
// CHECK:         %[[S:.+]] = hybrid.silu %[[X:.+]] : tensor<?x8xf32>
// CHECK-NEXT:    %[[U:.+]] = hybrid.product %[[S]], %[[W:.+]] transpose_b :
// CHECK-NEXT:    %[[E:.+]] = hybrid.exp %[[U]] :
// CHECK-NEXT:    %[[D:.+]] = hybrid.fill
// The activations again: from the input, and from the product that was kept.
// CHECK-NEXT:    %[[S2:.+]] = hybrid.silu %[[X]] {hybrid.recompute}
// CHECK-NEXT:    %[[E2:.+]] = hybrid.exp %[[U]] {hybrid.recompute}
// CHECK-NEXT:    %[[DU:.+]] = hybrid.mul %[[D]], %[[E2]]
// CHECK-NEXT:    hybrid.product %[[DU]], %[[W]] :
// CHECK-NEXT:    hybrid.product %[[DU]], %[[S2]] transpose_a
// CHECK-NOT:     hybrid.recompute
// CHECK:         return %[[E]]
func.func @loss(%x: tensor<?x8xf32> {hybrid.role = "param", hybrid.path = "x"}, %w: tensor<8x8xf32> {hybrid.role = "param", hybrid.path = "w"})
    -> tensor<?x8xf32> attributes {hybrid.entry = "loss"} {
  %s = hybrid.silu %x : tensor<?x8xf32> loc(#l0)
  %u = hybrid.product %s, %w transpose_b : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32> loc(#l0)
  %e = hybrid.exp %u : tensor<?x8xf32> loc(#l0)
  return %e : tensor<?x8xf32>
}

// -----

#mixer = loc("layers.0.mixer"("m.mlir":3:1))

// What attention gave is kept, and its adjoint reads that.
// CHECK-LABEL: func.func @backward(
// CHECK:         %[[O:.+]], %[[LSE:.+]] = hybrid.attention
// CHECK-NOT:     hybrid.attention %
// CHECK:         %[[Q:.+]] = hybrid.neg %{{.+}} {hybrid.recompute}
// CHECK-NOT:     hybrid.attention %
// CHECK:         hybrid.attention_grad %[[Q]], %{{.+}}, %{{.+}}, %[[O]], %[[LSE]],
func.func @loss(%x: tensor<?x2x8xf32> {hybrid.role = "param", hybrid.path = "x"}, %segments: !hybrid.segments {hybrid.role = "segments"})
    -> tensor<?x2x8xf32> attributes {hybrid.entry = "loss"} {
  %q = hybrid.neg %x : tensor<?x2x8xf32> loc(#mixer)
  %o, %l = hybrid.attention %q, %x, %x, %segments scale 1.0 windows [0, 0] sinks [0, 0]
      : (tensor<?x2x8xf32>, tensor<?x2x8xf32>, tensor<?x2x8xf32>, !hybrid.segments) -> (tensor<?x2x8xf32>, tensor<?x2xf32>) loc(#mixer)
  return %o : tensor<?x2x8xf32>
}

// -----

#l0 = loc("layers.0.mlp"("m.mlir":2:1))

// A function that chooses for itself is not asked again.
// CHECK-LABEL: func.func @backward(
// CHECK-NOT:     {hybrid.recompute}
// CHECK:         return
func.func @loss(%x: tensor<?x8xf32> {hybrid.role = "param", hybrid.path = "x"})
    -> tensor<?x8xf32> attributes {hybrid.entry = "loss", hybrid.recompute = "none"} {
  %s = hybrid.silu %x : tensor<?x8xf32> loc(#l0)
  %e = hybrid.exp %s : tensor<?x8xf32> loc(#l0)
  return %e : tensor<?x8xf32>
}

// -----

// expected-error @+1 {{hybrid.recompute is "some"; write "none", "layer" or "selective"}}
func.func @loss(%x: tensor<?x8xf32> {hybrid.role = "param", hybrid.path = "x"})
    -> tensor<?x8xf32> attributes {hybrid.entry = "loss", hybrid.recompute = "some"} {
  return %x : tensor<?x8xf32>
}
