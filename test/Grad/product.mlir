// Gradients of a product, for each way its operands are transposed.
// RUN: hybrid-opt %s -hybrid-differentiate -split-input-file | FileCheck %s

// x · Wᵀ: dx = dy · W, dW = dyᵀ · x.
// CHECK-LABEL: func.func @backward(
// CHECK-SAME:    %[[A:[a-z0-9]+]]: tensor<?x4xf32> {{.*}}, %[[B:[a-z0-9]+]]: tensor<8x4xf32> {{.*}}, %[[DA:[a-z0-9]+]]: tensor<?x4xf32>
// CHECK:         %[[DY:.+]] = hybrid.fill 1.000000e+00
// CHECK:         hybrid.product %[[DY]], %[[B]] : (tensor<?x8xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
// CHECK:         hybrid.product %[[DY]], %[[A]] transpose_a : (tensor<?x8xf32>, tensor<?x4xf32>) -> tensor<8x4xf32>
func.func @loss(%a: tensor<?x4xf32> {hybrid.role = "param"}, %b: tensor<8x4xf32> {hybrid.role = "param"})
    -> tensor<?x8xf32> attributes {hybrid.entry = "loss"} {
  %y = hybrid.product %a, %b transpose_b : (tensor<?x4xf32>, tensor<8x4xf32>) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func.func @backward(
// CHECK-SAME:    %[[A:[a-z0-9]+]]: tensor<?x4xf32> {{.*}}, %[[B:[a-z0-9]+]]: tensor<4x8xf32> {{.*}}, %[[DA:[a-z0-9]+]]: tensor<?x4xf32>
// CHECK:         %[[DY:.+]] = hybrid.fill 1.000000e+00
// CHECK:         hybrid.product %[[DY]], %[[B]] transpose_b :
// CHECK:         hybrid.product %[[A]], %[[DY]] transpose_a :
func.func @loss(%a: tensor<?x4xf32> {hybrid.role = "param"}, %b: tensor<4x8xf32> {hybrid.role = "param"})
    -> tensor<?x8xf32> attributes {hybrid.entry = "loss"} {
  %y = hybrid.product %a, %b : (tensor<?x4xf32>, tensor<4x8xf32>) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

// CHECK-LABEL: func.func @backward(
// CHECK-SAME:    %[[A:[a-z0-9]+]]: tensor<4x2xf32> {{.*}}, %[[B:[a-z0-9]+]]: tensor<4x8xf32> {{.*}}, %[[DA:[a-z0-9]+]]: tensor<4x2xf32>
// CHECK:         %[[DY:.+]] = hybrid.fill 1.000000e+00
// CHECK:         hybrid.product %[[B]], %[[DY]] transpose_b :
// CHECK:         hybrid.product %[[A]], %[[DY]] : (tensor<4x2xf32>
func.func @loss(%a: tensor<4x2xf32> {hybrid.role = "param"}, %b: tensor<4x8xf32> {hybrid.role = "param"})
    -> tensor<2x8xf32> attributes {hybrid.entry = "loss"} {
  %y = hybrid.product %a, %b transpose_a : (tensor<4x2xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// CHECK-LABEL: func.func @backward(
// CHECK-SAME:    %[[A:[a-z0-9]+]]: tensor<4x2xf32> {{.*}}, %[[B:[a-z0-9]+]]: tensor<8x4xf32> {{.*}}, %[[DA:[a-z0-9]+]]: tensor<4x2xf32>
// CHECK:         %[[DY:.+]] = hybrid.fill 1.000000e+00
// CHECK:         hybrid.product %[[B]], %[[DY]] transpose_a transpose_b :
// CHECK:         hybrid.product %[[DY]], %[[A]] transpose_a transpose_b :
func.func @loss(%a: tensor<4x2xf32> {hybrid.role = "param"}, %b: tensor<8x4xf32> {hybrid.role = "param"})
    -> tensor<2x8xf32> attributes {hybrid.entry = "loss"} {
  %y = hybrid.product %a, %b transpose_a transpose_b : (tensor<4x2xf32>, tensor<8x4xf32>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}
