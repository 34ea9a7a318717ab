// The loss is summed over the tokens, so its own gradient is 1 and left out.
// RUN: hybrid-opt %s -hybrid-differentiate -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @backward(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<?x8xf32> {{.*}}, %[[DX:[a-z0-9]+]]: tensor<?x8xf32> {{.*}}, %[[L:[a-z0-9]+]]: tensor<?xi32>, %[[W:[a-z0-9]+]]: tensor<?xf32>)
// CHECK-NOT:     hybrid.fill
// CHECK:         %[[G:.+]] = hybrid.cross_entropy_grad %[[X]], %[[L]], %[[W]] :
// CHECK:         hybrid.add %[[DX]], %[[G]]
func.func @loss(%x: tensor<?x8xf32> {hybrid.role = "param"}, %l: tensor<?xi32>, %w: tensor<?xf32>)
    -> tensor<?xf32> attributes {hybrid.entry = "loss"} {
  %y = hybrid.cross_entropy %x, %l, %w : (tensor<?x8xf32>, tensor<?xi32>, tensor<?xf32>) -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

// Any other gradient is an operand.
// CHECK-LABEL: func.func @backward(
// CHECK:         %[[D:.+]] = hybrid.scale %{{.+}} by 5.000000e-01
// CHECK:         %[[D2:.+]] = hybrid.scale %{{.+}} by 5.000000e-01
// CHECK:         hybrid.cross_entropy_grad %{{.+}}, %{{.+}}, %{{.+}} dloss(%[[D2]])
func.func @loss(%x: tensor<?x8xf32> {hybrid.role = "param"}, %l: tensor<?xi32>, %w: tensor<?xf32>)
    -> tensor<?xf32> attributes {hybrid.entry = "loss"} {
  %y = hybrid.cross_entropy %x, %l, %w : (tensor<?x8xf32>, tensor<?xi32>, tensor<?xf32>) -> tensor<?xf32>
  %z = hybrid.scale %y by 5.000000e-01 : tensor<?xf32>
  return %z : tensor<?xf32>
}
