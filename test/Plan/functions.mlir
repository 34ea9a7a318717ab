// RUN: hybrid-opt %s --hybrid-print-plan -o /dev/null | FileCheck %s

// Inputs and outputs are the caller's buffers, found by name; one that is saved
// for backward alone is an output like any other.

#grid = affine_map<()[tokens, segments, longest, slots, context, depth] -> (tokens)>
tile.program @both(%x: !tile.view<?x8xf32>, %n: !tile.view<?xi32>,
                   %y: !tile.view<?x8xf32>, %z: !tile.view<?xf32>)
    grid #grid order [parallel] {
  tile.return
}

// CHECK:      "buffers": [
// CHECK:        "kind": "input",
// CHECK-NEXT:   "name": "x",
// CHECK-NEXT:   "path": "x",
// CHECK-NEXT:   "sizes": [
// CHECK-NEXT:     "tokens",
// CHECK-NEXT:     8
// CHECK-NEXT:   ],
// CHECK-NEXT:   "type": "f32"
// CHECK:        "kind": "input",
// CHECK-NEXT:   "name": "rows",
// CHECK-NEXT:   "path": "rows",
// CHECK:        "type": "i32"
// CHECK:        "kind": "output",
// CHECK-NEXT:   "name": "y",
// CHECK-NEXT:   "path": "y",
// CHECK:        "kind": "output",
// CHECK-NEXT:   "name": "z",
// CHECK-NEXT:   "path": "z",
// CHECK-NEXT:   "sizes": [
// CHECK-NEXT:     "slots"
func.func @f(%x: tensor<?x8xf32> {hybrid.role = "input", hybrid.path = "x"},
             %n: tensor<?xi32> {hybrid.role = "input", hybrid.path = "rows"})
    -> (tensor<?x8xf32> {hybrid.role = "output", hybrid.path = "y"},
        tensor<?xf32, #hybrid.slots> {hybrid.role = "saved", hybrid.path = "z"})
    attributes {hybrid.entry = "f"} {
  %y, %z = hybrid.dispatch @both(%x, %n) : (tensor<?x8xf32>, tensor<?xi32>) -> (tensor<?x8xf32>, tensor<?xf32, #hybrid.slots>)
  return %y, %z : tensor<?x8xf32>, tensor<?xf32, #hybrid.slots>
}
