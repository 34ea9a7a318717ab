// RUN: hybrid-opt %s --hybrid-schedule --split-input-file | FileCheck %s
// RUN: hybrid-opt %s --hybrid-schedule=target=cuda --split-input-file | FileCheck %s --check-prefix=CUDA

// The products around a loss, the loss and its adjoint run for some rows at a
// time: 256 where logits have 20000 columns, 4096 on a GPU. The gradient of f32
// logits overwrites them, and that of the weight is added to in place. The loss
// gives the adjoint two numbers of each row.

// CHECK-LABEL: func.func @backward
// CHECK:         %[[R:.*]]:3 = hybrid.pieces of 256 rows(%arg1, %arg3, %arg4) sums(%arg2)
// CUDA-LABEL:  func.func @backward
// CUDA:          hybrid.pieces of 4096 rows
// CHECK-NEXT:    ^bb0(%[[X:.*]]: tensor<?x16xf32>, %[[Y:.*]]: tensor<?xi32>, %[[W:.*]]: tensor<?xf32>, %[[SUM:.*]]: tensor<20000x16xf32>):
// CHECK-NEXT:      %[[LOGITS:.*]] = hybrid.dispatch @product_{{[0-9a-f]+}}(%[[X]], %arg0)
// CHECK-NEXT:      %[[LOSS:.*]]:3 = hybrid.dispatch @cross_entropy_{{[0-9a-f]+}}(%[[LOGITS]], %[[Y]], %[[W]])
// CHECK-NEXT:      %[[D:.*]] = hybrid.dispatch @cross_entropy_grad_{{[0-9a-f]+}}(%[[LOGITS]], %[[Y]], %[[W]], %[[LOSS]]#1, %[[LOSS]]#2) ties = [0, 0]
// CHECK-NEXT:      %[[DX:.*]] = hybrid.dispatch @product_{{[0-9a-f]+}}(%[[D]], %arg0)
// CHECK-NEXT:      %[[DW:.*]] = hybrid.dispatch @product_{{[0-9a-f]+}}(%[[D]], %[[X]], %[[SUM]]) ties = [0, 2]
// CHECK-NEXT:      hybrid.yield %[[LOSS]]#0, %[[DX]], %[[DW]]
// CHECK:         return %[[R]]#0, %[[R]]#2, %[[R]]#1
func.func @backward(%w: tensor<20000x16xf32> {hybrid.role = "param", hybrid.path = "w"},
                    %x: tensor<?x16xf32> {hybrid.role = "input", hybrid.path = "x"},
                    %dw: tensor<20000x16xf32> {hybrid.role = "gradient", hybrid.path = "w"},
                    %y: tensor<?xi32> {hybrid.role = "labels"},
                    %weights: tensor<?xf32> {hybrid.role = "weights"})
    -> (tensor<?xf32>, tensor<20000x16xf32>, tensor<?x16xf32>)
    attributes {hybrid.entry = "losses"} {
  %0 = hybrid.product %x, %w transpose_b : (tensor<?x16xf32>, tensor<20000x16xf32>) -> tensor<?x20000xf32>
  %1 = hybrid.cross_entropy %0, %y, %weights : (tensor<?x20000xf32>, tensor<?xi32>, tensor<?xf32>) -> tensor<?xf32>
  %2 = hybrid.cross_entropy_grad %0, %y, %weights : (tensor<?x20000xf32>, tensor<?xi32>, tensor<?xf32>) -> tensor<?x20000xf32>
  %3 = hybrid.product %2, %w : (tensor<?x20000xf32>, tensor<20000x16xf32>) -> tensor<?x16xf32>
  %4 = hybrid.product %2, %x transpose_a : (tensor<?x20000xf32>, tensor<?x16xf32>) -> tensor<20000x16xf32>
  %5 = hybrid.add %dw, %4 : tensor<20000x16xf32>, tensor<20000x16xf32>
  return %1, %5, %3 : tensor<?xf32>, tensor<20000x16xf32>, tensor<?x16xf32>
}

// -----

// In a narrow type the gradient is rounded as it is made, beside the logits; in
// front of the loss it goes through them twice. A
// tied weight's gradient goes on behind the pieces; small logits are one piece
// up to many rows.

