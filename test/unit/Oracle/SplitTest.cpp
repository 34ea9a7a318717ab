//===- SplitTest.cpp - token by token, any split and the whole agree -----===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Harness.h"

#include <gtest/gtest.h>

using namespace hybrid;
using namespace hybrid::cases;
using namespace hybrid::oracle;

namespace {
/// A function with states. Its arguments are tensors that are cut along the
/// tokens, states, and parameters, in this order; `segmentsIndex` is where the
/// segments stand among them.
struct Stateful {
  std::string text;
  std::vector<Tensor> streams;
  std::vector<Tensor> states;
  size_t segmentsIndex;
  int64_t context = 0;
  std::vector<Tensor> parameters = {};

  struct Outcome {
    Tensor output;
    std::vector<Tensor> states;
  };

  /// Runs the tokens in calls of the given lengths, the states handed on.
  Outcome run(llvm::ArrayRef<int64_t> lengths) const {
    Program program(text);
    Outcome outcome{Tensor(), states};
    std::vector<Tensor> outputs;
    int64_t position = 0;
    for (int64_t length : lengths) {
      std::vector<Tensor> arguments;
      for (const Tensor &stream : streams)
        arguments.push_back(rows(stream, position, position + length));
      arguments.insert(arguments.end(), outcome.states.begin(),
                       outcome.states.end());
      arguments.insert(arguments.end(), parameters.begin(), parameters.end());
      arguments.insert(arguments.begin() + segmentsIndex, Tensor());
      Call call;
      call.segments = {{0, length, 0, position}};
      call.slots = 1;
      call.context = context;
      std::vector<Tensor> results = program.evaluate(arguments, call);
      if (results.empty())
        return outcome;
      outputs.push_back(results[0]);
      outcome.states.assign(results.begin() + 1, results.end());
      position += length;
    }
    outcome.output = stacked(outputs);
    return outcome;
  }

  /// All the ways of cutting must agree, but for the order of sums.
  void expectSplitsAgree(llvm::ArrayRef<std::vector<int64_t>> splits) const {
    int64_t tokens = streams[0].dim(0);
    Outcome whole = run({tokens});
    for (const std::vector<int64_t> &lengths : splits) {
      Outcome parts = run(lengths);
      std::string what =
          "calls of " + testing::PrintToString(lengths) + " tokens";
      expectNear(parts.output.data, whole.output.data, 1e-14, what);
      ASSERT_EQ(parts.states.size(), whole.states.size());
      for (size_t s = 0; s < parts.states.size(); ++s)
        expectNear(parts.states[s].data, whole.states[s].data, 1e-14,
                   what + ", state");
    }
  }
};
} // namespace

static Stateful recurrence(const char *update, int64_t tokens, int64_t window,
                           int64_t stride) {
  RecurrenceShape shape;
  shape.update = update;
  shape.heads = 2;
  shape.kvHeads = 1;
  shape.keyDim = 3;
  shape.decayDim = 3;
  shape.beta = shape.update == std::string("delta");
  shape.state = true;
  shape.window = window;
  shape.stride = stride;
  Stateful stateful{shape.text(), {}, {Tensor(shape.stateShape(1))}, 4};
  stateful.streams = {
      gen(0.1, {tokens, 2, 3}), l2norm(gen(0.2, {tokens, 1, 3})),
      gen(0.3, {tokens, 1, 2}),
      map(gen(0.4, {tokens, 2, 3}), [](double x) { return -softplus(x); })};
  if (shape.beta) {
    stateful.streams.push_back(map(gen(0.5, {tokens, 2}), sigmoid));
    stateful.segmentsIndex = 5;
  }
  return stateful;
}

static const std::vector<std::vector<int64_t>> elevenTokens = {
    std::vector<int64_t>(11, 1),
    {3, 8},
    {1, 10},
    {10, 1},
    {0, 11},
    {4, 4, 3},
    {2, 0, 5, 4}};

TEST(Split, Additive) {
  recurrence("additive", 11, 0, 0).expectSplitsAgree(elevenTokens);
}
TEST(Split, Delta) {
  recurrence("delta", 11, 0, 0).expectSplitsAgree(elevenTokens);
}
TEST(Split, AdditiveWindow) {
  recurrence("additive", 11, 4, 2).expectSplitsAgree(elevenTokens);
}
TEST(Split, DeltaWindow) {
  recurrence("delta", 11, 6, 2).expectSplitsAgree(elevenTokens);
}
TEST(Split, WindowIsStride) {
  recurrence("delta", 11, 3, 3).expectSplitsAgree(elevenTokens);
}

