//===- Passes.td - passes of the phase 'grad' -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_GRAD_PASSES_TD
#define HYBRID_GRAD_PASSES_TD

include "mlir/Pass/PassBase.td"

def HybridDifferentiate : Pass<"hybrid-differentiate", "::mlir::ModuleOp"> {
  let summary = "make `backward` of `loss`";
  let description = [{
    Reverse mode on the graph. From the function with `hybrid.entry = "loss"` it
    makes one with `hybrid.entry = "backward"`: an argument of role `gradient`
    behind the parameters for each of them, which the gradient of the summed loss
    is added to; results are the loss and the accumulated gradients. How a
    gradient passes through an operation is the operation's own rule
    (`DifferentiableOpInterface`); operations that only constants, ids, labels or
    weights reach are left out. Adjoint operations keep the location of their
    forward operation. Operations nobody uses are removed.

    With `recompute=layer` the backward of a layer starts with a copy of the
    layer's forward operations, so that between the two only the layer's input is
    kept: less memory for one more forward. The copies carry the attribute
    `hybrid.recompute`, which keeps them apart from the first computation. It
    changes no numbers.

    Before:

    ```mlir
    func.func @loss(%w: tensor<8x4xf32> {hybrid.role = "param", hybrid.path = "head.weight"}, %x: ..., %labels: ..., %weights: ...)
        -> tensor<?xf32> attributes {hybrid.entry = "loss"} {
      %logits = hybrid.product %x, %w transpose_b : ...
      %loss = hybrid.cross_entropy %logits, %labels, %weights : ...
      return %loss : tensor<?xf32>
    }
    ```

    After, beside it:

    ```mlir
    func.func @backward(%w: ..., %dw: tensor<8x4xf32> {hybrid.role = "gradient", hybrid.path = "head.weight"}, %x: ..., ...)
        -> (tensor<?xf32>, tensor<8x4xf32>) attributes {hybrid.entry = "backward"} {
      %logits = hybrid.product %x, %w transpose_b : ...
      %loss = hybrid.cross_entropy %logits, %labels, %weights : ...
      %dlogits = hybrid.cross_entropy_grad %logits, %labels, %weights : ...
      %0 = hybrid.product %dlogits, %x transpose_a : ...
      %1 = hybrid.add %dw, %0 : ...
      return %loss, %1 : ...
    }
    ```
  }];
  let options = [
    Option<"recompute", "recompute", "::hybrid::Recompute", "::hybrid::Recompute::none",
           "what backward computes again instead of keeping",
           [{::llvm::cl::values(
             clEnumValN(::hybrid::Recompute::none, "none", "nothing"),
             clEnumValN(::hybrid::Recompute::layer, "layer",
                        "each layer, from its input"))}]>
  ];
  let statistics = [
    Statistic<"numAdjoints", "adjoints", "Operations a gradient was passed through">,
    Statistic<"numRecomputed", "recomputed", "Forward operations that are computed again">
  ];
  let dependentDialects = ["::hybrid::HybridDialect", "::mlir::func::FuncDialect"];
}

#endif // HYBRID_GRAD_PASSES_TD
