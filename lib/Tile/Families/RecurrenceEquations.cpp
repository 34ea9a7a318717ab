//===- RecurrenceEquations.cpp - chunk equations of the recurrence family -===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RecurrenceEquations.h"

using namespace hybrid::tile;
using namespace hybrid::tile::recurrence;

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

/// Every exponent is a sum of gates of its own, never a difference of two
/// running sums: that would lose the small gates beside a strong one (at G =
/// −960, 32 gates of −30, one ulp is 6e-5).
Gates Equations::gates(Value logDecay) {
  if (!logDecay)
    return {};
  int64_t chunk = shape.chunkSize(), width = shape.decayDim();
  Value untilEnd =
      e.slice(e.prefixSum(logDecay, 0, /*reverse=*/true), 0, 1, chunk - 1);
  Gates gates;
  gates.fromStart = e.exp(e.prefixSum(logDecay, 0));
  gates.toEnd = e.exp(e.concat({untilEnd, e.zeros({1, width})}, 0));
  gates.total =
      e.reshape(e.slice(gates.fromStart, 0, chunk - 1, 1), {width, 1});
  return gates;
}

Value Equations::inverse(const Chunk &chunk, const Scores &scores) {
  return e.named("inverse", e.unitLowerInverse(times(chunk.beta, scores.key)));
}

Value Equations::updates(const Chunk &chunk, Value inverse, Value state) {
  if (!shape.isDelta())
    return chunk.value;
  Value keyStart = times(chunk.gates.fromStart, chunk.key);
  Value predicted = e.named("predict", e.dot(keyStart, state));
  Value errors = times(chunk.beta, e.sub(chunk.value, predicted));
  return e.named("updates", e.dot(inverse, errors));
}

Value Equations::outputs(const Chunk &chunk, const Scores &scores,
                         Value updates, Value state) {
  Value queryStart = times(chunk.gates.fromStart, chunk.query);
  Value carried = e.named("read_state", e.dot(queryStart, state));
  return e.named("outputs",
                 e.dot(scores.query, updates, Transpose::None, carried));
}

Value Equations::nextState(const Chunk &chunk, Value updates, Value state) {
  Value keyEnd = times(chunk.gates.toEnd, chunk.key);
  return e.named("next_state", e.dot(keyEnd, updates, Transpose::A,
                                     times(chunk.gates.total, state)));
}

//===----------------------------------------------------------------------===//
// Cut at the state
//===----------------------------------------------------------------------===//

Value Equations::erasers(const Chunk &chunk, Value inverse) {
  Value keyStart = times(chunk.gates.fromStart, chunk.key);
  return e.named("erasers", e.dot(inverse, times(chunk.beta, keyStart)));
}

Value Equations::replacements(const Chunk &chunk, Value inverse) {
  return e.named("replacements",
                 e.dot(inverse, times(chunk.beta, chunk.value)));
}

Value Equations::updatesOf(Value erasers, Value replacements, Value state) {
  return e.sub(replacements, e.named("erased", e.dot(erasers, state)));
}

Value Equations::stateAfter(const Chunk &chunk, Value updates, Value state) {
  Value before = times(chunk.gates.total, state);
  return e.named("next_state",
                 perChannel()
                     ? e.dot(keyEnd(chunk), updates, Transpose::A, before)
                     : e.dot(chunk.key, times(chunk.gates.toEnd, updates),
                             Transpose::A, before));
}

Value Equations::dUpdatesInside(const Scores &scores, Value dOutput) {
  return e.named("d_updates", e.dot(scores.query, dOutput, Transpose::A));
}

Value Equations::dStateBefore(const Chunk &chunk, Value erasers, Value dUpdates,
                              Value dOutput, Value dState) {
  const Gates &gates = chunk.gates;
  Value before = times(gates.total, dState);
  before = e.named("d_state",
                   perChannel()
                       ? e.dot(queryStart(chunk), dOutput, Transpose::A, before)
                       : e.dot(chunk.query, times(gates.fromStart, dOutput),
                               Transpose::A, before));
  if (!erasers)
    return before;
  Value carried = perChannel() ? e.dot(keyEnd(chunk), dState)
                               : times(gates.toEnd, e.dot(chunk.key, dState));
  Value all = e.named("d_updates", e.add(dUpdates, carried));
  return e.named("d_state_erased",
                 e.dot(erasers, e.neg(all), Transpose::A, before));
}

//===----------------------------------------------------------------------===//
// Adjoint
//===----------------------------------------------------------------------===//

