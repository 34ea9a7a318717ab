// RUN: hybrid-opt %s --hybrid-schedule --split-input-file | FileCheck %s
// RUN: hybrid-opt %s --hybrid-schedule=target=cuda --split-input-file | FileCheck %s --check-prefix=CUDA

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

// With a state a call may be a step: up to 8 rows go one by one, where every
// block is full. The twin without a state is above. Threads share the tiles of a
// GPU, which has no such programs.

// CUDA-LABEL: func.func @step
// CUDA-NOT:     hybrid.alternatives
// CHECK-DAG: #[[FEW:.*]] = affine_set<()[s0, s1, s2, s3, s4, s5] : (-s0 + 8 >= 0)>
// CHECK-DAG: #[[ONE:.*]] = affine_map<()[s0, s1, s2, s3, s4, s5] -> (s0)>
// CHECK-DAG: #[[BLOCKS:.*]] = affine_map<()[s0, s1, s2, s3, s4, s5] -> (s0 ceildiv 64)>
// CHECK-LABEL: func.func @step
// CHECK:         hybrid.alternatives [#[[FEW]]]
// CHECK:           hybrid.dispatch @[[A:rowwise_[0-9a-f]+]](%arg0)
// CHECK:         }, {
// CHECK:           hybrid.dispatch @[[B:rowwise_[0-9a-f]+]](%arg0)
// CHECK:       tile.program @[[B]]{{.*}} grid #[[BLOCKS]]
// CHECK:         tile.load %{{.*}} dims [0, 1] limit(
// CHECK:       tile.program @[[A]]{{.*}} grid #[[ONE]]
// CHECK:         tile.load %{{.*}} dims [0, 1] {
func.func @step(%x: tensor<?x64xf32>, %s: tensor<?x4xf32, #hybrid.slots> {hybrid.role = "state"})
    -> tensor<?x64xf32> attributes {hybrid.entry = "extend"} {
  %0 = hybrid.silu %x : tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}

// -----

// Rows so wide that blocks have one anyway: nothing to choose.

// CHECK-LABEL: func.func @wide
// CHECK-NOT:     hybrid.alternatives
// CHECK:         hybrid.dispatch @rowwise_
func.func @wide(%x: tensor<?x8192xf32>, %s: tensor<?x4xf32, #hybrid.slots> {hybrid.role = "state"})
    -> tensor<?x8192xf32> attributes {hybrid.entry = "extend"} {
  %0 = hybrid.silu %x : tensor<?x8192xf32>
  return %0 : tensor<?x8192xf32>
}

// -----

// A convolution with a state: segments of up to 4 rows are one block of 4.

// CUDA-LABEL: func.func @conv_step
// CUDA-NOT:     hybrid.alternatives
// CHECK-DAG: #[[FEW:.*]] = affine_set<()[s0, s1, s2, s3, s4, s5] : (-s2 + 4 >= 0)>
// CHECK-DAG: #[[FOUR:.*]] = affine_map<()[s0, s1, s2, s3, s4, s5] -> (s1, 1, s2 ceildiv 4)>
// CHECK-DAG: #[[MANY:.*]] = affine_map<()[s0, s1, s2, s3, s4, s5] -> (s1, 1, s2 ceildiv 64)>
// CHECK-LABEL: func.func @conv_step
// CHECK:         hybrid.alternatives [#[[FEW]]]
// CHECK:           hybrid.dispatch @[[A:short_conv_forward_[0-9a-f]+]](%arg0, %arg1, %arg3, %arg2) ties = [1, 3]
// CHECK:         }, {
// CHECK:           hybrid.dispatch @[[B:short_conv_forward_[0-9a-f]+]](%arg0, %arg1, %arg3, %arg2) ties = [1, 3]
// CHECK:       tile.program @[[A]]{{.*}} grid #[[FOUR]]
// CHECK:       tile.program @[[B]]{{.*}} grid #[[MANY]]
func.func @conv_step(%x: tensor<?x32xf32>, %w: tensor<32x3xf32>,
                     %s: tensor<?x2x32xf32, #hybrid.slots> {hybrid.role = "state"},
                     %segments: !hybrid.segments)
    -> (tensor<?x32xf32>, tensor<?x2x32xf32, #hybrid.slots>) attributes {hybrid.entry = "extend"} {
  %y, %t = hybrid.short_conv %x, %w, %segments state(%s)
      : (tensor<?x32xf32>, tensor<32x3xf32>, !hybrid.segments, tensor<?x2x32xf32, #hybrid.slots>)
        -> (tensor<?x32xf32>, tensor<?x2x32xf32, #hybrid.slots>)
  return %y, %t : tensor<?x32xf32>, tensor<?x2x32xf32, #hybrid.slots>
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
