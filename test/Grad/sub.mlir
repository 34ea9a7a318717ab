// The second operand of a difference gets the negated gradient.
// RUN: hybrid-opt %s -hybrid-differentiate | FileCheck %s

// CHECK-LABEL: func.func @backward(
// CHECK-SAME:    %[[A:[a-z0-9]+]]: tensor<?x4xf32> {{.*}}, %[[B:[a-z0-9]+]]: tensor<4xf32> {{.*}}, %[[DA:[a-z0-9]+]]: tensor<?x4xf32> {{.*}}, %[[DB:[a-z0-9]+]]: tensor<4xf32>
// CHECK:         %[[DY:.+]] = hybrid.fill 1.000000e+00
// CHECK:         %[[NEG:.+]] = hybrid.neg %[[DY]]
// CHECK:         %[[SUM:.+]] = hybrid.reduce_tokens %[[NEG]]
// CHECK-DAG:     hybrid.add %[[DA]], %[[DY]]
// CHECK-DAG:     hybrid.add %[[DB]], %[[SUM]]
func.func @loss(%a: tensor<?x4xf32> {hybrid.role = "param"}, %b: tensor<4xf32> {hybrid.role = "param"})
    -> tensor<?x4xf32> attributes {hybrid.entry = "loss"} {
  %y = hybrid.sub %a, %b : tensor<?x4xf32>, tensor<4xf32>
  return %y : tensor<?x4xf32>
}
