// The gradient of a cast is cast back. That of a parameter is f32 from its first
// term on; that of an activation has its type, and several are summed in f32.
// RUN: hybrid-opt %s -hybrid-differentiate | FileCheck %s

!rows = tensor<?x8xbf16>
!wide = tensor<?x8xf32>

// CHECK-LABEL: func.func @backward(
// CHECK-SAME:    %[[W:[a-z0-9]+]]: tensor<8x8xf32> {hybrid.role = "param"}, %[[DW:[a-z0-9]+]]: tensor<8x8xf32> {hybrid.role = "gradient"}
// CHECK:         %[[COPY:.+]] = hybrid.cast %[[W]]
// CHECK:         %[[Y:.+]] = hybrid.product %{{.+}}, %[[COPY]] transpose_b
// CHECK:         hybrid.silu
// CHECK:         %[[DL:.+]] = hybrid.fill 1.000000e+00

// CHECK:         %[[D1:.+]] = hybrid.neg %[[DL]]
// CHECK:         %[[D1H:.+]] = hybrid.cast %[[D1]] : tensor<?x8xf32> to tensor<?x8xbf16>

// f32 values of row-wise operations are made again from what is stored.
// CHECK:         %[[WIDE:.+]] = hybrid.cast %[[Y]] {hybrid.recompute}
// CHECK:         %[[D2:.+]] = hybrid.silu_grad %[[WIDE]], %[[DL]]
// CHECK:         %[[FIRST:.+]] = hybrid.cast %[[D1H]] : tensor<?x8xbf16> to tensor<?x8xf32>
// CHECK:         %[[SUM:.+]] = hybrid.add %[[FIRST]], %[[D2]] : tensor<?x8xf32>, tensor<?x8xf32>
// CHECK:         %[[ROUNDED:.+]] = hybrid.cast %[[SUM]] : tensor<?x8xf32> to tensor<?x8xbf16>
// CHECK:         %[[G:.+]] = hybrid.product %[[ROUNDED]], %{{.+}} transpose_a : (tensor<?x8xbf16>, tensor<?x8xbf16>) -> tensor<8x8xf32>
// CHECK:         %[[TOTAL:.+]] = hybrid.add %[[DW]], %[[G]] : tensor<8x8xf32>, tensor<8x8xf32>
// CHECK:         return %{{.+}}, %[[TOTAL]]
func.func @loss(%w: tensor<8x8xf32> {hybrid.role = "param"}, %x: !rows {hybrid.role = "input"})
    -> !wide attributes {hybrid.entry = "loss"} {
  %copy = hybrid.cast %w : tensor<8x8xf32> to tensor<8x8xbf16>
  %y = hybrid.product %x, %copy transpose_b : (!rows, tensor<8x8xbf16>) -> !rows
  %a = hybrid.cast %y : !rows to !wide
  %s = hybrid.silu %a : !wide
  %b = hybrid.cast %y : !rows to !wide
  %n = hybrid.neg %b : !wide
  %l = hybrid.add %s, %n : !wide, !wide
  return %l : !wide
}
