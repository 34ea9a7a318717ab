// The signature of backward, accumulation, and what is left alone.
// RUN: hybrid-opt %s -hybrid-differentiate -split-input-file -verify-diagnostics | FileCheck %s

// Gradients stand behind the parameters and before the rest; a parameter used
// twice is added to twice, one that is not used comes back as it was.
// CHECK-LABEL: func.func @loss
// CHECK-LABEL: func.func @backward(
// CHECK-SAME:    %[[W:[a-z0-9]+]]: tensor<8x4xf32> {hybrid.path = "embed.weight", hybrid.role = "param"},
// CHECK-SAME:    %[[U:[a-z0-9]+]]: tensor<4xf32> {hybrid.path = "unused", hybrid.role = "param"},
// CHECK-SAME:    %[[DW:[a-z0-9]+]]: tensor<8x4xf32> {hybrid.path = "embed.weight", hybrid.role = "gradient"},
// CHECK-SAME:    %[[DU:[a-z0-9]+]]: tensor<4xf32> {hybrid.path = "unused", hybrid.role = "gradient"},
// CHECK-SAME:    %[[IDS:[a-z0-9]+]]: tensor<?xi32> {hybrid.role = "ids"},
// CHECK-SAME:    %[[LABELS:[a-z0-9]+]]: tensor<?xi32> {hybrid.role = "labels"},
// CHECK-SAME:    %[[WEIGHTS:[a-z0-9]+]]: tensor<?xf32> {hybrid.role = "weights"})
// CHECK-SAME:    -> (tensor<?xf32> {hybrid.role = "loss"}, tensor<8x4xf32> {hybrid.path = "embed.weight", hybrid.role = "gradient"}, tensor<4xf32> {hybrid.path = "unused", hybrid.role = "gradient"})
// CHECK-SAME:    attributes {hybrid.entry = "backward"}
// CHECK-NEXT:    %[[X:.+]] = hybrid.embed %[[IDS]], %[[W]]
// CHECK-NEXT:    %[[Y:.+]] = hybrid.product %[[X]], %[[W]] transpose_b
// CHECK-NEXT:    %[[LOSS:.+]] = hybrid.cross_entropy %[[Y]], %[[LABELS]], %[[WEIGHTS]]
// CHECK-NEXT:    %[[DY:.+]] = hybrid.cross_entropy_grad %[[Y]], %[[LABELS]], %[[WEIGHTS]]
// CHECK-NEXT:    %[[DX:.+]] = hybrid.product %[[DY]], %[[W]]
// CHECK-NEXT:    %[[G1:.+]] = hybrid.product %[[DY]], %[[X]] transpose_a
// CHECK-NEXT:    %[[A1:.+]] = hybrid.add %[[DW]], %[[G1]]
// CHECK-NEXT:    %[[G2:.+]] = hybrid.embed_grad %[[IDS]], %[[DX]]
// CHECK-NEXT:    %[[A2:.+]] = hybrid.add %[[A1]], %[[G2]]
// CHECK-NEXT:    return %[[LOSS]], %[[A2]], %[[DU]]
func.func @loss(%w: tensor<8x4xf32> {hybrid.role = "param", hybrid.path = "embed.weight"},
                %u: tensor<4xf32> {hybrid.role = "param", hybrid.path = "unused"},
                %ids: tensor<?xi32> {hybrid.role = "ids"}, %labels: tensor<?xi32> {hybrid.role = "labels"},
                %weights: tensor<?xf32> {hybrid.role = "weights"})
    -> (tensor<?xf32> {hybrid.role = "loss"}) attributes {hybrid.entry = "loss"} {
  %x = hybrid.embed %ids, %w : (tensor<?xi32>, tensor<8x4xf32>) -> tensor<?x4xf32>
  %y = hybrid.product %x, %w transpose_b : (tensor<?x4xf32>, tensor<8x4xf32>) -> tensor<?x8xf32>
  %loss = hybrid.cross_entropy %y, %labels, %weights : (tensor<?x8xf32>, tensor<?xi32>, tensor<?xf32>) -> tensor<?xf32>
  return %loss : tensor<?xf32>
}

// -----

// Fan-out: the gradients of both uses are summed. Nothing is computed for what
// no parameter reaches.
// CHECK-LABEL: func.func @backward(
// CHECK:         %[[DY:.+]] = hybrid.fill
// CHECK:         %[[DS:.+]] = hybrid.silu_grad %{{.+}}, %[[DY]]
// CHECK:         %[[DX:.+]] = hybrid.add %[[DY]], %[[DS]]
// CHECK:         hybrid.neg %[[DX]]
// CHECK-NOT:     hybrid.softplus_grad
func.func @loss(%p: tensor<?x4xf32> {hybrid.role = "param"}, %c: tensor<?x4xf32>)
    -> tensor<?x4xf32> attributes {hybrid.entry = "loss"} {
  %d = hybrid.softplus %c : tensor<?x4xf32>
  %x = hybrid.neg %p : tensor<?x4xf32>
  %s = hybrid.silu %x : tensor<?x4xf32>
  %y = hybrid.add %x, %s : tensor<?x4xf32>, tensor<?x4xf32>
  %z = hybrid.add %y, %d : tensor<?x4xf32>, tensor<?x4xf32>
  return %z : tensor<?x4xf32>
}

// -----

// No loss, nothing to do.
// CHECK-LABEL: func.func @extend
// CHECK-NOT:   @backward
func.func @extend(%x: tensor<?x4xf32> {hybrid.role = "param"}) -> tensor<?x4xf32> attributes {hybrid.entry = "extend"} {
  %y = hybrid.silu %x : tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}

// -----

// expected-error @+1 {{is differentiated already; remove backward to make it again}}
func.func @loss(%x: tensor<?xf32>) -> tensor<?xf32> attributes {hybrid.entry = "loss"} {
  return %x : tensor<?xf32>
}
// expected-note @+1 {{backward is here}}
func.func @backward(%x: tensor<?xf32>) -> tensor<?xf32> attributes {hybrid.entry = "backward"} {
  return %x : tensor<?xf32>
}

// -----

// expected-error @+1 {{returns 2 values, but loss returns 1: the loss per token}}
func.func @loss(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) attributes {hybrid.entry = "loss"} {
  return %x, %x : tensor<?xf32>, tensor<?xf32>
}
