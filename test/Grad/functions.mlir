// Functions with named inputs and outputs, differentiated where they ask for it.
// RUN: hybrid-opt %s -hybrid-differentiate -split-input-file -verify-diagnostics | FileCheck %s

// What forward returned comes back to backward in place of being computed again;
// what it did not return is computed from the inputs. A saved output has no
// gradient.
// CHECK-LABEL: func.func @attend(
// CHECK-SAME:    attributes {hybrid.entry = "attend"}
// CHECK-LABEL: func.func @attend_backward(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: tensor<?x4x16xf32> {hybrid.path = "q", hybrid.role = "input"},
// CHECK-SAME:    %[[K:[a-z0-9]+]]: tensor<?x4x16xf32> {hybrid.path = "k", hybrid.role = "input"},
// CHECK-SAME:    %[[V:[a-z0-9]+]]: tensor<?x4x16xf32> {hybrid.path = "v", hybrid.role = "input"},
// CHECK-SAME:    %[[S:[a-z0-9]+]]: !hybrid.segments {hybrid.role = "segments"},
// CHECK-SAME:    %[[O:[a-z0-9]+]]: tensor<?x4x16xf32> {hybrid.path = "o", hybrid.role = "input"},
// CHECK-SAME:    %[[L:[a-z0-9]+]]: tensor<?x4xf32> {hybrid.path = "log_sum_exp", hybrid.role = "input"},
// CHECK-SAME:    %[[DO:[a-z0-9]+]]: tensor<?x4x16xf32> {hybrid.path = "do", hybrid.role = "input"})
// CHECK-SAME:    -> (tensor<?x4x16xf32> {hybrid.path = "dq", hybrid.role = "output"}, tensor<?x4x16xf32> {hybrid.path = "dk", hybrid.role = "output"}, tensor<?x4x16xf32> {hybrid.path = "dv", hybrid.role = "output"})
// CHECK-SAME:    attributes {hybrid.entry = "attend_backward"}
// CHECK-NEXT:    %[[T:.+]] = hybrid.log_n_scale %[[Q]], %[[S]] trained 64
// CHECK-NEXT:    %[[DT:.+]], %[[DK:.+]], %[[DV:.+]] = hybrid.attention_grad %[[T]], %[[K]], %[[V]], %[[O]], %[[L]], %[[DO]], %[[S]]
// CHECK-NEXT:    %[[DQ:.+]] = hybrid.log_n_scale %[[DT]], %[[S]] trained 64
// CHECK-NEXT:    return %[[DQ]], %[[DK]], %[[DV]]
!heads = tensor<?x4x16xf32>
func.func @attend(%q: !heads {hybrid.role = "input", hybrid.path = "q"},
                  %k: !heads {hybrid.role = "input", hybrid.path = "k"},
                  %v: !heads {hybrid.role = "input", hybrid.path = "v"},
                  %segments: !hybrid.segments {hybrid.role = "segments"})
    -> (!heads {hybrid.role = "output", hybrid.path = "o"},
        tensor<?x4xf32> {hybrid.role = "saved", hybrid.path = "log_sum_exp"})
    attributes {hybrid.entry = "attend", hybrid.differentiate} {
  %t = hybrid.log_n_scale %q, %segments trained 64 : !heads
  %o, %lse = hybrid.attention %t, %k, %v, %segments scale 0.25 windows [0, 0, 0, 0] sinks [0, 0, 0, 0]
      : (!heads, !heads, !heads, !hybrid.segments) -> (!heads, tensor<?x4xf32>)
  return %o, %lse : !heads, tensor<?x4xf32>
}

// -----

// Inputs that adjoints do not read are not asked for; every output has its
// cotangent; ids have no gradient; an input that reaches no output has zeros.
// CHECK-LABEL: func.func @sums_backward(
// CHECK-SAME:    %[[IDS:[a-z0-9]+]]: tensor<?xi32> {hybrid.path = "ids", hybrid.role = "input"},
// CHECK-SAME:    %[[DX:[a-z0-9]+]]: tensor<?x4xf32> {hybrid.path = "dx", hybrid.role = "input"},
// CHECK-SAME:    %[[DY:[a-z0-9]+]]: tensor<?x4xf32> {hybrid.path = "dy", hybrid.role = "input"})
// CHECK-SAME:    -> (tensor<8x4xf32> {hybrid.path = "dtable", hybrid.role = "output"}, tensor<?x4xf32> {hybrid.path = "dshift", hybrid.role = "output"}, tensor<?x4xf32> {hybrid.path = "dunused", hybrid.role = "output"})
// CHECK:         %[[SUM:.+]] = hybrid.add %[[DX]], %[[DY]]
// CHECK:         %[[DTABLE:.+]] = hybrid.embed_grad %[[IDS]], %[[SUM]]
// CHECK:         %[[ZERO:.+]] = hybrid.fill 0.000000e+00
// CHECK:         return %[[DTABLE]], %[[DY]], %[[ZERO]]
func.func @sums(%table: tensor<8x4xf32> {hybrid.role = "input", hybrid.path = "table"},
                %ids: tensor<?xi32> {hybrid.role = "input", hybrid.path = "ids"},
                %shift: tensor<?x4xf32> {hybrid.role = "input", hybrid.path = "shift"},
                %unused: tensor<?x4xf32> {hybrid.role = "input", hybrid.path = "unused"})
    -> (tensor<?x4xf32> {hybrid.role = "output", hybrid.path = "x"},
        tensor<?x4xf32> {hybrid.role = "output", hybrid.path = "y"})
    attributes {hybrid.entry = "sums", hybrid.differentiate} {
  %x = hybrid.embed %ids, %table : (tensor<?xi32>, tensor<8x4xf32>) -> tensor<?x4xf32>
  %y = hybrid.add %x, %shift : tensor<?x4xf32>, tensor<?x4xf32>
  return %x, %y : tensor<?x4xf32>, tensor<?x4xf32>
}

// -----

// Nothing is made unasked.
// CHECK-LABEL: func.func @plain
// CHECK-NOT:   func.func
func.func @plain(%x: tensor<?x4xf32> {hybrid.role = "input", hybrid.path = "x"})
    -> (tensor<?x4xf32> {hybrid.role = "output", hybrid.path = "y"})
    attributes {hybrid.entry = "plain"} {
  %y = hybrid.silu %x : tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}

// -----

// expected-error @+1 {{result 0 needs hybrid.role "output" or "saved" and a name in hybrid.path to be differentiated}}
func.func @nameless(%x: tensor<?x4xf32> {hybrid.role = "input", hybrid.path = "x"})
    -> (tensor<?x4xf32> {hybrid.role = "output"})
    attributes {hybrid.entry = "nameless", hybrid.differentiate} {
  %y = hybrid.silu %x : tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}

// -----

// expected-error @+1 {{is differentiated already; remove twice_backward to make it again}}
func.func @twice(%x: tensor<?x4xf32> {hybrid.role = "input", hybrid.path = "x"})
    -> (tensor<?x4xf32> {hybrid.role = "output", hybrid.path = "y"})
    attributes {hybrid.entry = "twice", hybrid.differentiate} {
  %y = hybrid.silu %x : tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}
// expected-note @+1 {{twice_backward is here}}
func.func @twice_backward() attributes {hybrid.entry = "twice_backward"} {
  return
}
