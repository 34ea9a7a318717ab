// RUN: hybrid-opt %s --hybrid-schedule --split-input-file | FileCheck %s
// RUN: hybrid-opt %s --hybrid-schedule=target=cuda:sm_90a --split-input-file | FileCheck %s --check-prefix=CUDA

// Whole sequences: one launch.

// CHECK-LABEL: func.func @loss
// CHECK-NEXT:    %[[Y:.*]] = hybrid.dispatch @product_{{[0-9a-f]+}}(%arg0, %arg1) product(#hybrid.plain_product<transpose_b = true>) :
// CHECK-NEXT:    return %[[Y]]
func.func @loss(%x: tensor<?x64xf32>, %w: tensor<32x64xf32>) -> tensor<?x32xf32>
    attributes {hybrid.entry = "loss"} {
  %y = hybrid.product %x, %w transpose_b
      : (tensor<?x64xf32>, tensor<32x64xf32>) -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// -----

// With a state a call may be a step of few rows; rows here are segments. Programs
// for few rows are not marked as products.

// CHECK-DAG: #[[FEW:.*]] = affine_set<()[s0, s1, s2, s3, s4, s5] : (-s1 + 8 >= 0)>
// CHECK-DAG: #[[ONE:.*]] = affine_set<()[s0, s1, s2, s3, s4, s5] : (-s1 + 1 >= 0)>
// CHECK-LABEL: func.func @extend
// CHECK:         hybrid.alternatives [#[[FEW]]]
// CHECK:           hybrid.alternatives [#[[ONE]]]
// CHECK:             hybrid.dispatch @[[A:product_[0-9a-f]+]](
// CHECK:           }, {
// CHECK-NOT:         @[[A]](
// CHECK:             hybrid.dispatch @[[B:product_[0-9a-f]+]](%arg0, %arg1) :
// CHECK:         }, {
// CHECK-NOT:       {{@([[A]]|[[B]])}}(
// CHECK:           hybrid.dispatch @product_{{[0-9a-f]+}}(%arg0, %arg1) product(

// On a GPU up to four rows read the matrix each, and tiles are smaller until
// whole ones fill 132 processors.

// CUDA-DAG: #[[FEW:.*]] = affine_set<()[s0, s1, s2, s3, s4, s5] : (-s1 + 16 >= 0)>
// CUDA-DAG: #[[READ:.*]] = affine_set<()[s0, s1, s2, s3, s4, s5] : (-s1 + 4 >= 0)>
// CUDA-DAG: #[[MEDIUM:.*]] = affine_set<()[s0, s1, s2, s3, s4, s5] : (-s1 + 16768 >= 0)>
// CUDA-LABEL: func.func @extend
// CUDA:         hybrid.alternatives [#[[READ]]]
// CUDA:           hybrid.dispatch @row_products_
// CUDA:         }, {
// CUDA:           hybrid.alternatives [#[[FEW]]]
// CUDA:             hybrid.dispatch @product_{{[0-9a-f]+}}(%arg0, %arg1) :
// CUDA:           }, {
// CUDA:           hybrid.alternatives [#[[MEDIUM]]]
// CUDA:             hybrid.dispatch @[[M:product_[0-9a-f]+]](%arg0, %arg1) product(
// CUDA:           }, {
// CUDA-NOT:         @[[M]](
// CUDA:             hybrid.dispatch @product_{{[0-9a-f]+}}(%arg0, %arg1) product(
func.func @extend(%x: tensor<?x64xf32, #hybrid.per_segment>, %w: tensor<32x64xf32>,
                  %s: tensor<?x4xf32, #hybrid.slots> {hybrid.role = "state"})
    -> tensor<?x32xf32, #hybrid.per_segment> attributes {hybrid.entry = "extend"} {
  %y = hybrid.product %x, %w transpose_b
      : (tensor<?x64xf32, #hybrid.per_segment>, tensor<32x64xf32>)
        -> tensor<?x32xf32, #hybrid.per_segment>
  return %y : tensor<?x32xf32, #hybrid.per_segment>
}

// -----

// A weight's gradient is added to the caller's buffer in place, twice where the
// weight is used twice, and the products themselves are never stored.

// CHECK-LABEL: func.func @backward
// CHECK-SAME:    %[[DY:arg0]]: {{.*}} %[[X:arg1]]: {{.*}} %[[G:arg2]]:
// CHECK-NEXT:    %[[A:.*]] = hybrid.dispatch @[[P:product_[0-9a-f]+]](%[[DY]], %[[X]], %[[G]]) ties = [0, 2] product(#hybrid.plain_product<transpose_a = true>)
// CHECK-NEXT:    %[[B:.*]] = hybrid.dispatch @[[P]](%[[DY]], %[[X]], %[[A]]) ties = [0, 2]
// CHECK-NEXT:    return %[[B]]

// One tile over all tokens is one processor's work, so a GPU takes the depth in
// ranges and adds the sum of their parts.

// CUDA-LABEL: func.func @backward
// CUDA-SAME:    %[[DY:arg0]]: {{.*}} %[[X:arg1]]: {{.*}} %[[G:arg2]]:
// CUDA:         %[[PARTS:.*]] = hybrid.dispatch @[[P:product_[0-9a-f]+]](%[[DY]], %[[X]]) : {{.*}} -> tensor<?x32x64xf32, #hybrid.sized
// CUDA:         %[[A:.*]] = hybrid.dispatch @[[S:product_sum_[0-9a-f]+]](%[[PARTS]], %[[G]]) ties = [0, 1] product(#hybrid.plain_product<transpose_a = true, parts = true>)
// CUDA:         %[[MORE:.*]] = hybrid.dispatch @[[P]](%[[DY]], %[[X]])
// CUDA:         %[[B:.*]] = hybrid.dispatch @[[S]](%[[MORE]], %[[A]]) ties = [0, 1]
// CUDA:         return %[[B]]
func.func @backward(%dy: tensor<?x32xf32>, %x: tensor<?x64xf32>,
                    %g: tensor<32x64xf32> {hybrid.role = "gradient"})
    -> tensor<32x64xf32> attributes {hybrid.entry = "loss"} {
  %0 = hybrid.product %dy, %x transpose_a
      : (tensor<?x32xf32>, tensor<?x64xf32>) -> tensor<32x64xf32>
  %1 = hybrid.product %dy, %x transpose_a
      : (tensor<?x32xf32>, tensor<?x64xf32>) -> tensor<32x64xf32>
  %2 = hybrid.add %g, %0 : tensor<32x64xf32>, tensor<32x64xf32>
  %3 = hybrid.add %2, %1 : tensor<32x64xf32>, tensor<32x64xf32>
  return %3 : tensor<32x64xf32>
}

// -----

// Not in place: the product has a second reader, or the sum is no gradient.

// CHECK-LABEL: func.func @second_reader
// CHECK:         %[[P:.*]] = hybrid.dispatch @product_{{[0-9a-f]+}}(%arg0, %arg1) product(#hybrid.plain_product<transpose_a = true>) :
// CHECK:         %[[S:.*]] = hybrid.dispatch @rowwise_{{[0-9a-f]+}}(%arg2, %[[P]]) ties = [0, 0]
// CHECK:         return %[[S]], %[[P]]
func.func @second_reader(%dy: tensor<?x32xf32>, %x: tensor<?x64xf32>,
                         %g: tensor<32x64xf32> {hybrid.role = "gradient"})
    -> (tensor<32x64xf32>, tensor<32x64xf32>) attributes {hybrid.entry = "loss"} {
  %0 = hybrid.product %dy, %x transpose_a
      : (tensor<?x32xf32>, tensor<?x64xf32>) -> tensor<32x64xf32>
  %1 = hybrid.add %g, %0 : tensor<32x64xf32>, tensor<32x64xf32>
  return %1, %0 : tensor<32x64xf32>, tensor<32x64xf32>
}

// CHECK-LABEL: func.func @no_gradient
// CHECK:         %[[P:.*]] = hybrid.dispatch @product_{{[0-9a-f]+}}(%arg0, %arg1) product(#hybrid.plain_product<transpose_a = true>) :
// CHECK:         hybrid.dispatch @rowwise_{{[0-9a-f]+}}(%arg2, %[[P]]) :
func.func @no_gradient(%dy: tensor<?x32xf32>, %x: tensor<?x64xf32>,
                       %g: tensor<32x64xf32> {hybrid.role = "param"})
    -> tensor<32x64xf32> attributes {hybrid.entry = "loss"} {
  %0 = hybrid.product %dy, %x transpose_a
      : (tensor<?x32xf32>, tensor<?x64xf32>) -> tensor<32x64xf32>
  %1 = hybrid.add %g, %0 : tensor<32x64xf32>, tensor<32x64xf32>
  return %1 : tensor<32x64xf32>
}
