// Neighbouring row-wise operations become regions.
// RUN: hybrid-opt %s -hybrid-fuse-rowwise -split-input-file | FileCheck %s

!x = tensor<?x8xf32>
!heads = tensor<?x2x4xf32>

// A chain with parameters: one region that stores what is used outside.
// CHECK-LABEL: func.func @chain(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<?x8xf32>, %[[Y:[a-z0-9]+]]: tensor<?x8xf32>, %[[W:[a-z0-9]+]]: tensor<8xf32>
// CHECK-NEXT:    %[[R:.+]]:2 = hybrid.rowwise (%[[A:.+]] = %[[X]] : tensor<?x8xf32>, %[[B:.+]] = %[[Y]] : tensor<?x8xf32>, %[[C:.+]] = %[[W]] : tensor<8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
// CHECK-NEXT:      %[[SUM:.+]] = hybrid.add %[[A]], %[[B]]
// CHECK-NEXT:      %[[UNIT:.+]] = hybrid.normalize rms %[[SUM]]
// CHECK-NEXT:      %[[NORM:.+]] = hybrid.mul %[[UNIT]], %[[C]]
// CHECK-NEXT:      hybrid.yield %[[SUM]], %[[NORM]]
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[R]]#0, %[[R]]#1
func.func @chain(%x: !x, %y: !x, %w: tensor<8xf32>) -> (!x, !x) attributes {hybrid.entry = "e"} {
  %0 = hybrid.add %x, %y : !x, !x
  %1 = hybrid.normalize rms %0 epsilon 1.000000e-05 : !x
  %2 = hybrid.mul %1, %w : !x, tensor<8xf32>
  return %0, %2 : !x, !x
}

// Two that read the same rows, though neither reads the other.
// CHECK-LABEL: func.func @siblings(
// CHECK:         hybrid.rowwise
// CHECK-NEXT:      hybrid.silu
// CHECK-NEXT:      hybrid.sigmoid
func.func @siblings(%x: !x) -> (!x, !x) attributes {hybrid.entry = "e"} {
  %0 = hybrid.silu %x : !x
  %1 = hybrid.sigmoid %x : !x
  return %0, %1 : !x, !x
}

// The segments pass through; reshapes inside join, those at the edge stay views.
// CHECK-LABEL: func.func @reshapes(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<?x8xf32>, %[[S:[a-z0-9]+]]: !hybrid.segments
// CHECK-NEXT:    %[[H:.+]] = hybrid.reshape %[[X]] : tensor<?x8xf32> -> tensor<?x2x4xf32>
// CHECK-NEXT:    %[[R:.+]] = hybrid.rowwise (%[[A:.+]] = %[[H]] : tensor<?x2x4xf32>, %[[B:.+]] = %[[S]] : !hybrid.segments) -> tensor<?x8xf32> {
// CHECK-NEXT:      hybrid.rotary %[[A]], %[[B]]
// CHECK-NEXT:      %[[F:.+]] = hybrid.reshape
// CHECK-NEXT:      hybrid.silu %[[F]] : tensor<?x8xf32>
// CHECK:         hybrid.reshape %[[R]] : tensor<?x8xf32> -> tensor<?x2x4xf32>
func.func @reshapes(%x: !x, %s: !hybrid.segments) -> !heads attributes {hybrid.entry = "e"} {
  %0 = hybrid.reshape %x : !x -> !heads
  %1 = hybrid.rotary %0, %s base 1.000000e+04 dim 4 : !heads
  %2 = hybrid.reshape %1 : !heads -> !x
  %3 = hybrid.silu %2 : !x
  %4 = hybrid.reshape %3 : !x -> !heads
  return %4 : !heads
}

// A reshape that is read inside and outside: the region stores its source, the
// outside looks at that.
// CHECK-LABEL: func.func @reshape_twice(
// CHECK:         %[[R:.+]]:2 = hybrid.rowwise
// CHECK:           %[[S:.+]] = hybrid.silu
// CHECK:           %[[H:.+]] = hybrid.reshape %[[S]]
// CHECK:           %[[N:.+]] = hybrid.normalize l2 %[[H]]
// CHECK:           hybrid.yield %[[S]], %[[N]]
// CHECK:         %[[V:.+]] = hybrid.reshape %[[R]]#0
// CHECK:         return %[[V]], %[[R]]#1
func.func @reshape_twice(%x: !x) -> (!heads, !heads) attributes {hybrid.entry = "e"} {
  %0 = hybrid.silu %x : !x
  %1 = hybrid.reshape %0 : !x -> !heads
  %2 = hybrid.normalize l2 %1 epsilon 1.000000e-06 : !heads
  return %1, %2 : !heads, !heads
}

