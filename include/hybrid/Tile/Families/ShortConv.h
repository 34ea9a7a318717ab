//===- ShortConv.h - tile programs of the short convolution -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Depthwise causal convolution along the tokens of a segment, per channel c and
// with K taps:
//
//     y_t[c] = Σ_{i < K} w[c, i] · x_{t−K+1+i}[c]
//
// Rows before the segment's begin come from the state (the last K − 1 inputs,
// newest last), or are zero. Adjoint:
//
//     dx_t[c]  = Σ_i w[c, i] · dy_{t+K−1−i}[c]        inside the segment
//     dw[c, i] = Σ_t dy_t[c] · x_{t−K+1+i}[c]          in token order
//
// Layouts: x, y [tokens, channels], w [channels, K], state [slots, K − 1,
// channels].
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TILE_FAMILIES_SHORTCONV_H
#define HYBRID_TILE_FAMILIES_SHORTCONV_H

#include "hybrid/Tile/TileOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"

namespace hybrid::tile {

struct ShortConvShape {
  /// A multiple of 8.
  int64_t channels = 64;
  /// Taps, 2 to 8.
  int64_t kernel = 4;
  /// Forward: the last inputs are read and written in place.
  bool hasState = false;
  /// Forward: tokens per block. At least K − 1, so that only the first block of
  /// a segment reaches back into the state.
  int64_t tokenTile = 64;
  /// Rows of a tile walk this many tokens of their own, one after the other,
  /// and keep in registers what several taps see; 0: a tile is a block of
  /// tokens. Then `tokenTile` follows.
  int64_t walkedTokens = 0;
  /// Adjoint that walks: tokens per point, each of which gives a part of dw.
  int64_t partTokens = 256;
  /// Of x, y and the state; null is f32. The weight and its gradient are f32.
  mlir::Type element = {};

  mlir::LogicalResult
  verify(llvm::function_ref<mlir::InFlightDiagnostic()> emitError) const;
};

/// Arguments: x, w, segment table, token segments, [state, in place]; y.
ProgramOp buildShortConvForward(mlir::OpBuilder &builder, mlir::Location loc,
                                const ShortConvShape &shape);

/// Arguments: x, w, segment table, token segments, dy; dx, dw. Takes no state.
/// With `walkedTokens` dw is in parts that are to be added, [⌈tokens /
/// partTokens⌉, channels · K].
ProgramOp buildShortConvBackward(mlir::OpBuilder &builder, mlir::Location loc,
                                 const ShortConvShape &shape);

} // namespace hybrid::tile

#endif // HYBRID_TILE_FAMILIES_SHORTCONV_H
