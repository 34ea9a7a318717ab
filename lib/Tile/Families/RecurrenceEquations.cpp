//===- RecurrenceEquations.cpp - chunk equations of the recurrence family -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RecurrenceEquations.h"

using namespace hybrid::tile;
using namespace hybrid::tile::recurrence;

namespace {
/// Token t runs along dim 0 of a pair tile, token m along dim 1.
struct PairIndex {
  Value t, m;
};
} // namespace

static PairIndex pairIndex(Emitter &e, int64_t chunk, int64_t rank) {
  llvm::SmallVector<int64_t> column(rank, 1), row(rank, 1);
  column[0] = chunk;
  row[1] = chunk;
  return {e.iota(0, column), e.iota(1, row)};
}

Value Equations::earlier(int64_t rank) {
  auto [t, m] = pairIndex(e, shape.chunkSize(), rank);
  return e.lt(m, t);
}

Value Equations::upTo(int64_t rank) {
  auto [t, m] = pairIndex(e, shape.chunkSize(), rank);
  return e.le(m, t);
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

/// The sum behind W[t, m] is taken over the gates m+1 … t alone, as running sums
/// that start anew in every column. A difference G_t − G_m would lose the small
/// gates that follow a strong one: at G = −960 (32 gates of −30) one ulp is 6e-5.
Gates Equations::gates(Value logDecay) {
  if (!logDecay)
    return {};
  int64_t chunk = shape.chunkSize(), width = shape.decayDim();
  int64_t rank = perChannel() ? 3 : 2;
  Value rows = perChannel() ? e.reshape(logDecay, {chunk, 1, width}) : logDecay;
  Value between = e.masked(earlier(rank), rows);
  Value weights = e.exp(e.prefixSum(between, 0));

  Gates gates;
  gates.pairs = e.masked(upTo(rank), weights);
  gates.fromStart = e.exp(e.prefixSum(logDecay, 0));
  gates.toEnd = e.reshape(e.slice(gates.pairs, 0, chunk - 1, 1), {chunk, width});
  gates.total = e.reshape(e.slice(gates.fromStart, 0, chunk - 1, 1), {width, 1});
  return gates;
}

Value Equations::scores(Value x, Value key, const Gates &gates) {
  int64_t chunk = shape.chunkSize(), keyDim = shape.keyDim;
  if (perChannel()) {
    Value later = e.reshape(x, {chunk, 1, keyDim});
    Value sooner = e.reshape(key, {1, chunk, keyDim});
    Value products = e.mul(e.mul(gates.pairs, later), sooner);
    return e.reshape(e.sum(products, 2), {chunk, chunk});
  }
  Value products = e.dot(x, key, Transpose::B);
  if (gates.pairs)
    return e.mul(products, gates.pairs);
  return e.masked(upTo(), products);
}

Value Equations::inverse(const Chunk &chunk) {
  Value keyScores = e.named("key_scores", scores(chunk.key, chunk.key, chunk.gates));
  return e.named("inverse", e.unitLowerInverse(times(chunk.beta, keyScores)));
}

Value Equations::updates(const Chunk &chunk, Value inverse, Value state) {
  if (!shape.isDelta())
    return chunk.value;
  Value keyStart = times(chunk.gates.fromStart, chunk.key);
  Value predicted = e.named("predict", e.dot(keyStart, state));
  Value errors = times(chunk.beta, e.sub(chunk.value, predicted));
  return e.named("updates", e.dot(inverse, errors));
}

Value Equations::outputs(const Chunk &chunk, Value updates, Value state) {
  Value queryStart = times(chunk.gates.fromStart, chunk.query);
  Value carried = e.named("read_state", e.dot(queryStart, state));
  Value queryScores = e.named("query_scores", scores(chunk.query, chunk.key, chunk.gates));
  return e.named("outputs", e.dot(queryScores, updates, Transpose::None, carried));
}

Value Equations::nextState(const Chunk &chunk, Value updates, Value state) {
  Value keyEnd = times(chunk.gates.toEnd, chunk.key);
  return e.named("next_state",
                 e.dot(keyEnd, updates, Transpose::A, times(chunk.gates.total, state)));
}

//===----------------------------------------------------------------------===//
// Adjoint
//===----------------------------------------------------------------------===//

ChunkGradient Equations::adjoint(const Chunk &chunk, const Saved &saved, Value dOutput,
                                 Value dState) {
  const Gates &gates = chunk.gates;
  Value keyEnd = times(gates.toEnd, chunk.key);
  Value dUpdates = e.named("d_updates", e.dot(keyEnd, dState));
  Value dKeyEnd = e.named("d_key_end", e.dot(saved.updates, dState, Transpose::B));

  ChunkGradient gradient;
  gradient.state = times(gates.total, dState);
  ScoreCotangent cotangent;
  Value dQueryStart, dKeyStart;
  if (dOutput) {
    cotangent.queryScores = e.named("query_scores", scores(chunk.query, chunk.key, gates));
    cotangent.query = e.named("d_scores", e.dot(dOutput, saved.updates, Transpose::B));
    dUpdates = e.dot(cotangent.queryScores, dOutput, Transpose::A, dUpdates);
    dQueryStart = e.named("d_query_start", e.dot(dOutput, saved.state, Transpose::B));
    gradient.state = e.named("d_state", e.dot(times(gates.fromStart, chunk.query), dOutput,
                                              Transpose::A, gradient.state));
  }
  gradient.value = dUpdates;
  if (shape.isDelta()) {
    cotangent.keyScores = e.named("key_scores", scores(chunk.key, chunk.key, gates));
    DeltaGradient delta = deltaAdjoint(chunk, saved, cotangent.keyScores, dUpdates);
    cotangent.key = delta.scores;
    gradient.value = delta.value;
    gradient.beta = delta.beta;
    dKeyStart = delta.keyStart;
    gradient.state = e.dot(times(gates.fromStart, chunk.key), e.neg(delta.value), Transpose::A,
                           gradient.state);
  }

  ScoreGradient fromScores = scoreAdjoint(chunk, cotangent);
  Value carriedKey = times(gates.toEnd, dKeyEnd);
  gradient.key = fromScores.key ? e.add(fromScores.key, carriedKey) : carriedKey;
  Value startTerm; // Σ of x ⊙ (what x gets through e^G), over x = s·q and k
  if (dOutput) {
    Value carriedQuery = times(gates.fromStart, dQueryStart);
    gradient.query = e.add(fromScores.query, carriedQuery);
    startTerm = e.mul(chunk.query, carriedQuery);
  }
  if (dKeyStart) {
    Value startKey = times(gates.fromStart, dKeyStart);
    gradient.key = e.add(gradient.key, startKey);
    Value term = e.mul(chunk.key, startKey);
    startTerm = startTerm ? e.add(startTerm, term) : term;
  }
  if (shape.hasDecay()) {
    Value total = e.mul(gates.total, e.sum(e.mul(saved.state, dState), 1));
    gradient.decay =
        gateAdjoint(fromScores, startTerm, e.mul(chunk.key, carriedKey), total);
  }
  return gradient;
}

/// N = T X, X = β ⊙ R, R = V − (e^G ⊙ K) S, T = (I + A)⁻¹, A = β ⊙ B(k):
/// dX = Tᵀ dN, dA = −dX Nᵀ (strictly lower), dR = β ⊙ dX = dV.
Equations::DeltaGradient Equations::deltaAdjoint(const Chunk &chunk, const Saved &saved,
                                                 Value keyScores, Value dUpdates) {
  Value dErrors = e.named("d_errors", e.dot(saved.inverse, dUpdates, Transpose::A));
  Value product = e.named("d_inverse", e.dot(dErrors, saved.updates, Transpose::B));
  Value dErase = e.masked(earlier(), e.neg(product));

  DeltaGradient gradient;
  gradient.value = times(chunk.beta, dErrors);
  if (chunk.beta) {
    Value keyStart = times(chunk.gates.fromStart, chunk.key);
    Value residual = e.sub(chunk.value, e.named("predict", e.dot(keyStart, saved.state)));
    gradient.beta =
        e.add(e.sum(e.mul(dErrors, residual), 1), e.sum(e.mul(dErase, keyScores), 1));
  }
  gradient.scores = times(chunk.beta, dErase);
  gradient.keyStart =
      e.named("d_key_start", e.dot(e.neg(gradient.value), saved.state, Transpose::B));
  return gradient;
}

Equations::ScoreGradient Equations::scoreAdjoint(const Chunk &chunk,
                                                 const ScoreCotangent &cotangent) {
  if (perChannel())
    return scoreAdjointPerChannel(chunk, cotangent);
  auto weighted = [&](Value dScores) {
    return chunk.gates.pairs ? e.mul(dScores, chunk.gates.pairs)
                             : e.masked(upTo(), dScores);
  };
  ScoreGradient gradient;
  if (cotangent.query) {
    Value d = weighted(cotangent.query);
    gradient.query = e.named("d_query", e.dot(d, chunk.key));
    gradient.key = e.named("d_key", e.dot(d, chunk.query, Transpose::A));
    gradient.gatePairs = e.mul(cotangent.query, cotangent.queryScores);
  }
  if (cotangent.key) {
    Value d = weighted(cotangent.key);
    gradient.key = e.dot(d, chunk.key, Transpose::None, gradient.key);
    gradient.key = e.dot(d, chunk.key, Transpose::A, gradient.key);
    Value pairs = e.mul(cotangent.key, cotangent.keyScores);
    gradient.gatePairs = gradient.gatePairs ? e.add(gradient.gatePairs, pairs) : pairs;
  }
  return gradient;
}

/// The gate terms follow from x ⊙ dx − k ⊙ dk. The pair (t, t) gives nothing to a
/// gate but would leave its rounding error, which exceeds the whole gradient when
/// all gates are strong; so the diagonal is taken out and added to dq, dk apart.
Equations::ScoreGradient
Equations::scoreAdjointPerChannel(const Chunk &chunk, const ScoreCotangent &cotangent) {
  int64_t rows = shape.chunkSize(), keyDim = shape.keyDim;
  auto asLater = [&](Value x) { return e.reshape(x, {rows, 1, keyDim}); };
  auto flat = [&](Value x) { return e.reshape(x, {rows, keyDim}); };
  Value sooner = e.reshape(chunk.key, {1, rows, keyDim});

  ScoreGradient gradient;
  Value pairSum; // Σ over x of W ⊙ dB(x) ⊙ x_t, what k_m gets from (t, m)
  Value diagonal;
  if (cotangent.query) {
    auto [t, m] = pairIndex(e, rows, 2);
    diagonal = e.sum(e.masked(e.eq(t, m), cotangent.query), 1);
    Value strict = e.masked(earlier(), cotangent.query);
    Value d = e.mul(chunk.gates.pairs, e.reshape(strict, {rows, rows, 1}));
    Value dQuery = flat(e.sum(e.mul(d, sooner), 1));
    pairSum = e.mul(d, asLater(chunk.query));
    gradient.gateRows = e.mul(chunk.query, dQuery);
    gradient.query = e.add(dQuery, e.mul(diagonal, chunk.key));
  }
  if (cotangent.key) {
    Value d = e.mul(chunk.gates.pairs, e.reshape(cotangent.key, {rows, rows, 1}));
    gradient.key = flat(e.sum(e.mul(d, sooner), 1));
    Value pairs = e.mul(d, asLater(chunk.key));
    pairSum = pairSum ? e.add(pairSum, pairs) : pairs;
    Value term = e.mul(chunk.key, gradient.key);
    gradient.gateRows = gradient.gateRows ? e.add(gradient.gateRows, term) : term;
  }
  if (!pairSum)
    return gradient;
  Value dSooner = e.reshape(e.sum(pairSum, 0), {rows, keyDim});
  gradient.gateRows = e.sub(gradient.gateRows, e.mul(chunk.key, dSooner));
  gradient.key = gradient.key ? e.add(gradient.key, dSooner) : dSooner;
  if (diagonal)
    gradient.key = e.add(gradient.key, e.mul(diagonal, chunk.query));
  return gradient;
}

Value Equations::gateAdjoint(const ScoreGradient &scores, Value fromStart, Value toEnd,
                             Value total) {
  int64_t rows = shape.chunkSize();
  if (perChannel()) {
    Value gradient = e.sub(e.prefixSum(toEnd, 0), toEnd);
    Value later = scores.gateRows;
    if (fromStart)
      later = later ? e.add(later, fromStart) : fromStart;
    if (later)
      gradient = e.add(gradient, e.prefixSum(later, 0, /*reverse=*/true));
    return e.add(gradient, e.reshape(total, {1, shape.keyDim}));
  }
  // Row j of the reversed running sum holds Σ_{t ≥ j} E[t, m]; the columns m < j
  // are the pairs that g_j lies in. No term is added and taken away again.
  Value column = e.reshape(e.sum(toEnd, 1), {1, rows});
  Value pairs = scores.gatePairs
                    ? e.add(e.prefixSum(scores.gatePairs, 0, /*reverse=*/true), column)
                    : e.broadcast(column, {rows, rows});
  Value gradient = e.sum(e.masked(earlier(), pairs), 1);
  if (fromStart)
    gradient = e.add(gradient, e.prefixSum(e.sum(fromStart, 1), 0, /*reverse=*/true));
  return e.add(gradient, e.sum(total, 0));
}
