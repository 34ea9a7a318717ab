//===- RowParts.h - parts of rows that a program makes itself -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program that works on one head of a row can do what stands in front of an
// operand for that head alone: row-wise operations and products with a narrow
// matrix. This says of which operations that is true, and what is read then.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TILE_FAMILIES_ROWPARTS_H
#define HYBRID_TILE_FAMILIES_ROWPARTS_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace hybrid::tile {

/// A row as heads beside each other, [heads, dim], of one of which a point
/// takes `width` elements.
struct HeadRow {
  int64_t heads = 1, dim = 1, width = 1;
};

/// What of a row is wanted.
enum class RowPart {
  Elements, ///< `width` elements of one head
  Columns,  ///< the same of a row that all heads share
  Heads,    ///< of a row with one element per head, that of one
  Single,   ///< of a row of one element, that
  All,      ///< the row
};

/// Operations that a program does for itself in front of its operands: regions
/// `hybrid.rowwise`, operations that could stand in one, and products with
/// parameters. Reshapes are views and need not be named.
class RowSources {
public:
  /// Of `value`, a tensor, what is wanted.
  struct Leaf {
    mlir::Value value;
    RowPart part;
  };
  using Visit = llvm::function_ref<void(Leaf)>;

  llvm::SmallPtrSet<mlir::Operation *, 8> inside;

  /// Gives what is read for a part of `value`, segments left out. False where
  /// an operation takes more of a row than this part, or cannot be done here.
  bool trace(mlir::Value value, RowPart part, const HeadRow &row,
             Visit visit) const;

  /// `value`, or what it is called where it is made or read: results and
  /// arguments of regions inside are values of or before the region.
  mlir::Value resolve(mlir::Value value) const;
  /// What makes `value`, if a program does that for itself.
  mlir::Operation *makerOf(mlir::Value value) const;
};

/// Most elements of a matrix that a point reads for a part of a row.
inline constexpr int64_t kMostMatrixElements = 8192;

/// Parts of the operands of a row-wise operation for this part of its result;
/// none where that does not suffice. What is said of segments has no meaning.
std::optional<llvm::SmallVector<RowPart>>
operandParts(mlir::Operation *op, RowPart part, const HeadRow &row);

} // namespace hybrid::tile

#endif // HYBRID_TILE_FAMILIES_ROWPARTS_H
