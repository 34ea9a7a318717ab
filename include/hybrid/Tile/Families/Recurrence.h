//===- Recurrence.h - tile programs of the recurrence family -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs for a matrix state S [K, V] per head that is updated once per token
// and read after the update:
//
//     S̃_t = diag(α_t) S_{t-1},   α_t = exp(g_t),   g_t ≤ 0
//     additive:  S_t = S̃_t + k_t v_tᵀ
//     delta:     S_t = S̃_t + k_t u_tᵀ,   u_t = β_t (v_t − S̃_tᵀ k_t)
//     o_t = s · S_tᵀ q_t
//
// g is absent, one number per head and token, or one per key channel. Chunks of
// C tokens turn this into matrix products. Inside a chunk with incoming state
// S, G_t = Σ_{m ≤ t} g_m and W[t, m] = exp(G_t − G_m) for t ≥ m, else 0:
//
//     B(x)[t, m] = Σ_c x_t[c] k_m[c] W[t, m, c]
//     T = (I + strict_lower(β ⊙ B(k)))⁻¹
//     N = T (β ⊙ (V − (e^G ⊙ K) S))                 additive: N = V
//     O = (s e^G ⊙ Q) S + B(s Q) N
//     S' = e^{G_C} ⊙ S + (e^{G_C − G} ⊙ K)ᵀ N
//
// All programs (forward, backward, step, summary) are built from these named
// equations (lib/Tile/Families/RecurrenceEquations.h); why they are written
// this way is in docs/rationale/recurrence.md. No exponential of a positive sum
// is formed, and rows past the end of a segment are never read.
//
// Layouts: query [tokens, heads, K], key [tokens, kvHeads,
// K], value [tokens, kvHeads, V], output [tokens, heads, V], decay [tokens,
// heads, 1 or K] in log space, beta [tokens, heads], segment table i32
// [segments, 4] with rows (begin, end, slot, first position). Head h reads
// key/value head h / (heads / kvHeads). A state is [slots, rings · heads, K, V]
// with rings = window / stride for a sliding window and 1 otherwise: the
// [slots, rings, heads, K, V] of the graph op with two dims merged.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TILE_FAMILIES_RECURRENCE_H
#define HYBRID_TILE_FAMILIES_RECURRENCE_H

#include "hybrid/Tile/Families/RowParts.h"
#include "hybrid/Tile/TileOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"

namespace hybrid::tile {

enum class RecurrenceUpdate { Additive, Delta };
enum class RecurrenceDecay { None, PerHead, PerChannel };

struct RecurrenceShape {
  RecurrenceUpdate update = RecurrenceUpdate::Additive;
  RecurrenceDecay decay = RecurrenceDecay::None;
  int64_t heads = 1;
  /// Divides `heads`; group heads share one key/value head.
  int64_t kvHeads = 1;
  int64_t keyDim = 64;
  int64_t valueDim = 64;
  double scale = 1.0;
  /// Of the delta update; without it β is 1.
  bool beta = true;

  /// Sliding window linear attention (mixers.md 2.1); 0 is none. `stride`
  /// divides `window`. Window chain c starts from a zero state at position c ·
  /// stride and covers `window` positions; chain 0 gives all its outputs, a
  /// later one those of its last `stride` positions.
  int64_t window = 0;
  int64_t stride = 0;

  /// Forward: the state is read and written in place. Backward: an initial
  /// state is read and its gradient written.
  bool hasState = false;
  /// Backward, with a state: there is a cotangent of the final one.
  bool hasFinalCotangent = false;

  /// Tokens per chunk; 0 takes `defaultChunk`.
  int64_t chunk = 0;

  /// Value columns that are worked on at once; 0 takes them all. Columns of the
  /// state are independent: forward and step have a point for each block of
  /// them, in the adjoint blocks take turns, because the other gradients are
  /// sums over the columns. Each block computes the scores again. Divides
  /// `valueDim`.
  int64_t valueTile = 0;

  /// With a decay per channel: scores of token pairs as matrix products, by
  /// halves of halves of the chunk, whose length is then a power of two. For
  /// targets whose matrix units make the further products cheap.
  bool byHalves = false;

  /// Tokens per part when a segment is split over programs (summary, combine,
  /// apply); a multiple of the chunk.
  int64_t part = 1024;

