// RUN: hybrid-opt %s --hybrid-schedule --split-input-file | FileCheck %s

// A model that is trained gets the optimiser's step over its flat buffers. 65
// elements take 80: each parameter starts at a multiple of 16.

// CHECK-LABEL: func.func @update
// CHECK-SAME:    %[[P:arg0]]: tensor<96xf32> {hybrid.role = "param"}
// CHECK-SAME:    %[[G:arg1]]: tensor<96xf32> {hybrid.role = "gradient"}
// CHECK-SAME:    %[[M:arg2]]: tensor<96xf32> {hybrid.role = "moment1"}
// CHECK-SAME:    %[[V:arg3]]: tensor<96xf32> {hybrid.role = "moment2"}
// CHECK-SAME:    %[[S:arg4]]: tensor<16xf32> {hybrid.role = "scalars"}
// CHECK:         %[[SUMS:.*]] = hybrid.dispatch @{{.*}}(%[[G]], %[[S]]) :
// CHECK:         %[[NORM:.*]] = hybrid.dispatch @{{.*}}(%[[SUMS]], %[[S]]) ties = [0, 1]
// CHECK:         %[[R:.*]]:3 = hybrid.dispatch @{{.*}}(%[[P]], %[[G]], %[[M]], %[[V]], %[[NORM]]) ties = [0, 0, 1, 2, 2, 3]
// CHECK:         return %[[R]]#0, %[[R]]#1, %[[R]]#2, %[[NORM]]
module attributes {
  hybrid.meta = {name = "m", vocab = 8 : i64, trained_length = 0 : i64},
  hybrid.params = [
    {path = "a", shape = array<i64: 5, 13>, init = "ones", decay = true},
    {path = "b", shape = array<i64: 3>, init = "ones", decay = false}],
  hybrid.states = []} {
  func.func @backward(%g: tensor<5x13xf32> {hybrid.role = "gradient", hybrid.path = "a"})
      -> (tensor<5x13xf32> {hybrid.role = "gradient", hybrid.path = "a"})
      attributes {hybrid.entry = "backward"} {
    return %g : tensor<5x13xf32>
  }
}

// -----

// One that is not trained does not.

// CHECK-NOT: @update
// CHECK-LABEL: func.func @loss
// CHECK-NOT: @update
func.func @loss(%x: tensor<?x4xf32>) -> tensor<?x4xf32>
    attributes {hybrid.entry = "loss"} {
  %0 = hybrid.silu %x : tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
