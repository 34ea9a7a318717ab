//===- StagePlan.h - in which time step the ops of a loop run -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_TARGET_NVPTX_HOPPER_STAGEPLAN_H
#define HYBRID_LIB_TARGET_NVPTX_HOPPER_STAGEPLAN_H

#include "Roles.h"

namespace hybrid::hopper {

/// Stages 0 and 1 of a loop's ops on tiles. An op without a record runs with
/// the first op that needs it; scalars and constants are computed where they
/// are used.
class StagePlan {
public:
  /// A value that a time step hands to the next one: `made` by an op of
  /// `stage`, `read` as. A sum is a value that the program's loop carries.
  struct Handed {
    mlir::Value made, read;
    int64_t stage;
    bool isSum;
    unsigned argument;
  };

  static mlir::FailureOr<StagePlan> make(mlir::scf::ForOp loop,
                                         const Record &record);

  /// Ops with a record by `issue`, then the others.
  llvm::ArrayRef<mlir::Operation *> getOrder() const { return order; }
  bool isStaged(mlir::Operation *op) const { return stages.count(op); }
  int64_t stageOf(mlir::Operation *op) const { return stages.lookup(op); }
  llvm::ArrayRef<Handed> getHanded() const { return handed; }
  /// The number of a value that the loop carries.
  std::optional<unsigned> carriedOf(mlir::Value value) const;
  mlir::Value yieldOf(unsigned argument) const;
  mlir::Operation *makerOf(unsigned argument) const {
    return yieldOf(argument).getDefiningOp();
  }
  /// With what the regions of the op use.
  static llvm::SmallVector<mlir::Value> operandsOf(mlir::Operation *op);

private:
  void assign(const Record &record);
  mlir::LogicalResult hand();
  mlir::LogicalResult checkUse(mlir::Operation *user, mlir::Value value);

  mutable mlir::scf::ForOp loop;
  llvm::SmallVector<mlir::Operation *> order;
  llvm::DenseMap<mlir::Operation *, int64_t> stages;
  llvm::SmallVector<Handed> handed;
};

} // namespace hybrid::hopper

#endif // HYBRID_LIB_TARGET_NVPTX_HOPPER_STAGEPLAN_H
