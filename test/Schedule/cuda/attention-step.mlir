// In a call of a few rows a cached attention is one launch with what rotates and
// scales its rows and with the append; the product behind it joins the ranges of
// keys. Calls of more rows have the operations one by one. In the interpreter
// it says what the graph says: steps of several rows, grouped heads, norms, rings
// with sinks, scaling by ln n, dynamic NTK.
//
// RUN: hybrid-opt %s --pass-pipeline='builtin.module(hybrid-expand-stack,hybrid-build-graph,hybrid-fuse-rowwise)' -o %t.graph.mlir
// RUN: hybrid-opt %t.graph.mlir --pass-pipeline='builtin.module(hybrid-schedule{target=cuda})' -o %t.tile.mlir
// RUN: FileCheck %s < %t.tile.mlir
// RUN: tile-against-oracle %t.tile.mlir --definitions=%t.graph.mlir --entries=extend --lengths=1,0,2 --positions=30,3,9 --context=40 --tolerance=1e-4 | FileCheck %s --check-prefix=EQUAL
// EQUAL: @extend result 0: equal
// EQUAL-NOT: differs

// CHECK-DAG: #[[STEP:.*]] = affine_set<()[s0, s1, s2, s3, s4, s5] : (-s0 + 4 >= 0)>
// CHECK-LABEL: func.func @extend(
// CHECK: hybrid.alternatives [#[[STEP]]] -> tensor<?x32xf32>, tensor<?x2x?x16xf32, #hybrid.slots
// CHECK-NEXT: %[[A:.*]]:4 = hybrid.dispatch @[[ATTEND:softmax_step_[0-9a-f]+]]({{.*}}) ties = [0, {{[0-9]+}}, 1, {{[0-9]+}}]
// CHECK-NEXT: %[[O:.*]] = hybrid.dispatch @row_products_{{[0-9a-f]+}}(%[[A]]#2, %[[A]]#3,
// CHECK-NEXT: hybrid.yield %[[O]], %[[A]]#0, %[[A]]#1
// CHECK: }, {
// CHECK: hybrid.dispatch @rowwise
// CHECK: hybrid.dispatch @softmax_append
// What is in the caches is read before the launch in front has ended.
// CHECK-DAG: tile.program @[[ATTEND]]({{.*}}tile.overlap = array<i64: 1, 3, 5, 6, 7, 8, 9, 10>
hybrid.model @steps vocab(8) width(32) layers(3) trained(16) {
  hybrid.layers ["normed", "ring", "stretched"] {
    hybrid.named "normed" {
      hybrid.softmax heads(4) kv_heads(2) head_dim(16) position(rope, base = 10000) qk_norm
    }
    hybrid.named "ring" {
      hybrid.softmax heads(2) head_dim(16) position(rope, base = 100) window(9) sinks(3)
    }
    hybrid.named "stretched" {
      hybrid.softmax heads(2) head_dim(16) position(rope, base = 10000, dynamic_ntk = 2.0) logit_scale(log_n, trained = 16)
    }
  }
  hybrid.mlp swiglu(32)
}