  /// Of queries, keys, values, outputs and the output gradient; null is f32.
  /// Everything else is f32.
  mlir::Type element = {};
  /// Backward: of the gradients of queries, keys and values; null is f32.
  mlir::Type gradientElement = {};

  static constexpr int64_t kMaxDim = 512;

  int64_t defaultChunk() const {
    return decay == RecurrenceDecay::PerChannel ? 16 : 64;
  }
  int64_t chunkSize() const { return chunk ? chunk : defaultChunk(); }
  int64_t valueWidth() const { return valueTile ? valueTile : valueDim; }
  int64_t group() const { return heads / kvHeads; }
  int64_t rings() const { return window ? window / stride : 1; }
  int64_t decayDim() const {
    return decay == RecurrenceDecay::PerChannel ? keyDim : 1;
  }
  bool hasDecay() const { return decay != RecurrenceDecay::None; }
  bool isDelta() const { return update == RecurrenceUpdate::Delta; }
  bool hasBeta() const { return isDelta() && beta; }
  /// Backward: whether several points add to one gradient, so that gradients
  /// are f32 whatever the operands are.
  bool sharesGradients() const;

  /// Says what no program can be built for; success otherwise. `verifyAdjoint`
  /// is for backward: a sliding window has no adjoint for its states.
  using EmitError = llvm::function_ref<mlir::InFlightDiagnostic()>;
  mlir::LogicalResult verify(EmitError emitError) const;
  mlir::LogicalResult verifyAdjoint(EmitError emitError) const;
};

/// A buffer a program needs beside its operands, appended to its arguments: the
/// leading size as a map of the six symbols of a call, then the static sizes.
/// It may hold anything before and is dead after.
struct RecurrenceWorkspace {
  mlir::AffineMap rows;
  llvm::SmallVector<int64_t> sizes;
  /// Null is f32.
  mlir::Type element = {};
};

/// Whole segments, chunk by chunk with the state carried. One point per
/// segment, head and block of value columns. Arguments: query, key, value,
/// segment table, token segments, [decay], [beta], [state, in place]; output.
ProgramOp buildRecurrenceForward(mlir::OpBuilder &builder, mlir::Location loc,
                                 const RecurrenceShape &shape);

/// The same function of the same arguments, token by token: for calls whose
/// segments are short (decode).
ProgramOp buildRecurrenceStep(mlir::OpBuilder &builder, mlir::Location loc,
                              const RecurrenceShape &shape);

/// Operands of a step, values of a graph (null where there is none), and the
/// operations in front of them that the step does for itself.
struct RecurrenceSources {
  mlir::Value query, key, value, decay, beta;
  RowSources made;

