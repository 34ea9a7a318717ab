// A recurrence with a state makes its operands itself where a call has a few
// rows: norms and activations, the product of a low rank. What another reads too
// is made apart. Other calls have every operation by itself.
//
// RUN: hybrid-opt %s --hybrid-schedule=target=cuda -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: tile-against-oracle %t.mlir --definitions=%s --entries=extend,shared --lengths=1,0,3 --tolerance=1e-5 | FileCheck %s --check-prefix=EQUAL
// RUN: tile-against-oracle %t.mlir --definitions=%s --entries=extend,shared --lengths=15,2,4 --tolerance=1e-5 | FileCheck %s --check-prefix=EQUAL
// RUN: hybrid-opt %s --hybrid-schedule=target=cpu | FileCheck %s --check-prefix=CPU
//
// EQUAL-COUNT-4: : equal
// EQUAL-NOT: differs
// CPU-NOT: -s0 + 16 >= 0
//
// CHECK-DAG: #[[FEW:.*]] = affine_set<()[s0, s1, s2, s3, s4, s5] : (-s0 + 16 >= 0)>
// CHECK-LABEL: func.func @extend
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x32xf32>
// CHECK-SAME: %[[R:[a-z0-9]+]]: tensor<?x8xf32>
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<32x8xf32>
// CHECK-SAME: %[[B:[a-z0-9]+]]: tensor<32xf32>
// CHECK-SAME: %[[G:[a-z0-9]+]]: tensor<?x2xf32>
// CHECK-SAME: %[[SEGMENTS:[a-z0-9]+]]: !hybrid.segments
// CHECK-SAME: %[[S:[a-z0-9]+]]: tensor<?x2x16x16xf32, #hybrid.slots>
// CHECK: hybrid.alternatives [#[[FEW]]]
// CHECK-NEXT: hybrid.dispatch @recurrence_step_{{[0-9a-f]+}}(%[[X]], %[[W]], %[[R]], %[[B]], %[[G]], %[[SEGMENTS]], %[[S]]) ties = [1, 6]
// CHECK-NEXT: hybrid.yield
// CHECK: }, {
// CHECK-DAG: hybrid.dispatch @rowwise
// CHECK-DAG: hybrid.dispatch @product
// CHECK: hybrid.dispatch @recurrence_step
//
// CHECK-LABEL: func.func @shared
// CHECK: %[[K:.*]] = hybrid.dispatch @rowwise
// CHECK: hybrid.alternatives [#[[FEW]]]
// CHECK-NEXT: hybrid.dispatch @recurrence_step_{{[0-9a-f]+}}({{.*}}%[[K]]
!row = tensor<?x32xf32>
!head = tensor<?x2x16xf32>
!state = tensor<?x2x16x16xf32, #hybrid.slots>
func.func @extend(
    %x: !row {hybrid.role = "input", hybrid.path = "x"},
    %r: tensor<?x8xf32> {hybrid.role = "input", hybrid.path = "r"},
    %w: tensor<32x8xf32> {hybrid.role = "param", hybrid.path = "w"},
    %b: tensor<32xf32> {hybrid.role = "param", hybrid.path = "b"},
    %g: tensor<?x2xf32> {hybrid.role = "input", hybrid.path = "g"},
    %segments: !hybrid.segments {hybrid.role = "segments"},
    %s: !state {hybrid.role = "state", hybrid.path = "s"})
    -> (!head {hybrid.role = "output", hybrid.path = "y"},
        !state {hybrid.role = "state", hybrid.path = "s"})
    attributes {hybrid.entry = "extend"} {
  %q = hybrid.reshape %x : !row -> !head
  %k = hybrid.rowwise (%a = %x : !row) -> !head {
    %0 = hybrid.silu %a : !row
    %1 = hybrid.reshape %0 : !row -> !head
    %2 = hybrid.normalize l2 %1 epsilon 1.0e-06 : !head
    hybrid.yield %2 : !head
  }
  %v = hybrid.silu %q : !head
  %low = hybrid.product %r, %w transpose_b : (tensor<?x8xf32>, tensor<32x8xf32>) -> !row
  %gates = hybrid.rowwise (%a = %low : !row, %bias = %b : tensor<32xf32>) -> !row {
    %0 = hybrid.add %a, %bias : !row, tensor<32xf32>
    %1 = hybrid.log_sigmoid %0 : !row
    hybrid.yield %1 : !row
  }
  %decay = hybrid.reshape %gates : !row -> !head
  %beta = hybrid.sigmoid %g : tensor<?x2xf32>
  %o, %final = hybrid.recurrence delta %q, %k, %v, %segments decay(%decay) beta(%beta) initial(%s) scale 2.5e-01
      : (!head, !head, !head, !hybrid.segments, !head, tensor<?x2xf32>, !state) -> (!head, !state)
  return %o, %final : !head, !state
}

func.func @shared(
    %x: !row {hybrid.role = "input", hybrid.path = "x"},
    %segments: !hybrid.segments {hybrid.role = "segments"},
    %s: !state {hybrid.role = "state", hybrid.path = "s"})
    -> (!head {hybrid.role = "output", hybrid.path = "y"},
        !state {hybrid.role = "state", hybrid.path = "s"})
    attributes {hybrid.entry = "shared"} {
  %h = hybrid.reshape %x : !row -> !head
  %k = hybrid.normalize l2 %h epsilon 1.0e-06 : !head
  %v = hybrid.silu %h : !head
  %o, %final = hybrid.recurrence additive %h, %k, %v, %segments initial(%s) scale 2.5e-01
      : (!head, !head, !head, !hybrid.segments, !state) -> (!head, !state)
  %y = hybrid.add %o, %k : !head, !head
  return %y, %final : !head, !state
}
