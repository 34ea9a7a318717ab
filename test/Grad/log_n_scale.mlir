// Scaling rows by their position is its own adjoint.
// RUN: hybrid-opt %s -hybrid-differentiate | FileCheck %s

// CHECK-LABEL: func.func @backward(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<?x2x4xf32> {hybrid.role = "param"}, %[[DX:[a-z0-9]+]]: tensor<?x2x4xf32> {hybrid.role = "gradient"}
// CHECK:         %[[Y:.+]] = hybrid.log_n_scale %[[X]], %[[S:.+]] trained 16
// CHECK:         %[[DY:.+]] = hybrid.fill 1.000000e+00
// CHECK:         %[[G:.+]] = hybrid.log_n_scale %[[DY]], %[[S]] trained 16
// CHECK:         %[[SUM:.+]] = hybrid.add %[[DX]], %[[G]]
// CHECK:         return %[[Y]], %[[SUM]]
func.func @loss(%x: tensor<?x2x4xf32> {hybrid.role = "param"}, %s: !hybrid.segments) -> tensor<?x2x4xf32>
    attributes {hybrid.entry = "loss"} {
  %y = hybrid.log_n_scale %x, %s trained 16 : tensor<?x2x4xf32>
  return %y : tensor<?x2x4xf32>
}
