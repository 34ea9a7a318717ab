//===- Passes.td - passes of the phase 'schedule' -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_SCHEDULE_PASSES_TD
#define HYBRID_SCHEDULE_PASSES_TD

include "mlir/Pass/PassBase.td"

def HybridSchedule : Pass<"hybrid-schedule", "::mlir::ModuleOp"> {
  let summary = "turn graph operations into launches of tile programs";
  let description = [{
    Replaces every operation of every entry by `hybrid.dispatch`. A strategy
    table, keyed by operation and target and guarded by shape, decides which
    family program runs it, with which tile sizes and workspaces; where the best
    choice depends on the call (few tokens, short segments), both algorithms are
    kept in `hybrid.alternatives`. Reshapes, slices and concatenations stay: they
    are views, and producers write into their part of a concatenation. Where a
    view cannot be had, a copy is inserted.

    The loss and what sees its logits run in pieces of rows (`hybrid.pieces`), so
    that logits of all rows never exist.

    A product that is added to an accumulated gradient adds in place. Entry
    `update` (AdamW over the flat parameter buffer) is added when the module has
    an entry `backward`. Programs are built once per content and named by a hash
    of it.

    Before, from `test/Schedule/product.mlir`:

    ```mlir
    %y = hybrid.product %x, %w transpose_b
        : (tensor<?x64xf32>, tensor<32x64xf32>) -> tensor<?x32xf32>
    ```

    After:

    ```mlir
    %y = hybrid.dispatch @product_3f2a91c4(%x, %w)
        product(#hybrid.plain_product<transpose_b = true>)
        : (tensor<?x64xf32>, tensor<32x64xf32>) -> tensor<?x32xf32>
    ```

    Numbers change only as far as the programs' order of additions differs from
    the plain definition.
  }];
  let options = [
    Option<"target", "target", "std::string", /*default=*/"\"cpu\"",
           "the target whose strategies are used">,
    Option<"hopper", "hopper", "bool", /*default=*/"true",
           "write schedule records for what sm_90a alone has, where the target "
           "is cuda:sm_90a and the data bf16 or f16">,
    Option<"epilogues", "epilogues", "bool", /*default=*/"true",
           "let products that have such records take the row-wise operations "
           "behind them, where that is faster than a pass of their own">,
    Option<"pieceRows", "piece-rows", "int64_t", /*default=*/"0",
           "rows of a piece of a loss head; 0 takes what the target says">,
  ];
  let statistics = [
    Statistic<"numDispatches", "dispatches", "Launches made">,
    Statistic<"numPrograms", "programs", "Distinct tile programs">,
    Statistic<"numAlternatives", "alternatives",
              "Places where the call chooses the algorithm">,
    Statistic<"numCopies", "copies", "Copies inserted where no view exists">,
    Statistic<"numAccumulated", "accumulated",
              "Products that add to a gradient in place">,
    Statistic<"numEpilogues", "epilogues",
              "Products that take row-wise operations behind them">,
    Statistic<"numMerged", "merged",
              "Launches that are part of another launch">,
    Statistic<"numOverlapping", "overlapping",
              "Programs that may begin before the launch in front of them ends">,
    Statistic<"numPieces", "pieces", "Loss heads that run in pieces of rows">,
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect",
    "::mlir::func::FuncDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect",
    "::hybrid::HybridDialect", "::hybrid::tile::TileDialect",
  ];
}

#endif // HYBRID_SCHEDULE_PASSES_TD
