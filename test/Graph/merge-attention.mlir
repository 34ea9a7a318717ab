// Head groups that differ in window and sinks alone are one attention.
// RUN: hybrid-opt %s -hybrid-merge-attention | FileCheck %s
// RUN: hybrid-opt %s -hybrid-merge-attention -remarks-filter=graph -remark-format=emitRemark 2>&1 >/dev/null \
// RUN:   | FileCheck %s --check-prefix=REMARK

!h1 = tensor<?x1x4xf32>
!h2 = tensor<?x2x4xf32>
!h4 = tensor<?x4x4xf32>

// CHECK-LABEL: func.func @two(
// CHECK-SAME:    %[[Q0:.+]]: tensor<?x2x4xf32>, %[[KV0:.+]]: tensor<?x1x4xf32>, %[[Q1:.+]]: tensor<?x4x4xf32>, %[[KV1:.+]]: tensor<?x2x4xf32>, %[[S:.+]]: !hybrid.segments)
// CHECK-NEXT:    %[[Q:.+]] = hybrid.concat %[[Q0]], %[[Q1]] dim 1 : (tensor<?x2x4xf32>, tensor<?x4x4xf32>) -> tensor<?x6x4xf32>
// CHECK-NEXT:    %[[K:.+]] = hybrid.concat %[[KV0]], %[[KV1]] dim 1
// CHECK-NEXT:    %[[V:.+]] = hybrid.concat %[[KV0]], %[[KV1]] dim 1
// CHECK-NEXT:    %[[O:.+]], %{{.+}} = hybrid.attention %[[Q]], %[[K]], %[[V]], %[[S]] scale 5.000000e-01 windows [0, 0, 3, 3, 3, 3] sinks [0, 0, 1, 1, 1, 1]
// CHECK-NEXT:    %[[ALL:.+]] = hybrid.reshape %[[O]] : tensor<?x6x4xf32> -> tensor<?x24xf32>
// CHECK-NEXT:    return %[[ALL]]
func.func @two(%q0: !h2, %kv0: !h1, %q1: !h4, %kv1: !h2, %s: !hybrid.segments)
    -> tensor<?x24xf32> attributes {hybrid.entry = "e"} {
  // REMARK: merge-attention.mlir:[[@LINE+1]]:{{.*}} [Passed] HYB-G101 {{.*}} Reason="they differ in window and sinks alone", Remark="2 head groups are one attention of 6 heads"
  %o0, %l0 = hybrid.attention %q0, %kv0, %kv0, %s scale 0.5 windows [0, 0] sinks [0, 0]
      : (!h2, !h1, !h1, !hybrid.segments) -> (!h2, tensor<?x2xf32>)
  %0 = hybrid.reshape %o0 : !h2 -> tensor<?x8xf32>
  %o1, %l1 = hybrid.attention %q1, %kv1, %kv1, %s scale 0.5 windows [3, 3, 3, 3] sinks [1, 1, 1, 1]
      : (!h4, !h2, !h2, !hybrid.segments) -> (!h4, tensor<?x4xf32>)
  %1 = hybrid.reshape %o1 : !h4 -> tensor<?x16xf32>
  %2 = hybrid.concat %0, %1 dim 1 : (tensor<?x8xf32>, tensor<?x16xf32>) -> tensor<?x24xf32>
  return %2 : tensor<?x24xf32>
}

