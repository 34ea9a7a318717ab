//===- RecurrenceScores.cpp - decayed products of token pairs -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// B(x)[t, m] = Σ_c x_t[c] k_m[c] W[t, m, c] and its adjoint. With one decay per
// head W leaves the sum: B is a matrix product under a mask. With one per
// channel it does not, and the factors x e^G and k e^{−G} of a product would
// overflow; so W is kept for one row t at a time and carried to the next, W_t =
// e^{g_t} ⊙ W_{t−1}: every factor is at most 1, and a chunk needs C·K
// exponentials, not C²·K.
//
//===----------------------------------------------------------------------===//

#include "RecurrenceEquations.h"

using namespace mlir;
using namespace hybrid::tile;
using namespace hybrid::tile::recurrence;

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

Value Equations::earlier() {
  int64_t chunk = shape.chunkSize();
  return e.lt(e.iota(1, {1, chunk}), e.iota(0, {chunk, 1}));
}

Value Equations::upTo() {
  int64_t chunk = shape.chunkSize();
  return e.le(e.iota(1, {1, chunk}), e.iota(0, {chunk, 1}));
}

Value Equations::onDiagonal() {
  int64_t chunk = shape.chunkSize();
  return e.eq(e.iota(1, {1, chunk}), e.iota(0, {chunk, 1}));
}

//===----------------------------------------------------------------------===//
// One decay per head, or none
//===----------------------------------------------------------------------===//

/// W for one decay per head. Running sums start anew in every column, so that
/// column m adds up the gates after m alone.
Value Equations::pairs(Value logDecay) {
  Value between = e.prefixSum(e.masked(earlier(), logDecay), 0);
  return e.masked(upTo(), e.exp(between));
}

Scores Equations::scores(const Chunk &chunk) {
  if (chunk.scores)
    return *chunk.scores;
  if (perChannel())
    return shape.byHalves ? scoresByHalves(chunk) : scoresPerChannel(chunk);
  Scores scores;
  if ((chunk.query || shape.isDelta()) && shape.hasDecay())
    scores.pairs = pairs(chunk.decay);
  auto product = [&](StringRef name, Value x) {
    Value all = e.named(name, e.dot(x, chunk.key, Transpose::B));
    return scores.pairs ? e.mul(all, scores.pairs) : e.masked(upTo(), all);
  };
  if (chunk.query)
    scores.query = product("query_scores", chunk.query);
  if (shape.isDelta())
    scores.key = product("key_scores", chunk.key);
  return scores;
}

Scores Equations::queryScores(const Chunk &chunk) {
  RecurrenceShape additive = shape;
  additive.update = RecurrenceUpdate::Additive;
  return Equations(e, additive).scores(chunk);
}

Equations::ScoreGradient Equations::scoreAdjoint(const Chunk &chunk,
                                                 const Scores &scores,
                                                 Value dQuery, Value dKey) {
  if (perChannel())
    return shape.byHalves ? scoreAdjointByHalves(chunk, dQuery, dKey)
                          : scoreAdjointPerChannel(chunk, dQuery, dKey);
  auto weighted = [&](Value d) {
    return scores.pairs ? e.mul(d, scores.pairs) : e.masked(upTo(), d);
  };
  ScoreGradient gradient;
  if (dQuery) {
    Value d = weighted(dQuery);
    gradient.query = e.named("d_query", e.dot(d, chunk.key));
    gradient.key = e.named("d_key", e.dot(d, chunk.query, Transpose::A));
    gradient.gatePairs = e.mul(dQuery, scores.query);
  }
  if (dKey) {
    Value d = weighted(dKey);
    gradient.key = e.dot(d, chunk.key, Transpose::None, gradient.key);
    gradient.key = e.dot(d, chunk.key, Transpose::A, gradient.key);
    gradient.gatePairs = sum(gradient.gatePairs, e.mul(dKey, scores.key));
  }
  return gradient;
}

//===----------------------------------------------------------------------===//
// One decay per channel
//===----------------------------------------------------------------------===//

