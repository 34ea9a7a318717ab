// With recompute=layer the backward of a layer starts with its forward again.
// RUN: hybrid-opt %s -hybrid-differentiate=recompute=layer | FileCheck %s
// RUN: hybrid-opt %s -hybrid-differentiate=recompute=none | FileCheck %s --check-prefix=NONE

#embed = loc("embed"("m.mlir":1:1))
#l0 = loc("layers.0.mlp"("m.mlir":2:1))
#l1 = loc("layers.1.mlp"("m.mlir":3:1))

// CHECK-LABEL: func.func @backward(
// CHECK:         %[[X:.+]] = hybrid.neg %{{.+}} : tensor<?x4xf32>
// CHECK-NEXT:    %[[F0:.+]] = hybrid.silu %[[X]] : tensor<?x4xf32>
// CHECK-NEXT:    %[[X1:.+]] = hybrid.add %[[X]], %[[F0]] :
// CHECK-NEXT:    %[[F1:.+]] = hybrid.silu %[[X1]] :
// CHECK-NEXT:    %[[G1:.+]] = hybrid.exp %[[F1]] :
// CHECK-NEXT:    %[[X2:.+]] = hybrid.add %[[X1]], %[[G1]] :
// CHECK-NEXT:    %[[D2:.+]] = hybrid.fill
// Layer 1 again, from its input; its last sum is not needed.
// CHECK-NEXT:    %[[F1B:.+]] = hybrid.silu %[[X1]] {hybrid.recompute}
// CHECK-NEXT:    %[[G1B:.+]] = hybrid.exp %[[F1B]] {hybrid.recompute}
// CHECK-NEXT:    %[[DF1:.+]] = hybrid.mul %[[D2]], %[[G1B]]
// CHECK-NEXT:    %[[DS1:.+]] = hybrid.silu_grad %[[X1]], %[[DF1]]
// CHECK-NEXT:    %[[D1:.+]] = hybrid.add %[[D2]], %[[DS1]]
// Layer 0 needs its input alone.
// CHECK-NEXT:    %[[DS0:.+]] = hybrid.silu_grad %[[X]], %[[D1]]
// CHECK-NEXT:    %[[D0:.+]] = hybrid.add %[[D1]], %[[DS0]]
// CHECK-NEXT:    hybrid.neg %[[D0]]
// CHECK:         return %[[X2]]

// NONE-NOT: hybrid.recompute
func.func @loss(%p: tensor<?x4xf32> {hybrid.role = "param"}) -> tensor<?x4xf32> attributes {hybrid.entry = "loss"} {
  %x = hybrid.neg %p : tensor<?x4xf32> loc(#embed)
  %f0 = hybrid.silu %x : tensor<?x4xf32> loc(#l0)
  %x1 = hybrid.add %x, %f0 : tensor<?x4xf32>, tensor<?x4xf32> loc(#l0)
  %f1 = hybrid.silu %x1 : tensor<?x4xf32> loc(#l1)
  %g1 = hybrid.exp %f1 : tensor<?x4xf32> loc(#l1)
  %x2 = hybrid.add %x1, %g1 : tensor<?x4xf32>, tensor<?x4xf32> loc(#l1)
  return %x2 : tensor<?x4xf32>
}
