//===- WarpgroupProduct.cpp - products of warpgroups ----------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WarpgroupProduct.h"

#include "hybrid/Tile/Families/WarpgroupRecord.h"
#include "llvm/ADT/SetVector.h"
#include <numeric>

using namespace mlir;
using namespace hybrid;

/// Rows of a warpgroup's tile; columns of a piece that one copy brings.
static constexpr int64_t kRows = 64, kPieceColumns = 64;
/// Elements of 16 bits in 16 bytes.
static constexpr int64_t kAligned = 8;
static constexpr int64_t kRegisters = 240;
/// Row tiles that stay together for all columns, so that both operands of the
/// blocks that run at once are in the second-level cache.
static constexpr int64_t kGroup = 16;

/// Values that are, or may become, parts of one memory with `value`.
static SetVector<Value> aliasesOf(Value value) {
  SetVector<Value> aliases;
  aliases.insert(value);
  for (size_t n = 0; n < aliases.size(); ++n) {
    Value at = aliases[n];
    if (auto reshape = at.getDefiningOp<ReshapeOp>())
      aliases.insert(reshape.getX());
    if (auto slice = at.getDefiningOp<SliceOp>())
      aliases.insert(slice.getX());
    if (auto concat = at.getDefiningOp<ConcatOp>())
      aliases.insert(concat.getParts().begin(), concat.getParts().end());
    for (Operation *user : at.getUsers())
      if (isa<ReshapeOp, ConcatOp>(user))
        aliases.insert(user->getResult(0));
  }
  return aliases;
}

bool hybrid::hasAlignedRows(Value value) {
  for (Value alias : aliasesOf(value)) {
    auto type = cast<RankedTensorType>(alias.getType());
    if (type.getShape().back() % kAligned != 0)
      return false;
    auto slice = alias.getDefiningOp<SliceOp>();
    if (slice && int64_t(slice.getDim()) + 1 == type.getRank() &&
        int64_t(slice.getOffset()) % kAligned != 0)
      return false;
  }
  return true;
}

bool hybrid::fitsWarpgroups(ProductOp op, const tile::ProductShape &shape,
                            const TargetTraits &target) {
  if (target.warpgroups == 0)
    return false;
  for (Value operand : {op.getA(), op.getB()}) {
    Type element = cast<RankedTensorType>(operand.getType()).getElementType();
    if (element != shape.element || !(element.isBF16() || element.isF16()))
      return false;
  }
  auto isEnough = [](int64_t size, int64_t least) {
    return ShapedType::isDynamic(size) || size >= least;
  };
  return isEnough(shape.rows, kRows) &&
         isEnough(shape.columns, kPieceColumns) &&
         isEnough(shape.depth, target.warpgroupDepth);
}

/// The columns of a tile: the widest of those whose tiles have the fewest
/// columns in all, where each costs as much as some more.
static int64_t columnTileOf(int64_t columns, int64_t most, int64_t together) {
  constexpr int64_t kExtra = 32;
  int64_t step = std::lcm(kPieceColumns, together);
  int64_t best = step, least = INT64_MAX;
  for (int64_t tile = step; tile <= most; tile += step) {
    int64_t cost = llvm::divideCeil(columns, tile) * (tile + kExtra);
    if (cost <= least) {
      least = cost;
      best = tile;
    }
  }
  return best;
}

tile::ProductShape hybrid::tiledForWarpgroups(tile::ProductShape shape,
                                              const TargetTraits &target,
                                              int64_t columns,
                                              int64_t together) {
  shape.wholeTiles = true;
  shape.rowTile = kRows * target.warpgroups;
  shape.columnTile = columnTileOf(shape.columns, columns, together);
  shape.depthTile = target.warpgroupDepth;
  shape.tailRows = 0;
  return shape;
}

void hybrid::recordProduct(tile::ProgramOp program,
                           const tile::ProductShape &shape,
                           const TargetTraits &target) {
  constexpr int64_t kMostBuffers = 6, kBytes = 2;
  int64_t matrices = shape.epilogue.matrices();
  int64_t buffers = std::min(
      kMostBuffers,
      target.copyBytes / ((shape.rowTile + matrices * shape.columnTile) *
                          shape.depthTile * kBytes));
  tile::WarpgroupRecord record(program, target.warpgroups, kRegisters);
  record.load("load_a", buffers);
  tile::WarpgroupRecord::Fields product;
  product.wait = 1;
  for (int64_t n = 0; n < matrices; ++n) {
    std::string suffix = n == 0 ? "" : "_" + std::to_string(n);
    record.load("load_b" + suffix, buffers);
    record.multiply("product" + suffix, product);
  }
  // Rows are the fastest; ranges of depth, where there are any, the slowest.
  if (shape.splits > 1)
    record.traverse({0, 2, 1}, kGroup);
  else
    record.traverse({1, 0}, kGroup);
  // A single tile of depth is no loop, and tokens are many.
  if (!ShapedType::isDynamic(shape.depth) && shape.depth > shape.depthTile &&
      shape.depth <= target.persistentDepth)
    record.persist();
  record.write();
}
