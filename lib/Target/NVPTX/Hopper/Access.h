//===- Access.h - a block of global memory as a thread sees it --*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_TARGET_NVPTX_HOPPER_ACCESS_H
#define HYBRID_LIB_TARGET_NVPTX_HOPPER_ACCESS_H

#include "KernelEmitter.h"

#include "../KernelLowering.h"

namespace hybrid::hopper {

/// A load, a store or a sum of a block, and where its tile begins.
struct KernelEmitter::Access {
  mlir::Value tile, view;
  mlir::ValueRange indices, limits;
  llvm::ArrayRef<int64_t> dims;
  bool adds;

  /// Bytes from row to row as i64, rows that are left as i32, at most those of
  /// a warpgroup, and columns as i64; null where none is missing.
  mlir::Value address, stride, rowsLeft, columnsLeft;

  mlir::RankedTensorType type() const {
    return mlir::cast<mlir::RankedTensorType>(tile.getType());
  }
};

template <typename Op> KernelEmitter::Access KernelEmitter::accessOf(Op op) {
  Access s;
  s.tile = op.getTile();
  s.view = op.getView();
  s.indices = op.getIndices();
  s.limits = op.getLimits();
  s.dims = op.getDims();
  s.adds = llvm::isa<tile::AccumulateOp>(op);
  s.address = viewAddress(s.view, s.indices);
  s.stride = b.mul(views[s.view].strides[s.dims[0]],
                   b.i64(hybrid::storedBytes(s.type().getElementType())));
  auto left = [&](unsigned dim) -> mlir::Value {
    return mlir::arith::SubIOp::create(
        b, b.fromIndex(mapping.lookupOrDefault(s.limits[dim])),
        b.fromIndex(mapping.lookupOrDefault(s.indices[s.dims[dim]])));
  };
  s.rowsLeft = b.i32(kRows);
  if (!s.limits.empty()) {
    mlir::Value rows = mlir::arith::MinSIOp::create(b, left(0), b.i64(kRows));
    rows = mlir::arith::MaxSIOp::create(b, rows, b.i64(0));
    s.rowsLeft = mlir::arith::TruncIOp::create(b, b.getI32Type(), rows);
  }
  if (s.limits.size() > 1)
    s.columnsLeft = left(1);
  return s;
}

} // namespace hybrid::hopper

#endif // HYBRID_LIB_TARGET_NVPTX_HOPPER_ACCESS_H
