//===- Propagate.h - the layout of every tile of a program -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products, running sums and inverses have a layout of their own; it spreads
// from them through elementwise ops, reductions, changes of shape and loops.
// What has none takes that of its users, and what is loaded for nobody in
// particular is blocked. Masks, indices and constants have no layout: they are
// computed wherever they are used.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_TARGET_NVPTX_PROPAGATE_H
#define HYBRID_LIB_TARGET_NVPTX_PROPAGATE_H

#include "Layout.h"

#include "hybrid/Tile/TileOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace hybrid::nvptx {

bool isTile(mlir::Value value);
llvm::ArrayRef<int64_t> shapeOf(mlir::Value tile);

/// Whether an op computes each element from the elements of its operands at the
/// same place.
bool isElementwise(mlir::Operation *op);

/// Whether a product has one row and is long enough that the warps of a block
/// share its depth: numbers of 16 bits, the matrix row by row along the depth.
bool isRowProduct(tile::DotOp dot);

class LayoutPlan {
public:
  explicit LayoutPlan(tile::ProgramOp program);

  int64_t numWarps() const { return warps; }
  Layout layoutOf(mlir::Value tile);
  /// Computed at each use, in the layout that is asked for.
  bool isCheap(mlir::Value tile);
  /// The tile is an operand of a product, as it is or transposed.
  bool isOperand(mlir::Value tile) const { return operands.contains(tile); }
  bool hasProducts() const { return !operands.empty(); }
  /// The tile is the matrix of products of one row, or one of those that a
  /// choice between loads gives to them, and nothing else.
  bool isRowMatrix(mlir::Value tile) const {
    return rowMatrices.contains(tile);
  }
  /// The layout of what is transposed and then cut into single rows or columns
  /// alone: a thread has all that lies in the place where it uses one of them.
  std::optional<Layout> layoutOfParts(tile::TransposeOp transpose);
  /// What `mma.sync` leaves of a matrix of this shape.
  Accumulator accumulatorOf(llvm::ArrayRef<int64_t> shape) const;
  Layout accumulatorLayout(llvm::ArrayRef<int64_t> shape) const;

private:
  using Result = std::optional<Layout>;
  void addRowMatrix(mlir::Value tile);
  void chooseWarps(tile::ProgramOp program);
  void chooseVector(tile::ProgramOp program);
  void findWholeRows(tile::ProgramOp program);
  void findColumns(tile::ProgramOp program);
  /// Of a tile that nothing asks anything of.
  Layout unasked(llvm::ArrayRef<int64_t> shape) const;
  bool needsWholeRows(mlir::Value product);
  /// From the op that makes the tile; none where it does not matter to it.
  Result natural(mlir::Value tile);
  Result naturalOfResult(mlir::Operation *op);
  Result naturalOfCarried(mlir::Value tile);
  /// From the ops that use the tile.
  Result wished(mlir::Value tile);
  Result wishOf(mlir::Operation *user, mlir::Value tile);
  Result wishOfBranch(mlir::scf::YieldOp yield, mlir::Value tile);
  Result ofBranch(mlir::Value tile);
  Result ofStretched(mlir::Value tile);

  /// A program whose kernel begins before the one in front has ended.
  bool isEarly;
  int64_t warps = 4;
  /// Elements beside each other in a thread, where nothing else decides.
  int64_t vector = 4;
  llvm::DenseSet<mlir::Value> operands, rowMatrices;
  /// Shapes of products whose rows are reduced or are the left operand of
  /// another product, as rows and columns.
  llvm::DenseSet<std::pair<int64_t, int64_t>> wholeRows;
  /// A matrix whose columns are summed, in a program of a few rows without
  /// products: the layout from which all others follow.
  std::optional<Layout> columns;
  /// A narrow matrix of which each row is summed for a row of that one.
  std::optional<Layout> besideColumns;
  llvm::DenseMap<mlir::Value, Layout> chosen;
  llvm::DenseMap<mlir::Value, Result> naturals;
  llvm::DenseSet<mlir::Value> active, wishing;
  llvm::DenseMap<mlir::Value, bool> cheap;
};

} // namespace hybrid::nvptx

#endif // HYBRID_LIB_TARGET_NVPTX_PROPAGATE_H
