//===- SoftmaxWarpgroupParts.cpp - pieces of warpgroup programs -----------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SoftmaxWarpgroupParts.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;
using namespace hybrid::tile;
using namespace hybrid::tile::softmax_warpgroups;

std::string hybrid::tile::whyNotWarpgroups(const SoftmaxShape &s,
                                           bool isCached) {
  if (!s.element || !(s.element.isBF16() || s.element.isF16()))
    return "warpgroups multiply bf16 and f16";
  if (s.dim != s.valueDim || (s.dim != 64 && s.dim != 128))
    return "warpgroups have programs for heads of 64 and of 128, keys are " +
           std::to_string(s.dim) + " wide and values " +
           std::to_string(s.valueDim);
  if (!(s.scale > 0))
    return "the maximum of unscaled scores needs a positive scale";
  if (isCached && s.anyWindow())
    return "rows of a ring do not lie in one box of the copy engine";
  return "";
}

double softmax_warpgroups::perScore(const SoftmaxShape &s) {
  return s.scale * llvm::numbers::log2e;
}

Value softmax_warpgroups::loadOperand(KernelBuilder &k, StringRef name,
                                      Value view, ValueRange indices,
                                      ArrayRef<int64_t> dims,
                                      KernelBuilder::Shape shape, Value limit) {
  Type element = cast<ViewType>(view.getType()).getElementType();
  auto type = RankedTensorType::get(shape, element);
  Value tile = LoadOp::create(k.ops(), type, view, indices, limit, dims);
  return k.named(name, tile);
}

Value softmax_warpgroups::rounded(KernelBuilder &k, StringRef name, Value tile,
                                  Value view) {
  auto type = cast<RankedTensorType>(tile.getType());
  Type element = cast<ViewType>(view.getType()).getElementType();
  Value narrow = arith::TruncFOp::create(k.ops(), type.clone(element), tile);
  return k.named(name, narrow);
}

Value softmax_warpgroups::exp2(KernelBuilder &k, Value tile) {
  return math::Exp2Op::create(k.ops(), tile);
}

Value softmax_warpgroups::fma(KernelBuilder &k, Value x, Value y, Value z) {
  return math::FmaOp::create(k.ops(), x, y, z);
}

/// Entry `at` of `table`: a comparison per change of value.
static Value entryOf(KernelBuilder &k, ArrayRef<int64_t> table, Value at) {
  Value entry = k.idx(table.front());
  for (size_t n = 1; n < table.size(); ++n)
    if (table[n] != table[n - 1])
      entry = k.select(k.ge(at, k.idx(n)), k.idx(table[n]), entry);
  return entry;
}

Visibility softmax_warpgroups::visibilityOf(KernelBuilder &k,
                                            const SoftmaxShape &s, Value head,
                                            int64_t group) {
  if (!s.anyWindow())
    return {};
  SmallVector<int64_t> windows(s.heads / group, 0), sinks(windows);
  for (int64_t n = 0; n < s.heads; ++n) {
    int64_t window = s.windows[n] == 0 ? kNoWindow : s.windows[n];
    windows[n / group] = std::max(windows[n / group], window);
    if (!s.sinks.empty())
      sinks[n / group] = std::max(sinks[n / group], s.sinks[n]);
  }
  Visibility sees;
  sees.window = entryOf(k, windows, head);
  if (s.pinnedRows() != 0)
    sees.sinks = entryOf(k, sinks, head);
  return sees;
}

/// Columns against bounds of each row, so that an element costs a comparison
/// per bound. Places count from the tile's corner; `ahead` is how far the
/// queries' corner is in front of the keys'.
Value ScoreTile::visibleKeys(KernelBuilder &k, const Visibility &sees,
                             Value ahead, KernelBuilder::Shape shape) const {
  int64_t rows[] = {shape[0], 1}, columns[] = {1, shape[1]};
  auto inRows = [&](Value index) { return k.splat(k.toI32(index), rows); };
  auto wide = [&](Value tile) { return k.broadcast(tile, shape); };
  Value query = k.iota(0, rows), key = wide(k.iota(1, columns));
  Value last = k.add(query, inRows(ahead));
  if (keyLimit)
    last = k.min(last, inRows(k.sub(k.sub(keyLimit, firstKey), k.idx(1))));
  Value visible = k.le(key, wide(last));
  if (!sees.window)
    return visible;
  Value before = k.add(query, inRows(k.sub(ahead, sees.window)));
  Value near = k.gt(key, wide(before));
  if (sees.sinks)
    near = k.either(near, k.lt(key, wide(inRows(k.sub(sees.sinks, firstKey)))));
  return k.both(visible, near);
}

Value ScoreTile::seeingQueries(KernelBuilder &k, const Visibility &sees,
                               Value ahead, KernelBuilder::Shape shape) const {
  int64_t rows[] = {shape[0], 1}, columns[] = {1, shape[1]};
  auto inRows = [&](Value index) { return k.splat(k.toI32(index), rows); };
  auto wide = [&](Value tile) { return k.broadcast(tile, shape); };
  Value key = k.iota(0, rows), query = wide(k.iota(1, columns));
  Value isLater = k.ge(query, wide(k.sub(key, inRows(ahead))));
  if (!sees.window)
    return isLater;
  Value end = k.add(key, inRows(k.sub(sees.window, ahead)));
  if (sees.sinks)
    end = k.select(k.lt(key, inRows(k.sub(sees.sinks, firstKey))),
                   inRows(k.idx(kNoWindow)), end);
  return k.both(isLater, k.lt(query, wide(end)));
}

Value ScoreTile::mask(KernelBuilder &k, const Visibility &sees,
                      Value scores) const {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(scores.getType()).getShape();
  unsigned keyDim = rowsAreKeys ? 0 : 1;
  Value ahead = k.sub(firstQuery, firstKey);
  Value isCut = k.lt(ahead, k.idx(shape[keyDim] - 1));
  if (sees.window) {
    Value farthest = k.add(ahead, k.idx(shape[1 - keyDim] - 1));
    isCut = k.either(isCut, k.ge(farthest, sees.window));
  }
  constexpr double kHidden = -std::numeric_limits<double>::infinity();
  auto cut = [&]() -> KernelBuilder::Values {
    Value visible = rowsAreKeys ? seeingQueries(k, sees, ahead, shape)
                                : visibleKeys(k, sees, ahead, shape);
    return {k.select(visible, scores, k.full(kHidden, shape))};
  };
  auto whole = [&]() -> KernelBuilder::Values { return {scores}; };
  return k.named("mask", k.choose(isCut, cut, whole).front());
}
