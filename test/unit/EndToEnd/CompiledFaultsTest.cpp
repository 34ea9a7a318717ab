//===- CompiledFaultsTest.cpp - faults that are properties of the code ---===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Public faults whose right answer is no list of numbers: results that must be
// equal or finite, lengths that must not matter.
//
//===----------------------------------------------------------------------===//

#include "FaultArguments.h"

using namespace hybrid;
using namespace hybrid::cases;
using namespace hybrid::test;

//===----------------------------------------------------------------------===//
// Gates
//===----------------------------------------------------------------------===//

TEST(CompiledFaults, LIN_04_bounded_gates) {
  RecurrenceShape shape = gla(2, 128);
  CompiledFunction forward(shape.text(), bestLevel());
  CompiledFunction backward(shape.gradientText(), bestLevel());
  for (double bound : {-5.0, -1.0}) {
    SCOPED_TRACE(bound);
    std::vector<Tensor> arguments = recurrenceArguments(shape, 4096, 0, bound);
    Tensor o = forward.evaluate(arguments, Call::packed({4096})).at(0);
    for (double x : o.data)
      ASSERT_TRUE(std::isfinite(x));
    arguments.push_back(gen(0.9, {4096, 2, 128}));
    for (const Tensor &gradient :
         backward.evaluate(arguments, Call::packed({4096})))
      for (double x : gradient.data)
        ASSERT_TRUE(std::isfinite(x));
    for (Tensor &argument : arguments)
      if (argument.size())
        argument = rows(argument, 0, 256);
    expectNear(backward.evaluate(arguments, Call::packed({256})),
               backward.oracle(arguments, Call::packed({256})), 1e-4);
    arguments.pop_back();
    expectNear({rows(o, 0, 256)},
               forward.oracle(arguments, Call::packed({256})), 1e-5);
  }
}

/// T and N of the WY form enter every gradient.
TEST(CompiledFaults, LIN_05_gradients) {
  RecurrenceShape shape = gdn(1, 64);
  CompiledFunction backward(shape.gradientText(), bestLevel());
  Tensor decay({64, 1, 1});
  for (int64_t t = 0; t < 64; t += 2)
    decay(t, 0, 0) = -30;
  Tensor eighth = filled({64, 1, 64}, 0.125);
  std::vector<Tensor> arguments = {eighth,
                                   eighth,
                                   filled({64, 1, 64}, 1),
                                   decay,
                                   filled({64, 1}, 0.5),
                                   Tensor(),
                                   gen(0.9, {64, 1, 64})};
  expectNear(backward.evaluate(arguments, Call::packed({64})),
             backward.oracle(arguments, Call::packed({64})), 1e-5);
}

/// A log gate of 0 is no gate.
TEST(CompiledFaults, LIN_08_gated_minus_ungated) {
  RecurrenceShape gated = gdn(1, 64), ungated = gated;
  ungated.decayDim = 0;
  Tensor eighth = filled({130, 1, 64}, 0.125);
  std::vector<Tensor> arguments = {eighth, eighth, filled({130, 1, 64}, 1),
                                   filled({130, 1}, 1.9), Tensor()};
  CompiledFunction without(ungated.text(), bestLevel());
  Tensor expected = without.evaluate(arguments, Call::packed({130})).at(0);
  arguments.insert(arguments.begin() + 3, Tensor({130, 1, 1}));
  CompiledFunction with(gated.text(), bestLevel());
  Tensor found = with.evaluate(arguments, Call::packed({130})).at(0);
  for (auto [x, y] : llvm::zip_equal(found.data, expected.data))
    EXPECT_LT(std::abs(x - y), 1e-6);
}

TEST(CompiledFaults, LIN_17_gradient_of_the_initial_state) {
  for (RecurrenceShape shape : {gla(2, 64), gdn(2, 64)}) {
    shape.state = true;
    CompiledFunction backward(shape.gradientText(), bestLevel());
    std::vector<Tensor> arguments = recurrenceArguments(shape, 512, 1, -0.01);
    for (double &x : arguments.back().data)
      x *= 0.1;
    arguments.push_back(gen(0.9, {512, 2, 64}));
    expectNear(backward.evaluate(arguments, Call::packed({512})),
               backward.oracle(arguments, Call::packed({512})), 1e-4);
  }
}

//===----------------------------------------------------------------------===//
// Lengths that are no multiple of a tile
//===----------------------------------------------------------------------===//