// An activation joins the product that needs it, past the operation its user
// waits for.
// CHECK-LABEL: func.func @delayed(
// CHECK:         %[[G:.+]] = hybrid.product
// CHECK-NEXT:    %[[L:.+]] = hybrid.product
// CHECK-NEXT:    %[[P:.+]] = hybrid.product %[[L]]
// CHECK-NEXT:    hybrid.rowwise (%[[A:.+]] = %[[G]] : tensor<?x8xf32>, %[[B:.+]] = %[[P]] : tensor<?x8xf32>)
// CHECK-NEXT:      %[[S:.+]] = hybrid.silu %[[A]]
// CHECK-NEXT:      hybrid.mul %[[B]], %[[S]]
func.func @delayed(%x: !x, %w: tensor<8x8xf32>) -> !x attributes {hybrid.entry = "e"} {
  %0 = hybrid.product %x, %w transpose_b : (!x, tensor<8x8xf32>) -> !x
  %1 = hybrid.silu %0 : !x
  %2 = hybrid.product %x, %w : (!x, tensor<8x8xf32>) -> !x
  %3 = hybrid.product %2, %w : (!x, tensor<8x8xf32>) -> !x
  %4 = hybrid.mul %3, %1 : !x, !x
  return %4 : !x
}

// A constant and what is made of it and parameters wait for their user.
// CHECK-LABEL: func.func @filled(
// CHECK:         hybrid.product
// CHECK-NEXT:    hybrid.rowwise
// CHECK-NEXT:      hybrid.fill
// CHECK-NEXT:      hybrid.add
// CHECK-NEXT:      hybrid.exp
// CHECK-NEXT:      hybrid.mul
func.func @filled(%x: !x, %w: tensor<8x8xf32>, %a: tensor<8xf32>) -> !x attributes {hybrid.entry = "e"} {
  %0 = hybrid.fill 0.000000e+00 : !x
  %1 = hybrid.add %0, %a : !x, tensor<8xf32>
  %2 = hybrid.exp %1 : !x
  %3 = hybrid.product %x, %w : (!x, tensor<8x8xf32>) -> !x
  %4 = hybrid.mul %3, %2 : !x, !x
  return %4 : !x
}

// An operation between the members that needs the region moves behind it.
// CHECK-LABEL: func.func @between(
// CHECK-NEXT:    %[[R:.+]]:2 = hybrid.rowwise
// CHECK-NEXT:      hybrid.silu
// CHECK-NEXT:      hybrid.neg
// CHECK:         %[[P:.+]] = hybrid.product %[[R]]#0
// CHECK-NEXT:    %[[Q:.+]] = hybrid.product %[[P]]
// CHECK-NEXT:    return %[[Q]], %[[R]]#1
func.func @between(%x: !x, %w: tensor<8x8xf32>) -> (!x, !x) attributes {hybrid.entry = "e"} {
  %0 = hybrid.silu %x : !x
  %1 = hybrid.product %0, %w : (!x, tensor<8x8xf32>) -> !x
  %2 = hybrid.product %1, %w : (!x, tensor<8x8xf32>) -> !x
  %3 = hybrid.neg %0 : !x
  return %2, %3 : !x, !x
}

// -----

!x = tensor<?x8xf32>

// Must not fire.

// One operation alone.
// CHECK-LABEL: func.func @alone(
// CHECK-NOT:     hybrid.rowwise
func.func @alone(%x: !x) -> !x attributes {hybrid.entry = "e"} {
  %0 = hybrid.silu %x : !x
  return %0 : !x
}

// Joining these would make the region wait for a product that waits for it.
// CHECK-LABEL: func.func @cycle(
// CHECK-NOT:     hybrid.rowwise
func.func @cycle(%x: !x, %w: tensor<8x8xf32>) -> !x attributes {hybrid.entry = "e"} {
  %0 = hybrid.silu %x : !x
  %1 = hybrid.product %0, %w : (!x, tensor<8x8xf32>) -> !x
  %2 = hybrid.add %0, %1 : !x, !x
  return %2 : !x
}

