//===- RowPartEmitter.h - parts of rows inside of a program -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_TILE_FAMILIES_ROWPARTEMITTER_H
#define HYBRID_LIB_TILE_FAMILIES_ROWPARTEMITTER_H

#include "RowwiseEmitter.h"
#include "hybrid/Tile/Families/RowParts.h"
#include <functional>

namespace hybrid::tile {

/// Makes parts of one row at a time, as tiles [1, 1, width] of f32.
class RowPartEmitter {
public:
  /// Where the part lies and what it is made of.
  struct Place {
    /// The head, and the first of its elements; `index`.
    mlir::Value head, column;
    mlir::Value table, tokenSegment;
    std::function<mlir::Value(mlir::Value leaf)> viewOf;
  };

  RowPartEmitter(KernelBuilder &k, const RowSources &sources,
                 const HeadRow &row, Place at)
      : k(k), sources(sources), row(row), at(std::move(at)) {}

  /// Loads what has no rows, before any loop over rows.
  void loadConstants(mlir::Value value, RowPart part) {
    loadLeaves(value, part, /*withRows=*/false);
  }
  /// Loads what the part is made of in row `token`, which is made from now on;
  /// rows from `limit` on are another's.
  void startRow(mlir::Value value, RowPart part, mlir::Value token,
                mlir::Value limit);
  mlir::Value emit(mlir::Value value, RowPart part);

private:
  int64_t widthOf(mlir::Value value, RowPart part) const;
  mlir::Value firstOf(RowPart part);
  void loadLeaves(mlir::Value value, RowPart part, bool withRows);
  mlir::Value load(mlir::Value value, RowPart part);
  mlir::Value loadMatrix(mlir::Value matrix, RowPart part);
  bool isMatrix(mlir::Value value) const;
  mlir::Value multiply(ProductOp product, RowPart part);

  KernelBuilder &k;
  const RowSources &sources;
  HeadRow row;
  Place at;
  mlir::Value token, limit;
  using Key = std::pair<mlir::Value, int>;
  llvm::DenseMap<Key, mlir::Value> loaded;
  /// Of these, what is of the row.
  llvm::SmallVector<Key> rowLoads;
};

} // namespace hybrid::tile

#endif // HYBRID_LIB_TILE_FAMILIES_ROWPARTEMITTER_H
