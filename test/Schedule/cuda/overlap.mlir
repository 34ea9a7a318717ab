// Launches of decoding steps may begin early and read what no launch in front
// writes: the parameter, not the row, and a state that none has updated. Programs
// of longer calls and of other entries wait.
//
// RUN: hybrid-opt %s --hybrid-schedule=target=cuda | FileCheck %s
// RUN: hybrid-opt %s --hybrid-schedule=target=cpu | FileCheck %s --check-prefix=CPU
//
// CPU-NOT: tile.overlap
// CHECK-DAG: tile.program @row_products{{.*}}tile.overlap = array<i64: 1>
// CHECK-DAG: tile.program @softmax_step{{.*}}tile.overlap = array<i64: 3, 4, 5, 6, 7, 8>
// CHECK-DAG: tile.program @softmax_combine{{.*}}tile.overlap = array<i64>
// CHECK-DAG: tile.program @softmax_append_{{[0-9a-f]+}}({{.*}}) grid {{.*}} order [parallel, parallel, parallel] {
// CHECK-DAG: tile.program @product_{{[0-9a-f]+}}({{.*}}) grid {{.*}} order [parallel, parallel] {
// CHECK-DAG: tile.program @rowwise_{{[0-9a-f]+}}(%{{.*}}: !tile.view<?x8xf32>, %{{.*}}: !tile.view<?x8xf32>) grid {{.*}} order [parallel] {
#map = affine_map<()[s0, s1, s2, s3, s4, s5] -> (s4)>
!row = tensor<?x64xf32>
!head = tensor<?x4x16xf32>
!cache = tensor<?x4x?x16xf32, #hybrid.slots<rows = #map>>
func.func @extend(
    %w: tensor<64x64xf32> {hybrid.role = "param", hybrid.path = "w"},
    %x: !row {hybrid.role = "input", hybrid.path = "x"},
    %segments: !hybrid.segments {hybrid.role = "segments"},
    %k: !cache {hybrid.role = "state", hybrid.path = "k"},
    %v: !cache {hybrid.role = "state", hybrid.path = "v"})
    -> (!head {hybrid.role = "output", hybrid.path = "y"},
        !cache {hybrid.role = "state", hybrid.path = "k"},
        !cache {hybrid.role = "state", hybrid.path = "v"})
    attributes {hybrid.entry = "extend"} {
  %row = hybrid.product %x, %w {transpose_b} : (!row, tensor<64x64xf32>) -> !row
  %q = hybrid.reshape %row : !row -> !head
  %o, %k1, %v1 = hybrid.attention_cached %q, %q, %q, %k, %v, %segments
      scale 1.0 windows [0, 0, 0, 0] sinks [0, 0, 0, 0]
      : (!head, !head, !head, !cache, !cache, !hybrid.segments) -> (!head, !cache, !cache)
  return %o, %k1, %v1 : !head, !cache, !cache
}

func.func @other(
    %x: tensor<?x8xf32> {hybrid.role = "input", hybrid.path = "x"},
    %segments: !hybrid.segments {hybrid.role = "segments"})
    -> (tensor<?x8xf32> {hybrid.role = "output", hybrid.path = "y"})
    attributes {hybrid.entry = "other"} {
  %y = hybrid.silu %x : tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}
