//===- SoftmaxStep.h - cached attention of a decoding step ----------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_SCHEDULE_SOFTMAXSTEP_H
#define HYBRID_LIB_SCHEDULE_SOFTMAXSTEP_H

#include "Scheduler.h"
#include "hybrid/Tile/Families/Softmax.h"
#include "mlir/IR/IRMapping.h"

namespace hybrid {

/// Shape and tiles of a cached attention whose calls have many rows, and of one
/// in a decoding step.
tile::SoftmaxShape cachedShapeOf(AttentionCachedOp op,
                                 const TargetTraits &target);
tile::SoftmaxShape stepShapeOf(AttentionCachedOp op,
                               const TargetTraits &target);

/// A cached attention in calls of up to `readingRows` rows: one launch, with
/// the row-wise operations that make its queries and new keys and with the
/// append, and one that joins the ranges of keys, unless the reader does.
class AttentionStep {
public:
  /// Whether the target has steps of that kind.
  static bool isFor(const TargetTraits &target) {
    return target.stepKeyBytes > 0 && target.readingRows > 0;
  }
  AttentionStep(Scheduler &scheduler, AttentionCachedOp op);

  AttentionCachedOp getOp() const { return op; }
  /// Whether what reads the output can afford to join the ranges of all heads
  /// in each of its points.
  bool canJoin() const { return joined.has_value(); }
  int64_t numRanges(bool isJoined) const {
    return (isJoined ? *joined : alone).splits;
  }

  /// The launch: the caches, then the output or, of several ranges, the partial
  /// outputs and their log-sum-exp.
  struct Parts {
    mlir::Value kCache, vCache;
    llvm::SmallVector<mlir::Value> output;
  };
  Parts launch(mlir::OpBuilder &builder, bool isJoined);
  /// The output of ranges that no reader joins.
  mlir::Value combine(mlir::OpBuilder &builder, const Parts &parts);

  /// Copies of the operations, for calls of more rows.
  void clone(mlir::OpBuilder &builder, mlir::IRMapping &mapping,
             llvm::SmallVectorImpl<mlir::Operation *> &copies);
  /// Once nothing reads the attention any more.
  void erase();

private:
  Scheduler &scheduler;
  AttentionCachedOp op;
  /// What makes the queries and the keys, if each point can do it; else null.
  mlir::Operation *query, *key;
  tile::SoftmaxShape alone;
  std::optional<tile::SoftmaxShape> joined;
};

/// Gives the cached attentions that are left launches for calls of a few rows
/// and strategies for others.
mlir::LogicalResult scheduleAttentionSteps(Scheduler &scheduler,
                                           mlir::func::FuncOp function);

} // namespace hybrid

#endif // HYBRID_LIB_SCHEDULE_SOFTMAXSTEP_H