// Other rows: tokens and segments.
// CHECK-LABEL: func.func @other_rows(
// CHECK-NOT:     hybrid.rowwise
func.func @other_rows(%x: !x, %y: tensor<?x8xf32, #hybrid.per_segment>, %w: tensor<8xf32>)
    -> (!x, tensor<?x8xf32, #hybrid.per_segment>) attributes {hybrid.entry = "e"} {
  %0 = hybrid.mul %x, %w : !x, tensor<8xf32>
  %1 = hybrid.mul %y, %w : tensor<?x8xf32, #hybrid.per_segment>, tensor<8xf32>
  return %0, %1 : !x, tensor<?x8xf32, #hybrid.per_segment>
}

// Parameters have no rows: sums of gradients stay for the schedule.
// CHECK-LABEL: func.func @parameters(
// CHECK-NOT:     hybrid.rowwise
func.func @parameters(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>, %c: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {hybrid.entry = "e"} {
  %0 = hybrid.add %a, %b : tensor<8x8xf32>, tensor<8x8xf32>
  %1 = hybrid.add %0, %c : tensor<8x8xf32>, tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// Slices and concatenations are views.
// CHECK-LABEL: func.func @views(
// CHECK-NOT:     hybrid.rowwise
func.func @views(%x: !x) -> tensor<?x4xf32> attributes {hybrid.entry = "e"} {
  %0 = hybrid.slice %x dim 1 from 0 size 2 : !x -> tensor<?x2xf32>
  %1 = hybrid.slice %x dim 1 from 4 size 2 : !x -> tensor<?x2xf32>
  %2 = hybrid.concat %0, %1 dim 1 : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x4xf32>
  return %2 : tensor<?x4xf32>
}

// One operation between two views of its rows.
// CHECK-LABEL: func.func @viewed(
// CHECK-NOT:     hybrid.rowwise
func.func @viewed(%x: !x) -> !x attributes {hybrid.entry = "e"} {
  %0 = hybrid.reshape %x : !x -> tensor<?x2x4xf32>
  %1 = hybrid.normalize l2 %0 epsilon 1.000000e-06 : tensor<?x2x4xf32>
  %2 = hybrid.reshape %1 : tensor<?x2x4xf32> -> !x
  return %2 : !x
}

// Not an entry point.
// CHECK-LABEL: func.func @other(
// CHECK-NOT:     hybrid.rowwise
func.func @other(%x: !x) -> !x {
  %0 = hybrid.silu %x : !x
  %1 = hybrid.neg %0 : !x
  return %1 : !x
}

// What backward computes again does not join what forward computed.
// CHECK-LABEL: func.func @recomputed(
// CHECK-NOT:     hybrid.rowwise
// CHECK:         hybrid.silu %{{.+}} : tensor<?x8xf32>
// CHECK-NEXT:    hybrid.product
// CHECK-NEXT:    hybrid.silu %{{.+}} {hybrid.recompute}
// CHECK-NEXT:    hybrid.product
func.func @recomputed(%x: !x, %w: tensor<8x8xf32>) -> (!x, !x) attributes {hybrid.entry = "e"} {
  %0 = hybrid.silu %x : !x
  %1 = hybrid.product %0, %w : (!x, tensor<8x8xf32>) -> !x
  %2 = hybrid.silu %x {hybrid.recompute} : !x
  %3 = hybrid.product %2, %w : (!x, tensor<8x8xf32>) -> !x
  return %1, %3 : !x, !x
}

// The last rows of a sum that nothing else reads are the sum of last rows: it
// joins what follows.
// CHECK-LABEL: @last_rows_of_a_sum
// CHECK-DAG:     %[[X:.+]] = hybrid.last_rows %arg0
// CHECK-DAG:     %[[Y:.+]] = hybrid.last_rows %arg1
// CHECK:         hybrid.rowwise (%{{.+}} = %[[X]] : tensor<?x8xf32, #hybrid.per_segment>, %{{.+}} = %[[Y]]
// CHECK-NEXT:      hybrid.add
// CHECK-NEXT:      hybrid.normalize
// CHECK-NOT:     hybrid.last_rows
// CHECK:         return
func.func @last_rows_of_a_sum(%x: !x, %y: !x, %segments: !hybrid.segments) -> tensor<?x8xf32, #hybrid.per_segment>
    attributes {hybrid.entry = "e"} {
  %0 = hybrid.add %x, %y : !x, !x
  %1 = hybrid.last_rows %0, %segments : (!x, !hybrid.segments) -> tensor<?x8xf32, #hybrid.per_segment>
  %2 = hybrid.normalize rms %1 epsilon 1.000000e-05 : tensor<?x8xf32, #hybrid.per_segment>
  return %2 : tensor<?x8xf32, #hybrid.per_segment>
}

// All rows of the sum are there in any case, and norms stay where they are.
// CHECK-LABEL: @last_rows_of_what_others_read
// CHECK:         %[[S:.+]] = hybrid.add
// CHECK:         hybrid.last_rows %[[S]]
// CHECK:         %[[N:.+]] = hybrid.normalize
// CHECK:         hybrid.last_rows %[[N]]
func.func @last_rows_of_what_others_read(%x: !x, %y: !x, %z: !x, %segments: !hybrid.segments)
    -> (!x, tensor<?x8xf32, #hybrid.per_segment>, tensor<?x8xf32, #hybrid.per_segment>) attributes {hybrid.entry = "e"} {
  %0 = hybrid.add %x, %y : !x, !x
  %1 = hybrid.last_rows %0, %segments : (!x, !hybrid.segments) -> tensor<?x8xf32, #hybrid.per_segment>
  %2 = hybrid.normalize rms %z epsilon 1.000000e-05 : !x
  %3 = hybrid.last_rows %2, %segments : (!x, !hybrid.segments) -> tensor<?x8xf32, #hybrid.per_segment>
  return %0, %1, %3 : !x, tensor<?x8xf32, #hybrid.per_segment>, tensor<?x8xf32, #hybrid.per_segment>
}
