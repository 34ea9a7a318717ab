// The gradient of a table, whose rows are dealt to points in turn: a point takes the
// ids that have its bits. Where the last group of rows is cut, ids past the table
// are nobody's; they come from whoever calls the function.
//
// RUN: hybrid-opt %s --hybrid-schedule=target=cuda -split-input-file | FileCheck %s

// CHECK-LABEL: tile.program @embed_grad
// CHECK-SAME: !tile.view<5x8xf32>
// CHECK: %[[BITS:.*]] = tile.splat %c-1_i32
// CHECK: %[[IDS:.*]] = tile.load %{{.*}} limit(
// CHECK: arith.andi %[[IDS]], %[[BITS]]
// CHECK: %[[VOCAB:.*]] = arith.index_cast %c5{{[_0-9]*}} : index to i32
// CHECK: %[[ALL:.*]] = tile.splat %[[VOCAB]]
// CHECK: arith.cmpi slt, %[[IDS]], %[[ALL]]
func.func @cut(
    %ids: tensor<?xi32> {hybrid.role = "input", hybrid.path = "ids"},
    %dy: tensor<?x8xf32> {hybrid.role = "input", hybrid.path = "dy"})
    -> (tensor<5x8xf32> {hybrid.role = "output", hybrid.path = "dtable"})
    attributes {hybrid.entry = "cut"} {
  %d = hybrid.embed_grad %ids, %dy : (tensor<?xi32>, tensor<?x8xf32>) -> tensor<5x8xf32>
  return %d : tensor<5x8xf32>
}

// -----

// Points have 2 rows each, and 32 of them share 64 rows.
// CHECK-LABEL: tile.program @embed_grad
// CHECK-SAME: !tile.view<4096x8xf32>
// CHECK: %[[BITS:.*]] = tile.splat %c-33_i32
// CHECK: %[[IDS:.*]] = tile.load %{{.*}} limit(
// CHECK: arith.andi %[[IDS]], %[[BITS]]
// CHECK-NOT: arith.cmpi slt, %[[IDS]]
// CHECK: tile.return
func.func @whole(
    %ids: tensor<?xi32> {hybrid.role = "input", hybrid.path = "ids"},
    %dy: tensor<?x8xf32> {hybrid.role = "input", hybrid.path = "dy"})
    -> (tensor<4096x8xf32> {hybrid.role = "output", hybrid.path = "dtable"})
    attributes {hybrid.entry = "whole"} {
  %d = hybrid.embed_grad %ids, %dy : (tensor<?xi32>, tensor<?x8xf32>) -> tensor<4096x8xf32>
  return %d : tensor<4096x8xf32>
}
