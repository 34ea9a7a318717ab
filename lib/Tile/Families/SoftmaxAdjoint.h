//===- SoftmaxAdjoint.h - pieces of the adjoint programs -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_TILE_FAMILIES_SOFTMAXADJOINT_H
#define HYBRID_LIB_TILE_FAMILIES_SOFTMAXADJOINT_H

#include "SoftmaxParts.h"

namespace hybrid::tile::softmax_adjoint {

/// The views that all adjoint programs begin with; gradients follow.
enum View : unsigned { Q, K, V, O, Lse, DO, Table, TokenSegment, Gradients };

/// Types of the views up to `Gradients`.
mlir::SmallVector<mlir::Type> operandTypes(mlir::MLIRContext *context,
                                           const SoftmaxShape &shape);
mlir::Type queryType(mlir::MLIRContext *context, const SoftmaxShape &shape);
mlir::Type keyType(mlir::MLIRContext *context, const SoftmaxShape &shape);
mlir::Type valueType(mlir::MLIRContext *context, const SoftmaxShape &shape);

/// What one head of a segment sees among the rows of the call, and the rows
/// [row, row + rows) of a view of one head.
class Rows {
public:
  Rows(KernelBuilder &k, const SoftmaxShape &shape, const Segment &segment)
      : k(k), s(shape), segment(segment) {}

  Visibility visibility(mlir::Value head) const;
  mlir::Value load(View view, mlir::Value row, mlir::Value head, int64_t rows,
                   int64_t width) const;

  KernelBuilder &k;
  const SoftmaxShape &s;
  Segment segment;
};

/// A tile of queries with what the adjoint needs of it: delta_t = Σ do_t o_t,
/// [rows, 1], and the positions of the rows. Rows past the end have q = do = 0
/// and add nothing.
struct QueryTile {
  static QueryTile load(const Rows &rows, mlir::Value head,
                        mlir::Value firstQuery);

  mlir::Value q, dOutput, logSumExp, delta, position;
};

/// P_tj = exp(scale · q_t·k_j − lse_t) where j is visible, else 0, and the
/// gradient of the scaled score, scale · P (do·v − delta).
struct ScoreAdjoint {
  static ScoreAdjoint of(const Rows &rows, const QueryTile &queries,
                         mlir::Value keys, mlir::Value values,
                         const Visibility &sees, const KeyTile &at);

  mlir::Value probabilities, dScores;
};

} // namespace hybrid::tile::softmax_adjoint

#endif // HYBRID_LIB_TILE_FAMILIES_SOFTMAXADJOINT_H