/// i - j is added to the score by two channels of the keys and queries. The
/// loss is a multiple of the mean of the outputs.
TEST(CompiledFaults, ATT_19_length_and_score_change) {
  AttentionShape shape = attention(1, 1, 64);
  CompiledFunction function(shape.gradientText(), bestLevel());
  for (int64_t tokens : {1, 127, 129, 1025}) {
    SCOPED_TRACE(tokens);
    std::vector<Tensor> arguments = attentionArguments(shape, tokens);
    for (int64_t t = 0; t < tokens; ++t) {
      arguments[0](t, 0, 62) = t / shape.scale;
      arguments[1](t, 0, 62) = 1;
      arguments[0](t, 0, 63) = 1 / shape.scale;
      arguments[1](t, 0, 63) = -t;
    }
    arguments.push_back(filled({tokens, 1, 64}, 1));
    expectNear(function.evaluate(arguments, Call::packed({tokens})),
               function.oracle(arguments, Call::packed({tokens})), 2e-3);
  }
}

//===----------------------------------------------------------------------===//
// Grouped heads
//===----------------------------------------------------------------------===//

/// Columns of heads, each as often as the group is large.
static Tensor repeatedHeads(const Tensor &tensor, int64_t times) {
  Tensor wide({tensor.dim(0), tensor.dim(1) * times, tensor.dim(2)});
  for (int64_t t = 0; t < wide.dim(0); ++t)
    for (int64_t h = 0; h < wide.dim(1); ++h)
      for (int64_t c = 0; c < wide.dim(2); ++c)
        wide(t, h, c) = tensor(t, h / times, c);
  return wide;
}

/// The gradients of a shared head are the sum over its group.
TEST(CompiledFaults, ATT_13_gradients_of_shared_heads) {
  constexpr int64_t tokens = 20, width = 16;
  AttentionShape grouped = attention(4, 2, width),
                 each = attention(4, 4, width);
  CompiledFunction shared(grouped.gradientText(), bestLevel()),
      alone(each.gradientText(), bestLevel());
  std::vector<Tensor> arguments = attentionArguments(grouped, tokens);
  arguments.push_back(gen(0.9, {tokens, 4, width}));
  Call call = Call::packed({tokens});
  std::vector<Tensor> found = shared.evaluate(arguments, call);
  for (unsigned i : {1, 2})
    arguments[i] = repeatedHeads(arguments[i], 2);
  std::vector<Tensor> parts = alone.evaluate(arguments, call);
  ASSERT_EQ(found.size(), 4u);
  ASSERT_EQ(parts.size(), 4u);
  expectNear({found[0], found[1]}, {parts[0], parts[1]}, 1e-6);
  for (unsigned i : {2, 3}) {
    Tensor sum({tokens, 2, width});
    for (int64_t t = 0; t < tokens; ++t)
      for (int64_t h = 0; h < 4; ++h)
        for (int64_t c = 0; c < width; ++c)
          sum(t, h / 2, c) += parts[i](t, h, c);
    expectNear({found[i]}, {sum}, 1e-5);
  }
}

//===----------------------------------------------------------------------===//
// Masked rows
//===----------------------------------------------------------------------===//

/// The score of the last row overflows to -inf, so it sees nothing; the loss
/// leaves it out. Nothing of it reaches the other rows.
TEST(CompiledFaults, ATT_05_masked_row) {
  AttentionShape shape = attention(1, 1, 8);
  CompiledFunction function(shape.gradientText(), bestLevel());
  std::vector<Tensor> arguments = attentionArguments(shape, 5);
  arguments.push_back(gen(0.9, {5, 1, 8}));
  for (int64_t c = 0; c < 8; ++c) {
    arguments[0](4, 0, c) = 3e38;
    arguments[1](4, 0, c) = -3e38;
    arguments.back()(4, 0, c) = 0;
  }
  std::vector<Tensor> results =
      function.evaluate(arguments, Call::packed({4, 1}));
  ASSERT_EQ(results.size(), 4u);
  for (const Tensor &result : results)
    EXPECT_EQ(rows(result, 4, 5).data, std::vector<double>(8, 0));
  for (Tensor &argument : arguments)
    if (argument.size())
      argument = rows(argument, 0, 4);
  std::vector<Tensor> without = function.evaluate(arguments, Call::packed({4}));
  for (Tensor &result : results)
    result = rows(result, 0, 4);
  expectSameBits(results, without);
}

//===----------------------------------------------------------------------===//
// Packed documents
//===----------------------------------------------------------------------===//

/// Packed lengths 3, 0, 2 with a state each are three runs of their own, and
/// the empty one keeps its state.
TEST(CompiledFaults, VAR_01_solo_runs) {
  GdnFixture f;
  RecurrenceShape shape = gdn(1, 8);
  shape.state = true;
  CompiledFunction function(shape.text(), bestLevel());
  Tensor states =
      rounded({widened(gen(0.8, {3, 1, 3, 2}), {3, 1, 8, 8})}).front();
  auto run = [&](int64_t begin, int64_t end, const Tensor &initial, Call call) {
    std::vector<Tensor> arguments;
    for (const Tensor &operand : {f.q, f.k, f.v})
      arguments.push_back(
          widened(rows(operand, begin, end), {end - begin, 1, 8}));
    arguments.insert(arguments.end(),
                     {rows(f.decay, begin, end), rows(f.beta, begin, end),
                      Tensor(), initial});
    return function.evaluate(arguments, call);
  };
  std::vector<Tensor> packed = run(0, 5, states, Call::packed({3, 0, 2}));
  std::vector<Tensor> first = run(0, 3, rows(states, 0, 1), Call::packed({3}));
  std::vector<Tensor> last = run(3, 5, rows(states, 2, 3), Call::packed({2}));
  expectSameBits(packed, {stacked({first[0], last[0]}),
                          stacked({first[1], rows(states, 1, 2), last[1]})});
}

