//===- RecurrenceEquations.h - chunk equations of the recurrence family --===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The equations of Recurrence.h and their adjoints on the tiles of one chunk of
// C tokens and one head. Names and letters are those of mixers.md 1.7 and 1.8.
// The query tile holds s·q throughout; rows past the end of a segment are zero
// in every tile, which leaves the state and all gradients untouched.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TILE_FAMILIES_RECURRENCEEQUATIONS_H
#define HYBRID_TILE_FAMILIES_RECURRENCEEQUATIONS_H

#include "RecurrenceEmitter.h"
#include "hybrid/Tile/Families/Recurrence.h"
#include <functional>
#include <optional>

namespace hybrid::tile::recurrence {

/// What the gates g of a chunk give; all null without decay. Kg is 1 or K.
struct Gates {
  Value fromStart; ///< e^{G_t} [C, Kg]
  Value toEnd;     ///< e^{G_C − G_t} [C, Kg]
  Value
      total; ///< e^{G_C} as a column [Kg, 1], the shape that scales state rows
};

/// One row of an operand of the chunk, [1, width], at an `index` counted from
/// its first row.
using RowOf = std::function<Value(Value index)>;

/// B(x)[t, m] = Σ_c x_t[c] k_m[c] W[t, m, c]: lower triangular, diagonal
/// included.
struct Scores {
  Value query; ///< B(s Q)
  Value key;   ///< B(k)
  /// W, e^{G_t − G_m} for t ≥ m and else 0; null but for one decay per head.
  Value pairs;
};

/// Operands of a chunk [C, K] in shapes that go by halves.
struct HalfOperands {
  Value query, key;
  /// g, and g of the token after each.
  Value decay, nextDecay;
};

struct Chunk {
  Value query; ///< s·Q [C, K]; null where no output is wanted
  Value key;   ///< K [C, K]
  Value value; ///< V [C, V]
  Value beta;  ///< β [C, 1]; null is 1
  Value decay; ///< g [C, Kg]; null without decay
  Gates gates;
  RowOf queryRow, keyRow, decayRow;
  /// Loads what the halves read. Scores and their adjoint each load it anew:
  /// all its forms would be kept from the ones to the other, which is more than
  /// registers and shared memory hold.
  std::function<HalfOperands()> halfOperands;
  /// e^{G_C − G} ⊙ K and s e^G ⊙ Q [C, K], and B, where they are at hand.
  Value keyEnd, queryStart;
  std::optional<Scores> scores;
};

/// What the adjoint needs of the forward pass.
struct Saved {
  Value state;   ///< S before the chunk [K, V]
  Value inverse; ///< T [C, C]; null for the additive update
  Value updates; ///< N [C, V]
};

/// Gradients of a chunk's operands; null where there is no such operand.
struct ChunkGradient {
  Value query, key, value; ///< `query` is the gradient of s·Q
  Value beta;              ///< [C, 1]
  Value decay;             ///< [C, Kg], with respect to g
  Value state;             ///< of the state before the chunk
};

class Equations {
public:
  Equations(Emitter &emit, const RecurrenceShape &shape)
      : e(emit), shape(shape) {}

  Gates gates(Value logDecay);
  /// B(s Q) where the chunk has queries, B(k) for the delta rule.
  Scores scores(const Chunk &chunk);
  /// T of the delta rule.
  Value inverse(const Chunk &chunk, const Scores &scores);
  /// N: what each token adds to the state, by its key.
  Value updates(const Chunk &chunk, Value inverse, Value state);
  Value outputs(const Chunk &chunk, const Scores &scores, Value updates,
                Value state);
  Value nextState(const Chunk &chunk, Value updates, Value state);

