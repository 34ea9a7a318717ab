//===- Roles.h - a program as the regions of its roles -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_TARGET_NVPTX_HOPPER_ROLES_H
#define HYBRID_LIB_TARGET_NVPTX_HOPPER_ROLES_H

#include "Record.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace hybrid::hopper {

/// The copies of one load in shared memory.
struct Ring {
  tile::LoadOp load;
  mlir::TypedValue<MapType> map;
  mlir::TypedValue<BufferType> buffer;
  mlir::TypedValue<BarriersType> full, empty; // empty: of a load in a loop
  mlir::scf::ForOp loop;                      // around the load, or null
};

/// Which copy of a ring an iteration has, and the parity of its phase.
struct Place {
  mlir::Value copy, parity;
};

/// What both roles do with scalars: they compute them again.
class RoleBuilder {
public:
  RoleBuilder(mlir::ImplicitLocOpBuilder &b, const Record &record,
              llvm::ArrayRef<Ring> rings)
      : b(b), record(record), rings(rings) {}

  /// What follows is for the point `number`; the loop of the loads has run
  /// `iterations` times for those before.
  void beginTask(mlir::Value number, mlir::Value iterations) {
    task = number;
    passed = iterations;
  }
  /// What it has run by the end of the point.
  mlir::Value endTask() const { return passedAfter; }

protected:
  mlir::Value i32(int64_t value) {
    return mlir::arith::ConstantOp::create(b, b.getI32IntegerAttr(value));
  }
  mlir::Value index(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(b, value);
  }
  mlir::Value toI32(mlir::Value value) {
    return mlir::arith::IndexCastOp::create(b, b.getI32Type(), value);
  }
  const Ring &ringOf(tile::LoadOp load) const {
    return *llvm::find_if(rings,
                          [&](const Ring &ring) { return ring.load == load; });
  }
  /// The number of an iteration, from 0 or from those of the points before.
  mlir::Value countOf(mlir::Value lower, mlir::Value step, mlir::Value at);
  /// Of a persistent kernel: adds the iterations of the loop of the loads, and
  /// returns them.
  mlir::Value countIterations(mlir::scf::ForOp loop,
                              const mlir::IRMapping &mapping);
  Place placeOf(const Ring &ring, mlir::Value count);
  /// A copy of an op without tiles; `tile.id` becomes `hopper.id`. None where
  /// an operand has no copy.
  bool cloneScalar(mlir::Operation *op, mlir::IRMapping &mapping);

  mlir::ImplicitLocOpBuilder &b;
  const Record &record;
  llvm::ArrayRef<Ring> rings;
  mlir::Value task, passed, passedAfter; // of a persistent kernel, or null
};

/// The role that loads.
class Loader : public RoleBuilder {
public:
  using RoleBuilder::RoleBuilder;
  mlir::LogicalResult emit(mlir::Block &block, mlir::IRMapping &mapping,
                           mlir::Value count = {});

private:
  mlir::LogicalResult emitLoad(tile::LoadOp load, mlir::IRMapping &mapping,
                               mlir::Value count);
  bool hasLoads(mlir::Operation *op) const;
};

class StagePlan;

/// The role that works, for one of its warpgroups.
class Worker : public RoleBuilder {
public:
  using RoleBuilder::RoleBuilder;
  mlir::LogicalResult emit(mlir::Block &program, mlir::IRMapping outer);

private:
  /// A product that has been started.
  struct Frame;
  struct Release {
    const Ring *ring;
    mlir::Value copy, condition; // null: always
  };
  struct Running {
    mlir::Value dot, flight;
    Frame *frame;
    llvm::SmallVector<Release> releases;
  };
  /// One iteration of the loop, or the program around it.
  struct Frame {
    mlir::IRMapping map;
    llvm::DenseMap<mlir::Value, Place> places;
    /// Of what was loaded, how many products have started.
    llvm::DenseMap<mlir::Value, int64_t> started;
    mlir::Value count;
  };
  struct Step;

  mlir::LogicalResult emitBlock(mlir::Block &block, Frame &frame);
  mlir::LogicalResult emitOp(mlir::Operation *op, Frame &frame);
  mlir::LogicalResult emitIf(mlir::scf::IfOp branch, Frame &frame);
  mlir::LogicalResult emitDot(tile::DotOp dot, Frame &frame,
                              mlir::Value flight = {});
  mlir::FailureOr<bool> isLastUse(tile::LoadOp load, Frame &frame);
  mlir::LogicalResult emitTile(mlir::Operation *op, Frame &frame);
  mlir::LogicalResult emitLoop(mlir::scf::ForOp loop, Frame &frame);
  mlir::LogicalResult emitSimpleLoop(mlir::scf::ForOp loop, Frame &frame);
  tile::DotOp flyingSum(mlir::scf::ForOp loop, unsigned argument);
  llvm::SmallVector<Release> releasesBefore(tile::DotOp dot, Frame &frame);
  mlir::LogicalResult emitFlyingLoop(mlir::scf::ForOp loop,
                                     llvm::ArrayRef<tile::DotOp> dots,
                                     Frame &frame);
  void releaseOperands(llvm::ArrayRef<tile::DotOp> dots, mlir::Value isTaken,
                       mlir::Value count);
  mlir::LogicalResult emitStagedLoop(mlir::scf::ForOp loop, Frame &frame);
  /// Waits for the copy of a load.
  mlir::LogicalResult await(tile::LoadOp load, Frame &frame);
  /// The value in registers, waiting for its product first.
  mlir::FailureOr<mlir::Value> get(mlir::Operation *user, mlir::Value value,
                                   Frame &frame);
  mlir::LogicalResult emitDefinition(mlir::Value value, Frame &frame);
  /// Computes the scalars that an op uses.
  mlir::LogicalResult need(mlir::Operation *op, Frame &frame);
  void settle(mlir::Value dot, Frame &frame);
  void settleAll(Frame &frame);
  void release(const Release &release);
  /// 64 rows of a tile's type.
  mlir::FailureOr<mlir::Type> part(mlir::Operation *op, mlir::Type type);
  mlir::FailureOr<mlir::Value> operand(tile::DotOp dot, mlir::Value tile,
                                       bool left, Frame &frame);
  mlir::Value firstRow();
  template <typename Access> void placeRows(Access from, Access made);
  void takeTurn();
  void passTurn();
  void beginTurns(const StagePlan &plan);

  mlir::Value warpgroup;
  llvm::SmallVector<Running> running;
};

} // namespace hybrid::hopper

#endif // HYBRID_LIB_TARGET_NVPTX_HOPPER_ROLES_H
