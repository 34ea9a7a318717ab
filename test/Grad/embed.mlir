// Rows of the gradient are summed per id.
// RUN: hybrid-opt %s -hybrid-differentiate | FileCheck %s

// CHECK-LABEL: func.func @backward(
// CHECK-SAME:    %[[TABLE:[a-z0-9]+]]: tensor<8x4xf32> {{.*}}, %[[DTABLE:[a-z0-9]+]]: tensor<8x4xf32> {{.*}}, %[[IDS:[a-z0-9]+]]: tensor<?xi32>
// CHECK:         %[[DY:.+]] = hybrid.fill 1.000000e+00
// CHECK:         %[[G:.+]] = hybrid.embed_grad %[[IDS]], %[[DY]]
// CHECK:         hybrid.add %[[DTABLE]], %[[G]]
func.func @loss(%ids: tensor<?xi32> {hybrid.role = "ids"}, %table: tensor<8x4xf32> {hybrid.role = "param"})
    -> tensor<?x4xf32> attributes {hybrid.entry = "loss"} {
  %y = hybrid.embed %ids, %table : (tensor<?xi32>, tensor<8x4xf32>) -> tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}
