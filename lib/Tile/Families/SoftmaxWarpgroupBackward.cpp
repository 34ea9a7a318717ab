//===- SoftmaxWarpgroupBackward.cpp - adjoint for warpgroups --------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With P = exp(scale q·k − lse) and dS = P (do·v − delta):
//
//   dv = Σ_t P do,  dk = scale Σ_t dS q      a point per tile of keys
//   dq = scale Σ_j dS k                      a point per tile of queries
//
// Rows of a point's scores are the rows of its sums, so P and dS are left
// operands as they lie in registers, and every sum has one order. The first
// form has the scores transposed: row terms are then a value per column.
//
//===----------------------------------------------------------------------===//

#include "SoftmaxWarpgroupParts.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace hybrid::tile;
using namespace hybrid::tile::softmax_warpgroups;

/// Queries per step of the loop over queries; two sums, two tiles of scores and
/// their rounded forms share the registers. Keys per step of the other loop.
static constexpr int64_t kQueries = 64, kKeys = 128;
/// Tokens per point of the row terms.
static constexpr int64_t kTermRows = 64;

namespace {
enum View : unsigned {
  Q,
  K,
  V,
  DO,
  Shift,
  Delta,
  Table,
  TokenSegment,
  Gradients
};

/// A tile of rows of one head and its adjoint: what both programs share.
class Adjoint {
public:
  Adjoint(OpBuilder &builder, Location loc, const SoftmaxShape &shape,
          StringRef name, int64_t gridHeads, ArrayRef<int64_t> gradientHeads)
      : s(shape), k(makeBuilder(builder, loc, name, gridHeads, gradientHeads)),
        segment(k.segment(k.view(Table), k.id(0))), head(k.id(1)),
        first(k.mul(k.id(2), k.idx(kTileRows))),
        row(k.add(segment.begin, first)) {}

protected:
  KernelBuilder makeBuilder(OpBuilder &builder, Location loc, StringRef name,
                            int64_t gridHeads, ArrayRef<int64_t> heads) const;
  Value load(StringRef name, View view, Value position, Value ofHead,
             int64_t rows);
  /// Sinks counted from the segment's begin.
  Visibility visibility(Value ofHead, int64_t group = 1);
  Value probabilities(Value masked, Value shift);
  /// dS, rounded. `delta` has a row or a column.
  Value scoreGradient(Value p, Value dp, Value delta);
  void store(Value sum, double factor, unsigned gradient);
  WarpgroupRecord beginRecord(ProgramOp program);

  const SoftmaxShape &s;
  KernelBuilder k;
  Segment segment;
  Value head, first, row; // first position of the tile, and its row
};

class Keys : public Adjoint {
public:
  Keys(OpBuilder &builder, Location loc, const SoftmaxShape &s)
      : Adjoint(builder, loc, s, "softmax_backward_keys_warpgroups", s.kvHeads,
                {s.kvHeads, s.kvHeads}) {}
  ProgramOp emit();

private:
  KernelBuilder::Values step(Value keys, Value values, Value queryHead,
                             Value firstQuery, ValueRange dkdv);
  Value rowTerm(View view, Value queryHead, Value firstQuery);
};

class Queries : public Adjoint {
public:
  Queries(OpBuilder &builder, Location loc, const SoftmaxShape &s)
      : Adjoint(builder, loc, s, "softmax_backward_queries_warpgroups", s.heads,
                {s.heads}) {}
  ProgramOp emit();

private:
  Value rowTerm(View view);
  Value sumOverKeys();
};
} // namespace

//===----------------------------------------------------------------------===//
// Both
//===----------------------------------------------------------------------===//

KernelBuilder Adjoint::makeBuilder(OpBuilder &builder, Location loc,
                                   StringRef name, int64_t gridHeads,
                                   ArrayRef<int64_t> heads) const {
  MLIRContext *c = builder.getContext();
  constexpr int64_t t = ShapedType::kDynamic;
  auto rows = [&](int64_t count) {
    return KernelBuilder::viewType(c, {t, count, s.dim}, s.element);
  };
  Type term = KernelBuilder::viewType(c, {s.heads, t});
  SmallVector<Type> types = {
      rows(s.heads), rows(s.kvHeads), rows(s.kvHeads), rows(s.heads), term,
      term};
  llvm::append_range(types, KernelBuilder::segmentViewTypes(c));
  for (int64_t count : heads)
    types.push_back(rows(count));
  Symbols sym(c);
  AffineExpr grid[] = {sym.segments, getAffineConstantExpr(gridHeads, c),
                       sym.longest.ceilDiv(kTileRows)};
  return KernelBuilder(builder, loc, name, grid,
                       {Order::parallel, Order::parallel, Order::parallel},
                       types);
}

Value Adjoint::load(StringRef name, View view, Value position, Value ofHead,
                    int64_t rows) {
  return loadOperand(k, name, k.view(view),
                     {k.add(segment.begin, position), ofHead, k.idx(0)}, {0, 2},
                     {rows, s.dim}, segment.end);
}

