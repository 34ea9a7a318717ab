// RUN: hybrid-opt %s --hybrid-schedule --split-input-file | FileCheck %s

// A region is one launch; an operation alone is one too.

// CHECK-LABEL: func.func @rows
// CHECK-NEXT:    %[[A:.*]] = hybrid.dispatch @rowwise_{{[0-9a-f]+}}(%arg0, %arg1)
// CHECK-NEXT:    %[[B:.*]] = hybrid.dispatch @rowwise_{{[0-9a-f]+}}(%[[A]])
// CHECK-NEXT:    return %[[B]]
func.func @rows(%x: tensor<?x64xf32>, %w: tensor<64xf32>) -> tensor<?x64xf32>
    attributes {hybrid.entry = "loss"} {
  %0 = hybrid.rowwise (%a = %x : tensor<?x64xf32>, %b = %w : tensor<64xf32>) -> tensor<?x64xf32> {
    %n = hybrid.normalize rms %a epsilon 1.0e-06 : tensor<?x64xf32>
    %m = hybrid.mul %n, %b : tensor<?x64xf32>, tensor<64xf32>
    hybrid.yield %m : tensor<?x64xf32>
  }
  %1 = hybrid.silu %0 : tensor<?x64xf32>
  return %1 : tensor<?x64xf32>
}

// -----

// The gradient of a sum of losses needs no tensor of ones.

// CHECK-LABEL: func.func @sum_of_losses
// CHECK-NOT:     rowwise
// CHECK:         hybrid.dispatch @cross_entropy_grad_{{[0-9a-f]+}}(%arg0, %arg1, %arg2) :
func.func @sum_of_losses(%l: tensor<?x64xf32>, %y: tensor<?xi32>, %w: tensor<?xf32>)
    -> tensor<?x64xf32> attributes {hybrid.entry = "loss"} {
  %one = hybrid.fill 1.0 : tensor<?xf32>
  %d = hybrid.cross_entropy_grad %l, %y, %w dloss(%one)
      : (tensor<?x64xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>) -> tensor<?x64xf32>
  return %d : tensor<?x64xf32>
}

// -----

// CHECK-LABEL: func.func @twice_the_losses
// CHECK:         %[[TWO:.*]] = hybrid.dispatch @rowwise_
// CHECK:         hybrid.dispatch @cross_entropy_grad_{{[0-9a-f]+}}(%arg0, %arg1, %arg2, %[[TWO]]) :
func.func @twice_the_losses(%l: tensor<?x64xf32>, %y: tensor<?xi32>, %w: tensor<?xf32>)
    -> tensor<?x64xf32> attributes {hybrid.entry = "loss"} {
  %two = hybrid.fill 2.0 : tensor<?xf32>
  %d = hybrid.cross_entropy_grad %l, %y, %w dloss(%two)
      : (tensor<?x64xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>) -> tensor<?x64xf32>
  return %d : tensor<?x64xf32>
}

// -----

// Parts of a concatenation are written with the strides of the whole; the same
// operation elsewhere keeps the contiguous form of its program.

// CHECK-LABEL: func.func @parts
// CHECK:         %[[A:.*]] = hybrid.dispatch @[[WIDE:rowwise_[0-9a-f]+]](%arg0)
// CHECK:         %[[B:.*]] = hybrid.dispatch @[[WIDE]](%arg1)
// CHECK:         %[[C:.*]] = hybrid.concat %[[A]], %[[B]] dim 1
// CHECK:         hybrid.dispatch @[[FLAT:rowwise_[0-9a-f]+]](%arg0)
// CHECK-DAG:   tile.program @[[WIDE]](%{{.*}}: !tile.view<?x32xf32>, %{{.*}}: !tile.view<?x32xf32, strides = [?, 1]>)
// CHECK-DAG:   tile.program @[[FLAT]](%{{.*}}: !tile.view<?x32xf32>, %{{.*}}: !tile.view<?x32xf32>)
func.func @parts(%a: tensor<?x32xf32>, %b: tensor<?x32xf32>)
    -> (tensor<?x64xf32>, tensor<?x32xf32>) attributes {hybrid.entry = "loss"} {
  %0 = hybrid.silu %a : tensor<?x32xf32>
  %1 = hybrid.silu %b : tensor<?x32xf32>
  %2 = hybrid.concat %0, %1 dim 1 : (tensor<?x32xf32>, tensor<?x32xf32>) -> tensor<?x64xf32>
  %3 = hybrid.silu %a : tensor<?x32xf32>
  return %2, %3 : tensor<?x64xf32>, tensor<?x32xf32>
}

// -----

// An argument cannot be made inside a concatenation, nor can one value be made
// in two: both are copied.

// CHECK-LABEL: func.func @copies
// CHECK:         %[[A:.*]] = hybrid.dispatch @rowwise_{{[0-9a-f]+}}(%arg0)
// CHECK:         %[[COPY:.*]] = hybrid.dispatch @rowwise_{{[0-9a-f]+}}(%arg0)
// CHECK:         %[[AGAIN:.*]] = hybrid.dispatch @rowwise_{{[0-9a-f]+}}(%[[A]])
// CHECK:         hybrid.concat %[[A]], %[[COPY]], %[[AGAIN]] dim 1
func.func @copies(%a: tensor<?x32xf32>) -> tensor<?x96xf32>
    attributes {hybrid.entry = "loss"} {
  %0 = hybrid.silu %a : tensor<?x32xf32>
  %1 = hybrid.concat %0, %a, %0 dim 1
      : (tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>) -> tensor<?x96xf32>
  return %1 : tensor<?x96xf32>
}