/// With states or without, windows are the same windows.
TEST(Split, WindowWithoutState) {
  Stateful stateful = recurrence("delta", 11, 6, 2);
  RecurrenceShape shape;
  shape.update = "delta";
  shape.heads = 2;
  shape.keyDim = shape.decayDim = 3;
  shape.beta = true;
  shape.window = 6;
  shape.stride = 2;
  std::vector<Tensor> arguments = stateful.streams;
  arguments.push_back(Tensor());
  Tensor o = Program(shape.text()).evaluate(arguments, Call::packed({11}))[0];
  expectNear(stateful.run({11}).output.data, o.data, 0,
             "with and without a state");
}

/// A window no shorter than the sequence changes nothing.
TEST(Split, LongWindowIsNone) {
  Stateful bounded = recurrence("delta", 11, 12, 4),
           plain = recurrence("delta", 11, 0, 0);
  expectNear(bounded.run({11}).output.data, plain.run({11}).output.data, 0,
             "window of 12");
}

/// Convolution and gated delta rule, as in a layer; the weight comes last.
static Stateful convolutionLayer(int64_t tokens) {
  const char *text = R"(
!c = tensor<?x3x2xf32, #hybrid.slots>
!s = tensor<?x1x3x2xf32, #hybrid.slots>
func.func @main(%x: tensor<?x2xf32>, %q: tensor<?x1x3xf32>, %k: tensor<?x1x3xf32>,
                %g: tensor<?x1x1xf32>, %b: tensor<?x1xf32>, %segments: !hybrid.segments,
                %conv: !c, %state: !s, %w: tensor<2x4xf32>)
    -> (tensor<?x1x2xf32>, !c, !s) {
  %y, %conv2 = hybrid.short_conv %x, %w, %segments state(%conv)
    : (tensor<?x2xf32>, tensor<2x4xf32>, !hybrid.segments, !c) -> (tensor<?x2xf32>, !c)
  %v = hybrid.reshape %y : tensor<?x2xf32> -> tensor<?x1x2xf32>
  %o, %state2 = hybrid.recurrence delta %q, %k, %v, %segments decay(%g) beta(%b) initial(%state)
    scale 1.0
    : (tensor<?x1x3xf32>, tensor<?x1x3xf32>, tensor<?x1x2xf32>, !hybrid.segments,
       tensor<?x1x1xf32>, tensor<?x1xf32>, !s) -> (tensor<?x1x2xf32>, !s)
  return %o, %conv2, %state2 : tensor<?x1x2xf32>, !c, !s
})";
  Stateful layer{text, {}, {Tensor({1, 3, 2}), Tensor({1, 1, 3, 2})}, 5};
  layer.streams = {
      gen(0.3, {tokens, 2}), gen(0.1, {tokens, 1, 3}),
      l2norm(gen(0.2, {tokens, 1, 3})),
      map(gen(0.4, {tokens, 1, 1}), [](double x) { return -softplus(x); }),
      map(gen(0.5, {tokens, 1}), sigmoid)};
  layer.parameters = {gen(0.7, {2, 4})};
  return layer;
}

TEST(Split, ShortConvolution) {
  convolutionLayer(11).expectSplitsAgree(elevenTokens);
}

TEST(Split, CCH_05) {
  std::vector<std::vector<int64_t>> halves = {{256, 256}, {2, 510}, {510, 2}};
  convolutionLayer(512).expectSplitsAgree(halves);
}

static Stateful attention(int64_t tokens, std::vector<int64_t> windows,
                          std::vector<int64_t> sinks, int64_t rows) {
  AttentionShape shape;
  shape.heads = 2;
  shape.dim = 3;
  shape.windows = windows;
  shape.sinks = sinks;
  shape.scale = 0.6;
  shape.cached = true;
  Stateful stateful{
      shape.text(), {}, {Tensor({1, 1, rows, 3}), Tensor({1, 1, rows, 2})}, 5};
  stateful.streams = {gen(0.1, {tokens, 2, 3}), gen(0.2, {tokens, 1, 3}),
                      gen(0.3, {tokens, 1, 2})};
  stateful.context = rows;
  return stateful;
}

/// A cache with room for all agrees with attention that has none.
TEST(Split, Attention) {
  for (std::vector<int64_t> windows :
       {std::vector<int64_t>{0, 0}, {0, 3}, {4, 3}}) {
    std::vector<int64_t> sinks = {windows[0] ? 2 : 0, windows[1] ? 1 : 0};
    Stateful stateful = attention(11, windows, sinks, 11);
    stateful.expectSplitsAgree(elevenTokens);
    AttentionShape shape;
    shape.heads = 2;
    shape.dim = 3;
    shape.windows = windows;
    shape.sinks = sinks;
    shape.scale = 0.6;
    std::vector<Tensor> arguments = stateful.streams;
    arguments.push_back(Tensor());
    Tensor o = Program(shape.text()).evaluate(arguments, Call::packed({11}))[0];
    expectNear(stateful.run({11}).output.data, o.data, 1e-15, "cached and not");
  }
}

