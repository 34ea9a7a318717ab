//===- Scheduler.h - what a strategy works with -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_SCHEDULE_SCHEDULER_H
#define HYBRID_LIB_SCHEDULE_SCHEDULER_H

#include "ProgramTable.h"
#include "TargetTraits.h"
#include "hybrid/Hybrid/GraphShapes.h"
#include "hybrid/Hybrid/HybridOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Remarks.h"

namespace hybrid {

/// What strategies share while one module is scheduled.
class Scheduler {
public:
  Scheduler(mlir::ModuleOp module, const TargetTraits &target,
            bool writesRecords)
      : target(target), writesRecords(writesRecords), programs(module) {}

  /// A launch of `program`, which must not be null.
  DispatchOp dispatch(mlir::OpBuilder &builder, mlir::Location loc,
                      tile::ProgramOp program, mlir::ValueRange inputs,
                      mlir::TypeRange outputs,
                      llvm::ArrayRef<int64_t> ties = {});

  /// An algorithm: makes launches and returns their results.
  using Algorithm =
      llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::OpBuilder &)>;

  /// The results of `guarded` where `guard >= 0` holds for the call, else of
  /// `general`.
  mlir::ValueRange either(mlir::OpBuilder &builder, mlir::Location loc,
                          mlir::TypeRange types, mlir::AffineExpr guard,
                          Algorithm guarded, Algorithm general);

  /// A remark on which strategy an operation got: `id` is stable, `reason` says
  /// why this one.
  void chose(mlir::Operation *op, llvm::StringLiteral id,
             const llvm::Twine &strategy, const llvm::Twine &reason);

  const TargetTraits &target;
  /// Whether programs get records for what the target alone has.
  const bool writesRecords;
  ProgramTable programs;
  /// Rows of a piece of a loss head; 0: the target's.
  int64_t pieceRows = 0;
  /// What the launch of a loss gives to the adjoints behind it: the largest
  /// logit of each row and the sum of its exponentials, [tokens].
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Value>>
      lossStatistics;
  unsigned numDispatches = 0, numAlternatives = 0, numAccumulated = 0,
           numPieces = 0, numEpilogues = 0;
};

/// Whether calls of the entry around `op` may be decoding steps of a few rows.
bool isDecoded(mlir::Operation *op);

mlir::Type elementOf(mlir::Value value);

/// Puts a scheduled cast of `value`, which a launch made in f32, where `old`
/// was read.
mlir::LogicalResult roundInto(Scheduler &scheduler, mlir::OpBuilder &builder,
                              mlir::Value value, mlir::Value old);

/// A tensor of which only its producer and reader know: static sizes after
/// leading sizes that are expressions of the six symbols; of f32 where
/// `element` is null.
mlir::RankedTensorType workspaceType(mlir::AffineMap leading,
                                     llvm::ArrayRef<int64_t> sizes,
                                     mlir::Type element = {});

/// Puts every loss, with the products and the adjoint that see its logits, into
/// `hybrid.pieces` (LossHead.cpp).
void cutLossHeads(Scheduler &scheduler, mlir::func::FuncOp function);

// Strategies, one file per family. Each replaces its operation by launches and
// erases it, or emits an error and fails.
mlir::LogicalResult scheduleOp(Scheduler &scheduler, AttentionOp op);
mlir::LogicalResult scheduleOp(Scheduler &scheduler, AttentionGradOp op);
mlir::LogicalResult scheduleOp(Scheduler &scheduler, AttentionCachedOp op);
mlir::LogicalResult scheduleOp(Scheduler &scheduler, RecurrenceOp op);
mlir::LogicalResult scheduleOp(Scheduler &scheduler, RecurrenceGradOp op);
mlir::LogicalResult scheduleOp(Scheduler &scheduler, ShortConvOp op);
mlir::LogicalResult scheduleOp(Scheduler &scheduler, ShortConvGradOp op);
mlir::LogicalResult scheduleOp(Scheduler &scheduler, ProductOp op);
mlir::LogicalResult scheduleOp(Scheduler &scheduler, EmbedOp op);
mlir::LogicalResult scheduleOp(Scheduler &scheduler, EmbedGradOp op);
mlir::LogicalResult scheduleOp(Scheduler &scheduler, ReduceTokensOp op);
mlir::LogicalResult scheduleOp(Scheduler &scheduler, LastRowsOp op);
mlir::LogicalResult scheduleOp(Scheduler &scheduler, CrossEntropyOp op);
mlir::LogicalResult scheduleOp(Scheduler &scheduler, CrossEntropyGradOp op);
/// Whether `op` fills in the gradient 1 that every token's loss has when their
/// sum is differentiated; the programs need no tensor of it.
bool isGradientOfSum(mlir::Operation *op);
/// A row-wise region, or one operation that could stand in one.
mlir::LogicalResult scheduleRowwise(Scheduler &scheduler, mlir::Operation *op);
/// The same, with its one result in the memory of its first operand.
mlir::LogicalResult scheduleInPlace(Scheduler &scheduler, mlir::Operation *op);

/// Adds the entry `update` for the parameters of the module's tables.
mlir::LogicalResult addUpdate(Scheduler &scheduler, mlir::ModuleOp module);
/// Adds the entry `copy_parameters` to a module whose entries read copies of
/// the parameters in the compute type.
mlir::LogicalResult addParameterCopy(Scheduler &scheduler,
                                     mlir::ModuleOp module);

// Sums into the caller's gradients (Accumulate.cpp).

/// Whether `value` is a gradient argument or a sum that starts with one and may
/// overwrite it.
bool isGradientSum(mlir::Value value);
/// Whether the one use of `producer` is being added to such a sum.
bool isAccumulated(mlir::Operation *producer);
/// Schedules a sum for which isGradientSum holds, with its producer where the
/// producer's program can add.
mlir::LogicalResult scheduleGradientSum(Scheduler &scheduler, AddOp op);
/// Launches that add the result of `op` to `sum` in place; the new sum.
mlir::Value scheduleAccumulated(Scheduler &scheduler, ProductOp op,
                                mlir::OpBuilder &builder, mlir::Value sum);
mlir::Value scheduleAccumulated(Scheduler &scheduler, EmbedGradOp op,
                                mlir::OpBuilder &builder, mlir::Value sum);
mlir::Value scheduleAccumulated(Scheduler &scheduler, ReduceTokensOp op,
                                mlir::OpBuilder &builder, mlir::Value sum);

} // namespace hybrid

#endif // HYBRID_LIB_SCHEDULE_SCHEDULER_H