Visibility Adjoint::visibility(Value ofHead, int64_t group) {
  Visibility sees = visibilityOf(k, s, ofHead, group);
  if (sees.sinks)
    sees.sinks = k.max(k.idx(0), k.sub(sees.sinks, segment.first));
  return sees;
}

Value Adjoint::probabilities(Value masked, Value shift) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(masked.getType()).getShape();
  Value power =
      fma(k, masked, k.full(perScore(s), shape), k.broadcast(shift, shape));
  return k.named("softmax", exp2(k, power));
}

Value Adjoint::scoreGradient(Value p, Value dp, Value delta) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(p.getType()).getShape();
  Value ds = k.named("ds", k.mul(p, k.sub(dp, k.broadcast(delta, shape))));
  return rounded(k, "round_ds", ds, k.view(K));
}

void Adjoint::store(Value sum, double factor, unsigned gradient) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(sum.getType()).getShape();
  Value scaled = factor == 1.0 ? sum : k.mul(sum, k.full(factor, shape));
  k.store(scaled, k.view(Gradients + gradient), {row, head, k.idx(0)}, {0, 2},
          {segment.end});
}

WarpgroupRecord Adjoint::beginRecord(ProgramOp program) {
  WarpgroupRecord record(program, kWarpgroups, kRegisters);
  for (StringRef name : {"scores", "dp", "mask", "softmax", "ds", "round_ds"})
    record.multiply(name, {});
  return record;
}

//===----------------------------------------------------------------------===//
// Keys and values
//===----------------------------------------------------------------------===//

/// [1, queries] of the row terms.
Value Keys::rowTerm(View view, Value queryHead, Value firstQuery) {
  return k.load(k.view(view), {queryHead, k.add(segment.begin, firstQuery)},
                {0, 1}, {1, kQueries},
                {k.add(queryHead, k.idx(1)), segment.end});
}

/// Rows past the segment's end have q = do = 0 and add nothing.
KernelBuilder::Values Keys::step(Value keys, Value values, Value queryHead,
                                 Value firstQuery, ValueRange dkdv) {
  int64_t shape[] = {kTileRows, kQueries};
  Value queries = load("load_q", Q, firstQuery, queryHead, kQueries),
        dOutput = load("load_do", DO, firstQuery, queryHead, kQueries);
  Value product = k.named("scores", k.dot(keys, queries, k.zeros(shape), false,
                                          /*transposeB=*/true));
  Value dp = k.named("dp", k.dot(values, dOutput, k.zeros(shape), false, true));
  ScoreTile place{firstQuery, first, {}, /*rowsAreKeys=*/true};
  Value masked = place.mask(k, visibility(queryHead), product);
  Value shift = k.named("load_shift", rowTerm(Shift, queryHead, firstQuery));
  Value p = probabilities(masked, shift);
  // dv runs while dS is computed.
  Value dv = k.named(
      "dv", k.dot(rounded(k, "round_p", p, k.view(V)), dOutput, dkdv[1]));
  Value delta = k.named("load_delta", rowTerm(Delta, queryHead, firstQuery));
  Value dk =
      k.named("dk", k.dot(scoreGradient(p, dp, delta), queries, dkdv[0]));
  return {dk, dv};
}