/// A ring of sinks + window - 1 + chunk rows is enough.
TEST(Split, AttentionRing) {
  Stateful stateful = attention(11, {4, 3}, {2, 1}, 2 + 3 + 4);
  Tensor whole = attention(11, {4, 3}, {2, 1}, 11).run({11}).output;
  for (const std::vector<int64_t> &lengths :
       {std::vector<int64_t>{4, 4, 3}, {1, 1, 1, 4, 2, 2}})
    expectNear(stateful.run(lengths).output.data, whole.data, 1e-15, "ring");
}

/// One row fewer loses a key that is still seen.
TEST(Split, AttentionRingTooSmall) {
  Stateful stateful = attention(11, {4, 3}, {2, 1}, 2 + 3 + 3);
  std::vector<Tensor> arguments = stateful.streams;
  Program program(stateful.text);
  for (size_t i = 0; i < 3; ++i)
    arguments[i] = rows(arguments[i], 0, 10);
  arguments.insert(arguments.end(), stateful.states.begin(),
                   stateful.states.end());
  arguments.push_back(Tensor());
  Call call = Call::packed({10});
  call.context = 8;
  std::string error = program.evaluateError(arguments, call);
  EXPECT_NE(error.find("a cache of 8 rows has lost it"), std::string::npos)
      << error;
}

//===----------------------------------------------------------------------===//
// Faults
//===----------------------------------------------------------------------===//

static Stateful gdn() {
  GdnFixture f;
  RecurrenceShape shape;
  shape.update = "delta";
  shape.keyDim = 3;
  shape.decayDim = 1;
  shape.beta = shape.state = true;
  return {shape.text(),
          {f.q, f.k, f.v, f.decay, f.beta},
          {Tensor({1, 1, 3, 2})},
          5};
}

TEST(Split, CCH_04) {
  Stateful stateful = gdn();
  for (const std::vector<int64_t> &lengths : {std::vector<int64_t>{5},
                                              {3, 2},
                                              {3, 1, 1},
                                              {1, 4},
                                              {1, 1, 1, 1, 1},
                                              {0, 5}}) {
    Tensor o = stateful.run(lengths).output;
    expectNear({&o.data[6], 2}, {-0.779616, -0.649185}, 1e-6, "o_4");
  }
}

/// Packed sequences equal their solo runs; an empty one leaves its state alone.
TEST(Split, VAR_01) {
  GdnFixture f;
  Program program(gdn().text);
  Tensor initial = gen(0.8, {3, 1, 3, 2});
  auto run = [&](const GdnFixture &part, const Call &call,
                 const Tensor &states) {
    return program.evaluate(
        {part.q, part.k, part.v, part.decay, part.beta, Tensor(), states},
        call);
  };
  std::vector<Tensor> packed = run(f, Call::packed({3, 0, 2}), initial);
  std::vector<Tensor> first =
      run(f.slice(0, 3), Call::packed({3}), rows(initial, 0, 1));
  std::vector<Tensor> third =
      run(f.slice(3, 5), Call::packed({2}), rows(initial, 2, 3));
  EXPECT_EQ(rows(packed[0], 0, 3).data, first[0].data);
  EXPECT_EQ(rows(packed[0], 3, 5).data, third[0].data);
  EXPECT_EQ(rows(packed[1], 0, 1).data, first[1].data);
  EXPECT_EQ(rows(packed[1], 1, 2).data, rows(initial, 1, 2).data);
  EXPECT_EQ(rows(packed[1], 2, 3).data, third[1].data);
}

