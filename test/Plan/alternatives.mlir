// RUN: hybrid-opt %s --hybrid-print-plan -o /dev/null | FileCheck %s

// A state is overwritten in place by either algorithm. The first takes one
// launch, the second two with a workspace between them, so every launch says for
// itself when it runs.

#grid = affine_map<()[tokens, segments, longest, slots, context, depth] -> (slots)>
#few = affine_set<()[tokens, segments, longest, slots, context, depth]
                  : (16 - longest >= 0)>
tile.program @step(%s: !tile.view<?x8xf32>) grid #grid order [parallel] {
  tile.return
}
tile.program @summarise(%s: !tile.view<?x8xf32>, %w: !tile.view<?x8xf32>)
    grid #grid order [parallel] {
  tile.return
}
tile.program @apply(%s: !tile.view<?x8xf32>, %w: !tile.view<?x8xf32>)
    grid #grid order [parallel] {
  tile.return
}

// CHECK:      "kind": "state",
// CHECK:      "first": 1,
// CHECK-NEXT: "kind": "arena",
// CHECK-NEXT: "last": 2,
// CHECK:      "sizes": [
// CHECK-NEXT:   [
// CHECK-NEXT:     "add",
// CHECK:          "floordiv",
// CHECK:      "launches": [
// 16 - longest >= 0
// CHECK:      "guard": [
// CHECK-NEXT:   "ge",
// CHECK:          "longest",
// CHECK-NEXT:     -1
// CHECK:        16
// CHECK:      "kernel": 0,
// longest - 17 >= 0, twice
// CHECK:      "guard": [
// CHECK-NEXT:   "ge",
// CHECK:        "longest",
// CHECK-NEXT:   -17
// CHECK:      "kernel": 1,
// CHECK:      "guard": [
// CHECK-NEXT:   "ge",
// CHECK:        "longest",
// CHECK-NEXT:   -17
// CHECK:      "kernel": 2,
!state = tensor<?x8xf32, #hybrid.slots>
!work = tensor<?x8xf32, #hybrid.sized<affine_map<()[s0, s1, s2, s3, s4, s5] -> (s0 floordiv 64 + s1)>>>
func.func @extend(%s: !state {hybrid.role = "state", hybrid.path = "s"})
    -> (!state {hybrid.role = "state", hybrid.path = "s"})
    attributes {hybrid.entry = "extend"} {
  %r = hybrid.alternatives [#few] -> !state {
    %0 = hybrid.dispatch @step(%s) ties = [0, 0] : (!state) -> !state
    hybrid.yield %0 : !state
  }, {
    %w = hybrid.dispatch @summarise(%s) : (!state) -> !work
    %0 = hybrid.dispatch @apply(%s, %w) ties = [0, 0] : (!state, !work) -> !state
    hybrid.yield %0 : !state
  }
  return %r : !state
}