// CHECK-LABEL: func.func @tied
// CHECK:         %[[R:.*]]:2 = hybrid.pieces of 65536 rows(%{{.*}}, %arg3, %arg4) sums(%arg2)
// CHECK:           hybrid.dispatch @cross_entropy_grad_{{[0-9a-f]+}}(%{{.*}}, %{{.*}}, %{{.*}}) :
// CHECK:         hybrid.dispatch @embed_grad_{{[0-9a-f]+}}(%arg5, %{{.*}}, %[[R]]#1) ties = [0, 2]
func.func @tied(%c: tensor<64x16xbf16> {hybrid.role = "input", hybrid.path = "w"},
                %ids: tensor<?xi32> {hybrid.role = "ids"},
                %dw: tensor<64x16xf32> {hybrid.role = "gradient", hybrid.path = "w"},
                %y: tensor<?xi32> {hybrid.role = "labels"},
                %weights: tensor<?xf32> {hybrid.role = "weights"})
    -> tensor<64x16xf32> attributes {hybrid.entry = "losses"} {
  %x = hybrid.embed %ids, %c : (tensor<?xi32>, tensor<64x16xbf16>) -> tensor<?x16xbf16>
  %0 = hybrid.product %x, %c transpose_b : (tensor<?x16xbf16>, tensor<64x16xbf16>) -> tensor<?x64xf32>
  %2 = hybrid.cross_entropy_grad %0, %y, %weights : (tensor<?x64xf32>, tensor<?xi32>, tensor<?xf32>) -> tensor<?x64xbf16>
  %1 = hybrid.cross_entropy %0, %y, %weights : (tensor<?x64xf32>, tensor<?xi32>, tensor<?xf32>) -> tensor<?xf32>
  %3 = hybrid.product %2, %c : (tensor<?x64xbf16>, tensor<64x16xbf16>) -> tensor<?x16xbf16>
  %4 = hybrid.product %2, %x transpose_a : (tensor<?x64xbf16>, tensor<?x16xbf16>) -> tensor<64x16xf32>
  %5 = hybrid.add %dw, %4 : tensor<64x16xf32>, tensor<64x16xf32>
  %6 = hybrid.embed_grad %ids, %3 : (tensor<?xi32>, tensor<?x16xbf16>) -> tensor<64x16xf32>
  %7 = hybrid.add %5, %6 : tensor<64x16xf32>, tensor<64x16xf32>
  return %7 : tensor<64x16xf32>
}

// -----

// Logits that somebody else reads have to be there whole.

// CHECK-LABEL: func.func @read_elsewhere
// CHECK-NOT:     hybrid.pieces
// CHECK:         return
func.func @read_elsewhere(%x: tensor<?x16xf32>, %w: tensor<64x16xf32>, %y: tensor<?xi32>, %weights: tensor<?xf32>)
    -> (tensor<?xf32>, tensor<?x64xf32>) attributes {hybrid.entry = "f"} {
  %0 = hybrid.product %x, %w transpose_b : (tensor<?x16xf32>, tensor<64x16xf32>) -> tensor<?x64xf32>
  %1 = hybrid.cross_entropy %0, %y, %weights : (tensor<?x64xf32>, tensor<?xi32>, tensor<?xf32>) -> tensor<?xf32>
  return %1, %0 : tensor<?xf32>, tensor<?x64xf32>
}

// -----

// A gradient that is not added to one of the caller's has no place to be summed
// in over the pieces.

// CHECK-LABEL: func.func @no_sum
// CHECK-NOT:     hybrid.pieces
// CHECK:         return
func.func @no_sum(%x: tensor<?x16xf32>, %w: tensor<64x16xf32>, %y: tensor<?xi32>, %weights: tensor<?xf32>)
    -> (tensor<?xf32>, tensor<64x16xf32>) attributes {hybrid.entry = "f"} {
  %0 = hybrid.product %x, %w transpose_b : (tensor<?x16xf32>, tensor<64x16xf32>) -> tensor<?x64xf32>
  %1 = hybrid.cross_entropy %0, %y, %weights : (tensor<?x64xf32>, tensor<?xi32>, tensor<?xf32>) -> tensor<?xf32>
  %2 = hybrid.cross_entropy_grad %0, %y, %weights : (tensor<?x64xf32>, tensor<?xi32>, tensor<?xf32>) -> tensor<?x64xf32>
  %3 = hybrid.product %2, %x transpose_a : (tensor<?x64xf32>, tensor<?x16xf32>) -> tensor<64x16xf32>
  return %1, %3 : tensor<?xf32>, tensor<64x16xf32>
}
