// RUN: hybrid-opt %s --hybrid-schedule --split-input-file -verify-diagnostics | FileCheck %s

// The caller's inputs are read alone: where both algorithms would overwrite the
// initial state, they overwrite one copy of it.

// CHECK-LABEL: func.func @step
// CHECK-SAME:    %[[S:arg4]]: tensor<?x4x16x8xf32
// CHECK:         %[[FLAT:.*]] = hybrid.reshape %[[S]] {{.*}} -> tensor<?x64x8xf32, #hybrid.slots>
// CHECK:         %[[COPIED:.*]] = hybrid.dispatch @rowwise_{{[0-9a-f]+}}(%[[FLAT]])
// CHECK:         %[[COPY:.*]] = hybrid.reshape %[[COPIED]]
// CHECK:         hybrid.alternatives
// CHECK:           hybrid.dispatch @recurrence_step_{{.*}}, %[[COPY]]) ties = [1, 5]
// CHECK:           hybrid.dispatch @recurrence_forward_{{.*}}, %[[COPY]]) ties = [1, 5]
!state = tensor<?x4x16x8xf32, #hybrid.slots>
func.func @step(%q: tensor<?x4x16xf32> {hybrid.role = "input", hybrid.path = "q"},
                %k: tensor<?x4x16xf32> {hybrid.role = "input", hybrid.path = "k"},
                %v: tensor<?x4x8xf32> {hybrid.role = "input", hybrid.path = "v"},
                %segments: !hybrid.segments {hybrid.role = "segments"},
                %s: !state {hybrid.role = "input", hybrid.path = "initial"},
                %b: tensor<?x4xf32> {hybrid.role = "input", hybrid.path = "beta"})
    -> (tensor<?x4x8xf32> {hybrid.role = "output", hybrid.path = "o"},
        !state {hybrid.role = "output", hybrid.path = "final"})
    attributes {hybrid.entry = "step"} {
  %o, %f = hybrid.recurrence delta %q, %k, %v, %segments beta(%b) initial(%s) scale 0.25
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x8xf32>, !hybrid.segments,
         tensor<?x4xf32>, !state) -> (tensor<?x4x8xf32>, !state)
  return %o, %f : tensor<?x4x8xf32>, !state
}

// -----

// A cache has rows that depend on the call, which no copy program has.

#rows = affine_map<()[tokens, segments, longest, slots, context, depth] -> (context)>
!cache = tensor<?x1x?x16xf32, #hybrid.slots<rows = #rows>>
func.func @cached(%q: tensor<?x1x16xf32> {hybrid.role = "input", hybrid.path = "q"},
                  %segments: !hybrid.segments {hybrid.role = "segments"},
                  %k: !cache {hybrid.role = "input", hybrid.path = "k"},
                  %v: !cache {hybrid.role = "input", hybrid.path = "v"})
    -> (tensor<?x1x16xf32> {hybrid.role = "output", hybrid.path = "o"},
        !cache {hybrid.role = "output", hybrid.path = "new_k"},
        !cache {hybrid.role = "output", hybrid.path = "new_v"})
    attributes {hybrid.entry = "cached"} {
  // expected-error @+1 {{overwrites an input of type}}
  %o, %nk, %nv = hybrid.attention_cached %q, %q, %q, %k, %v, %segments scale 0.25 windows [0] sinks [0]
      : (tensor<?x1x16xf32>, tensor<?x1x16xf32>, tensor<?x1x16xf32>, !cache, !cache, !hybrid.segments)
      -> (tensor<?x1x16xf32>, !cache, !cache)
  return %o, %nk, %nv : tensor<?x1x16xf32>, !cache, !cache
}
