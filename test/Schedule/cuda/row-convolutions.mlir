// Short convolutions with a state are part of the launch of their products where
// every segment is one row: each point has the state of its columns, which it
// reads and writes. Segments of more rows have them apart, and so has a product
// that another reads too.
//
// RUN: hybrid-opt %s --hybrid-schedule=target=cuda -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: tile-against-oracle %t.mlir --definitions=%s --lengths=1,0,1,1 --tolerance=1e-5 | FileCheck %s --check-prefix=EQUAL
// RUN: tile-against-oracle %t.mlir --definitions=%s --lengths=1,0,3 --tolerance=1e-5 | FileCheck %s --check-prefix=EQUAL
// RUN: tile-against-oracle %t.mlir --definitions=%s --lengths=5,0,4 --tolerance=1e-5 | FileCheck %s --check-prefix=EQUAL
//
// EQUAL-COUNT-5: : equal
// EQUAL-NOT: differs
//
// CHECK-DAG: #[[READ:.*]] = affine_set<()[s0, s1, s2, s3, s4, s5] : (-s0 + 4 >= 0)>
// CHECK-DAG: #[[ONE:.*]] = affine_set<()[s0, s1, s2, s3, s4, s5] : (-s2 + 1 >= 0)>
// CHECK-LABEL: func.func @extend
// CHECK: hybrid.alternatives [#[[READ]]]
// CHECK-NEXT: hybrid.alternatives [#[[ONE]]]
// CHECK-NEXT: %[[A:.*]]:5 = hybrid.dispatch @row_products_{{[0-9a-f]+}}({{.*}}) ties = [3, 6, 4, 8]
// CHECK-NEXT: hybrid.yield %[[A]]#0, %[[A]]#1, %[[A]]#2, %[[A]]#3, %[[A]]#4
// CHECK: }, {
// CHECK-NEXT: hybrid.dispatch @row_products
// Both convolutions of the other calls are one launch, too.
// CHECK-NEXT: hybrid.dispatch @short_conv_forward
// CHECK-NEXT: hybrid.yield
// CHECK: hybrid.dispatch @short_conv_forward
!row = tensor<?x32xf32>
!wide = tensor<?x64xf32>
!state = tensor<?x3x64xf32, #hybrid.slots>
func.func @extend(
    %x: !row {hybrid.role = "input", hybrid.path = "x"},
    %wq: tensor<64x32xf32> {hybrid.role = "param", hybrid.path = "wq"},
    %wk: tensor<64x32xf32> {hybrid.role = "param", hybrid.path = "wk"},
    %wg: tensor<6x32xf32> {hybrid.role = "param", hybrid.path = "wg"},
    %cq: tensor<64x4xf32> {hybrid.role = "param", hybrid.path = "cq"},
    %ck: tensor<64x4xf32> {hybrid.role = "param", hybrid.path = "ck"},
    %segments: !hybrid.segments {hybrid.role = "segments"},
    %sq: !state {hybrid.role = "state", hybrid.path = "sq"},
    %sk: !state {hybrid.role = "state", hybrid.path = "sk"})
    -> (!wide {hybrid.role = "output", hybrid.path = "q"},
        !wide {hybrid.role = "output", hybrid.path = "k"},
        tensor<?x6xf32> {hybrid.role = "output", hybrid.path = "g"},
        !state {hybrid.role = "state", hybrid.path = "sq"},
        !state {hybrid.role = "state", hybrid.path = "sk"})
    attributes {hybrid.entry = "extend"} {
  %n = hybrid.normalize rms %x epsilon 1.000000e-05 : !row
  %0 = hybrid.product %n, %wq transpose_b : (!row, tensor<64x32xf32>) -> !wide
  %q, %sq1 = hybrid.short_conv %0, %cq, %segments state(%sq)
      : (!wide, tensor<64x4xf32>, !hybrid.segments, !state) -> (!wide, !state)
  %g = hybrid.product %n, %wg transpose_b : (!row, tensor<6x32xf32>) -> tensor<?x6xf32>
  %1 = hybrid.product %n, %wk transpose_b : (!row, tensor<64x32xf32>) -> !wide
  %k, %sk1 = hybrid.short_conv %1, %ck, %segments state(%sk)
      : (!wide, tensor<64x4xf32>, !hybrid.segments, !state) -> (!wide, !state)
  return %q, %k, %g, %sq1, %sk1 : !wide, !wide, tensor<?x6xf32>, !state, !state
}

// CHECK-LABEL: func.func @shared
// CHECK: hybrid.alternatives [#[[READ]]]
// CHECK-NEXT: hybrid.dispatch @row_products
// CHECK-NEXT: hybrid.yield
// CHECK: hybrid.dispatch @short_conv_forward
// CHECK-NEXT: return
func.func @shared(
    %x: !row {hybrid.role = "input", hybrid.path = "x"},
    %wq: tensor<64x32xf32> {hybrid.role = "param", hybrid.path = "wq"},
    %cq: tensor<64x4xf32> {hybrid.role = "param", hybrid.path = "cq"},
    %segments: !hybrid.segments {hybrid.role = "segments"},
    %sq: !state {hybrid.role = "state", hybrid.path = "sq"})
    -> (!wide {hybrid.role = "output", hybrid.path = "q"},
        !wide {hybrid.role = "output", hybrid.path = "p"},
        !state {hybrid.role = "state", hybrid.path = "sq"})
    attributes {hybrid.entry = "shared"} {
  %p = hybrid.product %x, %wq transpose_b : (!row, tensor<64x32xf32>) -> !wide
  %q, %sq1 = hybrid.short_conv %p, %cq, %segments state(%sq)
      : (!wide, tensor<64x4xf32>, !hybrid.segments, !state) -> (!wide, !state)
  return %q, %p, %sq1 : !wide, !wide, !state
}
