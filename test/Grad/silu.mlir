// The gradient of x · σ(x), from x.
// RUN: hybrid-opt %s -hybrid-differentiate | FileCheck %s

// CHECK-LABEL: func.func @backward(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<?x2x4xf32> {hybrid.role = "param"}, %[[DX:[a-z0-9]+]]: tensor<?x2x4xf32> {hybrid.role = "gradient"}
// CHECK:         %[[Y:.+]] = hybrid.silu %[[X]]
// CHECK:         %[[DY:.+]] = hybrid.fill 1.000000e+00
// CHECK:         %[[G:.+]] = hybrid.silu_grad %[[X]], %[[DY]]
// CHECK:         %[[SUM:.+]] = hybrid.add %[[DX]], %[[G]]
// CHECK:         return %[[Y]], %[[SUM]]
func.func @loss(%x: tensor<?x2x4xf32> {hybrid.role = "param"}) -> tensor<?x2x4xf32>
    attributes {hybrid.entry = "loss"} {
  %y = hybrid.silu %x : tensor<?x2x4xf32>
  return %y : tensor<?x2x4xf32>
}
