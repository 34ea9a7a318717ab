// Each part of a concatenation gets its slice of the gradient.
// RUN: hybrid-opt %s -hybrid-differentiate | FileCheck %s

// CHECK-LABEL: func.func @backward(
// CHECK:         %[[DY:.+]] = hybrid.fill 1.000000e+00 : tensor<?x6xf32>
// CHECK:         hybrid.slice %[[DY]] dim 1 from 0 size 4
// CHECK:         hybrid.slice %[[DY]] dim 1 from 4 size 2
func.func @loss(%a: tensor<?x4xf32> {hybrid.role = "param"}, %b: tensor<?x2xf32> {hybrid.role = "param"})
    -> tensor<?x6xf32> attributes {hybrid.entry = "loss"} {
  %y = hybrid.concat %a, %b dim 1 : (tensor<?x4xf32>, tensor<?x2xf32>) -> tensor<?x6xf32>
  return %y : tensor<?x6xf32>
}
