//===- Loss.cpp - strategies of losses and their adjoints -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Logits are the largest tensor of a step, so each launch goes through them
// once: what the adjoint needs of a whole row is two numbers, which the launch
// of the loss has at hand (docs/rationale/loss-head.md).
//
//===----------------------------------------------------------------------===//

#include "Scheduler.h"

#include "hybrid/Tile/Families/Rows.h"

using namespace mlir;
using namespace hybrid;

static tile::CrossEntropyShape crossEntropyShape(Value logits,
                                                 const TargetTraits &target) {
  tile::CrossEntropyShape shape;
  shape.rowTile = target.lossRows;
  shape.columnTile = target.lossColumns;
  shape.vocab = cast<RankedTensorType>(logits.getType()).getDimSize(1);
  return shape;
}

/// The adjoints of losses of the same logits that come after this one.
static SmallVector<CrossEntropyGradOp> adjointsBehind(CrossEntropyOp op) {
  SmallVector<CrossEntropyGradOp> adjoints;
  for (Operation *user : op.getLogits().getUsers())
    if (auto adjoint = dyn_cast<CrossEntropyGradOp>(user))
      if (adjoint->getBlock() == op->getBlock() && op->isBeforeInBlock(adjoint))
        adjoints.push_back(adjoint);
  return adjoints;
}

LogicalResult hybrid::scheduleOp(Scheduler &scheduler, CrossEntropyOp op) {
  tile::CrossEntropyShape shape =
      crossEntropyShape(op.getLogits(), scheduler.target);
  SmallVector<CrossEntropyGradOp> adjoints = adjointsBehind(op);
  shape.hasStatistics = !adjoints.empty();
  scheduler.chose(
      op, "HYB-S507", "online log-sum-exp",
      shape.hasStatistics
          ? "one pass over the logits; the adjoint gets the largest "
            "and the sum of each row"
          : "one pass over the logits");
  tile::ProgramOp program = scheduler.programs.get(
      op, shape.hasStatistics ? "forward_with_statistics" : "forward",
      [&](OpBuilder &programs, ModuleOp) {
        return tile::buildCrossEntropy(programs, op.getLoc(), shape);
      });
  OpBuilder builder(op);
  Type perRow = op.getResult().getType();
  DispatchOp dispatch = scheduler.dispatch(
      builder, op.getLoc(), program, op->getOperands(),
      SmallVector<Type>(shape.hasStatistics ? 3 : 1, perRow));
  for (CrossEntropyGradOp adjoint : adjoints)
    llvm::append_range(scheduler.lossStatistics[adjoint],
                       dispatch->getResults().drop_front());
  op.getResult().replaceAllUsesWith(dispatch->getResult(0));
  op.erase();
  return success();
}

bool hybrid::isGradientOfSum(Operation *op) {
  auto fill = dyn_cast_or_null<FillOp>(op);
  return fill && fill.getValue().convertToDouble() == 1.0 &&
         llvm::all_of(op->getUsers(), [](Operation *user) {
           return isa<CrossEntropyGradOp>(user);
         });
}

/// Whether the gradient may overwrite the logits: nothing reads them later, and
/// they are not the caller's.
static bool mayOverwriteLogits(CrossEntropyGradOp op) {
  Value logits = op.getLogits();
  return logits.getType() == op.getDlogits().getType() &&
         logits.getDefiningOp<DispatchOp>() &&
         llvm::all_of(logits.getUsers(), [&](Operation *user) {
           return user == op || (user->getBlock() == op->getBlock() &&
                                 user->isBeforeInBlock(op));
         });
}

LogicalResult hybrid::scheduleOp(Scheduler &scheduler, CrossEntropyGradOp op) {
  tile::CrossEntropyShape shape =
      crossEntropyShape(op.getLogits(), scheduler.target);
  shape.gradientElement = elementOf(op.getDlogits());
  shape.inPlace = mayOverwriteLogits(op);
  SmallVector<Value> inputs{op.getLogits(), op.getLabels(), op.getWeights()};
  if (op.getDloss() && !isGradientOfSum(op.getDloss().getDefiningOp())) {
    shape.hasLossGradient = true;
    inputs.push_back(op.getDloss());
  }
  SmallVector<Value> statistics = scheduler.lossStatistics.lookup(op);
  shape.hasStatistics = !statistics.empty();
  llvm::append_range(inputs, statistics);
  scheduler.chose(op, "HYB-S508",
                  Twine(shape.hasStatistics ? "one pass" : "two passes") +
                      " over the logits" + (shape.inPlace ? ", in place" : ""),
                  shape.hasStatistics
                      ? "the loss has kept the largest and the sum of a row"
                      : "the log-sum-exp is computed again, not saved");
  std::string variant = shape.hasLossGradient ? "backward" : "backward_of_sum";
  if (shape.hasStatistics)
    variant += "_with_statistics";
  tile::ProgramOp program = scheduler.programs.get(
      op, variant + (shape.inPlace ? "_in_place" : ""),
      [&](OpBuilder &programs, ModuleOp) {
        return tile::buildCrossEntropyGrad(programs, op.getLoc(), shape);
      });
  static constexpr int64_t overwritesLogits[] = {0, 0};
  OpBuilder builder(op);
  op->replaceAllUsesWith(scheduler.dispatch(
      builder, op.getLoc(), program, inputs, op->getResultTypes(),
      shape.inPlace ? ArrayRef(overwritesLogits) : ArrayRef<int64_t>()));
  op.erase();
  return success();
}