/// The second of two packed documents starts afresh, convolution and rule.
TEST(Split, VAR_02) {
  Program program(R"(
func.func @main(%x: tensor<?x2xf32>, %w: tensor<2x4xf32>, %q: tensor<?x1x3xf32>,
                %k: tensor<?x1x3xf32>, %g: tensor<?x1x1xf32>, %b: tensor<?x1xf32>,
                %segments: !hybrid.segments) -> tensor<?x1x2xf32> {
  %c = hybrid.short_conv %x, %w, %segments
    : (tensor<?x2xf32>, tensor<2x4xf32>, !hybrid.segments) -> tensor<?x2xf32>
  %v = hybrid.reshape %c : tensor<?x2xf32> -> tensor<?x1x2xf32>
  %o = hybrid.recurrence delta %q, %k, %v, %segments decay(%g) beta(%b) scale 1.0
    : (tensor<?x1x3xf32>, tensor<?x1x3xf32>, tensor<?x1x2xf32>, !hybrid.segments,
       tensor<?x1x1xf32>, tensor<?x1xf32>) -> tensor<?x1x2xf32>
  return %o : tensor<?x1x2xf32>
})");
  GdnFixture f;
  auto twice = [](const Tensor &tensor) { return stacked({tensor, tensor}); };
  Tensor o = program.evaluate({twice(reshaped(f.v, {5, 2})), gen(0.7, {2, 4}),
                               twice(f.q), twice(f.k), twice(f.decay),
                               twice(f.beta), Tensor()},
                              Call::packed({5, 5}))[0];
  EXPECT_EQ(rows(o, 5, 10).data, rows(o, 0, 5).data);
}

/// A sequence that has ended takes part in the next call as an empty segment.
TEST(Split, CCH_02) {
  GdnFixture f;
  Tensor initial({2, 1, 3, 2});
  Program program(gdn().text);
  auto call = [&](const GdnFixture &a, const GdnFixture &b, int64_t lengthB,
                  int64_t position, const Tensor &state) {
    Call call = Call::packed({a.q.dim(0), lengthB});
    for (oracle::Segment &segment : call.segments)
      segment.position = position;
    return program.evaluate({stacked({a.q, b.q}), stacked({a.k, b.k}),
                             stacked({a.v, b.v}), stacked({a.decay, b.decay}),
                             stacked({a.beta, b.beta}), Tensor(), state},
                            call)[1];
  };
  Tensor first = call(f.slice(0, 3), f.slice(1, 4), 3, 0, initial);
  Tensor second = call(f.slice(2, 5), f.slice(0, 0), 0, 3, first);
  expectNear(rows(second, 1, 2).data, rows(first, 1, 2).data, 0,
             "state of the ended row");
  EXPECT_NE(second.data[0], first.data[0]);
}

/// A prompt found in a cache: the state before its last token, then that token.
TEST(Split, CCH_08) {
  RecurrenceShape shape;
  shape.keyDim = shape.valueDim = 1;
  shape.state = true;
  Tensor ones = filled({5, 1, 1}, 1);
  Stateful stateful{
      shape.text(), {ones, ones, ones}, {Tensor({1, 1, 1, 1})}, 3};
  EXPECT_EQ(stateful.run({4, 1}).output.data.back(), 5);
}

static Stateful windowMean(int64_t tokens, int64_t rows) {
  AttentionShape shape;
  shape.dim = shape.valueDim = 1;
  shape.windows = {4};
  shape.cached = true;
  Tensor values({tokens, 1, 1});
  for (int64_t t = 0; t < tokens; ++t)
    values(t, 0, 0) = t;
  return {shape.text(),
          {Tensor({tokens, 1, 1}), gen(0.9, {tokens, 1, 1}), values},
          {Tensor({1, 1, rows, 1}), Tensor({1, 1, rows, 1})},
          5,
          rows};
}

/// The window counts the token itself in decode too.
TEST(Split, ATT_01) {
  for (const std::vector<int64_t> &lengths :
       {std::vector<int64_t>{8}, std::vector<int64_t>(8, 1)}) {
    Tensor o = windowMean(8, 8).run(lengths).output;
    expectNear(o.data, {0, 0.5, 1, 1.5, 2.5, 3.5, 4.5, 5.5}, 1e-12, "means");
  }
}

/// The first call is longer than the window.
TEST(Split, CCH_11) {
  Tensor o = windowMean(10, 10).run({7, 1, 1, 1}).output;
  expectNear({&o.data[6], 4}, {4.5, 5.5, 6.5, 7.5}, 1e-12, "rows 6 to 9");
}

/// A ring of the longest call + window - 1 rows.
TEST(Split, CCH_13) {
  Tensor o = windowMean(16, 9 + 3).run({6, 9, 1}).output;
  for (int64_t i = 0; i < 16; ++i)
    EXPECT_NEAR(o.data[i], i < 3 ? i / 2.0 : i - 1.5, 1e-12) << "row " << i;
}

TEST(Split, CCH_17) {
  Stateful stateful = recurrence("additive", 170, 0, 0);
  std::vector<std::vector<int64_t>> splits;
  for (int64_t saved : {0, 1, 63, 64, 65, 70})
    splits.push_back({saved, 1, 169 - saved});
  stateful.expectSplitsAgree(splits);
}
