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
#include "llvm/ADT/bit.h"

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
  /// Points of a launch that fill the target: products with fewer are cut into
  /// smaller tiles, or into ranges of depth that are summed after. 0 is for a
  /// target whose few processors any launch fills.
  int64_t processors;
  /// Narrowest tile of columns in a step, rows and columns of a tile where
  /// whole tiles would leave processors idle.
  int64_t leastStepColumns, mediumTile;
  /// Rows up to which each reads its matrices for itself; 0: no program of that
  /// kind. The most columns that a point takes, and bytes of them; and bytes up
  /// to which it takes more, so that every processor has one point.
  int64_t readingRows, readColumns, readBytes, shareBytes;
  /// Most ranges of depth, and most elements of all their sums.
  int64_t mostSplits, splitElements;
  /// Warpgroups that multiply 16-bit operands, 64 rows each, of tiles that a
  /// thread copies ahead; 0: the target has no such products. Then the widest
  /// tile of columns, the depth of a tile, and the bytes of shared memory that
  /// its copies may take.
  int64_t warpgroups, warpgroupColumns, warpgroupDepth, copyBytes;
  /// Depth up to which one block per processor takes the tiles of such a
  /// product one after another; a deep tile has little to hide.
  int64_t persistentDepth;

  /// A tile is computed whole, so a step has programs of its own on a target
  /// whose tiles are not shared by threads: products of a single row, row-wise
  /// blocks of one row in calls of at most this many, convolutions of
  /// `stepTokens`. 0: none of them.
  int64_t singleRows;
  /// Segments of at most this many tokens are decoding steps.
  int64_t stepTokens;

  /// Whether a launch of a decoding step may begin before the one in front of
  /// it has ended.
  bool overlaps;

  int64_t queryTile, keyTile;
  /// Elements of the widest tile of keys forward: key tiles are shorter where
  /// heads are wider.
  int64_t keyElements;
  /// The same over a cache where heads have windows, whose masks take
  /// registers.
  int64_t windowedKeyElements;
  /// Most bytes of a tile's queries, over a cache of all heads that share keys,
  /// and half as many in the backward: wide or many heads have fewer queries.
  /// 0: any.
  int64_t queryBytes;
  /// Whether a few processors work through the ordered points of a task: then
  /// nothing is computed twice to have more of them at once.
  bool takesTurns;
  /// The same in the backward, which keeps more tiles at once.
  int64_t backwardElements;
  /// Queries per tile there.
  int64_t backwardQueries;
  /// Queries and keys per tile in decoding steps. With one query a larger tile
  /// of keys saves more than its padding costs.
  int64_t stepQueries, stepKeys;
  /// Whether steps read a cache a row at a time without matrix products, and
  /// then the bytes of their tile of keys for all heads of a point.
  int64_t stepKeyBytes;
  /// With fewer heads than this a decoding step of at most `splitRows` rows
  /// would leave processors idle, so the keys of a cache of `splitContext`
  /// tokens or more are split into `splits` ranges, or fewer where points per
  /// processor are more than two.
  int64_t headsEnough, splitRows, splitContext, splits;
  /// Most bytes of partial outputs that every point of a product of few rows
  /// may join for itself, which saves a launch.
  int64_t joinedBytes;

  /// Tokens per chunk of a recurrence: forward, backward, and both with a decay
  /// per channel.
  int64_t chunkForward, chunkBackward, chunkPerChannel;
  /// Tokens per chunk of a recurrence of 16-bit operands where only the state
  /// goes from chunk to chunk and everything else is done for all chunks at
  /// once, and the widest head for which it is; 0: for none.
  int64_t phasedChunk, phasedDim;
  /// Elements of the widest tile of a chunk's keys, forward and backward:
  /// chunks are shorter where keys are wider.
  int64_t chunkElements, chunkBackwardElements;
  /// Value columns per point forward, per turn backward, and per point of a
  /// decoding step: half as many columns per point fill twice the processors,
  /// but rows of a state are then read in pieces of less than 64 bytes.
  int64_t valueColumns, backwardValueColumns, stepValueColumns;
  /// Elements of the widest tile of a state.
  int64_t stateElements;
  int64_t wideKeys;
  /// Segments of at least this many tokens are split over points where whole
  /// ones would leave half of the processors idle; 0: never.
  int64_t splitTokens;
  /// Segments of at most this many tokens go token by token: a chunk's matrix
  /// products would be mostly padding.
  int64_t longestStep;

  /// Tokens that a row of a convolution's tile walks, forward and backward; 0:
  /// a tile is a block of tokens.
  int64_t walkedTokens, backwardWalkedTokens;
  /// Elements of the widest tile of a row-wise block.
  int64_t rowwiseElements;
  /// Tiles of the loss head.
  int64_t lossRows, lossColumns;
  /// Logits of a piece of rows that a loss head runs for, unless that are fewer
  /// rows than the products around them need.
  int64_t pieceElements, leastPieceRows;
  /// Parameters per task of the optimiser.
  int64_t optimiserBlock;

  /// The largest tile of at most `columns` value columns that divides them
  /// evenly; 0 takes all. A state has fewer where its keys are wider, and half
  /// as many elements where a chunk of keys fills more registers than it does.
  int64_t valueTile(const tile::RecurrenceShape &shape, int64_t columns) const {
    int64_t elements =
        shape.keyDim > wideKeys ? stateElements / 2 : stateElements;
    int64_t tile = rowsWithin(elements, shape.keyDim, columns, 8);
    if (shape.valueDim <= tile)
      return 0;
    while (tile > 8 && shape.valueDim % tile != 0)
      tile -= 8;
    return tile;
  }

  /// At most `most` queries of so many bytes; one alone is for steps.
  int64_t queriesWithin(int64_t most, int64_t bytes) const {
    while (queryBytes > 0 && most > 2 && most * bytes > queryBytes)
      most /= 2;
    return most;
  }
  int64_t forwardKeyTile(int64_t dim) const {
    return rowsWithin(keyElements, dim, keyTile);
  }
  /// Over a cache: in steps, and in longer calls.
  int64_t cachedKeyTile(int64_t dim, bool anyWindow, bool isStep) const {
    return rowsWithin(anyWindow ? std::min(keyElements, windowedKeyElements)
                                : keyElements,
                      dim, isStep ? stepKeys : keyTile);
  }
  int64_t backwardKeyTile(int64_t dim) const {
    return rowsWithin(backwardElements, dim, keyTile);
  }
  int64_t chunk(const tile::RecurrenceShape &shape, bool isAdjoint) const {
    if (shape.decay == tile::RecurrenceDecay::PerChannel)
      return chunkPerChannel;
    return isAdjoint
               ? rowsWithin(chunkBackwardElements, shape.keyDim, chunkBackward)
               : rowsWithin(chunkElements, shape.keyDim, chunkForward);
  }

  /// Rows of a tile of `elements` at most: a power of two from `least` to
  /// `most`, which need not be one.
  static int64_t rowsWithin(int64_t elements, int64_t columns, int64_t most,
                            int64_t least = 16) {
    return std::clamp<int64_t>(llvm::bit_floor<uint64_t>(elements / columns),
                               std::min(least, most), most);
  }
};

/// All targets that have strategies.
llvm::ArrayRef<TargetTraits> targetTraits();

/// The row of the table for a target such as `cuda` or `cuda:sm_89`, or null. A
/// chip without a row of its own has that of its kind.
const TargetTraits *lookupTarget(llvm::StringRef name);

} // namespace hybrid

#endif // HYBRID_LIB_SCHEDULE_TARGETTRAITS_H
