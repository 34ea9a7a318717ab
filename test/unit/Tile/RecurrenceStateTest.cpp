//===- RecurrenceStateTest.cpp - step, splits and sliding windows --------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One contract: a full run, any split of it and one token at a time are the
// same function. With a window the state is a ring of chains, and what the ring
// held before must not matter.
//
//===----------------------------------------------------------------------===//

#include "RecurrenceHarness.h"
#include <cmath>

using namespace hybrid::tile;
using namespace hybrid::tile::test;

class RecurrenceState : public EveryRecurrence {};
INSTANTIATE_TEST_SUITE_P(All, RecurrenceState, everyRecurrence());

namespace {
/// Calls of at most four tokens go through the step program.
class Splits {
public:
  Splits(const Call &whole)
      : whole(whole), forward(buildRecurrenceForward, whole.shape),
        step(buildRecurrenceStep, whole.shape) {}

  /// Runs the whole in parts of these lengths, from a state full of `poison`.
  HostBuffer run(llvm::ArrayRef<int64_t> lengths, double poison) {
    HostBuffer output({whole.tokens(), whole.shape.heads, whole.shape.valueDim},
                      std::nan(""));
    int64_t width = whole.shape.heads * whole.shape.valueDim, row = 0;
    HostBuffer state = whole.state;
    for (double &x : state.elements())
      x = poison;
    for (int64_t length : lengths) {
      Call part = whole.part(row, length);
      part.state = state;
      HostBuffer some =
          test::run(length <= 4 ? step.program : forward.program, part);
      llvm::copy(some.elements().take_front(length * width),
                 output.elements().begin() + row * width);
      state = part.state;
      row += length;
    }
    EXPECT_EQ(row, whole.tokens());
    return output;
  }

private:
  const Call &whole;
  Built forward, step;
};
} // namespace

static void expectSplitsEqualWhole(const Call &whole, double poison) {
  SCOPED_TRACE(print(whole));
  HostBuffer expected = define(whole);
  Splits splits(whole);
  int64_t n = whole.tokens();
  std::vector<std::vector<int64_t>> all = {{n},
                                           {1, n - 1},
                                           {n - 1, 1},
                                           {0, n},
                                           {n / 2, 0, n - n / 2},
                                           {3, 35, 2, 0, n - 40}};
  all.emplace_back(n, 1);
  for (const auto &lengths : all)
    EXPECT_LE(difference(splits.run(lengths, poison), expected, whole), kExact)
        << lengths.size() << " parts";
}

// CCH-04, CCH-17
TEST_P(RecurrenceState, FullRunSplitAndStepAgree) {
  RecurrenceShape s = shape();
  s.hasState = true;
  s.heads = 2;
  Call call(s, {{130}}, 1);
  fill(call);
  for (double &x : call.state.elements())
    x = 0.0;
  expectSplitsEqualWhole(call, 0.0);
}

TEST_P(RecurrenceState, BlocksOfValueColumnsKeepTheirState) {
  RecurrenceShape s = shape();
  s.hasState = true;
  s.valueDim = 16;
  s.valueTile = 8;
  s.heads = 2;
  Call call(s, {{130}}, 1);
  fill(call);
  for (double &x : call.state.elements())
    x = 0.0;
  expectSplitsEqualWhole(call, 0.0);
  s.window = 32;
  s.stride = 8;
  Call windowed(s, {{130}}, 1);
  fill(windowed);
  expectSplitsEqualWhole(windowed, std::nan(""));
}

TEST_P(RecurrenceState, StepStartsFromTheState) {
  RecurrenceShape s = shape();
  s.hasState = true;
  s.heads = 4;
  s.kvHeads = 2;
  Call call(s, {{1, 2}, {16, 0}, {0, 3}, {3, 1}}, 4);
  fill(call);
  expectOutputs(call, kExact, Arithmetic::f64, buildRecurrenceStep);
  expectOutputs(call, kSingle, Arithmetic::f32, buildRecurrenceStep);
}

//===----------------------------------------------------------------------===//
// Sliding windows
//===----------------------------------------------------------------------===//

struct Window {
  int64_t window, stride;
};
/// For chunks of 16: strides of whole chunks and of others, windows without
/// overlap, shorter than a chunk, of one token.
static const Window kWindows[] = {{32, 16}, {28, 14}, {16, 16}, {6, 2}, {1, 1}};

static RecurrenceShape windowed(RecurrenceShape shape, Window w) {
  shape.window = w.window;
  shape.stride = w.stride;
  shape.chunk = 16;
  shape.keyDim = 8;
  return shape;
}

