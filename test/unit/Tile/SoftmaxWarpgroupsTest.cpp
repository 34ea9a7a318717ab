//===- SoftmaxWarpgroupsTest.cpp - attention for warpgroups ---------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Tile/Families/SoftmaxWarpgroups.h"
#include "SoftmaxReference.h"

using namespace mlir;
using namespace hybrid::tile;

namespace {
/// Tiles of these programs have 128 rows and steps of 64 or 128.
const SoftmaxCase kCases[] = {
    {"Causal", softmaxShape(1, 1, 64, 64), {300}, {}},
    {"HeadDim128", softmaxShape(1, 1, 128, 128), {140}, {}},
    {"RaggedTails", softmaxShape(1, 1, 64, 64), {0, 1, 127, 128, 129}, {}},
    {"GroupedHeads", softmaxShape(4, 2, 64, 64), {130, 5}, {}},
    {"Window", softmaxShape(1, 1, 64, 64, {100}), {300, 3}, {}},
    {"WindowOfOne", softmaxShape(1, 1, 64, 64, {1}), {200}, {}},
    {"WindowBeyondTheLength", softmaxShape(1, 1, 64, 64, {500}), {200}, {}},
    {"WindowWithSinks", softmaxShape(1, 1, 64, 64, {70}, {4}), {400, 2}, {}},
    {"MoreSinksThanATile", softmaxShape(1, 1, 64, 64, {70}, {140}), {400}, {}},
    {"SinksBeforeTheSegment",
     softmaxShape(1, 1, 64, 64, {70}, {4}),
     {300, 150},
     {2, 9}},
    {"HeadWiseTable",
     softmaxShape(4, 2, 64, 64, {0, 50, 20, 20}, {0, 3, 0, 0}),
     {260, 7},
     {}},
};

class SoftmaxWarpgroups : public ProgramTest {
protected:
  /// Constants of the programs are f32: factors of an exponent.
  static constexpr double kTolerance = 1e-6;
};
class SoftmaxWarpgroupCases : public SoftmaxWarpgroups,
                              public testing::WithParamInterface<SoftmaxCase> {
};
} // namespace

TEST_P(SoftmaxWarpgroupCases, ForwardAndBackward) {
  auto [name, s, lengths, first] = GetParam();
  SoftmaxReference reference(s, lengths, first);
  s.element = BFloat16Type::get(&context);
  ASSERT_EQ(whyNotWarpgroups(s, /*isCached=*/false), "");
  int64_t t = reference.tokens, segmentCount = lengths.size();
  SegmentBuffers segs = segments(lengths, first);
  HostBuffer q = random({t, s.heads, s.dim}), k = random({t, s.kvHeads, s.dim}),
             v = random({t, s.kvHeads, s.dim});
  HostBuffer o(q.shape(), kNaN), lse({t, s.heads}, kNaN), o0 = o, lse0 = lse;
  int64_t symbols[] = {t, segmentCount, segs.longest, 0, 0, 0};

  OpBuilder b = builder();
  Location loc = b.getUnknownLoc();
  run(buildSoftmaxForwardWarpgroups(b, loc, s),
      {&q, &k, &v, &segs.table, &segs.tokenSegment, &o, &lse}, symbols);
  reference.forward(q, k, v, o0, lse0);
  EXPECT_LT(distance(o, o0), kTolerance);
  EXPECT_LT(distance(lse, lse0), kTolerance);

  HostBuffer dout = random(q.shape());
  HostBuffer dq(q.shape(), kNaN), dk(k.shape(), kNaN), dv(v.shape(), kNaN);
  HostBuffer dq0 = dq, dk0 = dk, dv0 = dv;
  HostBuffer shift({s.heads, t}, kNaN), delta({s.heads, t}, kNaN);
  run(buildSoftmaxRowTerms(b, loc, s), {&o, &lse, &dout, &shift, &delta},
      symbols);
  run(buildSoftmaxBackwardKeysWarpgroups(b, loc, s),
      {&q, &k, &v, &dout, &shift, &delta, &segs.table, &segs.tokenSegment, &dk,
       &dv},
      symbols);
  run(buildSoftmaxBackwardQueriesWarpgroups(b, loc, s),
      {&q, &k, &v, &dout, &shift, &delta, &segs.table, &segs.tokenSegment, &dq},
      symbols);
  reference.backward(q, k, v, o0, lse0, dout, dq0, dk0, dv0);
  EXPECT_LT(distance(dq, dq0), kTolerance);
  EXPECT_LT(distance(dk, dk0), kTolerance);
  EXPECT_LT(distance(dv, dv0), kTolerance);
}

