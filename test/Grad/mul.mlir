// Each operand of a product gets dy times the other, summed where stretched.
// RUN: hybrid-opt %s -hybrid-differentiate | FileCheck %s

// CHECK-LABEL: func.func @backward(
// CHECK-SAME:    %[[A:[a-z0-9]+]]: tensor<?x4xf32> {{.*}}, %[[B:[a-z0-9]+]]: tensor<4xf32> {{.*}}, %[[DA:[a-z0-9]+]]: tensor<?x4xf32> {{.*}}, %[[DB:[a-z0-9]+]]: tensor<4xf32>
// CHECK:         %[[DY:.+]] = hybrid.fill 1.000000e+00
// CHECK:         %[[GA:.+]] = hybrid.mul %[[DY]], %[[B]] : tensor<?x4xf32>, tensor<4xf32>
// CHECK:         %[[GB:.+]] = hybrid.mul %[[DY]], %[[A]]
// CHECK:         %[[SUM:.+]] = hybrid.reduce_tokens %[[GB]]
// CHECK-DAG:     hybrid.add %[[DA]], %[[GA]]
// CHECK-DAG:     hybrid.add %[[DB]], %[[SUM]]
func.func @loss(%a: tensor<?x4xf32> {hybrid.role = "param"}, %b: tensor<4xf32> {hybrid.role = "param"})
    -> tensor<?x4xf32> attributes {hybrid.entry = "loss"} {
  %y = hybrid.mul %a, %b : tensor<?x4xf32>, tensor<4xf32>
  return %y : tensor<?x4xf32>
}
