//===- ProductEpilogue.h - products with what follows them ------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_SCHEDULE_PRODUCTEPILOGUE_H
#define HYBRID_LIB_SCHEDULE_PRODUCTEPILOGUE_H

#include "Scheduler.h"
#include "hybrid/Tile/Families/Product.h"
#include "llvm/ADT/SetVector.h"

namespace hybrid {

/// Whether `value` is a tensor of a row per token, or what else is counted.
bool hasRows(mlir::Value value);
/// Elements of a row.
int64_t rowWidth(mlir::Value value);

/// One region and the products that may take it, or a part of it.
class Folding {
public:
  Folding(Scheduler &scheduler, RowwiseOp region)
      : scheduler(scheduler), region(region), body(region.getBody().front()) {}

  /// Whether there is something to fold that is worth it.
  bool find();
  mlir::LogicalResult apply();

  llvm::ArrayRef<ProductOp> getProducts() const { return products; }
  /// Whether the region reads the products alone, and nobody else does.
  bool standsAlone() const {
    return isWhole() && kept.empty() && sums.size() == region->getNumOperands();
  }
  /// The most rows of which tiles leave processors idle.
  int64_t idleRows() const;

private:
  /// Whether all of the region is taken.
  bool isWhole() const {
    return members.size() + 1 == body.getOperations().size();
  }
  bool findProducts();
  bool isProductOfRows(ProductOp product) const;
  void findMembers();
  bool mayStand(mlir::Operation *op) const;
  bool holdsHeads(RotaryOp rotary) const;
  bool mayRead(mlir::Operation *op, mlir::Value operand) const;
  bool isSum(mlir::Value value) const {
    auto argument = llvm::dyn_cast<mlir::BlockArgument>(value);
    return argument && argument.getOwner() == &body &&
           llvm::is_contained(sums, argument.getArgNumber());
  }
  void keepNarrowOutputs();
  void findOutputs();
  bool othersReadLater() const;
  bool isWorthIt() const;
  int64_t savedBytes() const;
  int64_t costBytes() const;
  RowwiseOp makeEpilogue(mlir::OpBuilder &builder);
  void makeRest(mlir::OpBuilder &builder, mlir::ValueRange made);
  mlir::Value typed(mlir::OpBuilder &builder, mlir::Value value,
                    mlir::Type type) const;
  tile::ProductShape shapeOf(RowwiseOp epilogue) const;

  Scheduler &scheduler;
  RowwiseOp region;
  mlir::Block &body;
  llvm::SmallVector<ProductOp> products;
  /// Operands of the region that are the products' results.
  llvm::SmallVector<unsigned> sums;
  /// Operations that the products take, in their order, and those of them that
  /// need a sum.
  llvm::SetVector<mlir::Operation *> members, dependent;
  /// What others need of them.
  llvm::SetVector<mlir::Value> outputs;
  /// Products whose results others read too.
  llvm::SmallVector<unsigned> kept;
};

/// Schedules a foldable region of an entry with a state, and what is around it,
/// apart for calls of few rows and of many.
mlir::LogicalResult scheduleDecodedEpilogue(Scheduler &scheduler,
                                            RowwiseOp region,
                                            const Folding &folding);

/// Schedules products of whole sequences together with the row-wise operations
/// that read them, where that is faster than a pass of their own.
mlir::LogicalResult scheduleEpilogues(Scheduler &scheduler,
                                      mlir::func::FuncOp function);

} // namespace hybrid

#endif // HYBRID_LIB_SCHEDULE_PRODUCTEPILOGUE_H
