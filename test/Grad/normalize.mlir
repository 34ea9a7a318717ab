// The adjoint of a norm has its kind and epsilon.
// RUN: hybrid-opt %s -hybrid-differentiate | FileCheck %s

// CHECK-LABEL: func.func @backward(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<?x2x4xf32> {hybrid.role = "param"}, %[[DX:[a-z0-9]+]]: tensor<?x2x4xf32> {hybrid.role = "gradient"}
// CHECK:         %[[Y:.+]] = hybrid.normalize l2 %[[X]]
// CHECK:         %[[DY:.+]] = hybrid.fill 1.000000e+00
// CHECK:         %[[G:.+]] = hybrid.normalize_grad l2 %[[X]], %[[DY]] epsilon 1.000000e-03
// CHECK:         %[[SUM:.+]] = hybrid.add %[[DX]], %[[G]]
// CHECK:         return %[[Y]], %[[SUM]]
func.func @loss(%x: tensor<?x2x4xf32> {hybrid.role = "param"}) -> tensor<?x2x4xf32>
    attributes {hybrid.entry = "loss"} {
  %y = hybrid.normalize l2 %x epsilon 1.000000e-03 : tensor<?x2x4xf32>
  return %y : tensor<?x2x4xf32>
}
