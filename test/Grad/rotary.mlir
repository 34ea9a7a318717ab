// The adjoint of a rotation is the rotation back.
// RUN: hybrid-opt %s -hybrid-differentiate | FileCheck %s

// CHECK-LABEL: func.func @backward(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<?x2x4xf32> {hybrid.role = "param"}, %[[DX:[a-z0-9]+]]: tensor<?x2x4xf32> {hybrid.role = "gradient"}
// CHECK:         %[[Y:.+]] = hybrid.rotary %[[X]], %[[S:.+]] base 1.000000e+04 dim 4 ntk 2.000000e+00 original 16 :
// CHECK:         %[[DY:.+]] = hybrid.fill 1.000000e+00
// CHECK:         %[[G:.+]] = hybrid.rotary %[[DY]], %[[S]] base 1.000000e+04 dim 4 ntk 2.000000e+00 original 16 inverse
// CHECK:         %[[SUM:.+]] = hybrid.add %[[DX]], %[[G]]
// CHECK:         return %[[Y]], %[[SUM]]
func.func @loss(%x: tensor<?x2x4xf32> {hybrid.role = "param"}, %s: !hybrid.segments) -> tensor<?x2x4xf32>
    attributes {hybrid.entry = "loss"} {
  %y = hybrid.rotary %x, %s base 1.000000e+04 dim 4 ntk 2.000000e+00 original 16 : tensor<?x2x4xf32>
  return %y : tensor<?x2x4xf32>
}
