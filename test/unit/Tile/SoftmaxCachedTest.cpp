//===- SoftmaxCachedTest.cpp - programs against the definition ------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SoftmaxReference.h"

using namespace mlir;
using namespace hybrid::tile;

namespace {
/// Sequences that grow call by call, each in a slot of a cache whose unused
/// memory holds NaN.
class SoftmaxCachedTest : public ProgramTest {
protected:
  enum Launches { Whole, Split, Step };

  /// Feeds `calls` (new tokens of each slot) and compares every output row with
  /// dense attention over the whole sequence of its slot.
  void check(SoftmaxShape s, int64_t rows, ArrayRef<SmallVector<int64_t>> calls,
             Launches launches = Whole, int64_t keysPerPlace = 1) {
    int64_t slots = calls.front().size();
    SmallVector<int64_t> totals(slots, 0), done(slots, 0);
    for (ArrayRef<int64_t> call : calls)
      for (int64_t n = 0; n < slots; ++n)
        totals[n] += call[n];
    SoftmaxReference reference(s, totals);
    int64_t all = reference.tokens;
    HostBuffer q = random({all, s.heads, s.dim}),
               k = random({all, s.kvHeads, s.dim}),
               v = random({all, s.kvHeads, s.valueDim});
    HostBuffer expected({all, s.heads, s.valueDim}, kNaN),
        lse({all, s.heads}, kNaN);
    reference.forward(q, k, v, expected, lse);
    HostBuffer kCache({slots, s.kvHeads, rows, s.dim}, kNaN);
    HostBuffer vCache({slots, s.kvHeads, rows, s.valueDim}, kNaN);

    for (auto [call, lengths] : llvm::enumerate(calls)) {
      SmallVector<int64_t> rowsOfCall;
      for (int64_t n = 0; n < slots; ++n)
        for (int64_t t = 0; t < lengths[n]; ++t)
          rowsOfCall.push_back(reference.segments[n].begin + done[n] + t);
      SegmentBuffers segs = segments(lengths, done);
      int64_t symbols[] = {segs.tokens, slots, segs.longest, slots, rows, 0};
      HostBuffer qNew = pick(q, rowsOfCall), kNew = pick(k, rowsOfCall),
                 vNew = pick(v, rowsOfCall), want = pick(expected, rowsOfCall);
      HostBuffer o(want.shape(), kNaN);
      OpBuilder b = builder();
      SoftmaxStep step{s};
      step.keysPerPlace = keysPerPlace;
      if (launches == Step && segs.longest <= step.newRows) {
        runStep(step, {&qNew, &kNew, &vNew, &kCache, &vCache, &kCache, &vCache},
                segs, o, symbols);
      } else {
        run(buildSoftmaxAppend(b, b.getUnknownLoc(), s),
            {&kNew, &vNew, &kCache, &vCache, &segs.table, &segs.tokenSegment},
            symbols);
        if (launches == Split)
          runSplit(s, qNew, kCache, vCache, segs, o, symbols);
        else
          run(buildSoftmaxCached(b, b.getUnknownLoc(), s),
              {&qNew, &kCache, &vCache, &segs.table, &segs.tokenSegment, &o},
              symbols);
      }
      EXPECT_LT(distance(o, want), 1e-12) << "call " << call;
      for (int64_t n = 0; n < slots; ++n)
        done[n] += lengths[n];
    }
  }

  void runSplit(const SoftmaxShape &s, HostBuffer &q, HostBuffer &kCache,
                HostBuffer &vCache, SegmentBuffers &segs, HostBuffer &o,
                ArrayRef<int64_t> symbols) {
    HostBuffer part({segs.tokens, s.heads, s.splits, s.valueDim}, kNaN);
    HostBuffer lse({segs.tokens, s.heads, s.splits}, kNaN);
    OpBuilder b = builder();
    run(buildSoftmaxSplit(b, b.getUnknownLoc(), s),
        {&q, &kCache, &vCache, &segs.table, &segs.tokenSegment, &part, &lse},
        symbols);
    run(buildSoftmaxCombine(b, b.getUnknownLoc(), s), {&part, &lse, &o},
        symbols);
  }

