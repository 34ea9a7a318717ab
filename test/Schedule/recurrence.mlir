// RUN: hybrid-opt %s --hybrid-schedule --split-input-file | FileCheck %s

// Without a state one launch; nothing to choose.

// CHECK-LABEL: func.func @loss
// CHECK:         %[[O:.*]] = hybrid.dispatch @[[F:recurrence_[a-z_]*[0-9a-f]{8}]](
// CHECK-NOT:     hybrid.alternatives
// CHECK:         return %[[O]]
// CHECK:       tile.program @[[F]](
func.func @loss(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x8xf32>,
                %segments: !hybrid.segments, %g: tensor<?x4x16xf32>) -> tensor<?x4x8xf32>
    attributes {hybrid.entry = "loss"} {
  %o = hybrid.recurrence additive %q, %k, %v, %segments decay(%g) scale 0.25
      : (tensor<?x4x16xf32>, tensor<?x2x16xf32>, tensor<?x2x8xf32>, !hybrid.segments,
         tensor<?x4x16xf32>) -> tensor<?x4x8xf32>
  return %o : tensor<?x4x8xf32>
}

// -----

// With a state the length of the segments decides, and the state is overwritten.

// CHECK: #[[FEW:.*]] = affine_set<()[s0, s1, s2, s3, s4, s5] : (-s2 + 16 >= 0)>
// CHECK-LABEL: func.func @extend
// CHECK-SAME:    %[[S:arg4]]: tensor<?x4x16x8xf32
// CHECK:         %[[R:.*]]:2 = hybrid.alternatives [#[[FEW]]]
// CHECK:           %[[A:.*]]:2 = hybrid.dispatch @recurrence_step_{{.*}}, %[[S]]) ties = [1, 5]
// CHECK:           hybrid.yield %[[A]]#0, %[[A]]#1
// CHECK:         }, {
// CHECK:           %[[B:.*]]:2 = hybrid.dispatch @recurrence_forward_{{.*}}, %[[S]]) ties = [1, 5]
// CHECK:           hybrid.yield %[[B]]#0, %[[B]]#1
// CHECK:         return %[[R]]#0, %[[R]]#1
!state = tensor<?x4x16x8xf32, #hybrid.slots>
func.func @extend(%q: tensor<?x4x16xf32>, %k: tensor<?x4x16xf32>, %v: tensor<?x4x8xf32>,
                  %segments: !hybrid.segments, %s: !state, %b: tensor<?x4xf32>)
    -> (tensor<?x4x8xf32>, !state) attributes {hybrid.entry = "extend"} {
  %o, %f = hybrid.recurrence delta %q, %k, %v, %segments beta(%b) initial(%s) scale 0.25
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x8xf32>, !hybrid.segments,
         tensor<?x4xf32>, !state) -> (tensor<?x4x8xf32>, !state)
  return %o, %f : tensor<?x4x8xf32>, !state
}

// -----

// The rings of a sliding window and the heads are one dim to the program.

// CHECK-LABEL: func.func @ring
// CHECK:         hybrid.alternatives
// CHECK:           %[[FLAT:.*]] = hybrid.reshape {{.*}} -> tensor<?x16x16x8xf32, #hybrid.slots>
// CHECK:           %[[A:.*]]:2 = hybrid.dispatch {{.*}}, %[[FLAT]]) ties = [1, 4]
// CHECK:           hybrid.reshape %[[A]]#1 : {{.*}} -> tensor<?x4x4x16x8xf32, #hybrid.slots>
!ring = tensor<?x4x4x16x8xf32, #hybrid.slots>
func.func @ring(%q: tensor<?x4x16xf32>, %k: tensor<?x4x16xf32>, %v: tensor<?x4x8xf32>,
                %segments: !hybrid.segments, %s: !ring)
    -> (tensor<?x4x8xf32>, !ring) attributes {hybrid.entry = "extend"} {
  %o, %f = hybrid.recurrence additive %q, %k, %v, %segments initial(%s) scale 0.25 window 256 stride 64
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x8xf32>, !hybrid.segments,
         !ring) -> (tensor<?x4x8xf32>, !ring)
  return %o, %f : tensor<?x4x8xf32>, !ring
}

// -----

// The adjoint brings its workspaces; they are sized by the chunks of the call.

// CHECK-LABEL: func.func @backward
// CHECK:         %[[R:.*]]:[[N:[0-9]+]] = hybrid.dispatch @recurrence_backward_
// CHECK-SAME:    #hybrid.sized
// CHECK:         return %[[R]]#0, %[[R]]#1, %[[R]]#2
func.func @backward(%q: tensor<?x4x16xf32>, %k: tensor<?x4x16xf32>, %v: tensor<?x4x8xf32>,
                    %segments: !hybrid.segments, %do: tensor<?x4x8xf32>)
    -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x8xf32>)
    attributes {hybrid.entry = "extend_all"} {
  %dq, %dk, %dv = hybrid.recurrence_grad additive %q, %k, %v, %segments, %do scale 0.25
      : (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x8xf32>, !hybrid.segments,
         tensor<?x4x8xf32>) -> (tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x8xf32>)
  return %dq, %dk, %dv : tensor<?x4x16xf32>, tensor<?x4x16xf32>, tensor<?x4x8xf32>
}