  /// e^{G_C − G} ⊙ K and s e^G ⊙ Q.
  Value keyEnd(const Chunk &chunk) {
    return chunk.keyEnd ? chunk.keyEnd : times(chunk.gates.toEnd, chunk.key);
  }
  Value queryStart(const Chunk &chunk) {
    return chunk.queryStart ? chunk.queryStart
                            : times(chunk.gates.fromStart, chunk.query);
  }
  /// The same equations cut where chunks need each other: N = U − W S, with
  /// W = T (β ⊙ e^G ⊙ K) and U = T (β ⊙ V), which no state enters.
  Value erasers(const Chunk &chunk, Value inverse);
  Value replacements(const Chunk &chunk, Value inverse);
  Value updatesOf(Value erasers, Value replacements, Value state);
  /// B(s Q) alone.
  Scores queryScores(const Chunk &chunk);
  /// S', with factors of one number per token at the updates: keys are then
  /// multiplied as they were loaded.
  Value stateAfter(const Chunk &chunk, Value updates, Value state);
  /// B(s Q)ᵀ dO: the part of dN that stays in the chunk.
  Value dUpdatesInside(const Scores &scores, Value dOutput);
  /// The gradient of the state before a chunk from that of the state after.
  /// `erasers` and `dUpdates` (the part inside) are null for the additive
  /// update.
  Value dStateBefore(const Chunk &chunk, Value erasers, Value dUpdates,
                     Value dOutput, Value dState);

  /// Adjoint of `outputs` and `nextState` together. `dState` is the gradient of
  /// the state after the chunk; a null `dOutput` is zero.
  ChunkGradient adjoint(const Chunk &chunk, const Saved &saved, Value dOutput,
                        Value dState);

private:
  /// What B passes on. The gate part is split in the terms a gate g_j of the
  /// pair (t, m) gets for m < j ≤ t.
  struct ScoreGradient {
    Value query, key;
    Value gatePairs; ///< per head: E[t, m], the gradient of G_t − G_m
    Value
        gateRows; ///< per channel: Σ_m E[t, m] − Σ_t E[t, m], diagonal left out
    Value gate;   ///< by halves: the gradient of g [C, K]
  };
  struct DeltaGradient {
    Value value, beta, scores;
  };

  DeltaGradient deltaAdjoint(const Chunk &chunk, const Saved &saved,
                             Value keyScores, Value dUpdates);
  Value pairs(Value logDecay);
  mlir::SmallVector<Value>
  eachRow(StringRef name, const Chunk &chunk, ArrayRef<Value> initial,
          llvm::function_ref<mlir::SmallVector<Value>(
              Value t, Value isRow, Value decays, mlir::ValueRange carried)>
              row);
  Scores scoresPerChannel(const Chunk &chunk);
  /// `dQuery` and `dKey` are the gradients of B(s Q) and B(k); what stands
  /// above the diagonal is not read. Either may be null.
  ScoreGradient scoreAdjoint(const Chunk &chunk, const Scores &scores,
                             Value dQuery, Value dKey);
  ScoreGradient scoreAdjointPerChannel(const Chunk &chunk, Value dQuery,
                                       Value dKey);
  Scores scoresByHalves(const Chunk &chunk);
  ScoreGradient scoreAdjointByHalves(const Chunk &chunk, Value dQuery,
                                     Value dKey);
  Value halfDecays(const HalfOperands &operands, int64_t half);
  Value halfDecaysAdjoint(Value dExponent, int64_t half);
  Value halfPairs(int64_t half);
  Value isSecondHalf(int64_t groups);
  /// Gradient of g from its four ways into a chunk: pairs (`scores`), e^G
  /// (`fromStart`), e^{G_C − G} (`toEnd`) and e^{G_C} (`total`).
  Value gateAdjoint(const ScoreGradient &scores, Value fromStart, Value toEnd,
                    Value total);

  /// x + y, where a null x is 0.
  Value sum(Value x, Value y) { return x ? e.add(x, y) : y; }
  /// factor ⊙ x, where a null factor is 1.
  Value times(Value factor, Value x) { return factor ? e.mul(factor, x) : x; }
  bool perChannel() const { return shape.decay == RecurrenceDecay::PerChannel; }
  /// Masks [C, C] over the pairs (t, m): m < t, m ≤ t, m = t.
  Value earlier();
  Value upTo();
  Value onDiagonal();

  Emitter &e;
  const RecurrenceShape &shape;
};

} // namespace hybrid::tile::recurrence

#endif // HYBRID_TILE_FAMILIES_RECURRENCEEQUATIONS_H
