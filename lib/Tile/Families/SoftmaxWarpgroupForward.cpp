//===- SoftmaxWarpgroupForward.cpp - attention for warpgroups -------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SoftmaxWarpgroupParts.h"

using namespace mlir;
using namespace hybrid::tile;
using namespace hybrid::tile::softmax_warpgroups;

/// Keys per step of the loop.
static constexpr int64_t kKeys = 128;

namespace {
/// One point: a tile of queries of one head.
class Forward {
public:
  Forward(OpBuilder &builder, Location loc, const SoftmaxShape &shape,
          bool isCached)
      : s(shape), isCached(isCached), k(makeBuilder(builder, loc)),
        segment(k.segment(k.view(Table), k.id(0))), head(k.id(1)),
        offset(k.mul(k.id(2), k.idx(kTileRows))),
        row(k.add(segment.begin, offset)) {}
  ProgramOp emit();

private:
  enum View : unsigned { Q, K, V, Table, TokenSegment, O, Lse };

  KernelBuilder makeBuilder(OpBuilder &builder, Location loc) const;
  Value loadKeys(StringRef name, View view, Value position);
  OnlineSoftmax attend();
  OnlineSoftmax step(const OnlineSoftmax &before, Value scores, Value values);
  void store(const OnlineSoftmax &result);
  void record(ProgramOp program);

  const SoftmaxShape &s;
  bool isCached;
  KernelBuilder k;
  Segment segment;
  Value head, offset, row;
  Value keysEnd; // position; rows of keys from here on are not read
};
} // namespace

/// Of a call's own keys positions count from the segment's begin, of a cache
/// from its first row.
KernelBuilder Forward::makeBuilder(OpBuilder &builder, Location loc) const {
  MLIRContext *c = builder.getContext();
  constexpr int64_t d = ShapedType::kDynamic;
  auto keys = [&](int64_t width) {
    if (isCached)
      return KernelBuilder::viewType(c, {d, s.kvHeads, d, width}, s.element);
    return KernelBuilder::viewType(c, {d, s.kvHeads, width}, s.element);
  };
  SmallVector<Type> types = {
      KernelBuilder::viewType(c, {d, s.heads, s.dim}, s.element), keys(s.dim),
      keys(s.valueDim)};
  llvm::append_range(types, KernelBuilder::segmentViewTypes(c));
  types.push_back(
      KernelBuilder::viewType(c, {d, s.heads, s.valueDim}, s.element));
  if (!isCached)
    types.push_back(KernelBuilder::viewType(c, {d, s.heads}));
  Symbols sym(c);
  AffineExpr grid[] = {sym.segments, getAffineConstantExpr(s.heads, c),
                       sym.longest.ceilDiv(kTileRows)};
  return KernelBuilder(
      builder, loc,
      isCached ? "softmax_cached_warpgroups" : "softmax_forward_warpgroups",
      grid, {Order::parallel, Order::parallel, Order::parallel}, types);
}

Value Forward::loadKeys(StringRef name, View view, Value position) {
  Value kvHead = s.group() == 1 ? head : k.div(head, k.idx(s.group()));
  int64_t shape[] = {kKeys, s.dim};
  if (isCached)
    return loadOperand(k, name, k.view(view),
                       {segment.slot, kvHead, position, k.idx(0)}, {2, 3},
                       shape, keysEnd);
  return loadOperand(k, name, k.view(view),
                     {k.add(segment.begin, position), kvHead, k.idx(0)}, {0, 2},
                     shape, segment.end);
}

/// One tile of keys. The maximum is that of unscaled scores; the order of
/// rescaling and rounding is that of docs/rationale/hopper.md.
OnlineSoftmax Forward::step(const OnlineSoftmax &before, Value scores,
                            Value values) {
  int64_t rows[] = {kTileRows, 1}, shape[] = {kTileRows, kKeys},
          wide[] = {kTileRows, s.dim};
  double scale = perScore(s);
  OnlineSoftmax next;
  next.max = k.named("row_max", k.max(before.max, k.maximum(scores, 1)));
  Value minus = k.neg(k.mul(finiteOrZero(k, next.max), k.full(scale, rows)));
  Value correction = k.named(
      "correction", exp2(k, fma(k, before.max, k.full(scale, rows), minus)));
  Value p = k.named("softmax", exp2(k, fma(k, scores, k.full(scale, shape),
                                           k.broadcast(minus, shape))));
  next.sum =
      k.named("row_sum", k.add(k.mul(before.sum, correction), k.sum(p, 1)));
  Value half = rounded(k, "round", p, k.view(V));
  Value kept =
      k.named("rescale", k.mul(before.acc, k.broadcast(correction, wide)));
  next.acc = k.named("values", k.dot(half, values, kept));
  return next;
}

