//===- SoftmaxTest.cpp - softmax programs against the definition ---------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SoftmaxReference.h"

using namespace mlir;
using namespace hybrid::tile;

namespace {
const SoftmaxCase kCases[] = {
    {"Causal", softmaxShape(1, 1, 8, 8), {40}, {}},
    {"RaggedTails", softmaxShape(1, 1, 4, 4), {0, 1, 15, 16, 17, 33}, {}},
    {"DefaultTiles",
     softmaxShape(1, 1, 4, 4, {}, {}, 64, 64),
     {63, 64, 65},
     {}},
    {"UnlikeTiles", softmaxShape(1, 1, 4, 4, {}, {}, 8, 16), {37, 3}, {}},
    {"UnlikeTilesTheOtherWay",
     softmaxShape(1, 1, 4, 4, {}, {}, 16, 8),
     {37, 3},
     {}},
    {"GroupedHeads", softmaxShape(6, 2, 4, 4), {20, 5}, {}},
    {"OwnValueWidth", softmaxShape(2, 2, 4, 12), {20}, {}},
    {"Window", softmaxShape(1, 1, 4, 4, {5}), {50, 3}, {}},
    {"WindowOfOne", softmaxShape(1, 1, 4, 4, {1}), {20}, {}},
    {"WindowOfATile", softmaxShape(1, 1, 4, 4, {16}), {70}, {}},
    {"WindowBeyondTheLength", softmaxShape(1, 1, 4, 4, {100}), {50}, {}},
    {"WindowWithSinks", softmaxShape(1, 1, 4, 4, {7}, {4}), {70, 2}, {}},
    {"MoreSinksThanATile", softmaxShape(1, 1, 4, 4, {7}, {20}), {70}, {}},
    {"SinksBeforeTheSegment",
     softmaxShape(1, 1, 4, 4, {7}, {4}),
     {70, 30},
     {2, 9}},
    {"HeadWiseTable",
     softmaxShape(4, 2, 4, 4, {0, 5, 20, 0}, {0, 3, 0, 0}),
     {60, 7},
     {}},
    {"WindowUnlikeTiles", softmaxShape(1, 1, 4, 4, {9}, {2}, 8, 32), {70}, {}},
    {"WindowUnlikeTilesTheOtherWay",
     softmaxShape(1, 1, 4, 4, {9}, {2}, 32, 8),
     {70},
     {}},
};

class SoftmaxTest : public ProgramTest,
                    public testing::WithParamInterface<SoftmaxCase> {};
} // namespace

TEST_P(SoftmaxTest, ForwardAndBackward) {
  const auto &[name, s, lengths, first] = GetParam();
  SoftmaxReference reference(s, lengths, first);
  int64_t t = reference.tokens;
  SegmentBuffers segs = segments(lengths, first);
  HostBuffer q = random({t, s.heads, s.dim}), k = random({t, s.kvHeads, s.dim}),
             v = random({t, s.kvHeads, s.valueDim});
  HostBuffer o({t, s.heads, s.valueDim}, kNaN), lse({t, s.heads}, kNaN),
      o0 = o, lse0 = lse;
  int64_t symbols[] = {t, int64_t(lengths.size()), segs.longest, 0, 0, 0};

  OpBuilder b = builder();
  run(buildSoftmaxForward(b, b.getUnknownLoc(), s),
      {&q, &k, &v, &segs.table, &segs.tokenSegment, &o, &lse}, symbols);
  reference.forward(q, k, v, o0, lse0);
  EXPECT_LT(distance(o, o0), 1e-12);
  EXPECT_LT(distance(lse, lse0), 1e-12);

  HostBuffer dout = random({t, s.heads, s.valueDim});
  HostBuffer dq(q.shape(), kNaN), dk(k.shape(), kNaN), dv(v.shape(), kNaN);
  HostBuffer dq0 = dq, dk0 = dk, dv0 = dv;
  run(buildSoftmaxBackward(b, b.getUnknownLoc(), s),
      {&q, &k, &v, &o, &lse, &dout, &segs.table, &segs.tokenSegment, &dq, &dk,
       &dv},
      symbols);
  reference.backward(q, k, v, o0, lse0, dout, dq0, dk0, dv0);
  EXPECT_LT(distance(dq, dq0), 1e-12);
  EXPECT_LT(distance(dk, dk0), 1e-12);
  EXPECT_LT(distance(dv, dv0), 1e-12);

  // The same without turns.
  HostBuffer dq1(q.shape(), kNaN), dk1(k.shape(), kNaN), dv1(v.shape(), kNaN);
  run(buildSoftmaxBackwardKeys(b, b.getUnknownLoc(), s),
      {&q, &k, &v, &o, &lse, &dout, &segs.table, &segs.tokenSegment, &dk1,
       &dv1},
      symbols);
  run(buildSoftmaxBackwardQueries(b, b.getUnknownLoc(), s),
      {&q, &k, &v, &o, &lse, &dout, &segs.table, &segs.tokenSegment, &dq1},
      symbols);
  EXPECT_LT(distance(dq1, dq0), 1e-12);
  EXPECT_LT(distance(dk1, dk0), 1e-12);
  EXPECT_LT(distance(dv1, dv0), 1e-12);
}