  void runStep(const SoftmaxStep &step, ArrayRef<HostBuffer *> inputs,
               SegmentBuffers &segs, HostBuffer &o, ArrayRef<int64_t> symbols) {
    const SoftmaxShape &s = step.shape;
    HostBuffer part({segs.tokens, s.heads, s.splits, s.valueDim}, kNaN);
    HostBuffer lse({segs.tokens, s.heads, s.splits}, kNaN);
    SmallVector<HostBuffer *> buffers(inputs);
    buffers.append({&segs.table, &segs.tokenSegment});
    if (s.splits == 1)
      buffers.push_back(&o);
    else
      buffers.append({&part, &lse});
    OpBuilder b = builder();
    run(buildSoftmaxStep(b, b.getUnknownLoc(), step), buffers, symbols);
    if (s.splits > 1)
      run(buildSoftmaxCombine(b, b.getUnknownLoc(), s), {&part, &lse, &o},
          symbols);
  }

  /// The given rows of `from`.
  static HostBuffer pick(const HostBuffer &from, ArrayRef<int64_t> rows) {
    SmallVector<int64_t> shape(from.shape());
    int64_t width = 1;
    for (int64_t size : ArrayRef(shape).drop_front())
      width *= size;
    shape[0] = rows.size();
    HostBuffer to(shape, 0.0);
    for (auto [n, row] : llvm::enumerate(rows))
      llvm::copy(from.elements().slice(row * width, width),
                 to.elements().begin() + n * width);
    return to;
  }

  static SoftmaxShape tiles(SoftmaxShape s, int64_t queryTile, int64_t keyTile,
                            int64_t splits = 1) {
    s.queryTile = queryTile;
    s.keyTile = keyTile;
    s.splits = splits;
    return s;
  }
};

using Calls = SmallVector<SmallVector<int64_t>>;
} // namespace

TEST_F(SoftmaxCachedTest, PrefillThenSteps) {
  check(tiles(softmaxShape(2, 2, 4, 6), 8, 16), 40,
        Calls{{20, 0}, {1, 7}, {0, 1}, {17, 1}});
}

TEST_F(SoftmaxCachedTest, OneRowPerQueryTile) {
  check(tiles(softmaxShape(4, 2, 4, 4), 1, 16), 40,
        Calls{{20, 3}, {1, 1}, {1, 0}, {1, 1}});
}

TEST_F(SoftmaxCachedTest, RingOfTheSmallestSize) {
  // Window - 1 old rows and at most 5 new ones; tiles larger than the ring.
  check(tiles(softmaxShape(1, 1, 4, 4, {4}), 8, 16), 8,
        Calls{{5}, {5}, {1}, {5}, {4}, {1}, {1}});
  check(tiles(softmaxShape(1, 1, 4, 4, {4}), 1, 2), 8,
        Calls{{5}, {5}, {1}, {5}, {4}, {1}, {1}});
}

TEST_F(SoftmaxCachedTest, SinksStayWhileTheRingTurns) {
  check(tiles(softmaxShape(1, 1, 4, 4, {4}, {3}), 4, 8), 3 + 3 + 5,
        Calls{{2}, {5}, {1}, {5}, {5}, {1}, {4}});
  check(tiles(softmaxShape(1, 1, 4, 4, {4}, {3}), 1, 2), 3 + 3 + 1,
        Calls{{1}, {1}, {1}, {1}, {1}, {1}, {1}, {1}, {1}, {1}, {1}, {1}});
}

TEST_F(SoftmaxCachedTest, HeadWiseTableSharesOneCache) {
  // A head without a window needs a row per position.
  check(tiles(softmaxShape(4, 2, 4, 4, {0, 5, 9, 9}, {0, 2, 0, 0}), 4, 8), 48,
        Calls{{30, 1}, {1, 1}, {6, 20}});
}

TEST_F(SoftmaxCachedTest, SplitKeysAndTheirCombine) {
  // More ranges than key tiles, so that some see nothing.
  check(tiles(softmaxShape(4, 2, 4, 4), 1, 8, 4), 64,
        Calls{{20, 0}, {1, 1}, {30, 1}, {1, 0}}, Split);
  check(tiles(softmaxShape(1, 1, 4, 4, {4}, {3}), 2, 2, 3), 11,
        Calls{{2}, {5}, {5}, {1}, {4}}, Split);
}

