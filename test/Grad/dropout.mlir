// What was left out passes no gradient, what was kept is scaled alike: the same
// operation with the same key.
// RUN: hybrid-opt %s -hybrid-differentiate | FileCheck %s

// CHECK-LABEL: func.func @backward(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<?x2x4xf32> {hybrid.role = "param"}, %[[DX:[a-z0-9]+]]: tensor<?x2x4xf32> {hybrid.role = "gradient"}
// CHECK-SAME:    %[[KEY:[a-z0-9]+]]: tensor<1xi32>
// CHECK:         %[[Y:.+]] = hybrid.dropout %[[X]], %[[KEY]] rate 1.000000e-01
// CHECK:         %[[DY:.+]] = hybrid.fill 1.000000e+00
// CHECK:         %[[G:.+]] = hybrid.dropout %[[DY]], %[[KEY]] rate 1.000000e-01
// CHECK:         %[[SUM:.+]] = hybrid.add %[[DX]], %[[G]]
// CHECK:         return %[[Y]], %[[SUM]]
func.func @loss(%x: tensor<?x2x4xf32> {hybrid.role = "param"}, %key: tensor<1xi32> {hybrid.role = "random_key", hybrid.path = "x"})
    -> tensor<?x2x4xf32> attributes {hybrid.entry = "loss"} {
  %y = hybrid.dropout %x, %key rate 1.000000e-01 : tensor<?x2x4xf32>
  return %y : tensor<?x2x4xf32>
}