INSTANTIATE_TEST_SUITE_P(All, SoftmaxTest, testing::ValuesIn(kCases),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

//===----------------------------------------------------------------------===//
// Single values
//===----------------------------------------------------------------------===//

namespace {
/// One head with q = 0 and v_j = j, so that the output is the mean of what is
/// visible.
class SoftmaxMean : public ProgramTest {
protected:
  HostBuffer means(const SoftmaxShape &s, int64_t t) {
    HostBuffer q({t, 1, s.dim}, 0.0), k = random({t, 1, s.dim}),
                                      v({t, 1, 1}, 0.0);
    HostBuffer o({t, 1, 1}, kNaN), lse({t, 1}, kNaN);
    for (int64_t j = 0; j < t; ++j)
      v({j, 0, 0}) = j;
    SegmentBuffers segs = segments({t});
    OpBuilder b = builder();
    run(buildSoftmaxForward(b, b.getUnknownLoc(), s),
        {&q, &k, &v, &segs.table, &segs.tokenSegment, &o, &lse},
        {t, 1, t, 0, 0, 0});
    return o;
  }
};
} // namespace

TEST_F(SoftmaxMean, ATT_01) {
  HostBuffer o = means(softmaxShape(1, 1, 4, 1, {4}), 8);
  const double expected[] = {0, 0.5, 1, 1.5, 2.5, 3.5, 4.5, 5.5};
  for (int64_t row = 0; row < 8; ++row)
    EXPECT_DOUBLE_EQ(o({row, 0, 0}), expected[row]);
}

TEST_F(SoftmaxMean, ATT_02) {
  HostBuffer one = means(softmaxShape(1, 1, 4, 1, {1}), 3),
             all = means(softmaxShape(1, 1, 4, 1), 3);
  for (int64_t row = 0; row < 3; ++row) {
    EXPECT_EQ(one({row, 0, 0}), row);
    EXPECT_DOUBLE_EQ(all({row, 0, 0}), row / 2.0);
  }
}

// Softmax of [-inf, 0, 3] and [88, 89, 90], a row of nothing but -inf, and NaN.
class SoftmaxRows : public SoftmaxMean {
protected:
  /// The last row's weights of three keys with these logits.
  std::array<double, 3> weights(std::array<double, 3> logits,
                                double *lse = nullptr) {
    SoftmaxShape s = softmaxShape(1, 1, 1, 3);
    s.scale = 1.0;
    HostBuffer q({3, 1, 1}, 1.0), k({3, 1, 1}, 0.0), v({3, 1, 3}, 0.0);
    for (int64_t j = 0; j < 3; ++j) {
      k({j, 0, 0}) = logits[j];
      v({j, 0, j}) = 1.0;
    }
    HostBuffer o({3, 1, 3}, kNaN), logSum({3, 1}, kNaN);
    SegmentBuffers segs = segments({3});
    OpBuilder b = builder();
    run(buildSoftmaxForward(b, b.getUnknownLoc(), s),
        {&q, &k, &v, &segs.table, &segs.tokenSegment, &o, &logSum},
        {3, 1, 3, 0, 0, 0});
    if (lse)
      *lse = logSum({2, 0});
    return {o({2, 0, 0}), o({2, 0, 1}), o({2, 0, 2})};
  }
};

TEST_F(SoftmaxRows, GEN_06) {
  double inf = std::numeric_limits<double>::infinity();
  auto near = [](std::array<double, 3> a, std::array<double, 3> b) {
    for (int i = 0; i < 3; ++i)
      EXPECT_NEAR(a[i], b[i], 1e-6);
  };
  near(weights({-inf, 0, 3}), {0, 0.047426, 0.952574});
  near(weights({88, 89, 90}), {0.090031, 0.244728, 0.665241});
  near(weights({-1e30, -1e30, -1e30}), {1.0 / 3, 1.0 / 3, 1.0 / 3});
}

TEST_F(SoftmaxRows, GEN_05) {
  double inf = std::numeric_limits<double>::infinity(), lse = 0.0;
  EXPECT_EQ(weights({-inf, -inf, -inf}, &lse),
            (std::array<double, 3>{0, 0, 0}));
  EXPECT_EQ(lse, -inf);
  EXPECT_TRUE(std::isnan(weights({kNaN, 1, 1})[1]));
}