INSTANTIATE_TEST_SUITE_P(All, SoftmaxWarpgroupCases, testing::ValuesIn(kCases),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

/// New rows behind those that the cache has: the same as the last rows of the
/// whole sequence. Rows past the end are not read.
TEST_F(SoftmaxWarpgroups, PrefillAfterEarlierTokens) {
  SoftmaxShape s = softmaxShape(4, 2, 64, 64);
  const int64_t before[] = {70, 0}, added[] = {150, 40}, rows = 260;
  SmallVector<int64_t> whole = {220, 40};
  SoftmaxReference reference(s, whole);
  s.element = BFloat16Type::get(&context);
  int64_t all = reference.tokens, t = added[0] + added[1];
  HostBuffer q = random({all, 4, 64}), k = random({all, 2, 64}),
             v = random({all, 2, 64});
  HostBuffer o0(q.shape(), kNaN), lse0({all, 4}, kNaN);
  reference.forward(q, k, v, o0, lse0);

  // Sequence 0 is in slot 1.
  HostBuffer newQ({t, 4, 64}, kNaN), wanted(newQ.shape(), kNaN),
      o(newQ.shape(), kNaN), kCache({2, 2, rows, 64}, kNaN),
      vCache(kCache.shape(), kNaN), table({2, 4}, 0), owner({t}, 0);
  for (int64_t n = 0, row = 0; n < 2; ++n) {
    int64_t begin = n == 0 ? 0 : whole[0], slot = 1 - n;
    table({n, 0}) = row;
    table({n, 1}) = row + added[n];
    table({n, 2}) = slot;
    table({n, 3}) = before[n];
    for (int64_t at = 0; at < whole[n]; ++at)
      for (int64_t h = 0; h < 2; ++h)
        for (int64_t c = 0; c < 64; ++c) {
          kCache({slot, h, at, c}) = k({begin + at, h, c});
          vCache({slot, h, at, c}) = v({begin + at, h, c});
        }
    for (int64_t at = before[n]; at < whole[n]; ++at, ++row)
      for (int64_t h = 0; h < 4; ++h)
        for (int64_t c = 0; c < 64; ++c) {
          newQ({row, h, c}) = q({begin + at, h, c});
          wanted({row, h, c}) = o0({begin + at, h, c});
        }
  }
  OpBuilder b = builder();
  run(buildSoftmaxCachedWarpgroups(b, b.getUnknownLoc(), s),
      {&newQ, &kCache, &vCache, &table, &owner, &o}, {t, 2, 150, 2, rows, 0});
  EXPECT_LT(distance(o, wanted), kTolerance);
}

TEST_F(SoftmaxWarpgroups, WhatTheyCannotRunHasAReason) {
  SoftmaxShape s = softmaxShape(1, 1, 64, 64);
  auto why = [&](bool isCached = false) {
    return whyNotWarpgroups(s, isCached);
  };
  EXPECT_EQ(why(), "warpgroups multiply bf16 and f16");
  s.element = Float16Type::get(&context);
  EXPECT_EQ(why(), "");
  s.valueDim = 96;
  EXPECT_EQ(why(), "warpgroups have programs for heads of 64 and of 128, keys "
                   "are 64 wide and values 96");
  s.valueDim = 64;
  s.scale = 0.0;
  EXPECT_EQ(why(), "the maximum of unscaled scores needs a positive scale");
  s.scale = 0.125;
  s.windows = {100};
  EXPECT_EQ(why(), "");
  EXPECT_EQ(why(/*isCached=*/true),
            "rows of a ring do not lie in one box of the copy engine");
}
