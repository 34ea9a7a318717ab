//===- ShortConvParts.h - what short convolutions share -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TILE_FAMILIES_SHORTCONVPARTS_H
#define HYBRID_TILE_FAMILIES_SHORTCONVPARTS_H

#include "RecurrenceKernel.h"
#include "hybrid/Tile/Families/ShortConv.h"

namespace hybrid::tile::shortconv {

using recurrence::Arguments;
using recurrence::ArrayRef;
using recurrence::Emitter;
using recurrence::Value;

/// The widest block of channels, at most `limit`, that divides all of them.
int64_t channelBlock(int64_t channels, int64_t limit);

/// w as rows [1, width], one per tap.
mlir::SmallVector<Value> loadTaps(Emitter &e, const ShortConvShape &shape,
                                  Value weight, Value channel, int64_t width);

/// In the first block of a segment: stores the state after it. Row r is input
/// n − K + 1 + r, where the inputs before 0 are the rows n … K − 2 of the state
/// before.
void storeNextState(Emitter &e, const ShortConvShape &shape, Value x,
                    Value state, Value row, Value channel, int64_t width,
                    const Segment &segment);

// Programs whose rows walk (`walkedTokens`).
ProgramOp buildWalkedForward(mlir::OpBuilder &builder, mlir::Location loc,
                             const ShortConvShape &shape);
ProgramOp buildWalkedBackward(mlir::OpBuilder &builder, mlir::Location loc,
                              const ShortConvShape &shape);

} // namespace hybrid::tile::shortconv

#endif // HYBRID_TILE_FAMILIES_SHORTCONVPARTS_H