/// Products stand where they are added up, not where their operands are first
/// known: a [C, K] tile that waits takes registers of every thread.
ChunkGradient Equations::adjoint(const Chunk &chunk, const Saved &saved,
                                 Value dOutput, Value dState) {
  const Gates &gates = chunk.gates;
  Value total; // γ ⊙ rowsum(S ⊙ dS')
  if (shape.hasDecay())
    total = e.mul(gates.total, e.sum(e.mul(saved.state, dState), 1));
  Value keyEnd = times(gates.toEnd, chunk.key);
  Value dUpdates = e.named("d_updates", e.dot(keyEnd, dState));

  ChunkGradient gradient;
  gradient.state = times(gates.total, dState);
  Scores scores = this->scores(chunk);
  Value dQueryScores, dKeyScores;
  if (dOutput) {
    dQueryScores =
        e.named("d_scores", e.dot(dOutput, saved.updates, Transpose::B));
    dUpdates = e.dot(scores.query, dOutput, Transpose::A, dUpdates);
    gradient.state =
        e.named("d_state", e.dot(times(gates.fromStart, chunk.query), dOutput,
                                 Transpose::A, gradient.state));
  }
  gradient.value = dUpdates;
  if (shape.isDelta()) {
    DeltaGradient delta = deltaAdjoint(chunk, saved, scores.key, dUpdates);
    dKeyScores = delta.scores;
    gradient.value = delta.value;
    gradient.beta = delta.beta;
    gradient.state = e.dot(times(gates.fromStart, chunk.key),
                           e.neg(delta.value), Transpose::A, gradient.state);
  }

  ScoreGradient fromScores =
      scoreAdjoint(chunk, scores, dQueryScores, dKeyScores);
  Value dKeyEnd =
      e.named("d_key_end", e.dot(saved.updates, dState, Transpose::B));
  Value carriedKey = times(gates.toEnd, dKeyEnd);
  gradient.key = sum(fromScores.key, carriedKey);
  Value toEnd = e.mul(chunk.key, carriedKey);
  Value startTerm; // Σ of x ⊙ (what x gets through e^G), over x = s·q and k
  if (dOutput) {
    Value dQueryStart =
        e.named("d_query_start", e.dot(dOutput, saved.state, Transpose::B));
    Value carriedQuery = times(gates.fromStart, dQueryStart);
    gradient.query = e.add(fromScores.query, carriedQuery);
    startTerm = e.mul(chunk.query, carriedQuery);
  }
  if (shape.isDelta()) {
    Value dKeyStart = e.named(
        "d_key_start", e.dot(e.neg(gradient.value), saved.state, Transpose::B));
    Value startKey = times(gates.fromStart, dKeyStart);
    gradient.key = e.add(gradient.key, startKey);
    startTerm = sum(startTerm, e.mul(chunk.key, startKey));
  }
  if (shape.hasDecay())
    gradient.decay = gateAdjoint(fromScores, startTerm, toEnd, total);
  return gradient;
}

/// N = T X, X = β ⊙ R, R = V − (e^G ⊙ K) S, T = (I + A)⁻¹, A = β ⊙ B(k):
/// dX = Tᵀ dN, dA = −dX Nᵀ (strictly lower), dR = β ⊙ dX = dV.
Equations::DeltaGradient Equations::deltaAdjoint(const Chunk &chunk,
                                                 const Saved &saved,
                                                 Value keyScores,
                                                 Value dUpdates) {
  Value dErrors =
      e.named("d_errors", e.dot(saved.inverse, dUpdates, Transpose::A));
  Value product =
      e.named("d_inverse", e.dot(dErrors, saved.updates, Transpose::B));
  Value dErase = e.masked(earlier(), e.neg(product));

  DeltaGradient gradient;
  gradient.value = times(chunk.beta, dErrors);
  if (chunk.beta) {
    Value keyStart = times(chunk.gates.fromStart, chunk.key);
    Value residual =
        e.sub(chunk.value, e.named("predict", e.dot(keyStart, saved.state)));
    gradient.beta = e.add(e.sum(e.mul(dErrors, residual), 1),
                          e.sum(e.mul(dErase, keyScores), 1));
  }
  gradient.scores = times(chunk.beta, dErase);
  return gradient;
}

Value Equations::gateAdjoint(const ScoreGradient &scores, Value fromStart,
                             Value toEnd, Value total) {
  int64_t rows = shape.chunkSize();
  if (perChannel()) {
    Value gradient = e.sub(e.prefixSum(toEnd, 0), toEnd);
    Value later = fromStart ? sum(scores.gateRows, fromStart) : scores.gateRows;
    if (later)
      gradient = e.add(gradient, e.prefixSum(later, 0, /*reverse=*/true));
    if (scores.gate)
      gradient = e.add(gradient, scores.gate);
    return e.add(gradient, e.reshape(total, {1, shape.keyDim}));
  }
  // Row j of the reversed running sum holds Σ_{t ≥ j} E[t, m]; the columns m <
  // j are the pairs that g_j lies in. No term is added and taken away again.
  Value column = e.reshape(e.sum(toEnd, 1), {1, rows});
  Value pairs =
      scores.gatePairs
          ? e.add(e.prefixSum(scores.gatePairs, 0, /*reverse=*/true), column)
          : e.broadcast(column, {rows, rows});
  Value gradient = e.sum(e.masked(earlier(), pairs), 1);
  if (fromStart)
    gradient =
        e.add(gradient, e.prefixSum(e.sum(fromStart, 1), 0, /*reverse=*/true));
  return e.add(gradient, e.sum(total, 0));
}
