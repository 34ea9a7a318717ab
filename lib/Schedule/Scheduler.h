//===- Scheduler.h - what a strategy works with -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_SCHEDULE_SCHEDULER_H
#define HYBRID_LIB_SCHEDULE_SCHEDULER_H

#include "ProgramTable.h"
#include "hybrid/Hybrid/GraphShapes.h"
#include "hybrid/Hybrid/HybridOps.h"
#include "mlir/IR/Remarks.h"

namespace hybrid {

/// What strategies share while one module is scheduled.
class Scheduler {
public:
  explicit Scheduler(mlir::ModuleOp module) : programs(module) {}

  /// A launch of `program`, which must not be null.
  DispatchOp dispatch(mlir::OpBuilder &builder, mlir::Location loc,
                      tile::ProgramOp program, mlir::ValueRange inputs,
                      mlir::TypeRange outputs, llvm::ArrayRef<int64_t> ties = {});

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

  ProgramTable programs;
  unsigned numDispatches = 0, numAlternatives = 0, numAccumulated = 0;
};

/// A tensor of which only its producer and reader know: static sizes after
/// leading sizes that are expressions of the six symbols.
mlir::RankedTensorType workspaceType(mlir::AffineMap leading,
                                     llvm::ArrayRef<int64_t> sizes);

// Strategies, one file per family. Each replaces its operation by launches and
// erases it, or emits an error and fails.
mlir::LogicalResult scheduleOp(Scheduler &scheduler, AttentionOp op);
mlir::LogicalResult scheduleOp(Scheduler &scheduler, AttentionGradOp op);
mlir::LogicalResult scheduleOp(Scheduler &scheduler, AttentionCachedOp op);
mlir::LogicalResult scheduleOp(Scheduler &scheduler, RecurrenceOp op);
mlir::LogicalResult scheduleOp(Scheduler &scheduler, RecurrenceGradOp op);
mlir::LogicalResult scheduleOp(Scheduler &scheduler, ShortConvOp op);
mlir::LogicalResult scheduleOp(Scheduler &scheduler, ShortConvGradOp op);

} // namespace hybrid

#endif // HYBRID_LIB_SCHEDULE_SCHEDULER_H