OnlineSoftmax Forward::attend() {
  Value q = loadOperand(k, "load_q", k.view(Q), {row, head, k.idx(0)}, {0, 2},
                        {kTileRows, s.dim}, segment.end);
  Value firstQuery = isCached ? k.add(segment.first, offset) : offset;
  keysEnd = k.sub(segment.end, segment.begin);
  if (isCached)
    keysEnd = k.add(segment.first, keysEnd);
  Visibility sees = visibilityOf(k, s, head);
  // Sinks that lie in front of the call's first row are not among its rows.
  if (sees.sinks)
    sees.sinks = k.max(k.idx(0), k.sub(sees.sinks, segment.first));
  Value end = k.min(keysEnd, k.add(firstQuery, k.idx(kTileRows)));
  KeyRange range = visibleKeys(k, sees, firstQuery, end, kKeys);
  auto tile = [&](Value n, ValueRange carried) {
    KeyTile at = keyTileAt(k, range, n, kKeys);
    Value keys = loadKeys("load_k", K, at.first),
          values = loadKeys("load_v", V, at.first);
    Value nothing = k.zeros({kTileRows, kKeys});
    Value scores =
        k.named("scores", k.dot(q, keys, nothing, false, /*transposeB=*/true));
    ScoreTile place{firstQuery, at.first, at.limit};
    return step(OnlineSoftmax::from(carried), place.mask(k, sees, scores),
                values)
        .carried();
  };
  return OnlineSoftmax::from(
      k.loop(k.idx(0), range.tiles, 1,
             OnlineSoftmax::start(k, kTileRows, s.dim).carried(), tile));
}

void Forward::store(const OnlineSoftmax &result) {
  k.store(result.output(k), k.view(O), {row, head, k.idx(0)}, {0, 2},
          {segment.end});
  if (isCached)
    return;
  Value top = finiteOrZero(k, result.max);
  Value lse =
      k.add(k.mul(top, k.full(s.scale, {kTileRows, 1})), k.log(result.sum));
  k.store(k.reshape(lse, {kTileRows}), k.view(Lse), {row, head}, {0},
          {segment.end});
}

/// The scores of the next keys are issued before the values of the last ones;
/// softmax runs while the values do. Warpgroups take turns to issue. Heavy
/// tiles start first, heads of one sequence beside each other.
void Forward::record(ProgramOp program) {
  WarpgroupRecord record(program, kWarpgroups, kRegisters);
  record.load("load_q", 1).load("load_k", kBuffers).load("load_v", kBuffers);
  WarpgroupRecord::Fields fields;
  fields.stage = 0, fields.issue = 0, fields.takesTurns = true;
  record.multiply("scores", fields);
  fields.stage = 1, fields.issue = 1;
  record.multiply("values", fields);
  int64_t issue = 2;
  for (StringRef name : {"mask", "row_max", "correction", "softmax", "row_sum",
                         "rescale", "round"}) {
    fields = {};
    fields.stage = 0, fields.issue = issue++;
    record.multiply(name, fields);
  }
  record.traverse({2, 0, 1}).descend({2}).write();
}

ProgramOp Forward::emit() {
  k.when(k.lt(row, segment.end), [&] { store(attend()); });
  ProgramOp program = k.finish();
  record(program);
  return program;
}

ProgramOp hybrid::tile::buildSoftmaxForwardWarpgroups(OpBuilder &builder,
                                                      Location loc,
                                                      const SoftmaxShape &s) {
  return Forward(builder, loc, s, /*isCached=*/false).emit();
}

ProgramOp hybrid::tile::buildSoftmaxCachedWarpgroups(OpBuilder &builder,
                                                     Location loc,
                                                     const SoftmaxShape &s) {
  return Forward(builder, loc, s, /*isCached=*/true).emit();
}