/// Calls `row` for t = 0, 1, …, C − 1 with the mask of row t [C, 1] and the
/// decays W[t, m] of the rows m < t as [C, K]; rows m ≥ t are 0. Carries tiles
/// through.
SmallVector<Value> Equations::eachRow(
    StringRef name, const Chunk &chunk, ArrayRef<Value> initial,
    llvm::function_ref<SmallVector<Value>(Value t, Value isRow, Value decays,
                                          ValueRange carried)>
        row) {
  int64_t rows = shape.chunkSize(), keyDim = shape.keyDim;
  SmallVector<Value> carried = {e.zeros({rows, keyDim})};
  llvm::append_range(carried, initial);
  auto body = [&](Value t, ValueRange values) {
    Value decays = e.mul(values[0], e.exp(chunk.decayRow(t)));
    Value isRow = e.eq(e.iota(0, {rows, 1}), e.splat(e.toI32(t), {rows, 1}));
    SmallVector<Value> next = {
        e.select(isRow, e.full(1.0, {rows, keyDim}), decays)};
    llvm::append_range(next, row(t, isRow, decays, values.drop_front()));
    return next;
  };
  SmallVector<Value> results = e.loop(e.idx(0), e.idx(rows), 1, carried, body);
  e.named(name, results[0].getDefiningOp());
  results.erase(results.begin());
  return results;
}

Scores Equations::scoresPerChannel(const Chunk &chunk) {
  int64_t rows = shape.chunkSize();
  SmallVector<const RowOf *> sides;
  if (chunk.query)
    sides.push_back(&chunk.queryRow);
  if (shape.isDelta())
    sides.push_back(&chunk.keyRow);
  if (sides.empty())
    return {};
  SmallVector<Value> none(sides.size(), e.zeros({rows, rows}));
  auto row = [&](Value t, Value isRow, Value decays, ValueRange scores) {
    // The pair (t, t) has no decay.
    Value keys =
        e.mul(e.select(isRow, e.full(1.0, Emitter::shapeOf(decays)), decays),
              chunk.key);
    SmallVector<Value> next;
    for (auto [side, before] : llvm::zip(sides, scores)) {
      Value products = e.sum(e.mul(keys, (*side)(t)), 1);
      next.push_back(e.select(isRow, e.reshape(products, {1, rows}), before));
    }
    return next;
  };
  SmallVector<Value> all = eachRow("score_rows", chunk, none, row);
  Scores scores;
  if (chunk.query)
    scores.query = all.front();
  if (shape.isDelta())
    scores.key = all.back();
  return scores;
}

/// The gate terms follow from x ⊙ dx − k ⊙ dk. The pair (t, t) gives nothing to
/// a gate but would leave its rounding error, which exceeds the whole gradient
/// when all gates are strong; so the diagonal is taken apart.
Equations::ScoreGradient Equations::scoreAdjointPerChannel(const Chunk &chunk,
                                                           Value dQuery,
                                                           Value dKey) {
  int64_t rows = shape.chunkSize(), keyDim = shape.keyDim;
  struct Side {
    Value dScores;
    const RowOf *rowOf;
    Value x;
  };
  SmallVector<Side> sides;
  if (dQuery)
    sides.push_back({dQuery, &chunk.queryRow, chunk.query});
  if (dKey)
    sides.push_back({dKey, &chunk.keyRow, chunk.key});
  if (sides.empty())
    return {};

  // Carried: what the keys m get, then for each side what the rows t get.
  SmallVector<Value> none(1 + sides.size(), e.zeros({rows, keyDim}));
  auto row = [&](Value t, Value isRow, Value decays, ValueRange carried) {
    SmallVector<Value> next = {carried[0]};
    Value keys = e.mul(decays, chunk.key);
    for (auto [n, side] : llvm::enumerate(sides)) {
      Value weights =
          e.reshape(e.sum(e.masked(isRow, side.dScores), 0), {rows, 1});
      next[0] = e.add(next[0], e.mul(decays, e.mul(weights, (*side.rowOf)(t))));
      Value later = e.sum(e.mul(weights, keys), 0);
      next.push_back(e.select(isRow, later, carried[1 + n]));
    }
    return next;
  };
  SmallVector<Value> all = eachRow("d_score_rows", chunk, none, row);

  ScoreGradient gradient;
  gradient.key = all[0];
  gradient.gateRows = e.neg(e.mul(chunk.key, all[0]));
  for (auto [side, later] : llvm::zip(sides, ArrayRef(all).drop_front()))
    gradient.gateRows = e.add(gradient.gateRows, e.mul(side.x, later));
  if (dKey) // strictly lower: no diagonal
    gradient.key = e.add(gradient.key, all.back());
  if (dQuery) {
    Value diagonal = e.sum(e.masked(onDiagonal(), dQuery), 1);
    gradient.query = e.add(all[1], e.mul(diagonal, chunk.key));
    gradient.key = e.add(gradient.key, e.mul(diagonal, chunk.query));
  }
  return gradient;
}