TEST_P(RecurrenceState, WindowAgreesWithItsDefinition) {
  for (Window w : kWindows) {
    Call call(windowed(shape(), w),
              {{0}, {1}, {w.window}, {w.window + 1}, {75}});
    fill(call);
    expectOutputs(call);
    expectGradients(call);
  }
}

TEST_P(RecurrenceState, WindowOfWholeChunks) {
  RecurrenceShape s = shape();
  s.window = 96;
  s.stride = 48;
  Call call(s, {{170}});
  fill(call);
  expectOutputs(call);
  expectGradients(call);
}

TEST_P(RecurrenceState, WindowOfGroupedHeads) {
  RecurrenceShape s = windowed(shape(), {32, 16});
  s.heads = 4;
  s.kvHeads = 2;
  Call call(s, {{20}, {60}});
  fill(call);
  expectOutputs(call);
  expectGradients(call);
}

TEST_P(RecurrenceState, WindowOfBlocksOfValueColumns) {
  RecurrenceShape s = windowed(shape(), {32, 8});
  s.heads = 2;
  s.valueDim = 16;
  s.valueTile = 8;
  Call call(s, {{20}, {0}, {60}});
  fill(call);
  expectOutputs(call);
  expectGradients(call);
}

TEST_P(RecurrenceState, WindowSplitsEqualWhole) {
  for (Window w : kWindows) {
    RecurrenceShape s = windowed(shape(), w);
    s.hasState = true;
    Call call(s, {{50}}, 1);
    fill(call);
    // A chain that opens in a call must not read what its ring entry held.
    expectSplitsEqualWhole(call, std::nan(""));
  }
}

TEST_P(RecurrenceState, WindowNotShorterThanTheSegmentChangesNothing) {
  Call plain(shape(), {{64}, {130}});
  fill(plain);
  Call call = plain;
  call.shape.window = 192;
  call.shape.stride = 64;
  HostBuffer expected = run(buildRecurrenceForward, plain);
  HostBuffer got = run(buildRecurrenceForward, call);
  EXPECT_EQ(difference(got, expected, call), 0.0);
}

// mixers.md 1.9: GLA with F(a,t,i) = sin(a + 1.3 t + 0.7 i), W = 4, S = 2, T
// = 9.
TEST(RecurrenceWindow, GoldenValues) {
  RecurrenceShape s;
  s.decay = RecurrenceDecay::PerChannel;
  s.keyDim = s.valueDim = 2;
  s.scale = std::sqrt(0.5);
  s.window = 4;
  s.stride = 2;
  Call call(s, {{9}});
  auto F = [](double a, int64_t t, int64_t i) {
    return std::sin(a + 1.3 * t + 0.7 * i);
  };
  for (int64_t t = 0; t < 9; ++t)
    for (int64_t i = 0; i < 2; ++i) {
      call.query({t, 0, i}) = F(0.1, t, i);
      call.key({t, 0, i}) = F(0.9, t, i);
      call.value({t, 0, i}) = F(1.7, t, i);
      call.decay({t, 0, i}) = -std::log1p(std::exp(-F(2.5, t, i))) / 16;
    }
  HostBuffer output = run(buildRecurrenceForward, call);
  struct {
    int64_t t;
    double o[2];
  } golden[] = {{3, {-2.3837918, -1.0864953}},
                {4, {-0.7721112, -0.3228692}},
                {6, {1.0187617, 0.2965445}},
                {8, {-1.3613021, -0.3599865}}};
  for (const auto &row : golden)
    for (int64_t j = 0; j < 2; ++j)
      EXPECT_NEAR(output({row.t, 0, j}), row.o[j], 1e-6) << "t = " << row.t;
}

//===----------------------------------------------------------------------===//
// Segments split over programs
//===----------------------------------------------------------------------===//

TEST_P(RecurrenceState, SummaryCombineApplyIsOneWalk) {
  for (int64_t valueTile : {0, 8}) {
    RecurrenceShape s = shape();
    s.valueDim = 16;
    s.valueTile = valueTile;
    s.chunk = 16;
    s.part = 32;
    s.heads = 2;
    s.hasState = true;
    Call call(s, {{97, 2}, {0, 0}, {32, 3}, {5, 1}}, 4);
    fill(call, {GateKind::Mixed, {}, 3});
    HostBuffer finalState = call.state;
    HostBuffer expected = define(call, &finalState);
    HostBuffer output = runSplit(call);
    EXPECT_LE(difference(output, expected, call), kExact);
    EXPECT_LE(difference(call.state, finalState), kExact);
  }
}
