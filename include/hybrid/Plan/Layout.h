//===- Layout.h - where a tensor lies in a buffer -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_PLAN_LAYOUT_H
#define HYBRID_PLAN_LAYOUT_H

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace hybrid {

/// Offset, sizes and strides in elements, expressions of the six symbols of a
/// call.
struct Layout {
  mlir::AffineExpr offset;
  llvm::SmallVector<mlir::AffineExpr, 4> sizes, strides;

  /// Row-major from the start of a buffer.
  static Layout contiguous(mlir::RankedTensorType type);

  /// The same elements in row-major order under the sizes of `type`; nothing
  /// where that needs a copy because a run of them is not evenly spaced.
  std::optional<Layout> reshaped(mlir::RankedTensorType type) const;

  /// `size` indices of `dim` from `from` on.
  Layout sliced(unsigned dim, int64_t from, int64_t size) const;

  bool operator==(const Layout &other) const {
    return offset == other.offset && sizes == other.sizes &&
           strides == other.strides;
  }
};

} // namespace hybrid

#endif // HYBRID_PLAN_LAYOUT_H
