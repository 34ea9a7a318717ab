//===- Optimiser.h - gradient norm and AdamW over flat buffers -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TILE_FAMILIES_OPTIMISER_H
#define HYBRID_TILE_FAMILIES_OPTIMISER_H

#include "hybrid/Tile/TileOps.h"

namespace hybrid::tile {

/// Places in the f32 buffer `scalars` of an update.
enum OptimiserScalar : int64_t {
  LearningRate = 0,
  Beta1 = 1,
  Beta2 = 2,
  Epsilon = 3,
  WeightDecay = 4,
  LargestNorm = 5, // gradients are clipped to it; 0: no clipping
  Correction1 = 6, // 1 - β1ᵗ
  Correction2 = 7, // 1 - β2ᵗ
  GradientScale = 8,
  GradientNorm = 9, // written: of the scaled gradient, before clipping
  StepTaken = 10,   // written: 0 where the norm is not finite
  NumOptimiserScalars = 16
};

struct OptimiserShape {
  /// Of each flat buffer; weights below `decayElements` decay.
  int64_t elements = 0, decayElements = 0;
  /// Elements per point.
  int64_t block = 16384;
  /// Of the copy of the parameters that a step writes beside them; null: none.
  mlir::Type copyElement = {};

  int64_t blocks() const { return llvm::divideCeil(elements, block); }
};

/// Σ (scale · gradient)² of each block. Views: gradient, scalars, sums
/// [blocks].
ProgramOp buildGradientSquares(mlir::OpBuilder &builder, mlir::Location loc,
                               const OptimiserShape &shape);

/// The norm, and whether it is finite. Views: sums [blocks], scalars (written).
ProgramOp buildGradientNorm(mlir::OpBuilder &builder, mlir::Location loc,
                            const OptimiserShape &shape);

/// g = scale · gradient · min(1, largest norm / norm); m ← β1 m + (1 - β1) g;
/// v ← β2 v + (1 - β2) g²; p ← p - lr (m̂ / (√v̂ + ε) + decay · p), m̂ and v̂ with
/// their corrections. Does nothing when the step is not taken. Views:
/// parameters (written), gradient, moments 1 and 2 (written), scalars.
ProgramOp buildAdamW(mlir::OpBuilder &builder, mlir::Location loc,
                     const OptimiserShape &shape);

/// The copy of all parameters in another type. Arguments: parameters; copy.
ProgramOp buildParameterCopy(mlir::OpBuilder &builder, mlir::Location loc,
                             const OptimiserShape &shape);

} // namespace hybrid::tile

#endif // HYBRID_TILE_FAMILIES_OPTIMISER_H
