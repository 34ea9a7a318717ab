//===- RecurrencePhaseFrame.h - what the programs of phases have in common ===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_TILE_FAMILIES_RECURRENCEPHASEFRAME_H
#define HYBRID_LIB_TILE_FAMILIES_RECURRENCEPHASEFRAME_H

#include "RecurrenceKernel.h"

namespace hybrid::tile::recurrence {

/// With one decay per head the walks read keys as they are, and e^G and
/// e^{G_C − G} beside them; with one per channel keys and queries that have
/// them.
inline bool perHead(const RecurrenceShape &shape) {
  return shape.decay == RecurrenceDecay::PerHead;
}
inline bool perChannel(const RecurrenceShape &shape) {
  return shape.decay == RecurrenceDecay::PerChannel;
}

/// What is kept of all chunks, in the order of the arguments; null where it is
/// not.
struct Prepared {
  mlir::Value erasers, replacements; ///< W, U
  /// e^G, e^{G_C − G}; or with a decay per channel
  mlir::Value fromStart, toEnd;
  /// e^{G_C − G} ⊙ K, e^{G_C}, B(s Q)
  mlir::Value keyEnds, totals, queryScores;
  mlir::Value inverses, dUpdates; ///< T, B(s Q)ᵀ dO
  /// With a decay per channel: s e^G ⊙ Q, B(k)
  mlir::Value queryStarts, keyScores;
};

class Phase {
public:
  Phase(Kernel &kernel) : k(kernel), e(kernel.e), shape(kernel.shape) {}

  Prepared bindPrepared(bool forAdjoint);
  /// Sets the head of this point, and its value columns where `columnDim` is
  /// the grid dim of blocks of them.
  void bindHead(unsigned columnDim);
  /// Runs `body` for the chunk of this point of a grid whose third dim counts
  /// chunks, if the segment has it.
  void eachPoint(llvm::function_ref<void(mlir::Value row, mlir::Value place,
                                         mlir::Value to)>
                     body);

  /// The workspace row of the first chunk.
  mlir::Value firstPlace(const Segment &segment, mlir::Value index) {
    return e.add(e.div(segment.begin, e.idx(shape.chunkSize())), index);
  }
  mlir::Value load(llvm::StringRef name, mlir::Value view, mlir::Value place,
                   int64_t rows, int64_t columns, mlir::Value column = {}) {
    return e.named(
        name, e.load(view, {place, k.head, k.zero, column ? column : k.zero},
                     {2, 3}, {rows, columns}));
  }
  void store(llvm::StringRef name, mlir::Value tile, mlir::Value view,
             mlir::Value place, mlir::Value column = {}) {
    e.named(name,
            e.store(tile, view,
                    {place, k.head, k.zero, column ? column : k.zero}, {2, 3}));
  }
  /// A row for each token of a chunk, of this point's value columns.
  mlir::Value loadColumns(llvm::StringRef name, mlir::Value view,
                          mlir::Value place) {
    return load(name, view, place, shape.chunkSize(), shape.valueWidth(),
                k.firstColumn);
  }
  /// A state, or its gradient, of this point's value columns.
  mlir::Value loadState(llvm::StringRef name, mlir::Value view,
                        mlir::Value place) {
    return load(name, view, place, shape.keyDim, shape.valueWidth(),
                k.firstColumn);
  }
  mlir::Value loadErasers(mlir::Value place, const Prepared &prepared) {
    return load("load_erasers", prepared.erasers, place, shape.chunkSize(),
                shape.keyDim);
  }
  /// Gives a chunk the scores that were kept.
  void loadScores(Chunk &chunk, mlir::Value place, const Prepared &prepared) {
    if (!prepared.queryScores)
      return;
    int64_t size = shape.chunkSize();
    chunk.scores.emplace();
    chunk.scores->query =
        load("load_query_scores", prepared.queryScores, place, size, size);
    if (prepared.keyScores)
      chunk.scores->key =
          load("load_key_scores", prepared.keyScores, place, size, size);
  }
  /// What a walk reads of a chunk: keys and gates, and queries where wanted.
  Chunk loadForWalk(mlir::Value row, mlir::Value to, mlir::Value place,
                    const Prepared &prepared, bool withQuery);

  Kernel &k;
  Emitter &e;
  const RecurrenceShape &shape;
};

/// Segments, heads, and chunks where `byChunk`; then blocks of value columns,
/// unless there is one.
Grid phaseGrid(mlir::MLIRContext *context, const RecurrenceShape &shape,
               bool byChunk);

void append(Arguments &arguments, llvm::ArrayRef<RecurrenceWorkspace> list);

} // namespace hybrid::tile::recurrence

#endif // HYBRID_LIB_TILE_FAMILIES_RECURRENCEPHASEFRAME_H
