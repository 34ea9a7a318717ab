// RUN: hybrid-opt %s --hybrid-print-plan --split-input-file -o /dev/null | FileCheck %s

// Two producers write into the halves of one buffer, the second through a
// reshape; the reader gets a slice that starts at column 32.

#grid = affine_map<()[tokens, segments, longest, slots, context, depth] -> (tokens)>
tile.program @heads(%y: !tile.view<?x2x16xf32, strides = [?, 16, 1]>)
    grid #grid order [parallel] {
  tile.return
}
tile.program @flat(%y: !tile.view<?x32xf32, strides = [?, 1]>)
    grid #grid order [parallel] {
  tile.return
}
tile.program @read(%x: !tile.view<?x1x16xf32, strides = [?, 16, 1]>,
                   %y: !tile.view<?xf32>) grid #grid order [parallel] {
  tile.return
}

// CHECK-LABEL: "loss": {
// CHECK:       "kind": "loss",
// CHECK:       "first": 0,
// CHECK-NEXT:  "kind": "arena",
// CHECK-NEXT:  "last": 2,
// CHECK:       "sizes": [
// CHECK-NEXT:    "tokens",
// CHECK-NEXT:    4,
// CHECK-NEXT:    16
// CHECK:       "launches": [
// The first part: offset 0, rows of 64.
// CHECK:       "buffer": [[C:[0-9]+]],
// CHECK-NEXT:  "offset": 0,
// CHECK-NEXT:  "sizes": [
// CHECK-NEXT:    "tokens",
// CHECK-NEXT:    2,
// CHECK-NEXT:    16
// CHECK-NEXT:  ],
// CHECK-NEXT:  "strides": [
// CHECK-NEXT:    64,
// CHECK-NEXT:    16,
// CHECK-NEXT:    1
// The second part, seen as rows of 32.
// CHECK:       "buffer": [[C]],
// CHECK-NEXT:  "offset": 32,
// CHECK-NEXT:  "sizes": [
// CHECK-NEXT:    "tokens",
// CHECK-NEXT:    32
// CHECK-NEXT:  ],
// CHECK-NEXT:  "strides": [
// CHECK-NEXT:    64,
// CHECK-NEXT:    1
// The slice.
// CHECK:       "buffer": [[C]],
// CHECK-NEXT:  "offset": 32,
// CHECK-NEXT:  "sizes": [
// CHECK-NEXT:    "tokens",
// CHECK-NEXT:    1,
// CHECK-NEXT:    16
func.func @loss() -> (tensor<?xf32> {hybrid.role = "loss"})
    attributes {hybrid.entry = "loss"} {
  %0 = hybrid.dispatch @heads() : () -> tensor<?x2x16xf32>
  %1 = hybrid.dispatch @flat() : () -> tensor<?x32xf32>
  %2 = hybrid.reshape %1 : tensor<?x32xf32> -> tensor<?x2x16xf32>
  %3 = hybrid.concat %0, %2 dim 1
      : (tensor<?x2x16xf32>, tensor<?x2x16xf32>) -> tensor<?x4x16xf32>
  %4 = hybrid.slice %3 dim 1 from 2 size 1 : tensor<?x4x16xf32> -> tensor<?x1x16xf32>
  %5 = hybrid.dispatch @read(%4) : (tensor<?x1x16xf32>) -> tensor<?xf32>
  return %5 : tensor<?xf32>
}