  /// What is read, each value once. None where an operation in front takes more
  /// than the head and the columns of a point.
  std::optional<llvm::SmallVector<mlir::Value>>
  leaves(const RecurrenceShape &shape) const;
};

/// The step that makes its operands: every point makes of a row what its head
/// and its value columns need, which costs less than a launch. Arguments:
/// leaves, segment table, token segments, [state, in place]; output.
ProgramOp buildRecurrenceStepFrom(mlir::OpBuilder &builder, mlir::Location loc,
                                  const RecurrenceShape &shape,
                                  const RecurrenceSources &sources);

/// The adjoint. Chunk states are computed again from the inputs.
/// Arguments: query, key, value, segment table, token segments, [decay],
/// [beta], [initial], output gradient, [state gradient, in place]; gradients of
/// query, key, value, [decay], [beta]; workspaces. The state gradient is that
/// of the final state (read where there is a final cotangent) and becomes that
/// of the initial one; slots of no segment keep theirs. A sliding window takes
/// no states here.
ProgramOp buildRecurrenceBackward(mlir::OpBuilder &builder, mlir::Location loc,
                                  const RecurrenceShape &shape);
llvm::SmallVector<RecurrenceWorkspace>
recurrenceBackwardWorkspaces(mlir::MLIRContext *context,
                             const RecurrenceShape &shape);

//===----------------------------------------------------------------------===//
// All chunks at once
//===----------------------------------------------------------------------===//
//
// Forward: `prepare` makes what the walk needs of every chunk, for the delta
// rule W and U of N = U − W S and what depends on gates; an additive update
// without gates has nothing to prepare. `walk` writes
// the state before every chunk (and N of the delta rule), `outputs` reads them.
// Backward, after a walk: `walkBack` writes the gradient of the state after
// every chunk, `gradients` gives those of all operands. Points of all programs
// but the walks are segments, heads and chunks. No windows; backward, no states
// and no groups of query heads. Blocks of value columns are points in `outputs`
// and take turns in `gradients`; the delta rule has one.
//
// What one program hands to the next is an operand of products and has the
// type of queries, keys and values; the walks carry f32.

/// Buffers of `prepare`: [W, U]; [e^G, e^{G_C − G}] or, with a decay per
/// channel, [e^{G_C − G} ⊙ K, e^{G_C}, B(s Q)]. For the adjoint followed by [T,
/// B(s Q)ᵀ dO] of the delta rule and, with a decay per channel, [s e^G ⊙ Q,
/// (B(k))].
llvm::SmallVector<RecurrenceWorkspace>
recurrencePrepared(mlir::MLIRContext *context, const RecurrenceShape &shape,
                   bool forAdjoint);
/// Buffers of `walk` (states, [N]) and of `walkBack`.
llvm::SmallVector<RecurrenceWorkspace>
recurrenceWalked(mlir::MLIRContext *context, const RecurrenceShape &shape);
RecurrenceWorkspace recurrenceWalkedBack(mlir::MLIRContext *context,
                                         const RecurrenceShape &shape);

/// Arguments: the operands of forward up to [beta]; prepared.
ProgramOp buildRecurrencePrepare(mlir::OpBuilder &builder, mlir::Location loc,
                                 const RecurrenceShape &shape);
/// The same, with the output gradient after the operands.
ProgramOp buildRecurrencePrepareAdjoint(mlir::OpBuilder &builder,
                                        mlir::Location loc,
                                        const RecurrenceShape &shape);
/// Arguments: operands, prepared (of forward), [state, in place]; walked.
ProgramOp buildRecurrenceWalk(mlir::OpBuilder &builder, mlir::Location loc,
                              const RecurrenceShape &shape);
/// Arguments: operands, prepared (of forward), walked; output.
ProgramOp buildRecurrenceOutputs(mlir::OpBuilder &builder, mlir::Location loc,
                                 const RecurrenceShape &shape);
/// Arguments: operands, output gradient, prepared (of the adjoint); state
/// gradients of chunks.
ProgramOp buildRecurrenceWalkBack(mlir::OpBuilder &builder, mlir::Location loc,
                                  const RecurrenceShape &shape);
/// Arguments: operands, output gradient, prepared (of the adjoint), walked,
/// state gradients of chunks; gradients of query, key, value, [decay], [beta].
ProgramOp buildRecurrenceGradients(mlir::OpBuilder &builder, mlir::Location loc,
                                   const RecurrenceShape &shape);

//===----------------------------------------------------------------------===//
// A segment split over programs
//===----------------------------------------------------------------------===//
//
// A range of tokens maps the state affinely, S ↦ M S + Δ: M is diagonal for the
// additive update and [K, K] for the delta rule. `summary` gives (M, Δ) of
// every part, `combine` the state before every part, `apply` the outputs of all
// parts at once. Part i of segment s, which begins at row b, has the row ⌊b /
// part⌋ + s + i of the part buffers; there are `recurrencePartRows` of them.

mlir::AffineMap recurrencePartRows(mlir::MLIRContext *context,
                                   const RecurrenceShape &shape);
/// Sizes of a row of M: [heads, 1 or K] (a decay) or [heads, K, K]. Δ and the
/// states are [heads, K, V].
llvm::SmallVector<int64_t> recurrencePartMap(const RecurrenceShape &shape);

/// Arguments: the operands of forward up to [beta]; M, Δ.
ProgramOp buildRecurrenceSummary(mlir::OpBuilder &builder, mlir::Location loc,
                                 const RecurrenceShape &shape);
/// Arguments: segment table, token segments, M, Δ, [state, in place]; states
/// before the parts.
ProgramOp buildRecurrenceCombine(mlir::OpBuilder &builder, mlir::Location loc,
                                 const RecurrenceShape &shape);
/// Arguments: the operands of forward up to [beta], states before the parts;
/// output.
ProgramOp buildRecurrenceApply(mlir::OpBuilder &builder, mlir::Location loc,
                               const RecurrenceShape &shape);

} // namespace hybrid::tile

#endif // HYBRID_TILE_FAMILIES_RECURRENCE_H
