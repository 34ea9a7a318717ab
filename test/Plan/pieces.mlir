// RUN: hybrid-opt %s --hybrid-print-plan -split-input-file -verify-diagnostics -o /dev/null | FileCheck %s

// Launches 1 and 2 run for every 64 rows. What they make for each other has the
// rows of a piece; what comes from outside is read from the piece's first row
// on, and lives as long as all pieces, as does what they make for others.

#rows = affine_map<()[tokens, segments, longest, slots, context, depth] -> (tokens)>
tile.program @make(%x: !tile.view<?x8xf32>, %y: !tile.view<?x8xf32>)
    grid #rows order [parallel] {
  tile.return
}
tile.program @widen(%x: !tile.view<?x8xf32>, %y: !tile.view<?x32xf32>)
    grid #rows order [parallel] {
  tile.return
}
tile.program @narrow(%y: !tile.view<?x32xf32>, %s: !tile.view<8xf32>, %z: !tile.view<?x8xf32>)
    grid #rows order [parallel] {
  tile.return
}
tile.program @read(%z: !tile.view<?x8xf32>, %l: !tile.view<?xf32>)
    grid #rows order [parallel] {
  tile.return
}

// CHECK:      "backward": {
// CHECK:          "first": 1,
// CHECK-NEXT:     "kind": "arena",
// CHECK-NEXT:     "last": 3,
// CHECK-NEXT:     "name": "narrow",
// CHECK-NEXT:     "sizes"
// CHECK:          "first": 1,
// CHECK-NEXT:     "kind": "arena",
// CHECK-NEXT:     "last": 2,
// CHECK-NEXT:     "name": "wide",
// CHECK-NEXT:     "pieces": 0,
// CHECK-NEXT:     "sizes": [
// CHECK-NEXT:       "tokens",
// CHECK-NEXT:       32
// CHECK:          "first": 0,
// CHECK-NEXT:     "kind": "arena",
// CHECK-NEXT:     "last": 2,
// CHECK-NEXT:     "name": "stream",
// CHECK-NEXT:     "sizes"
// CHECK:      "launches": [
// CHECK:          "offset": [
// CHECK-NEXT:       "mul",
// CHECK-NEXT:       "row",
// CHECK-NEXT:       8
// CHECK:      "op": "wide"
// CHECK:          "offset": [
// CHECK-NEXT:       "mul",
// CHECK-NEXT:       "row",
// CHECK-NEXT:       8
// CHECK:      "op": "narrow"
// CHECK:      "pieces": [
// CHECK-NEXT:   {
// CHECK-NEXT:     "first": 1,
// CHECK-NEXT:     "last": 2,
// CHECK-NEXT:     "rows": 64
// CHECK-NEXT:   }
func.func @backward(%ids: tensor<?x8xf32> {hybrid.role = "input", hybrid.path = "x"},
                    %s: tensor<8xf32> {hybrid.role = "gradient", hybrid.path = "s"})
    -> (tensor<?xf32> {hybrid.role = "loss"}, tensor<8xf32> {hybrid.role = "gradient", hybrid.path = "s"})
    attributes {hybrid.entry = "backward"} {
  %x = hybrid.dispatch @make(%ids) : (tensor<?x8xf32>) -> tensor<?x8xf32> loc("stream")
  %z, %t = hybrid.pieces of 64 rows(%x) sums(%s)
      : (tensor<?x8xf32>, tensor<8xf32>) -> (tensor<?x8xf32>, tensor<8xf32>) {
  ^bb0(%xp: tensor<?x8xf32>, %sum: tensor<8xf32>):
    %0 = hybrid.dispatch @widen(%xp) : (tensor<?x8xf32>) -> tensor<?x32xf32> loc("wide")
    %1:2 = hybrid.dispatch @narrow(%0, %sum) ties = [0, 1]
        : (tensor<?x32xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<?x8xf32>) loc("narrow")
    hybrid.yield %1#1, %1#0 : tensor<?x8xf32>, tensor<8xf32>
  }
  %l = hybrid.dispatch @read(%z) : (tensor<?x8xf32>) -> tensor<?xf32>
  return %l, %t : tensor<?xf32>, tensor<8xf32>
}

// -----

// The rows of a stream are read by other pieces, and by what is behind them.

#rows = affine_map<()[tokens, segments, longest, slots, context, depth] -> (tokens)>
tile.program @overwrite(%x: !tile.view<?x8xf32>) grid #rows order [parallel] {
  tile.return
}
func.func @overwritten(%x: tensor<?x8xf32> {hybrid.role = "input", hybrid.path = "x"})
    -> (tensor<?x8xf32> {hybrid.role = "output", hybrid.path = "y"})
    attributes {hybrid.entry = "f"} {
  // expected-error @+1 {{needs 'tensor<?x8xf32>' in buffer 'x', but it is made in 'y'; a copy must be scheduled between them}}
  %y = hybrid.pieces of 64 rows(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-note @+1 {{value is made here}}
  ^bb0(%xp: tensor<?x8xf32>):
    %0 = hybrid.dispatch @overwrite(%xp) ties = [0, 0] : (tensor<?x8xf32>) -> tensor<?x8xf32>
    hybrid.yield %0 : tensor<?x8xf32>
  }
  return %y : tensor<?x8xf32>
}
