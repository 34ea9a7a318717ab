//===- SoftmaxWarpgroupParts.h - pieces of warpgroup programs -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_TILE_FAMILIES_SOFTMAXWARPGROUPPARTS_H
#define HYBRID_LIB_TILE_FAMILIES_SOFTMAXWARPGROUPPARTS_H

#include "SoftmaxParts.h"
#include "hybrid/Tile/Families/SoftmaxWarpgroups.h"
#include "hybrid/Tile/Families/WarpgroupRecord.h"

namespace hybrid::tile::softmax_warpgroups {

/// Rows of the tile that a block's two warpgroups share, and the registers of
/// their threads.
inline constexpr int64_t kTileRows = 128, kWarpgroups = 2, kRegisters = 240;
/// Copies of what a loop loads.
inline constexpr int64_t kBuffers = 2;

/// log2(e) · scale: what a score is multiplied by in an exponent of base 2.
double perScore(const SoftmaxShape &shape);

/// A tile in the type of its view, as an operand of products.
mlir::Value loadOperand(KernelBuilder &k, llvm::StringRef name,
                        mlir::Value view, mlir::ValueRange indices,
                        llvm::ArrayRef<int64_t> dims,
                        KernelBuilder::Shape shape, mlir::Value limit);

/// Rounded to the type of the view, as a left operand.
mlir::Value rounded(KernelBuilder &k, llvm::StringRef name, mlir::Value tile,
                    mlir::Value view);
mlir::Value exp2(KernelBuilder &k, mlir::Value tile);
mlir::Value fma(KernelBuilder &k, mlir::Value x, mlir::Value y, mlir::Value z);

/// What `head` sees, by comparisons of its number alone: the role that loads
/// keeps no tables. With `group` heads to a key head, `head` is that of the
/// keys and the rule is the widest of its group.
Visibility visibilityOf(KernelBuilder &k, const SoftmaxShape &shape,
                        mlir::Value head, int64_t group = 1);

/// Scores of a tile in which rows are queries, or keys where `rowsAreKeys`,
/// with -inf for what is not visible. Positions of the tile's first query and
/// key; tiles that are visible as a whole are left alone.
struct ScoreTile {
  mlir::Value firstQuery, firstKey, keyLimit;
  bool rowsAreKeys = false;

  mlir::Value mask(KernelBuilder &k, const Visibility &sees,
                   mlir::Value scores) const;

private:
  mlir::Value visibleKeys(KernelBuilder &k, const Visibility &sees,
                          mlir::Value ahead, KernelBuilder::Shape shape) const;
  mlir::Value seeingQueries(KernelBuilder &k, const Visibility &sees,
                            mlir::Value ahead,
                            KernelBuilder::Shape shape) const;
};

} // namespace hybrid::tile::softmax_warpgroups

#endif // HYBRID_LIB_TILE_FAMILIES_SOFTMAXWARPGROUPPARTS_H
