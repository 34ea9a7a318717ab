// The gradient of a slice has zeros where the slice did not read.
// RUN: hybrid-opt %s -hybrid-differentiate -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @backward(
// CHECK:         %[[DY:.+]] = hybrid.fill 1.000000e+00 : tensor<?x2x4xf32>
// CHECK:         %[[BEFORE:.+]] = hybrid.fill 0.000000e+00 : tensor<?x1x4xf32>
// CHECK:         %[[AFTER:.+]] = hybrid.fill 0.000000e+00 : tensor<?x3x4xf32>
// CHECK:         hybrid.concat %[[BEFORE]], %[[DY]], %[[AFTER]] dim 1
// CHECK-SAME:      -> tensor<?x6x4xf32>
func.func @loss(%x: tensor<?x6x4xf32> {hybrid.role = "param"}) -> tensor<?x2x4xf32>
    attributes {hybrid.entry = "loss"} {
  %y = hybrid.slice %x dim 1 from 1 size 2 : tensor<?x6x4xf32> -> tensor<?x2x4xf32>
  return %y : tensor<?x2x4xf32>
}

// -----

// A slice of everything needs none.
// CHECK-LABEL: func.func @backward(
// CHECK-NOT:     hybrid.concat
func.func @loss(%x: tensor<?x6x4xf32> {hybrid.role = "param"}) -> tensor<?x6x4xf32>
    attributes {hybrid.entry = "loss"} {
  %y = hybrid.slice %x dim 1 from 0 size 6 : tensor<?x6x4xf32> -> tensor<?x6x4xf32>
  return %y : tensor<?x6x4xf32>
}
