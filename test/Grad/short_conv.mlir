// The adjoint of a convolution gives the gradients of rows and weight.
// RUN: hybrid-opt %s -hybrid-differentiate -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @backward(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<?x8xf32> {{.*}}, %[[W:[a-z0-9]+]]: tensor<8x4xf32> {{.*}}, %[[DX:[a-z0-9]+]]: tensor<?x8xf32> {{.*}}, %[[DW:[a-z0-9]+]]: tensor<8x4xf32>
// CHECK-SAME:    %[[S:[a-z0-9]+]]: !hybrid.segments
// CHECK:         %[[DY:.+]] = hybrid.fill 1.000000e+00
// CHECK:         %[[GX:.+]], %[[GW:.+]] = hybrid.short_conv_grad %[[X]], %[[W]], %[[S]], %[[DY]]
// CHECK-DAG:     hybrid.add %[[DX]], %[[GX]]
// CHECK-DAG:     hybrid.add %[[DW]], %[[GW]]
func.func @loss(%x: tensor<?x8xf32> {hybrid.role = "param"}, %w: tensor<8x4xf32> {hybrid.role = "param"}, %s: !hybrid.segments)
    -> tensor<?x8xf32> attributes {hybrid.entry = "loss"} {
  %y = hybrid.short_conv %x, %w, %s : (tensor<?x8xf32>, tensor<8x4xf32>, !hybrid.segments) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

func.func @loss(%x: tensor<?x8xf32> {hybrid.role = "param"}, %w: tensor<8x4xf32>, %s: !hybrid.segments,
                %state: tensor<?x3x8xf32, #hybrid.slots>)
    -> tensor<?x8xf32> attributes {hybrid.entry = "loss"} {
  // expected-error @+1 {{with a state has no adjoint; differentiate a function without states}}
  %y, %n = hybrid.short_conv %x, %w, %s state(%state)
    : (tensor<?x8xf32>, tensor<8x4xf32>, !hybrid.segments, tensor<?x3x8xf32, #hybrid.slots>)
    -> (tensor<?x8xf32>, tensor<?x3x8xf32, #hybrid.slots>)
  return %y : tensor<?x8xf32>
}