// The neighbours of a mixer of another kind stay on either side of it.
// CHECK-LABEL: func.func @between(
// CHECK:         %[[O:.+]], %{{.+}} = hybrid.attention {{.*}} windows [0, 2] sinks [0, 0]
// CHECK-NEXT:    %[[FIRST:.+]] = hybrid.reshape %[[O]]
// CHECK:         %[[R:.+]] = hybrid.recurrence
// CHECK-NEXT:    %[[MIDDLE:.+]] = hybrid.reshape %[[R]]
// CHECK-NEXT:    %[[L:.+]], %{{.+}} = hybrid.attention {{.*}} windows [3] sinks [0]
// CHECK-NEXT:    %[[LAST:.+]] = hybrid.reshape %[[L]]
// CHECK-NEXT:    hybrid.concat %[[FIRST]], %[[MIDDLE]], %[[LAST]] dim 1
func.func @between(%x: !h1, %s: !hybrid.segments)
    -> tensor<?x16xf32> attributes {hybrid.entry = "e"} {
  %o0, %l0 = hybrid.attention %x, %x, %x, %s scale 1.0 windows [0] sinks [0]
      : (!h1, !h1, !h1, !hybrid.segments) -> (!h1, tensor<?x1xf32>)
  %0 = hybrid.reshape %o0 : !h1 -> tensor<?x4xf32>
  %o1, %l1 = hybrid.attention %x, %x, %x, %s scale 1.0 windows [2] sinks [0]
      : (!h1, !h1, !h1, !hybrid.segments) -> (!h1, tensor<?x1xf32>)
  %1 = hybrid.reshape %o1 : !h1 -> tensor<?x4xf32>
  %r = hybrid.recurrence additive %x, %x, %x, %s scale 1.0
      : (!h1, !h1, !h1, !hybrid.segments) -> !h1
  %2 = hybrid.reshape %r : !h1 -> tensor<?x4xf32>
  // REMARK: merge-attention.mlir:[[@LINE+1]]:{{.*}} [Missed] HYB-G201 {{.*}} Reason="another mixer stands between it and the attention before it"
  %o3, %l3 = hybrid.attention %x, %x, %x, %s scale 1.0 windows [3] sinks [0]
      : (!h1, !h1, !h1, !hybrid.segments) -> (!h1, tensor<?x1xf32>)
  %3 = hybrid.reshape %o3 : !h1 -> tensor<?x4xf32>
  %4 = hybrid.concat %0, %1, %2, %3 dim 1
      : (tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x16xf32>
  return %4 : tensor<?x16xf32>
}

// Must not merge: each pair of neighbours differs in one thing.
// CHECK-LABEL: func.func @unlike(
// CHECK-COUNT-5: hybrid.attention
// CHECK:         hybrid.concat {{.*}} dim 1 : (tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x32xf32>
func.func @unlike(%x: !h1, %y: !h2, %z: tensor<?x1x8xf32>, %s: !hybrid.segments)
    -> tensor<?x32xf32> attributes {hybrid.entry = "e"} {
  %o0, %l0 = hybrid.attention %x, %x, %x, %s scale 1.0 windows [0] sinks [0]
      : (!h1, !h1, !h1, !hybrid.segments) -> (!h1, tensor<?x1xf32>)
  %0 = hybrid.reshape %o0 : !h1 -> tensor<?x4xf32>
  // REMARK: [[@LINE+1]]:{{.*}} [Missed] HYB-G201 {{.*}} Reason="it differs from its neighbour: scales 1.0{{0*e\+00}} and 5.0{{0*e-01}}"
  %o1, %l1 = hybrid.attention %x, %x, %x, %s scale 0.5 windows [0] sinks [0]
      : (!h1, !h1, !h1, !hybrid.segments) -> (!h1, tensor<?x1xf32>)
  %1 = hybrid.reshape %o1 : !h1 -> tensor<?x4xf32>
  // REMARK: [[@LINE+1]]:{{.*}} [Missed] HYB-G201 {{.*}} Reason="it differs from its neighbour: query heads per key head 1 and 2"
  %o2, %l2 = hybrid.attention %y, %x, %x, %s scale 0.5 windows [0, 0] sinks [0, 0]
      : (!h2, !h1, !h1, !hybrid.segments) -> (!h2, tensor<?x2xf32>)
  %2 = hybrid.reshape %o2 : !h2 -> tensor<?x8xf32>
  // REMARK: [[@LINE+1]]:{{.*}} [Missed] HYB-G201 {{.*}} Reason="it differs from its neighbour: head dims 4 and 8"
  %o3, %l3 = hybrid.attention %z, %z, %z, %s scale 0.5 windows [0] sinks [0]
      : (tensor<?x1x8xf32>, tensor<?x1x8xf32>, tensor<?x1x8xf32>, !hybrid.segments)
      -> (tensor<?x1x8xf32>, tensor<?x1xf32>)
  %3 = hybrid.reshape %o3 : tensor<?x1x8xf32> -> tensor<?x8xf32>
  // REMARK: [[@LINE+1]]:{{.*}} [Missed] HYB-G201 {{.*}} Reason="it differs from its neighbour: head dims 8 and 4"
  %o4, %l4 = hybrid.attention %x, %x, %z, %s scale 0.5 windows [0] sinks [0]
      : (!h1, !h1, tensor<?x1x8xf32>, !hybrid.segments) -> (tensor<?x1x8xf32>, tensor<?x1xf32>)
  %4 = hybrid.reshape %o4 : tensor<?x1x8xf32> -> tensor<?x8xf32>
  %5 = hybrid.concat %0, %1, %2, %3, %4 dim 1
      : (tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
      -> tensor<?x32xf32>
  return %5 : tensor<?x32xf32>
}

// Must not merge: heads that someone else reads, and a log-sum-exp that is read.
// CHECK-LABEL: func.func @read_elsewhere(
// CHECK-COUNT-3: hybrid.attention
// CHECK:         hybrid.concat {{.*}} dim 1 : (tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>)
func.func @read_elsewhere(%x: !h1, %s: !hybrid.segments)
    -> (tensor<?x12xf32>, !h1, tensor<?x1xf32>) attributes {hybrid.entry = "e"} {
  %o0, %l0 = hybrid.attention %x, %x, %x, %s scale 1.0 windows [0] sinks [0]
      : (!h1, !h1, !h1, !hybrid.segments) -> (!h1, tensor<?x1xf32>)
  %0 = hybrid.reshape %o0 : !h1 -> tensor<?x4xf32>
  %o1, %l1 = hybrid.attention %x, %x, %x, %s scale 1.0 windows [2] sinks [0]
      : (!h1, !h1, !h1, !hybrid.segments) -> (!h1, tensor<?x1xf32>)
  %1 = hybrid.reshape %o1 : !h1 -> tensor<?x4xf32>
  %o2, %l2 = hybrid.attention %x, %x, %x, %s scale 1.0 windows [3] sinks [0]
      : (!h1, !h1, !h1, !hybrid.segments) -> (!h1, tensor<?x1xf32>)
  %2 = hybrid.reshape %o2 : !h1 -> tensor<?x4xf32>
  %3 = hybrid.concat %0, %1, %2 dim 1
      : (tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x12xf32>
  return %3, %o0, %l1 : tensor<?x12xf32>, !h1, tensor<?x1xf32>
}

#context = affine_map<()[s0, s1, s2, s3, s4, s5] -> (s4)>
#ring = affine_map<()[s0, s1, s2, s3, s4, s5] -> (s2 + s5 + 1)>
!full = tensor<?x1x?x4xf32, #hybrid.slots<rows = #context>>
!window = tensor<?x1x?x4xf32, #hybrid.slots<rows = #ring>>

// Must not merge: a window keeps its ring, and no more.
// CHECK-LABEL: func.func @cached(
// CHECK-COUNT-2: hybrid.attention_cached
// CHECK:         hybrid.concat
func.func @cached(%x: !h1, %s: !hybrid.segments, %k0: !full, %v0: !full, %k1: !window, %v1: !window)
    -> (tensor<?x8xf32>, !full, !full, !window, !window) attributes {hybrid.entry = "e"} {
  // REMARK: [[@LINE+1]]:{{.*}} [Missed] HYB-G201 {{.*}} Reason="its cache has rows of its own number, so that a window keeps no more than it sees"
  %o0, %k2, %v2 = hybrid.attention_cached %x, %x, %x, %k0, %v0, %s scale 1.0 windows [0] sinks [0]
      : (!h1, !h1, !h1, !full, !full, !hybrid.segments) -> (!h1, !full, !full)
  %0 = hybrid.reshape %o0 : !h1 -> tensor<?x4xf32>
  %o1, %k3, %v3 = hybrid.attention_cached %x, %x, %x, %k1, %v1, %s scale 1.0 windows [2] sinks [0]
      : (!h1, !h1, !h1, !window, !window, !hybrid.segments) -> (!h1, !window, !window)
  %1 = hybrid.reshape %o1 : !h1 -> tensor<?x4xf32>
  %2 = hybrid.concat %0, %1 dim 1 : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x8xf32>
  return %2, %k2, %v2, %k3, %v3 : tensor<?x8xf32>, !full, !full, !window, !window
}