/// Two sequences in chunks of 3; the second has ended when the next chunk
/// comes.
TEST(CompiledFaults, CCH_02_second_chunk) {
  RecurrenceShape shape = gdn(1, 8);
  shape.state = true;
  CompiledFunction function(shape.text(), bestLevel());
  std::vector<Tensor> arguments = recurrenceArguments(shape, 9, 2);
  arguments.back() = Tensor(shape.stateShape(2));
  auto chunk = [&](int64_t begin, int64_t end, const Tensor &state, Call call,
                   int64_t position) {
    for (hybrid::oracle::Segment &segment : call.segments)
      segment.position = position;
    std::vector<Tensor> cut = arguments;
    for (Tensor &argument : cut)
      if (argument.size())
        argument = rows(argument, begin, end);
    cut.back() = state;
    return function.evaluate(cut, call).at(1);
  };
  Tensor afterFirst =
      chunk(0, 6, arguments.back(), Call::packed({3, 3}), /*position=*/0);
  Tensor afterSecond =
      chunk(6, 9, afterFirst, Call::packed({3, 0}), /*position=*/3);
  EXPECT_EQ(rows(afterSecond, 1, 2).data, rows(afterFirst, 1, 2).data);
  EXPECT_NE(rows(afterSecond, 0, 1).data, rows(afterFirst, 0, 1).data);
}

static const char *const kDocumentLayer = R"(
!x = tensor<?x8xf32>
!h = tensor<?x1x8xf32>
func.func @main(%x: !x, %w: tensor<8x4xf32>, %q: !h, %k: !h, %g: tensor<?x1x1xf32>,
                %b: tensor<?x1xf32>, %s: !hybrid.segments, %dout: !h) -> (!h, !x, !h, !h) {
  %c = hybrid.short_conv %x, %w, %s : (!x, tensor<8x4xf32>, !hybrid.segments) -> !x
  %v = hybrid.reshape %c : !x -> !h
  %o = hybrid.recurrence delta %q, %k, %v, %s decay(%g) beta(%b) scale 1.0
    : (!h, !h, !h, !hybrid.segments, tensor<?x1x1xf32>, tensor<?x1xf32>) -> !h
  %d:5 = hybrid.recurrence_grad delta %q, %k, %v, %s, %dout decay(%g) beta(%b) scale 1.0
    : (!h, !h, !h, !hybrid.segments, !h, tensor<?x1x1xf32>, tensor<?x1xf32>)
    -> (!h, !h, !h, tensor<?x1x1xf32>, tensor<?x1xf32>)
  %dv = hybrid.reshape %d#2 : !h -> !x
  %dx, %dw = hybrid.short_conv_grad %x, %w, %s, %dv
    : (!x, tensor<8x4xf32>, !hybrid.segments, !x) -> (!x, tensor<8x4xf32>)
  return %o, %dx, %d#0, %d#1 : !h, !x, !h, !h
})";

/// The second of two packed documents starts afresh, and a loss on it gives the
/// first no gradient.
TEST(CompiledFaults, VAR_02_packed_documents) {
  GdnFixture f;
  auto twice = [](const Tensor &tensor) { return stacked({tensor, tensor}); };
  auto wide = [](const Tensor &tensor) { return widened(tensor, {5, 1, 8}); };
  Tensor dout = stacked({Tensor({5, 1, 8}), gen(0.9, {5, 1, 8})});
  CompiledFunction function(kDocumentLayer, bestLevel());
  std::vector<Tensor> results = function.evaluate(
      {reshaped(twice(wide(f.v)), {10, 8}), gen(0.7, {8, 4}), twice(wide(f.q)),
       twice(wide(f.k)), twice(f.decay), twice(f.beta), Tensor(), dout},
      Call::packed({5, 5}));
  ASSERT_EQ(results.size(), 4u);
  EXPECT_EQ(rows(results[0], 5, 10).data, rows(results[0], 0, 5).data);
  for (size_t i = 1; i < results.size(); ++i) {
    for (double x : rows(results[i], 0, 5).data)
      EXPECT_EQ(x, 0) << "gradient " << i;
    EXPECT_NE(results[i].data.back() + results[i].data[5 * 8], 0);
  }
}
