//===- ShortConvTest.cpp - short convolution programs -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Tile/Families/ShortConv.h"
#include "ProgramTest.h"

using namespace hybrid::tile;

namespace {
class ShortConv : public ProgramTest {
protected:
  static llvm::SmallVector<int64_t> symbols(const SegmentBuffers &s,
                                            int64_t slots = 0) {
    return {s.tokens, int64_t(s.table.shape()[0]), s.longest, slots, 0, 0};
  }

  /// Runs forward over segments of these lengths; `state` may be null.
  HostBuffer forward(const ShortConvShape &shape, HostBuffer &x, HostBuffer &w,
                     llvm::ArrayRef<int64_t> lengths,
                     HostBuffer *state = nullptr) {
    SegmentBuffers s = segments(lengths);
    HostBuffer y({s.tokens, shape.channels}, kNaN);
    mlir::OpBuilder b = builder();
    ProgramOp program = buildShortConvForward(b, b.getUnknownLoc(), shape);
    llvm::SmallVector<HostBuffer *> buffers = {&x, &w, &s.table,
                                               &s.tokenSegment};
    if (state)
      buffers.push_back(state);
    buffers.push_back(&y);
    run(program, buffers, symbols(s, state ? state->shape()[0] : 0));
    return y;
  }

  static void expectNear(const HostBuffer &got, const HostBuffer &expected) {
    ASSERT_EQ(got.elements().size(), expected.elements().size());
    for (size_t i = 0; i < got.elements().size(); ++i)
      EXPECT_NEAR(got.elements()[i], expected.elements()[i], 1e-12)
          << "element " << i;
  }
};

/// x_{t-lag} of a segment that begins at `begin`, from the state before it.
double input(const HostBuffer &x, const HostBuffer *state, int64_t slot,
             int64_t begin, int64_t row, int64_t channel) {
  if (row >= begin)
    return x({row, channel});
  int64_t old = state ? state->shape()[1] + row - begin : -1;
  return old < 0 ? 0.0 : (*state)({slot, old, channel});
}

HostBuffer defineForward(const ShortConvShape &shape, const HostBuffer &x,
                         const HostBuffer &w, llvm::ArrayRef<int64_t> lengths,
                         const HostBuffer *state = nullptr) {
  HostBuffer y(x.shape(), 0.0);
  int64_t begin = 0;
  for (auto [slot, length] : llvm::enumerate(lengths)) {
    for (int64_t t = begin; t < begin + length; ++t)
      for (int64_t c = 0; c < shape.channels; ++c)
        for (int64_t i = 0; i < shape.kernel; ++i)
          y({t, c}) += w({c, i}) * input(x, state, slot, begin,
                                         t - shape.kernel + 1 + i, c);
    begin += length;
  }
  return y;
}
} // namespace

TEST_F(ShortConv, ForwardOfPackedSegments) {
  for (int64_t kernel : {2, 4, 8}) {
    ShortConvShape shape{24, kernel, false};
    llvm::SmallVector<int64_t> lengths = {3, 0, 65, 1, 64, 130};
    HostBuffer x = random({263, 24}), w = random({24, kernel});
    HostBuffer expected = defineForward(shape, x, w, lengths);
    for (int64_t tile : {int64_t(64), kernel - 1}) {
      shape.tokenTile = tile;
      expectNear(forward(shape, x, w, lengths), expected);
    }
    for (int64_t walked : {1, 2, 8}) {
      shape.walkedTokens = walked;
      expectNear(forward(shape, x, w, lengths), expected);
    }
  }
}

namespace {
struct Gradients {
  HostBuffer dx, dw;
};
Gradients defineBackward(const ShortConvShape &shape, const HostBuffer &x,
                         const HostBuffer &w, const HostBuffer &dy,
                         llvm::ArrayRef<int64_t> lengths) {
  Gradients expected{HostBuffer(x.shape(), 0.0), HostBuffer(w.shape(), 0.0)};
  int64_t begin = 0;
  for (int64_t length : lengths) {
    for (int64_t t = begin; t < begin + length; ++t)
      for (int64_t c = 0; c < shape.channels; ++c)
        for (int64_t i = 0; i < shape.kernel; ++i) {
          int64_t row = t - shape.kernel + 1 + i;
          if (row < begin)
            continue;
          expected.dx({row, c}) += w({c, i}) * dy({t, c});
          expected.dw({c, i}) += x({row, c}) * dy({t, c});
        }
    begin += length;
  }
  return expected;
}
} // namespace

TEST_F(ShortConv, BackwardOfPackedSegments) {
  ShortConvShape shape{24, 4, false};
  llvm::SmallVector<int64_t> lengths = {3, 0, 65, 1, 64, 130};
  SegmentBuffers s = segments(lengths);
  HostBuffer x = random({s.tokens, 24}), w = random({24, 4}),
             dy = random({s.tokens, 24});
  HostBuffer dx({s.tokens, 24}, kNaN), dw({24, 4}, kNaN);
  mlir::OpBuilder b = builder();
  run(buildShortConvBackward(b, b.getUnknownLoc(), shape),
      {&x, &w, &s.table, &s.tokenSegment, &dy, &dx, &dw}, symbols(s));
  Gradients expected = defineBackward(shape, x, w, dy, lengths);
  expectNear(dx, expected.dx);
  expectNear(dw, expected.dw);
}

