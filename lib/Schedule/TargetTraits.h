//===- TargetTraits.h - what strategies know of a target -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_SCHEDULE_TARGETTRAITS_H
#define HYBRID_LIB_SCHEDULE_TARGETTRAITS_H

#include "hybrid/Tile/Families/Recurrence.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace hybrid {

/// Sizes that the strategies of a target use. Which algorithm an operation gets
/// depends on these numbers alone, so a target is a row of a table.
struct TargetTraits {
  llvm::StringLiteral name;

  /// Tiles of a product. The rows left at the end of a stream are taken in
  /// pieces of `productTail`; 0 computes the last tile whole.
  int64_t productRows, productColumns, productDepth, productTail;
  /// Calls of at most this many rows are decoding steps, where reading the
  /// matrix is all that costs: all rows are one tile, of `stepColumns` columns,
  /// so that several processors read.
  int64_t fewRows, stepColumns;

  /// A tile is computed whole, so a step has programs of its own on a target
  /// whose tiles are not shared by threads: products of a single row, row-wise
  /// blocks of one row in calls of at most this many, convolutions of
  /// `stepTokens`. 0: none of them.
  int64_t singleRows;
  /// Segments of at most this many tokens are decoding steps.
  int64_t stepTokens;

  int64_t queryTile, keyTile;
  /// Whether a few processors work through the ordered points of a task: then
  /// nothing is computed twice to have more of them at once.
  bool takesTurns;
  /// Elements of the widest tile of keys in the backward, which keeps more
  /// tiles at once: key tiles are shorter where heads are wider.
  int64_t backwardElements;
  /// Queries and keys per tile in decoding steps. With one query a larger tile
  /// of keys saves more than its padding costs.
  int64_t stepQueries, stepKeys;
  /// With fewer heads than this a decoding step of at most `splitRows` rows
  /// would leave processors idle, so the keys of a cache of `splitContext`
  /// tokens or more are split into `splits` ranges.
  int64_t headsEnough, splitRows, splitContext, splits;

  /// Tokens per chunk of a recurrence: forward, backward, and both with a decay
  /// per channel.
  int64_t chunkForward, chunkBackward, chunkPerChannel;
  /// Value columns per point, forward: half as many columns per point fill
  /// twice the processors.
  int64_t valueColumns;
  /// Segments of at most this many tokens go token by token: a chunk's matrix
  /// products would be mostly padding.
  int64_t longestStep;

  /// Elements of the widest tile of a row-wise block.
  int64_t rowwiseElements;
  /// Tiles of the loss head.
  int64_t lossRows, lossColumns;
  /// Parameters per task of the optimiser.
  int64_t optimiserBlock;

  /// The largest tile of value columns that divides them evenly; 0 takes all.
  int64_t valueTile(int64_t valueDim) const {
    if (valueDim <= valueColumns)
      return 0;
    int64_t tile = valueColumns;
    while (tile > 8 && valueDim % tile != 0)
      tile -= 8;
    return tile;
  }

  int64_t backwardKeyTile(int64_t dim) const {
    return std::max<int64_t>(16, std::min(keyTile, backwardElements / dim));
  }
  int64_t chunk(const tile::RecurrenceShape &shape, bool isAdjoint) const {
    if (shape.decay == tile::RecurrenceDecay::PerChannel)
      return chunkPerChannel;
    return isAdjoint ? chunkBackward : chunkForward;
  }
};

/// All targets that have strategies.
llvm::ArrayRef<TargetTraits> targetTraits();

/// The row of the table, or null.
const TargetTraits *lookupTarget(llvm::StringRef name);

} // namespace hybrid

#endif // HYBRID_LIB_SCHEDULE_TARGETTRAITS_H
