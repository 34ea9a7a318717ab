// The adjoint of attention takes its output and log-sum-exp, and its masks.
// RUN: hybrid-opt %s -hybrid-differentiate -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @backward(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: tensor<?x2x4xf32> {{.*}}, %[[K:[a-z0-9]+]]: tensor<?x1x4xf32> {{.*}}, %[[V:[a-z0-9]+]]: tensor<?x1x8xf32> {{.*}}, %[[DQ:[a-z0-9]+]]: tensor<?x2x4xf32> {{.*}}, %[[DK:[a-z0-9]+]]: tensor<?x1x4xf32> {{.*}}, %[[DV:[a-z0-9]+]]: tensor<?x1x8xf32>
// CHECK:         %[[O:.+]], %[[LSE:.+]] = hybrid.attention
// CHECK:         %[[DO:.+]] = hybrid.fill 1.000000e+00
// CHECK:         %[[GQ:.+]], %[[GK:.+]], %[[GV:.+]] = hybrid.attention_grad %[[Q]], %[[K]], %[[V]], %[[O]], %[[LSE]], %[[DO]], %{{.+}} scale 5.000000e-01 windows [0, 4] sinks [0, 1]
// CHECK-DAG:     hybrid.add %[[DQ]], %[[GQ]]
// CHECK-DAG:     hybrid.add %[[DK]], %[[GK]]
// CHECK-DAG:     hybrid.add %[[DV]], %[[GV]]
func.func @loss(%q: tensor<?x2x4xf32> {hybrid.role = "param"}, %k: tensor<?x1x4xf32> {hybrid.role = "param"},
                %v: tensor<?x1x8xf32> {hybrid.role = "param"}, %s: !hybrid.segments)
    -> tensor<?x2x8xf32> attributes {hybrid.entry = "loss"} {
  %o, %lse = hybrid.attention %q, %k, %v, %s scale 5.000000e-01 windows [0, 4] sinks [0, 1]
    : (tensor<?x2x4xf32>, tensor<?x1x4xf32>, tensor<?x1x8xf32>, !hybrid.segments) -> (tensor<?x2x8xf32>, tensor<?x2xf32>)
  return %o : tensor<?x2x8xf32>
}

// -----

func.func @loss(%q: tensor<?x2x4xf32> {hybrid.role = "param"}, %s: !hybrid.segments)
    -> tensor<?x2xf32> attributes {hybrid.entry = "loss"} {
  // expected-error @+1 {{has no adjoint for log_sum_exp}}
  %o, %lse = hybrid.attention %q, %q, %q, %s scale 5.000000e-01 windows [0, 4] sinks [0, 1]
    : (tensor<?x2x4xf32>, tensor<?x2x4xf32>, tensor<?x2x4xf32>, !hybrid.segments) -> (tensor<?x2x4xf32>, tensor<?x2xf32>)
  return %lse : tensor<?x2xf32>
}

// -----

!cache = tensor<?x2x?x4xf32, #hybrid.slots<rows = affine_map<()[s0, s1, s2, s3, s4, s5] -> (s4)>>>
func.func @loss(%q: tensor<?x2x4xf32> {hybrid.role = "param"}, %kc: !cache, %vc: !cache, %s: !hybrid.segments)
    -> tensor<?x2x4xf32> attributes {hybrid.entry = "loss"} {
  // expected-error @+1 {{has no adjoint, but the loss depends on a parameter through it}}
  %r:3 = hybrid.attention_cached %q, %q, %q, %kc, %vc, %s scale 5.000000e-01 windows [0, 4] sinks [0, 1]
    : (tensor<?x2x4xf32>, tensor<?x2x4xf32>, tensor<?x2x4xf32>, !cache, !cache, !hybrid.segments) -> (tensor<?x2x4xf32>, !cache, !cache)
  return %r#0 : tensor<?x2x4xf32>
}
