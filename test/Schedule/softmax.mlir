// RUN: hybrid-opt %s --hybrid-schedule --split-input-file | FileCheck %s

// Two layers of one shape share their program.

// CHECK-LABEL: func.func @loss
// CHECK:         hybrid.dispatch @[[P:softmax_forward_[0-9a-f]+]](
// CHECK:         hybrid.dispatch @[[P]](
// CHECK:       tile.program @[[P]](
// CHECK-NOT:   tile.program
!rows = tensor<?x2x16xf32>
func.func @loss(%q: !rows, %k: !rows, %v: !rows, %segments: !hybrid.segments)
    -> !rows attributes {hybrid.entry = "loss"} {
  %o, %l = hybrid.attention %q, %k, %v, %segments scale 0.25 windows [0, 8] sinks [0, 2]
      : (!rows, !rows, !rows, !hybrid.segments) -> (!rows, tensor<?x2xf32>)
  %o2, %l2 = hybrid.attention %o, %k, %v, %segments scale 0.25 windows [0, 8] sinks [0, 2]
      : (!rows, !rows, !rows, !hybrid.segments) -> (!rows, tensor<?x2xf32>)
  return %o2 : !rows
}

// -----

// Enough heads: append, then one launch over the cache. Segments of a few rows
// have programs of their own, whose tiles have one query.

// CHECK-DAG: #[[ROWS:.*]] = affine_map<()[s0, s1, s2, s3, s4, s5] -> (s1, 4, s2)>
// CHECK-DAG: #[[TILES:.*]] = affine_map<()[s0, s1, s2, s3, s4, s5] -> (s1, 4, s2 ceildiv 64)>
// CHECK-DAG: #[[FEW:.*]] = affine_set<()[s0, s1, s2, s3, s4, s5] : (-s2 + 4 >= 0)>
// CHECK-LABEL: func.func @many_heads
// CHECK-SAME:    %[[KC:arg3]]: {{.*}} %[[VC:arg4]]:
// CHECK:         %[[C:.*]]:2 = hybrid.alternatives [#[[FEW]]]
// CHECK:           hybrid.dispatch @[[A1:softmax_append_[0-9a-f]+]]({{.*}}, %[[KC]], %[[VC]], %{{.*}}) ties = [0, 2, 1, 3]
// CHECK:         }, {
// CHECK:           hybrid.dispatch @[[A64:softmax_append_[0-9a-f]+]]({{.*}}, %[[KC]], %[[VC]], %{{.*}}) ties = [0, 2, 1, 3]
// CHECK:         %[[O:.*]] = hybrid.alternatives [#[[FEW]]]
// CHECK:           hybrid.dispatch @[[C1:softmax_cached_[0-9a-f]+]]({{.*}}, %[[C]]#0, %[[C]]#1,
// CHECK:         }, {
// CHECK:           hybrid.dispatch @[[C64:softmax_cached_[0-9a-f]+]]({{.*}}, %[[C]]#0, %[[C]]#1,
// CHECK:         return %[[O]], %[[C]]#0, %[[C]]#1
// CHECK-DAG:   tile.program @[[A1]]{{.*}} grid #[[ROWS]]
// CHECK-DAG:   tile.program @[[A64]]{{.*}} grid #[[TILES]]
// CHECK-DAG:   tile.program @[[C1]]{{.*}} grid #[[ROWS]]
// CHECK-DAG:   tile.program @[[C64]]{{.*}} grid #[[TILES]]
!heads = tensor<?x4x16xf32>
!cache = tensor<?x4x?x16xf32, #hybrid.slots<rows = affine_map<()[t, s, l, n, c, d] -> (c)>>>
func.func @many_heads(%q: !heads, %k: !heads, %v: !heads, %kc: !cache, %vc: !cache,
                      %segments: !hybrid.segments) -> (!heads, !cache, !cache)
    attributes {hybrid.entry = "extend"} {
  %o, %kc2, %vc2 = hybrid.attention_cached %q, %k, %v, %kc, %vc, %segments
      scale 0.25 windows [0, 0, 0, 0] sinks [0, 0, 0, 0]
      : (!heads, !heads, !heads, !cache, !cache, !hybrid.segments) -> (!heads, !cache, !cache)
  return %o, %kc2, %vc2 : !heads, !cache, !cache
}

// -----

// One head: for a few rows and a long context the keys are split and combined.

// CHECK-DAG: #[[LONG:.*]] = affine_set<()[s0, s1, s2, s3, s4, s5] : (s4 - 2048 >= 0)>
// CHECK-DAG: #[[STEP:.*]] = affine_set<()[s0, s1, s2, s3, s4, s5] : (-s2 + 4 >= 0)>
// CHECK-DAG: #[[FEW:.*]] = affine_set<()[s0, s1, s2, s3, s4, s5] : (-s0 + 4 >= 0)>
// CHECK-LABEL: func.func @one_head
// CHECK:         hybrid.dispatch @softmax_append_
// CHECK:         %[[O:.*]] = hybrid.alternatives [#[[STEP]]]
// CHECK:           hybrid.alternatives [#[[FEW]]]
// CHECK:             %[[I:.*]] = hybrid.alternatives [#[[LONG]]]
// CHECK:               %[[P:.*]]:2 = hybrid.dispatch @softmax_split_{{.*}} -> (tensor<?x1x4x16xf32, #{{.*}}>, tensor<?x1x4xf32, #{{.*}}>)
// CHECK:               hybrid.dispatch @softmax_combine_{{[0-9a-f]+}}(%[[P]]#0, %[[P]]#1)
// CHECK:             }, {
// CHECK:               hybrid.dispatch @[[C:softmax_cached_[0-9a-f]+]]
// CHECK:             hybrid.yield %[[I]]
// CHECK:           }, {
// CHECK:             hybrid.dispatch @[[C]]
// CHECK:         }, {
// CHECK-NOT:       @[[C]](
// CHECK:           hybrid.dispatch @softmax_cached_
// CHECK:         return %[[O]],
!head = tensor<?x1x16xf32>
!cache1 = tensor<?x1x?x16xf32, #hybrid.slots<rows = affine_map<()[t, s, l, n, c, d] -> (c)>>>
func.func @one_head(%q: !head, %k: !head, %v: !head, %kc: !cache1, %vc: !cache1,
                    %segments: !hybrid.segments) -> (!head, !cache1, !cache1)
    attributes {hybrid.entry = "extend"} {
  %o, %kc2, %vc2 = hybrid.attention_cached %q, %k, %v, %kc, %vc, %segments
      scale 0.25 windows [0] sinks [0]
      : (!head, !head, !head, !cache1, !cache1, !hybrid.segments) -> (!head, !cache1, !cache1)
  return %o, %kc2, %vc2 : !head, !cache1, !cache1
}
