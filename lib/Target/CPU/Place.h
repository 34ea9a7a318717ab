//===- Place.h - where the elements of a tile lie -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_TARGET_CPU_PLACE_H
#define HYBRID_LIB_TARGET_CPU_PLACE_H

#include "CodeBuilder.h"

namespace hybrid::cpu {

/// Strided memory that holds a tile: part of the scratch, or of a view. Element
/// (i, j, ...) is at `base` + `offset` + i * strides[0] + j * strides[1] + ...,
/// in elements.
struct Place {
  mlir::Value base;
  Int offset = 0;
  llvm::SmallVector<int64_t, 3> shape;
  llvm::SmallVector<Int, 3> strides;
  mlir::Type element;

  int64_t rank() const { return shape.size(); }
  /// Row-major without gaps, dims of size 1 aside.
  bool isContiguous() const;

  Place slice(CodeBuilder &b, int64_t dim, int64_t start, int64_t size) const;
  Place permute(llvm::ArrayRef<int64_t> permutation) const;
  /// Stretches dims of size 1: their stride becomes 0.
  Place broadcastTo(llvm::ArrayRef<int64_t> newShape) const;
  /// Of a contiguous place to anything; of another one only when dims of size 1
  /// come and go.
  Place reshape(llvm::ArrayRef<int64_t> newShape) const;
  /// The place of one element.
  mlir::Value addressOf(CodeBuilder &b, llvm::ArrayRef<Int> indices) const;

  static llvm::SmallVector<Int, 3> rowMajor(llvm::ArrayRef<int64_t> shape);
};

/// Copies a matrix whose columns are contiguous to one whose rows are, in
/// square blocks that are transposed in registers; element by element for other
/// strides.
void copyTransposed(CodeBuilder &b, const Place &from, const Place &to);

/// Whether the shapes are the same once dims of size 1 are left out.
bool differInUnitDims(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to);

} // namespace hybrid::cpu

#endif // HYBRID_LIB_TARGET_CPU_PLACE_H
