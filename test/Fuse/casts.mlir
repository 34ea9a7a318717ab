// Casts are part of the regions that they stand at, and every region that reads
// a narrow tensor widens it itself.
// RUN: hybrid-opt %s -hybrid-fuse-rowwise | FileCheck %s

!half = tensor<?x8xbf16>
!wide = tensor<?x8xf32>

// CHECK-LABEL: @two_readers
// CHECK:         %[[R:.+]] = hybrid.rowwise (%[[X:.+]] = %arg0 : tensor<?x8xbf16>
// CHECK-SAME:        -> tensor<?x8xbf16>
// CHECK-NEXT:      %[[A:.+]] = hybrid.cast %[[X]] : tensor<?x8xbf16> to tensor<?x8xf32>
// CHECK-NEXT:      %[[S:.+]] = hybrid.silu %[[A]]
// CHECK-NEXT:      %[[P:.+]] = hybrid.mul %[[S]], %[[A]]
// CHECK-NEXT:      %[[H:.+]] = hybrid.cast %[[P]] : tensor<?x8xf32> to tensor<?x8xbf16>
// CHECK-NEXT:      hybrid.yield %[[H]]
// CHECK:         %[[Y:.+]] = hybrid.product %[[R]]
// CHECK:         hybrid.rowwise (%{{.+}} = %[[Y]] : tensor<?x8xbf16>, %{{.+}} = %arg0 : tensor<?x8xbf16>)
// CHECK-SAME:        -> tensor<?x8xbf16>
func.func @two_readers(%x: !half, %w: tensor<8x8xbf16>) -> !half attributes {hybrid.entry = "e"} {
  %a = hybrid.cast %x : !half to !wide
  %s = hybrid.silu %a : !wide
  %p = hybrid.mul %s, %a : !wide, !wide
  %h = hybrid.cast %p : !wide to !half
  %y = hybrid.product %h, %w transpose_b : (!half, tensor<8x8xbf16>) -> !half
  %b = hybrid.cast %y : !half to !wide
  %r = hybrid.add %a, %b : !wide, !wide
  %z = hybrid.cast %r : !wide to !half
  return %z : !half
}

// The loss head writes the rounded gradient itself when nobody reads the other.
// CHECK-LABEL: @loss_head
// CHECK:         %[[D:.+]] = hybrid.cross_entropy_grad {{.*}} -> tensor<?x8xbf16>
// CHECK-NEXT:    return %[[D]]
func.func @loss_head(%l: !wide, %labels: tensor<?xi32>, %weights: tensor<?xf32>) -> !half
    attributes {hybrid.entry = "e"} {
  %d = hybrid.cross_entropy_grad %l, %labels, %weights : (!wide, tensor<?xi32>, tensor<?xf32>) -> !wide
  %h = hybrid.cast %d : !wide to !half
  return %h : !half
}

// CHECK-LABEL: @loss_head_read_twice
// CHECK:         hybrid.cross_entropy_grad {{.*}} -> tensor<?x8xf32>
// CHECK:         hybrid.cast
func.func @loss_head_read_twice(%l: !wide, %labels: tensor<?xi32>, %weights: tensor<?xf32>) -> (!half, !wide)
    attributes {hybrid.entry = "e"} {
  %d = hybrid.cross_entropy_grad %l, %labels, %weights : (!wide, tensor<?xi32>, tensor<?xf32>) -> !wide
  %h = hybrid.cast %d : !wide to !half
  return %h, %d : !half, !wide
}

// What a product gives waits to be added to what the next one gives: two narrow
// rows are loaded later in place of a wide one that is stored and loaded.
// CHECK-LABEL: @sum_of_products
// CHECK-NOT:     hybrid.rowwise
// CHECK:         hybrid.product
// CHECK:         %[[Q:.+]] = hybrid.product
// CHECK:         hybrid.product %[[Q]]
// CHECK-NEXT:    hybrid.rowwise
// CHECK-SAME:      bf16>, %{{.+}}bf16>, %{{.+}}bf16>) -> tensor<?x8xbf16>
// CHECK-NOT:     hybrid.rowwise
func.func @sum_of_products(%x: !half, %w: tensor<8x8xbf16>) -> !half attributes {hybrid.entry = "e"} {
  %p = hybrid.product %x, %w transpose_b : (!half, tensor<8x8xbf16>) -> !half
  %q = hybrid.product %p, %w transpose_b : (!half, tensor<8x8xbf16>) -> !half
  %a = hybrid.cast %p : !half to !wide
  %b = hybrid.cast %q : !half to !wide
  %s = hybrid.add %a, %b : !wide, !wide
  %r = hybrid.product %q, %w transpose_b : (!half, tensor<8x8xbf16>) -> !half
  %c = hybrid.cast %r : !half to !wide
  %t = hybrid.add %s, %c : !wide, !wide
  %h = hybrid.cast %t : !wide to !half
  return %h : !half
}

// What is computed again joins the adjoint that reads it, not what comes after.
// CHECK-LABEL: @computed_again
// CHECK:         hybrid.rowwise
// CHECK:           hybrid.silu
// CHECK-NOT:       hybrid.yield
// CHECK:           hybrid.normalize_grad
// CHECK-NOT:       hybrid.yield
// CHECK:           hybrid.silu_grad
// CHECK-NOT:     hybrid.rowwise
func.func @computed_again(%x: !half, %dy: !half, %w: tensor<8x8xbf16>) -> (!half, !half) attributes {hybrid.entry = "e"} {
  %p = hybrid.product %dy, %w transpose_b : (!half, tensor<8x8xbf16>) -> !half
  %q = hybrid.product %p, %w transpose_b : (!half, tensor<8x8xbf16>) -> !half
  %a = hybrid.cast %x {hybrid.recompute} : !half to !wide
  %s = hybrid.silu %a {hybrid.recompute} : !wide
  %b = hybrid.cast %p : !half to !wide
  %d = hybrid.normalize_grad l2 %s, %b epsilon 1.0e-06 : !wide
  %e = hybrid.silu_grad %a, %d : !wide
  %h = hybrid.cast %e : !wide to !half
  return %h, %q : !half, !half
}
