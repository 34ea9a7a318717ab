// The gradient of a reshape is reshaped back.
// RUN: hybrid-opt %s -hybrid-differentiate | FileCheck %s

// CHECK-LABEL: func.func @backward(
// CHECK:         %[[DY:.+]] = hybrid.fill 1.000000e+00 : tensor<?x2x4xf32>
// CHECK:         hybrid.reshape %[[DY]] : tensor<?x2x4xf32> -> tensor<?x8xf32>
func.func @loss(%x: tensor<?x8xf32> {hybrid.role = "param"}) -> tensor<?x2x4xf32>
    attributes {hybrid.entry = "loss"} {
  %y = hybrid.reshape %x : tensor<?x8xf32> -> tensor<?x2x4xf32>
  return %y : tensor<?x2x4xf32>
}
