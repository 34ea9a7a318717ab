// Gradients of a sum go to both operands; a stretched one gets the sum over what
// it was stretched along.
// RUN: hybrid-opt %s -hybrid-differentiate -split-input-file | FileCheck %s

// Over tokens and heads.
// CHECK-LABEL: func.func @backward(
// CHECK-SAME:    %[[A:[a-z0-9]+]]: tensor<?x2x4xf32> {{.*}}, %[[B:[a-z0-9]+]]: tensor<4xf32> {{.*}}, %[[DA:[a-z0-9]+]]: tensor<?x2x4xf32> {{.*}}, %[[DB:[a-z0-9]+]]: tensor<4xf32>
// CHECK:         %[[DY:.+]] = hybrid.fill 1.000000e+00
// CHECK:         %[[SUM:.+]] = hybrid.reduce_tokens %[[DY]] : tensor<?x2x4xf32> -> tensor<4xf32>
// CHECK-DAG:     %[[GA:.+]] = hybrid.add %[[DA]], %[[DY]]
// CHECK-DAG:     %[[GB:.+]] = hybrid.add %[[DB]], %[[SUM]]
// CHECK:         return %{{.+}}, %[[GA]], %[[GB]]
func.func @loss(%a: tensor<?x2x4xf32> {hybrid.role = "param"}, %b: tensor<4xf32> {hybrid.role = "param"})
    -> tensor<?x2x4xf32> attributes {hybrid.entry = "loss"} {
  %y = hybrid.add %a, %b : tensor<?x2x4xf32>, tensor<4xf32>
  return %y : tensor<?x2x4xf32>
}

// -----

// Over the channels of a head.
// CHECK-LABEL: func.func @backward(
// CHECK:         %[[DY:.+]] = hybrid.fill 1.000000e+00
// CHECK:         hybrid.reduce_dim %[[DY]] : tensor<?x2x4xf32> -> tensor<?x2x1xf32>
// CHECK-NOT:     hybrid.reduce_tokens
func.func @loss(%a: tensor<?x2x4xf32> {hybrid.role = "param"}, %b: tensor<?x2x1xf32> {hybrid.role = "param"})
    -> tensor<?x2x4xf32> attributes {hybrid.entry = "loss"} {
  %y = hybrid.add %a, %b : tensor<?x2x4xf32>, tensor<?x2x1xf32>
  return %y : tensor<?x2x4xf32>
}

// -----

// Over tokens and channels: a parameter per head.
// CHECK-LABEL: func.func @backward(
// CHECK:         %[[DY:.+]] = hybrid.fill 1.000000e+00
// CHECK:         %[[R:.+]] = hybrid.reduce_dim %[[DY]] : tensor<?x2x4xf32> -> tensor<?x2x1xf32>
// CHECK:         hybrid.reduce_tokens %[[R]] : tensor<?x2x1xf32> -> tensor<2x1xf32>
func.func @loss(%a: tensor<?x2x4xf32> {hybrid.role = "param"}, %b: tensor<2x1xf32> {hybrid.role = "param"})
    -> tensor<?x2x4xf32> attributes {hybrid.entry = "loss"} {
  %y = hybrid.add %a, %b : tensor<?x2x4xf32>, tensor<2x1xf32>
  return %y : tensor<?x2x4xf32>
}
