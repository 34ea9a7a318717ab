// Attention of 16-bit operands for sm_90a, with the records of its programs.
// RUN: hybrid-opt %s -split-input-file -pass-pipeline='builtin.module(hybrid-schedule{target=cuda:sm_90a})' | FileCheck %s
// RUN: hybrid-opt %s -split-input-file -pass-pipeline='builtin.module(hybrid-schedule{target=cuda:sm_90a hopper=false})' | FileCheck %s --check-prefix=OFF
// OFF-NOT: tile.schedule

// Grouped heads with windows of their own: the key head and the window are
// computed from the head's number, masks are where a tile is cut.

// CHECK-LABEL: func.func @loss
// CHECK:         hybrid.dispatch @[[P:softmax_forward_warpgroups_[0-9a-f]+]](
// CHECK:       tile.program @[[P]](
// CHECK:         %[[HEAD:.*]] = tile.id 1
// CHECK:         tile.load %arg0{{.*}} {tile.name = "load_q"} : !tile.view<?x4x64xbf16> -> tensor<128x64xbf16>
// CHECK:         %[[IS_LATER:.*]] = arith.cmpi sle, %c2{{.*}}, %[[HEAD]]
// CHECK:         %[[WINDOW:.*]] = arith.select %[[IS_LATER]], %c512{{.*}}, %c1073741824
// CHECK:         scf.for
// CHECK:           arith.divsi %[[HEAD]], %c2
// CHECK:           tile.load %arg1{{.*}} {tile.name = "load_k"} : !tile.view<?x2x64xbf16> -> tensor<128x64xbf16>
// CHECK:           tile.dot {{.*}} {tile.name = "scores", transpose_b} : tensor<128x64xbf16>, tensor<128x64xbf16> -> tensor<128x128xf32>
// CHECK:           scf.if
// CHECK:           {tile.name = "mask"}
// CHECK:           math.exp2 {{.*}} {tile.name = "softmax"}
// CHECK:           tile.dot {{.*}} {tile.name = "values"} : tensor<128x128xbf16>, tensor<128x64xbf16> -> tensor<128x64xf32>
// CHECK:       tile.schedule @[[P]] target("sm_90a")
// CHECK-SAME:    scores = {barrier = "turn", issue = 0 : i64, role = "multiply", stage = 0 : i64}
// CHECK-SAME:    values = {barrier = "turn", issue = 1 : i64, role = "multiply", stage = 1 : i64}
// CHECK-SAME:    hopper.descending = array<i64: 2>, hopper.traversal = array<i64: 2, 0, 1>
!q = tensor<?x4x64xbf16>
!k = tensor<?x2x64xbf16>
func.func @loss(%q: !q, %k: !k, %v: !k, %segments: !hybrid.segments) -> !q
    attributes {hybrid.entry = "loss"} {
  %o, %l = hybrid.attention %q, %k, %v, %segments scale 0.125 windows [0, 0, 512, 512] sinks [0, 0, 0, 0]
      : (!q, !k, !k, !hybrid.segments) -> (!q, tensor<?x4xf32>)
  return %o : !q
}

// -----

// The adjoint: terms of the rows as [head, token], then two programs without
// turns. Of queries and gradients of outputs each copy has two products.

// CHECK-LABEL: func.func @gradient
// CHECK:         %[[T:.*]]:2 = hybrid.dispatch @softmax_row_terms_{{[0-9a-f]+}}({{.*}}) : {{.*}} -> (tensor<2x?xf32>, tensor<2x?xf32>)
// CHECK:         %[[KV:.*]]:2 = hybrid.dispatch @[[KEYS:softmax_backward_keys_warpgroups_[0-9a-f]+]]({{.*}}, %[[T]]#0, %[[T]]#1,
// CHECK:         %[[DQ:.*]] = hybrid.dispatch @[[QUERIES:softmax_backward_queries_warpgroups_[0-9a-f]+]]({{.*}}, %[[T]]#0, %[[T]]#1,
// CHECK:         return %[[DQ]], %[[KV]]#0, %[[KV]]#1
// CHECK:       tile.program @[[KEYS]](
// CHECK:         %[[Q:.*]] = tile.load %arg0{{.*}} {tile.name = "load_q"} : {{.*}} -> tensor<64x128xf16>
// CHECK:         %[[DO:.*]] = tile.load %arg3{{.*}} {tile.name = "load_do"}
// CHECK:         tile.dot %{{.*}}, %[[Q]], %{{.*}} {tile.name = "scores", transpose_b}
// CHECK:         tile.dot %{{.*}}, %[[DO]], %{{.*}} {tile.name = "dp", transpose_b}
// CHECK:         tile.load %arg4{{.*}} dims [0, 1] limit({{.*}}) {tile.name = "load_shift"} : !tile.view<2x?xf32> -> tensor<1x64xf32>
// CHECK:         tile.dot %{{.*}}, %[[DO]], %{{.*}} {tile.name = "dv"} : tensor<128x64xf16>, tensor<64x128xf16> -> tensor<128x128xf32>
// CHECK:         tile.dot %{{.*}}, %[[Q]], %{{.*}} {tile.name = "dk"}
// CHECK:       tile.schedule @[[KEYS]] target("sm_90a")
// CHECK:       tile.program @[[QUERIES]](
// CHECK:         tile.dot {{.*}} {tile.name = "dq"} : tensor<128x128xf16>, tensor<128x128xf16> -> tensor<128x128xf32>
// CHECK:       tile.schedule @[[QUERIES]] target("sm_90a")
!rows = tensor<?x2x128xf16>
func.func @gradient(%q: !rows, %k: !rows, %v: !rows, %o: !rows, %l: tensor<?x2xf32>,
                    %do: !rows, %segments: !hybrid.segments) -> (!rows, !rows, !rows)
    attributes {hybrid.entry = "gradient"} {
  %dq, %dk, %dv = hybrid.attention_grad %q, %k, %v, %o, %l, %do, %segments
      scale 0.088388347 windows [0, 0] sinks [0, 0]
      : (!rows, !rows, !rows, !rows, tensor<?x2xf32>, !rows, !hybrid.segments) -> (!rows, !rows, !rows)
  return %dq, %dk, %dv : !rows, !rows, !rows
}

