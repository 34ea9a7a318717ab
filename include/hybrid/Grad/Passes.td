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
  let summary = "make `backward` of `loss`, and of functions that ask for it";
  let description = [{
    Reverse mode on the graph. From the function with `hybrid.entry = "loss"` it
    makes one with `hybrid.entry = "backward"`: an argument of role `gradient`
    behind the parameters for each of them, which the gradient of the summed loss
    is added to; results are the loss and the accumulated gradients. How a
    gradient passes through an operation is the operation's own rule
    (`DifferentiableOpInterface`); operations that only constants, ids, labels or
    weights reach are left out. Where there is a `training_loss`, it is
    differentiated in place of `loss` and removed. Adjoint operations keep the location of their
    forward operation. Operations nobody uses are removed.

    A function with the attribute `hybrid.differentiate` and an entry `f` gets
    `f_backward`, for tensors that belong to the caller: arguments of role `input`,
    results of role `output`. What `f` returned is handed back in place of being
    computed again; a result of role `saved` is returned for that alone. Example,
    from `test/Grad/functions.mlir`: `attend(q, k, v, segments) -> (o, log_sum_exp
    saved)` becomes `attend_backward(q, k, v, segments, o, log_sum_exp, do) -> (dq,
    dk, dv)`.

    With `recompute=layer` the backward of a layer starts with a copy of the
    layer's forward operations, so that between the two only the layer's input is
    kept: less memory for one more forward. The copies carry the attribute
    `hybrid.recompute`, which keeps them apart from the first computation. It
    changes no numbers.

    With `recompute=selective` only what is cheap of a layer is computed again:
    row-wise operations and short convolutions. Results of products, attention
    and recurrences are kept. The function may choose for itself with an attribute
    `hybrid.recompute = "selective"`, which a `hybrid.model` hands down to it; the
    option is for functions that do not.

    Before, from `test/Grad/differentiate.mlir`:

    ```mlir
    func.func @loss(%w: tensor<8x4xf32> {hybrid.role = "param", hybrid.path = "embed.weight"},
                    ..., %weights: tensor<?xf32> {hybrid.role = "weights"})
        -> (tensor<?xf32> {hybrid.role = "loss"}) attributes {hybrid.entry = "loss"} {
      %x = hybrid.embed %ids, %w : ...
      %y = hybrid.product %x, %w transpose_b : ...
      %loss = hybrid.cross_entropy %y, %labels, %weights : ...
      return %loss : tensor<?xf32>
    }
    ```

    After, beside it:

    ```mlir
    func.func @backward(%w: tensor<8x4xf32> {hybrid.path = "embed.weight", hybrid.role = "param"}, ...,
                        %dw: tensor<8x4xf32> {hybrid.path = "embed.weight", hybrid.role = "gradient"}, ...
        attributes {hybrid.entry = "backward"} {
      %x = hybrid.embed %ids, %w : ...
      %y = hybrid.product %x, %w transpose_b : ...
      %loss = hybrid.cross_entropy %y, %labels, %weights : ...
      %dy = hybrid.cross_entropy_grad %y, %labels, %weights : ...
      %dx = hybrid.product %dy, %w : ...
      %0 = hybrid.product %dy, %x transpose_a : ...
      %1 = hybrid.add %dw, %0 : ...
      %2 = hybrid.embed_grad %ids, %dx : ...
      %3 = hybrid.add %1, %2 : ...
      return %loss, %3, ...
    }
    ```
  }];
  let options = [
    Option<"recompute", "recompute", "::hybrid::Recompute", "::hybrid::Recompute::none",
           "what backward computes again instead of keeping",
           [{::llvm::cl::values(
             clEnumValN(::hybrid::Recompute::none, "none", "nothing"),
             clEnumValN(::hybrid::Recompute::layer, "layer",
                        "each layer, from its input"),
             clEnumValN(::hybrid::Recompute::selective, "selective",
                        "what is cheap of each layer, from what is not"))}]>
  ];
  let statistics = [
    Statistic<"numAdjoints", "adjoints", "Operations a gradient was passed through">,
    Statistic<"numRecomputed", "recomputed", "Forward operations that are computed again">
  ];
  let dependentDialects = ["::hybrid::HybridDialect", "::mlir::func::FuncDialect"];
}

#endif // HYBRID_GRAD_PASSES_TD