// Steps read the cache a row at a time: groups that share a key head, windows,
// sinks, rules that differ inside of a group, and several rows per call; also
// with the append, in one launch.
TEST_F(SoftmaxCachedTest, WithoutMatrixProducts) {
  auto elementwise = [](SoftmaxShape s, int64_t keyTile, int64_t splits = 1) {
    s = tiles(std::move(s), 1, keyTile, splits);
    s.elementwise = true;
    return s;
  };
  Calls grows{{20, 0}, {1, 1}, {30, 1}, {1, 0}, {1, 3}};
  for (auto [launches, splits] : {std::pair<Launches, int64_t>{Whole, 1},
                                  {Split, 3},
                                  {Step, 1},
                                  {Step, 3}}) {
    check(elementwise(softmaxShape(4, 2, 4, 6), 8, splits), 64, grows, launches,
          /*keysPerPlace=*/2);
    check(elementwise(softmaxShape(4, 2, 4, 4, {0, 5, 9, 9}, {0, 2, 0, 0}), 8,
                      splits),
          64, grows, launches);
    check(elementwise(softmaxShape(2, 1, 4, 4, {4, 4}, {3, 3}), 2, splits), 11,
          Calls{{2}, {5}, {5}, {1}, {4}}, launches);
    check(elementwise(softmaxShape(2, 1, 4, 4, {4, 4}, {3, 3}), 4, splits), 11,
          Calls{{2}, {5}, {5}, {1}, {4}}, launches, /*keysPerPlace=*/2);
    // A window without sinks: its keys are divided, not its tiles.
    check(elementwise(softmaxShape(2, 2, 4, 4, {7, 7}), 4, splits), 11,
          Calls{{2}, {5}, {4}, {1}, {4}}, launches);
    // More sinks than the window lets by, and a window of the row alone.
    check(elementwise(softmaxShape(2, 2, 4, 4, {1, 2}, {6, 5}), 2, splits), 12,
          Calls{{3}, {2}, {1}, {4}, {1}, {1}}, launches);
  }
}

// Grouped heads belong to key heads in blocks; 24 is no multiple of a tile.
TEST_F(SoftmaxCachedTest, ATT_14) {
  for (auto [heads, kvHeads] :
       {std::pair<int64_t, int64_t>{48, 2}, {40, 2}, {80, 4}, {6, 2}})
    check(tiles(softmaxShape(heads, kvHeads, 2, 2), 1, 4), 4, Calls{{1}, {1}});
}

TEST_F(SoftmaxCachedTest, CCH_11) {
  check(tiles(softmaxShape(1, 1, 4, 1, {4}), 4, 4), 10,
        Calls{{7}, {1}, {1}, {1}});
}

TEST_F(SoftmaxCachedTest, CCH_13) {
  check(tiles(softmaxShape(1, 1, 4, 1, {4}), 4, 4), 9 + 4 - 1,
        Calls{{6}, {9}, {1}});
}

// A query sees the keys before it in the cache: bottom-right alignment.
TEST_F(SoftmaxCachedTest, ATT_08) {
  SoftmaxShape s = tiles(softmaxShape(1, 1, 2, 1), 4, 4);
  HostBuffer q({2, 1, 2}, 0.0), k({2, 1, 2}, 0.0), v({2, 1, 1}, 0.0),
      o({2, 1, 1}, kNaN);
  HostBuffer kCache({1, 1, 8, 2}, kNaN), vCache({1, 1, 8, 1}, kNaN);
  for (int64_t j = 0; j < 3; ++j) {
    kCache({0, 0, j, 0}) = kCache({0, 0, j, 1}) = 0.0;
    vCache({0, 0, j, 0}) = j + 1;
  }
  v({0, 0, 0}) = 4.0;
  v({1, 0, 0}) = 5.0;
  SegmentBuffers segs = segments({2}, {3});
  OpBuilder b = builder();
  run(buildSoftmaxAppend(b, b.getUnknownLoc(), s),
      {&k, &v, &kCache, &vCache, &segs.table, &segs.tokenSegment},
      {2, 1, 2, 1, 8, 0});
  run(buildSoftmaxCached(b, b.getUnknownLoc(), s),
      {&q, &kCache, &vCache, &segs.table, &segs.tokenSegment, &o},
      {2, 1, 2, 1, 8, 0});
  EXPECT_DOUBLE_EQ(o({0, 0, 0}), 2.5);
  EXPECT_DOUBLE_EQ(o({1, 0, 0}), 3.0);
}
