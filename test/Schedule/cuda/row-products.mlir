// Products of the same rows are one launch where a call has a few rows, with the
// operation that makes these; what else it gives is stored by that launch. In
// other calls each operation has its own.
//
// RUN: hybrid-opt %s --hybrid-schedule=target=cuda | FileCheck %s

// CHECK-DAG: #[[READ:.*]] = affine_set<()[s0, s1, s2, s3, s4, s5] : (-s0 + 4 >= 0)>
// CHECK-DAG: #[[GRID:.*]] = affine_map<()[s0, s1, s2, s3, s4, s5] -> (96, s0)>
// CHECK-LABEL: func.func @extend
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x64xf32>
// CHECK-SAME: %[[D:[a-z0-9]+]]: tensor<?x64xf32>
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<64x64xf32>
// CHECK-SAME: %[[K:[a-z0-9]+]]: tensor<32x64xf32>
// CHECK: %[[R:.*]]:3 = hybrid.alternatives [#[[READ]]]
// CHECK-NEXT: hybrid.dispatch @[[BOTH:row_products_[0-9a-f]+]](%[[X]], %[[D]], %[[Q]], %[[K]]) : {{.*}} -> (tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x32xf32>)
// CHECK-NEXT: hybrid.yield
// CHECK: }, {
// CHECK-NEXT: %[[S:.*]]:2 = hybrid.dispatch @rowwise
// CHECK: hybrid.dispatch @product_{{[0-9a-f]+}}(%[[S]]#1, %[[Q]])
// CHECK: hybrid.dispatch @product_{{[0-9a-f]+}}(%[[S]]#1, %[[K]])
// CHECK: return %[[R]]#0, %[[R]]#1, %[[R]]#2
// CHECK-DAG: tile.program @[[BOTH]]({{.*}}) grid #[[GRID]]
!row = tensor<?x64xf32>
func.func @extend(
    %x: !row {hybrid.role = "input", hybrid.path = "x"},
    %d: !row {hybrid.role = "input", hybrid.path = "d"},
    %wq: tensor<64x64xf32> {hybrid.role = "param", hybrid.path = "q"},
    %wk: tensor<32x64xf32> {hybrid.role = "param", hybrid.path = "k"},
    %s: tensor<?x4xf32, #hybrid.slots> {hybrid.role = "state", hybrid.path = "s"})
    -> (!row {hybrid.role = "output", hybrid.path = "sum"},
        !row {hybrid.role = "output", hybrid.path = "q"},
        tensor<?x32xf32> {hybrid.role = "output", hybrid.path = "k"})
    attributes {hybrid.entry = "extend"} {
  %sum, %n = hybrid.rowwise (%a = %x : !row, %b = %d : !row) -> (!row, !row) {
    %0 = hybrid.add %a, %b : !row, !row
    %1 = hybrid.normalize rms %0 epsilon 1.000000e-05 : !row
    hybrid.yield %0, %1 : !row, !row
  }
  %q = hybrid.product %n, %wq transpose_b : (!row, tensor<64x64xf32>) -> !row
  %k = hybrid.product %n, %wk transpose_b : (!row, tensor<32x64xf32>) -> tensor<?x32xf32>
  return %sum, %q, %k : !row, !row, tensor<?x32xf32>
}

// Where a block has memory for it a point takes a processor's share of the
// columns: 4096 in 128 points, and in 512 elsewhere.
// RUN: hybrid-opt %s --hybrid-schedule=target=cuda:sm_90a | FileCheck %s --check-prefix=SHARE
// RUN: hybrid-opt %s --hybrid-schedule=target=cuda | FileCheck %s --check-prefix=PART
// SHARE-DAG: #[[GRID:.*]] = affine_map<()[s0, s1, s2, s3, s4, s5] -> (128, s0)>
// SHARE-DAG: tile.program @row_products{{.*}}4096{{.*}} grid #[[GRID]]
// PART-DAG: #[[MANY:.*]] = affine_map<()[s0, s1, s2, s3, s4, s5] -> (512, s0)>
// PART-DAG: tile.program @row_products{{.*}}4096{{.*}} grid #[[MANY]]
func.func @wide(
    %x: tensor<?x64xf32> {hybrid.role = "input", hybrid.path = "x"},
    %w: tensor<4096x64xf32> {hybrid.role = "param", hybrid.path = "w"},
    %s: tensor<?x4xf32, #hybrid.slots> {hybrid.role = "state", hybrid.path = "s"})
    -> (tensor<?x4096xf32> {hybrid.role = "output", hybrid.path = "y"})
    attributes {hybrid.entry = "wide"} {
  %y = hybrid.product %x, %w transpose_b : (tensor<?x64xf32>, tensor<4096x64xf32>) -> tensor<?x4096xf32>
  return %y : tensor<?x4096xf32>
}

// In 16 bits a share may be a multiple of four columns where eight more would not
// fit: 12 of 5,376, in 128 points. In f32 a point takes one column.
// RUN: hybrid-opt %s --hybrid-schedule=target=cuda:sm_90a | FileCheck %s --check-prefix=DEEP
// DEEP-DAG: #[[SHARES:.*]] = affine_map<()[s0, s1, s2, s3, s4, s5] -> (128, s0)>
// DEEP-DAG: #[[PAIRS:.*]] = affine_map<()[s0, s1, s2, s3, s4, s5] -> (1536, s0)>
// DEEP-DAG: tile.program @row_products{{.*}}1536x5376xbf16{{.*}} grid #[[SHARES]]
// DEEP-DAG: tile.program @row_products{{.*}}1536x5376xf32{{.*}} grid #[[PAIRS]]
func.func @deep(
    %x: tensor<?x5376xbf16> {hybrid.role = "input", hybrid.path = "x"},
    %w: tensor<1536x5376xbf16> {hybrid.role = "param", hybrid.path = "w"},
    %x32: tensor<?x5376xf32> {hybrid.role = "input", hybrid.path = "x32"},
    %w32: tensor<1536x5376xf32> {hybrid.role = "param", hybrid.path = "w32"},
    %s: tensor<?x4xf32, #hybrid.slots> {hybrid.role = "state", hybrid.path = "s"})
    -> (tensor<?x1536xbf16> {hybrid.role = "output", hybrid.path = "y"},
        tensor<?x1536xf32> {hybrid.role = "output", hybrid.path = "y32"})
    attributes {hybrid.entry = "deep"} {
  %y = hybrid.product %x, %w transpose_b : (tensor<?x5376xbf16>, tensor<1536x5376xbf16>) -> tensor<?x1536xbf16>
  %y32 = hybrid.product %x32, %w32 transpose_b : (tensor<?x5376xf32>, tensor<1536x5376xf32>) -> tensor<?x1536xf32>
  return %y, %y32 : tensor<?x1536xbf16>, tensor<?x1536xf32>
}

// Matrix units take 32 of the depth at once. What is left is a product of its own,
// for the whole of it would be multiplied as if there were 16 rows.
// RUN: hybrid-opt %s --hybrid-schedule=target=cuda:sm_90a | FileCheck %s --check-prefix=REST
// REST-LABEL: tile.program @row_products{{.*}}?x4104xbf16
// REST-DAG: tile.load %{{.*}}, %c0{{[_0-9]*}}] dims [0, 1]{{.*}} : !tile.view<1032x4104xbf16> -> tensor<8x4096xbf16>
// REST-DAG: tile.load %{{.*}}, %c4096{{[_0-9]*}}] dims [0, 1]{{.*}} : !tile.view<1032x4104xbf16> -> tensor<8x8xbf16>
// REST-DAG: tile.dot {{.*}} : tensor<1x4096xf32>, tensor<8x4096xf32> -> tensor<1x8xf32>
// REST-DAG: tile.dot {{.*}} : tensor<1x8xf32>, tensor<8x8xf32> -> tensor<1x8xf32>
func.func @ragged(
    %x: tensor<?x4104xbf16> {hybrid.role = "input", hybrid.path = "x"},
    %w: tensor<1032x4104xbf16> {hybrid.role = "param", hybrid.path = "w"},
    %s: tensor<?x4xf32, #hybrid.slots> {hybrid.role = "state", hybrid.path = "s"})
    -> (tensor<?x1032xbf16> {hybrid.role = "output", hybrid.path = "y"})
    attributes {hybrid.entry = "ragged"} {
  %y = hybrid.product %x, %w transpose_b : (tensor<?x4104xbf16>, tensor<1032x4104xbf16>) -> tensor<?x1032xbf16>
  return %y : tensor<?x1032xbf16>
}
