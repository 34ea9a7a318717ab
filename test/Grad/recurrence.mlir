// The adjoint of a recurrence gives a gradient for every operand that is there.
// RUN: hybrid-opt %s -hybrid-differentiate -split-input-file | FileCheck %s

!qk = tensor<?x2x4xf32>
!v = tensor<?x2x8xf32>

// CHECK-LABEL: func.func @backward(
// CHECK:         hybrid.recurrence delta %[[Q:.+]], %[[K:.+]], %[[V:.+]], %[[S:.+]] decay(%[[G:.+]]) beta(%[[B:.+]]) scale
// CHECK:         %[[DO:.+]] = hybrid.fill 1.000000e+00
// CHECK:         %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}:2 = hybrid.recurrence_grad delta %[[Q]], %[[K]], %[[V]], %[[S]], %[[DO]] decay(%[[G]]) beta(%[[B]]) scale 5.000000e-01 window 8 stride 4
// CHECK-COUNT-5: hybrid.add
func.func @loss(%q: !qk {hybrid.role = "param"}, %k: !qk {hybrid.role = "param"}, %v: !v {hybrid.role = "param"},
                %g: tensor<?x2x1xf32> {hybrid.role = "param"}, %b: tensor<?x2xf32> {hybrid.role = "param"}, %s: !hybrid.segments)
    -> !v attributes {hybrid.entry = "loss"} {
  %o = hybrid.recurrence delta %q, %k, %v, %s decay(%g) beta(%b) scale 5.000000e-01 window 8 stride 4
    : (!qk, !qk, !v, !hybrid.segments, tensor<?x2x1xf32>, tensor<?x2xf32>) -> !v
  return %o : !v
}

// -----

!qk = tensor<?x2x4xf32>
!v = tensor<?x2x8xf32>
!s = tensor<?x2x4x8xf32, #hybrid.slots>

// Only the final state is used: the output's gradient is zero, the state's flows
// into the first one.
// CHECK-LABEL: func.func @backward(
// CHECK-DAG:     %[[ONE:.+]] = hybrid.fill 1.000000e+00 : tensor<?x2x4x8xf32, #hybrid.slots>
// CHECK-DAG:     %[[ZERO:.+]] = hybrid.fill 0.000000e+00 : tensor<?x2x8xf32>
// CHECK:         hybrid.recurrence_grad additive %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}, %[[ZERO]] initial(%{{.+}}) dfinal(%[[ONE]])
func.func @loss(%k: !qk {hybrid.role = "param"}, %v: !v, %s: !hybrid.segments, %s0: !s)
    -> !s attributes {hybrid.entry = "loss"} {
  %o, %f = hybrid.recurrence additive %k, %k, %v, %s initial(%s0) scale 5.000000e-01
    : (!qk, !qk, !v, !hybrid.segments, !s) -> (!v, !s)
  return %f : !s
}
