//===- Schedule.cpp - launches of tile programs for every operation ------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Schedule/Passes.h"

#include "MergeLaunches.h"
#include "Overlap.h"
#include "ProductEpilogue.h"
#include "RecurrenceStep.h"
#include "RowProducts.h"
#include "Scheduler.h"
#include "SoftmaxStep.h"
#include "Views.h"
#include "hybrid/Tile/TileDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

namespace hybrid {
#define GEN_PASS_DEF_HYBRIDSCHEDULE
#include "hybrid/Schedule/Passes.h.inc"
} // namespace hybrid

using namespace mlir;
using namespace hybrid;

static LogicalResult scheduleBlock(Scheduler &scheduler, Block &block);

/// Dispatches on the class of `op`; views stay as they are.
static LogicalResult scheduleAny(Scheduler &scheduler, Operation *op) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case<ReshapeOp, SliceOp, ConcatOp, DispatchOp, YieldOp, func::ReturnOp>(
          [](auto) { return success(); })
      .Case([&](AlternativesOp alternatives) {
        for (Region &region : alternatives.getAlgorithms())
          if (failed(scheduleBlock(scheduler, region.front())))
            return failure();
        return success();
      })
      .Case([&](PiecesOp pieces) {
        return scheduleBlock(scheduler, pieces.getBlock());
      })
      .Case<AttentionOp, AttentionGradOp, AttentionCachedOp, RecurrenceOp,
            RecurrenceGradOp, ShortConvOp, ShortConvGradOp, EmbedOp, LastRowsOp,
            CrossEntropyOp, CrossEntropyGradOp>(
          [&](auto known) { return scheduleOp(scheduler, known); })
      .Case<ProductOp, EmbedGradOp, ReduceTokensOp>([&](auto known) {
        // Left for the sum that it is added to.
        return isAccumulated(known) ? success() : scheduleOp(scheduler, known);
      })
      .Case<CastOp>([&](CastOp cast) {
        return cast.isParameterCopy() ? success()
                                      : scheduleRowwise(scheduler, cast);
      })
      .Case<AddOp>([&](AddOp add) {
        return isGradientSum(add) ? scheduleGradientSum(scheduler, add)
                                  : scheduleRowwise(scheduler, add);
      })
      .Default([&](Operation *other) -> LogicalResult {
        if (isGradientOfSum(other))
          return success();
        if (isa<RowwiseOp, RowwiseOpInterface>(other))
          return scheduleRowwise(scheduler, other);
        return other->emitOpError("has no strategy for target '")
               << scheduler.target.name
               << "'; schedule knows graph operations alone";
      });
}

/// Strategies replace the operation they are given and may look at its users,
/// which are scheduled after it.
static LogicalResult scheduleBlock(Scheduler &scheduler, Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block))
    if (failed(scheduleAny(scheduler, &op)))
      return failure();
  return success();
}

/// Values that the strategies' programs compute for themselves.
static void eraseUnused(func::FuncOp function) {
  for (Operation &op :
       llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
    if (isOpTriviallyDead(&op))
      op.erase();
}

namespace {

struct Schedule : hybrid::impl::HybridScheduleBase<Schedule> {
  using HybridScheduleBase::HybridScheduleBase;

  void runOnOperation() override {
    const TargetTraits *traits = lookupTarget(target);
    if (!traits) {
      InFlightDiagnostic error = getOperation().emitError("target '")
                                 << target
                                 << "' has no strategies; this hybridc has: ";
      llvm::interleaveComma(
          targetTraits(), error,
          [&](const TargetTraits &known) { error << known.name; });
      return signalPassFailure();
    }
    Scheduler scheduler(getOperation(), *traits, hopper);
    scheduler.pieceRows = pieceRows;
    bool isTrained = false;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      auto entry = function->getAttrOfType<StringAttr>("hybrid.entry");
      if (!entry)
        continue;
      isTrained |= entry == "backward";
      if (failed(scheduleEntry(scheduler, function)))
        return signalPassFailure();
    }
    if (isTrained && failed(addUpdate(scheduler, getOperation())))
      return signalPassFailure();
    if (failed(addParameterCopy(scheduler, getOperation())))
      return signalPassFailure();
    if (traits->overlaps) {
      mergeSteps(scheduler);
      numOverlapping += markOverlap(getOperation());
    }
    numDispatches += scheduler.numDispatches;
    numAlternatives += scheduler.numAlternatives;
    numAccumulated += scheduler.numAccumulated;
    numPieces += scheduler.numPieces;
    numEpilogues += scheduler.numEpilogues;
    numPrograms += scheduler.programs.size();
  }

  /// A launch of a decoding step takes longer to begin than to work.
  void mergeSteps(Scheduler &scheduler) {
    // A statistic counts in builds with assertions alone.
    unsigned merged = 0;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr("hybrid.entry") &&
          isDecoded(&function.getBody().front().front()))
        merged += mergeLaunches(function, scheduler.programs);
    numMerged += merged;
    if (merged > 0)
      eraseUnlaunched(getOperation());
  }

  LogicalResult scheduleEntry(Scheduler &scheduler, func::FuncOp function) {
    numCopies += insertCopies(function);
    if (epilogues && failed(scheduleEpilogues(scheduler, function)))
      return failure();
    if (failed(scheduleRecurrenceSteps(scheduler, function)) ||
        failed(scheduleRowProducts(scheduler, function.getBody().front())) ||
        failed(scheduleAttentionSteps(scheduler, function)))
      return failure();
    cutLossHeads(scheduler, function);
    if (failed(scheduleBlock(scheduler, function.getBody().front())))
      return failure();
    FailureOr<SmallVector<RowwiseOp>> copies = copyOverwrittenInputs(function);
    if (failed(copies))
      return failure();
    numCopies += copies->size();
    for (RowwiseOp copy : *copies)
      if (failed(scheduleRowwise(scheduler, copy)))
        return failure();
    eraseUnused(function);
    relaxStrides(function, scheduler.programs);
    return success();
  }
};

} // namespace
