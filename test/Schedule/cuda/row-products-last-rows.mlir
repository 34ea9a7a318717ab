// A head over the last row of each segment: with few segments its launch reads
// those rows itself; with more they are taken out first. An empty segment has a
// row of zeros.
// RUN: hybrid-opt %s --hybrid-schedule=target=cuda -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: tile-against-oracle %t.mlir --definitions=%s --lengths=5,0,1,0 --tolerance=1e-5 | FileCheck %s --check-prefix=EQUAL
// RUN: tile-against-oracle %t.mlir --definitions=%s --lengths=1,0,0,2,3,1,1 --tolerance=1e-5 | FileCheck %s --check-prefix=EQUAL
// EQUAL-COUNT-1: equal
// EQUAL-NOT:     differs

// CHECK-DAG: #[[READ:.*]] = affine_set<()[s0, s1, s2, s3, s4, s5] : (-s1 + 4 >= 0)>
// CHECK-LABEL: func.func @extend
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x64xf32>
// CHECK-SAME: %[[D:[a-z0-9]+]]: tensor<?x64xf32>
// CHECK: hybrid.alternatives [#[[READ]]]
// CHECK-NEXT: hybrid.dispatch @row_products_{{[0-9a-f]+}}(%[[X]], %[[D]], %{{.+}}, %{{.+}})
// CHECK-NEXT: hybrid.yield
// CHECK: }, {
// CHECK-NEXT: hybrid.dispatch @last_rows_{{[0-9a-f]+}}(%[[X]], %{{.+}}, %[[D]], %{{.+}})
// CHECK: hybrid.dispatch @rowwise
// CHECK: hybrid.dispatch @product
!row = tensor<?x64xf32>
!last = tensor<?x64xf32, #hybrid.per_segment>
func.func @extend(
    %x: !row {hybrid.role = "input", hybrid.path = "x"},
    %d: !row {hybrid.role = "input", hybrid.path = "d"},
    %w: tensor<20x64xf32> {hybrid.role = "param", hybrid.path = "w"},
    %segments: !hybrid.segments {hybrid.role = "segments"},
    %s: tensor<?x4xf32, #hybrid.slots> {hybrid.role = "state", hybrid.path = "s"})
    -> (tensor<?x20xf32, #hybrid.per_segment> {hybrid.role = "output", hybrid.path = "logits"})
    attributes {hybrid.entry = "extend"} {
  %0 = hybrid.last_rows %x, %segments : (!row, !hybrid.segments) -> !last
  %1 = hybrid.last_rows %d, %segments : (!row, !hybrid.segments) -> !last
  %n = hybrid.rowwise (%a = %0 : !last, %b = %1 : !last) -> !last {
    %2 = hybrid.add %a, %b : !last, !last
    %3 = hybrid.normalize rms %2 epsilon 1.000000e-05 : !last
    hybrid.yield %3 : !last
  }
  %y = hybrid.product %n, %w transpose_b : (!last, tensor<20x64xf32>) -> tensor<?x20xf32, #hybrid.per_segment>
  return %y : tensor<?x20xf32, #hybrid.per_segment>
}