/// One loop over the query tiles of all heads of the group: barriers count the
/// iterations of one loop. Where heads of a group have unlike rules, the widest
/// says which tiles are visited.
ProgramOp Keys::emit() {
  k.when(k.lt(row, segment.end), [&] {
    Value keys = load("load_k", K, first, head, kTileRows),
          values = load("load_v", V, first, head, kTileRows);
    Visibility widest = visibility(head, s.group());
    Value upper = k.sub(segment.end, segment.begin);
    if (widest.window) {
      // The last key of the tile is seen up to window - 1 rows later.
      Value lastSeen = k.add(k.add(first, k.idx(kTileRows - 1)), widest.window);
      Value windowed = k.min(upper, lastSeen);
      upper = widest.sinks
                  ? k.select(k.lt(first, widest.sinks), upper, windowed)
                  : windowed;
    }
    Value tiles = k.ceilDiv(k.sub(upper, first), k.idx(kQueries));
    KernelBuilder::Values sums = {k.zeros({kTileRows, s.dim}),
                                  k.zeros({kTileRows, s.dim})};
    Value group = k.idx(s.group());
    sums = k.loop(k.idx(0), k.mul(tiles, group), 1, sums,
                  [&](Value n, ValueRange carried) {
                    Value queryHead = head, tile = n;
                    if (s.group() != 1) {
                      Value number = k.toI32(n), count = k.toI32(tiles);
                      queryHead = k.add(k.mul(head, group),
                                        k.toIndex(k.div(number, count)));
                      tile = k.toIndex(k.rem(number, count));
                    }
                    Value firstQuery =
                        k.add(first, k.mul(tile, k.idx(kQueries)));
                    return step(keys, values, queryHead, firstQuery, carried);
                  });
    store(sums[0], s.scale, 0);
    store(sums[1], 1.0, 1);
  });
  ProgramOp program = k.finish();
  WarpgroupRecord record = beginRecord(program);
  record.load("load_k", 1).load("load_v", 1);
  record.load("load_q", kBuffers).load("load_do", kBuffers);
  for (StringRef name : {"round_p", "load_shift", "load_delta", "dv"})
    record.multiply(name, {});
  // Runs on while the next scores are started; dv has then ended, which leaves
  // enough registers for both.
  WarpgroupRecord::Fields last;
  last.wait = 1;
  record.multiply("dk", last);
  // The first keys are seen by the most queries.
  record.traverse({2, 0, 1}).write();
  return program;
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

/// [rows, 1] of the row terms.
Value Queries::rowTerm(View view) {
  Value term =
      k.load(k.view(view), {head, row}, {1}, {kTileRows}, {segment.end});
  return k.reshape(term, {kTileRows, 1});
}

Value Queries::sumOverKeys() {
  Value queries = load("load_q", Q, first, head, kTileRows),
        dOutput = load("load_do", DO, first, head, kTileRows);
  Value shift = rowTerm(Shift), delta = rowTerm(Delta);
  Value kvHead = s.group() == 1 ? head : k.div(head, k.idx(s.group()));
  Visibility sees = visibility(head);
  Value length = k.sub(segment.end, segment.begin);
  Value end = k.min(length, k.add(first, k.idx(kTileRows)));
  KeyRange range = visibleKeys(k, sees, first, end, kKeys);
  int64_t shape[] = {kTileRows, kKeys};
  return k.loop(
      k.idx(0), range.tiles, 1, {k.zeros({kTileRows, s.dim})},
      [&](Value n, ValueRange carried) {
        KeyTile at = keyTileAt(k, range, n, kKeys);
        Value keys = load("load_k", K, at.first, kvHead, kKeys),
              values = load("load_v", V, at.first, kvHead, kKeys);
        Value product = k.named(
            "scores", k.dot(queries, keys, k.zeros(shape), false, true));
        Value dp =
            k.named("dp", k.dot(dOutput, values, k.zeros(shape), false, true));
        ScoreTile place{first, at.first, at.limit};
        Value p = probabilities(place.mask(k, sees, product), shift);
        return KernelBuilder::Values{k.named(
            "dq", k.dot(scoreGradient(p, dp, delta), keys, carried[0]))};
      })[0];
}

ProgramOp Queries::emit() {
  k.when(k.lt(row, segment.end), [&] { store(sumOverKeys(), s.scale, 0); });
  ProgramOp program = k.finish();
  WarpgroupRecord record = beginRecord(program);
  record.load("load_q", 1).load("load_do", 1);
  record.load("load_k", kBuffers).load("load_v", kBuffers);
  record.multiply("dq", {});
  // The last queries see the most keys.
  record.traverse({2, 0, 1}).descend({2}).write();
  return program;
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

ProgramOp hybrid::tile::buildSoftmaxRowTerms(OpBuilder &builder, Location loc,
                                             const SoftmaxShape &s) {
  enum TermView : unsigned { Output, LogSumExp, DOutput, ShiftTo, DeltaTo };
  MLIRContext *c = builder.getContext();
  constexpr int64_t t = ShapedType::kDynamic;
  Type rows = KernelBuilder::viewType(c, {t, s.heads, s.valueDim}, s.element);
  Type term = KernelBuilder::viewType(c, {s.heads, t});
  Symbols sym(c);
  AffineExpr grid[] = {sym.tokens.ceilDiv(kTermRows),
                       getAffineConstantExpr(s.heads, c)};
  KernelBuilder k(
      builder, loc, "softmax_row_terms", grid,
      {Order::parallel, Order::parallel},
      {rows, KernelBuilder::viewType(c, {t, s.heads}), rows, term, term});
  Value row = k.mul(k.id(0), k.idx(kTermRows)), head = k.id(1);
  Value end = k.dim(k.view(Output), 0);
  auto load = [&](TermView view) {
    return k.load(k.view(view), {row, head, k.idx(0)}, {0, 2},
                  {kTermRows, s.valueDim}, {end});
  };
  Value delta = k.sum(k.mul(load(Output), load(DOutput)), 1);
  Value lse = k.load(k.view(LogSumExp), {row, head}, {0}, {kTermRows}, {end});
  Value shift =
      k.mul(finiteOrZero(k, lse), k.full(-llvm::numbers::log2e, {kTermRows}));
  k.store(shift, k.view(ShiftTo), {head, row}, {1}, {end});
  k.store(k.reshape(delta, {kTermRows}), k.view(DeltaTo), {head, row}, {1},
          {end});
  return k.finish();
}

ProgramOp hybrid::tile::buildSoftmaxBackwardKeysWarpgroups(
    OpBuilder &builder, Location loc, const SoftmaxShape &s) {
  return Keys(builder, loc, s).emit();
}

ProgramOp hybrid::tile::buildSoftmaxBackwardQueriesWarpgroups(
    OpBuilder &builder, Location loc, const SoftmaxShape &s) {
  return Queries(builder, loc, s).emit();
}