// -----

// Heads of 96 have no program for warpgroups.

// CHECK-LABEL: func.func @heads_of_96
// CHECK:         hybrid.dispatch @softmax_forward_{{[0-9a-f]+}}(
// CHECK-NOT:   tile.schedule
!wide = tensor<?x2x96xbf16>
func.func @heads_of_96(%q: !wide, %k: !wide, %v: !wide, %segments: !hybrid.segments)
    -> !wide attributes {hybrid.entry = "loss"} {
  %o, %l = hybrid.attention %q, %k, %v, %segments scale 0.125 windows [0, 0] sinks [0, 0]
      : (!wide, !wide, !wide, !hybrid.segments) -> (!wide, tensor<?x2xf32>)
  return %o : !wide
}

// -----

// Over a cache: where a segment has more rows than the generic tile.

// CHECK-DAG: #[[FEW:.*]] = affine_set<()[s0, s1, s2, s3, s4, s5] : (-s2 + 64 >= 0)>
// CHECK-LABEL: func.func @prefill
// CHECK:         hybrid.alternatives [#[[FEW]]]
// CHECK:           hybrid.dispatch @softmax_cached_{{[0-9a-f]+}}(
// CHECK:         }, {
// CHECK:           hybrid.dispatch @[[P:softmax_cached_warpgroups_[0-9a-f]+]](
// CHECK:       tile.program @[[P]](
// CHECK:         tile.load %arg1{{.*}} dims [2, 3] limit({{.*}}) {tile.name = "load_k"} : !tile.view<?x2x?x64xbf16{{.*}}> -> tensor<128x64xbf16>
// CHECK:       tile.schedule @[[P]] target("sm_90a")
!q = tensor<?x4x64xbf16>
!k = tensor<?x2x64xbf16>
!cache = tensor<?x2x?x64xbf16, #hybrid.slots<rows = affine_map<()[t, s, l, n, c, d] -> (c)>>>
func.func @prefill(%q: !q, %k: !k, %v: !k, %kc: !cache, %vc: !cache,
                   %segments: !hybrid.segments) -> (!q, !cache, !cache)
    attributes {hybrid.entry = "extend"} {
  %o, %kc2, %vc2 = hybrid.attention_cached %q, %k, %v, %kc, %vc, %segments
      scale 0.125 windows [0, 0, 0, 0] sinks [0, 0, 0, 0]
      : (!q, !k, !k, !cache, !cache, !hybrid.segments) -> (!q, !cache, !cache)
  return %o, %kc2, %vc2 : !q, !cache, !cache
}

// -----

// A ring of a window does not lie in one box.

// CHECK-LABEL: func.func @ring
// CHECK:         hybrid.dispatch @softmax_cached_{{[0-9a-f]+}}(
// CHECK-NOT:   tile.schedule
!q = tensor<?x2x64xbf16>
!ring = tensor<?x2x?x64xbf16, #hybrid.slots<rows = affine_map<()[t, s, l, n, c, d] -> (512)>>>
func.func @ring(%q: !q, %k: !q, %v: !q, %kc: !ring, %vc: !ring,
                %segments: !hybrid.segments) -> (!q, !ring, !ring)
    attributes {hybrid.entry = "extend"} {
  %o, %kc2, %vc2 = hybrid.attention_cached %q, %k, %v, %kc, %vc, %segments
      scale 0.125 windows [128, 128] sinks [0, 0]
      : (!q, !q, !q, !ring, !ring, !hybrid.segments) -> (!q, !ring, !ring)
  return %o, %kc2, %vc2 : !q, !ring, !ring
}
