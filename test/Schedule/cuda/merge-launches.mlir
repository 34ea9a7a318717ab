// Launches of one grid that do not need each other are one, whose first grid
// dim says whose point a point is; what needs another launch stays apart. Entries
// without steps keep their launches.
//
// RUN: hybrid-opt %s --hybrid-schedule=target=cuda | FileCheck %s
//
// CHECK-DAG: #[[GRID:.*]] = affine_map<()[s0, s1, s2, s3, s4, s5] -> (2, s0 ceildiv 64)>
// CHECK-LABEL: func.func @extend
// CHECK: %[[B:.*]]:2 = hybrid.dispatch @[[BOTH:rowwise_[0-9a-f]+]](%arg0, %arg1)
// CHECK-NEXT: hybrid.dispatch @[[ONE:rowwise_[0-9a-f]+]](%[[B]]#0)
// CHECK-NEXT: return
// CHECK-LABEL: func.func @other
// CHECK: hybrid.dispatch
// CHECK-NEXT: hybrid.dispatch
// CHECK-NEXT: return
// CHECK-DAG: tile.program @[[BOTH]]({{.*}}) grid #[[GRID]] order [parallel, parallel]
// CHECK-DAG: tile.program @[[ONE]]({{.*}}) grid #{{.*}} order [parallel] attributes
!row = tensor<?x64xf32>
func.func @extend(
    %x: !row {hybrid.role = "input", hybrid.path = "x"},
    %y: !row {hybrid.role = "input", hybrid.path = "y"},
    %s: tensor<?x4xf32, #hybrid.slots> {hybrid.role = "state", hybrid.path = "s"})
    -> (!row {hybrid.role = "output", hybrid.path = "a"},
        !row {hybrid.role = "output", hybrid.path = "b"},
        !row {hybrid.role = "output", hybrid.path = "c"})
    attributes {hybrid.entry = "extend"} {
  %a = hybrid.silu %x : !row
  %c = hybrid.exp %a : !row
  %b = hybrid.neg %y : !row
  return %a, %b, %c : !row, !row, !row
}

func.func @other(
    %x: !row {hybrid.role = "input", hybrid.path = "x"},
    %y: !row {hybrid.role = "input", hybrid.path = "y"})
    -> (!row {hybrid.role = "output", hybrid.path = "a"},
        !row {hybrid.role = "output", hybrid.path = "b"})
    attributes {hybrid.entry = "other"} {
  %a = hybrid.silu %x : !row
  %b = hybrid.neg %y : !row
  return %a, %b : !row, !row
}