// Parts end inside of segments and of blocks, and hold several segments.
TEST_F(ShortConv, WalkedBackwardIsSummedInParts) {
  for (auto [kernel, walked, part] :
       {std::tuple(2, 1, 256), {4, 4, 32}, {4, 1, 50}, {8, 3, 1000}}) {
    ShortConvShape shape{24, kernel, false};
    shape.walkedTokens = walked;
    shape.partTokens = part;
    llvm::SmallVector<int64_t> lengths = {3, 0, 65, 1, 0, 64, 0, 130, 0};
    SegmentBuffers s = segments(lengths);
    HostBuffer x = random({s.tokens, 24}), w = random({24, kernel}),
               dy = random({s.tokens, 24});
    int64_t parts = (s.tokens + part - 1) / part;
    HostBuffer dx({s.tokens, 24}, kNaN), sums({parts, 24 * kernel}, kNaN);
    mlir::OpBuilder b = builder();
    run(buildShortConvBackward(b, b.getUnknownLoc(), shape),
        {&x, &w, &s.table, &s.tokenSegment, &dy, &dx, &sums}, symbols(s));
    HostBuffer dw({24, kernel}, 0.0);
    for (int64_t n = 0; n < parts; ++n)
      for (int64_t c = 0; c < 24; ++c)
        for (int64_t i = 0; i < kernel; ++i)
          dw({c, i}) += sums({n, c * kernel + i});
    Gradients expected = defineBackward(shape, x, w, dy, lengths);
    expectNear(dx, expected.dx);
    expectNear(dw, expected.dw);
  }
}

// CCH-16: width 4; prompts of 1, 2, 3, 4 and 9 tokens of values 1 … n.
TEST_F(ShortConv, CCH16_HistoryOfShortAndLongPrompts) {
  ShortConvShape shape{8, 4, true};
  const double history[][3] = {
      {0, 0, 1}, {0, 1, 2}, {1, 2, 3}, {2, 3, 4}, {7, 8, 9}};
  int64_t lengths[] = {1, 2, 3, 4, 9};
  for (int n = 0; n < 5; ++n) {
    HostBuffer x({lengths[n], 8}, 0.0), w({8, 4}, 1.0), state({1, 3, 8}, 0.0);
    for (int64_t t = 0; t < lengths[n]; ++t)
      for (int64_t c = 0; c < 8; ++c)
        x({t, c}) = t + 1;
    forward(shape, x, w, {lengths[n]}, &state);
    for (int64_t r = 0; r < 3; ++r)
      EXPECT_EQ(state({0, r, 5}), history[n][r])
          << lengths[n] << " tokens, row " << r;
    // One token more: the sum of the history and itself.
    HostBuffer next({1, 8}, 10.0);
    HostBuffer y = forward(shape, next, w, {1}, &state);
    EXPECT_EQ(y({0, 0}), history[n][0] + history[n][1] + history[n][2] + 10);
  }
}

// CCH-05
TEST_F(ShortConv, AnySplitEqualsTheWhole) {
  for (int64_t kernel : {2, 4, 8}) {
    ShortConvShape shape{8, kernel, true};
    HostBuffer x = random({150, 8}), w = random({8, kernel});
    HostBuffer expected = defineForward(shape, x, w, {150});
    llvm::SmallVector<llvm::SmallVector<int64_t>> splits = {
        {150}, {1, 149}, {2, 1, 0, 3, 144}, {64, 64, 22}, {148, 1, 1}};
    for (auto [n, split] : llvm::enumerate(splits)) {
      // The smallest blocks, between whose first rows the state lies.
      shape.tokenTile = n % 2 == 0 ? 64 : kernel - 1;
      shape.walkedTokens = n % 3;
      HostBuffer state({1, kernel - 1, 8}, 0.0);
      int64_t row = 0;
      for (int64_t length : split) {
        HostBuffer part({length, 8}, 0.0);
        llvm::copy(x.elements().slice(row * 8, length * 8),
                   part.elements().begin());
        HostBuffer y = forward(shape, part, w, {length}, &state);
        for (int64_t i = 0; i < length * 8; ++i)
          EXPECT_NEAR(y.elements()[i], expected.elements()[row * 8 + i], 1e-12);
        row += length;
      }
    }
  }
}

TEST_F(ShortConv, BlocksHoldTheHistory) {
  mlir::OpBuilder b = builder();
  auto error = [&] { return mlir::emitError(b.getUnknownLoc()); };
  ShortConvShape shape{16, 4, true};
  shape.tokenTile = 3;
  EXPECT_TRUE(mlir::succeeded(shape.verify(error)));
  shape.tokenTile = 2;
  EXPECT_TRUE(mlir::failed(shape.verify(error)));
}

TEST_F(ShortConv, EachSegmentHasItsState) {
  ShortConvShape shape{16, 4, true};
  llvm::SmallVector<int64_t> lengths = {1, 0, 70, 2};
  HostBuffer x = random({73, 16}), w = random({16, 4}),
             state = random({4, 3, 16});
  HostBuffer before = state;
  HostBuffer expected = defineForward(shape, x, w, lengths, &before);
  for (int64_t walked : {0, 1, 8}) {
    shape.walkedTokens = walked;
    state = before;
    expectNear(forward(shape, x, w, lengths, &state), expected);
    int64_t begin = 0;
    for (auto [slot, length] : llvm::enumerate(lengths)) {
      for (int64_t r = 0; r < 3; ++r)
        for (int64_t c = 0; c < 16; ++c)
          EXPECT_EQ(state({int64_t(slot), r, c}),
                    input(x, &before, slot, begin, begin + length - 3 + r, c));
      begin += length;
    }
  }
}
