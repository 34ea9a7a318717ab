//===- PropertyTest.cpp - what must hold whatever the numbers are ---------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Machine code of every level beside itself, on two calls or two spellings of
// one function. (Any split of a sequence equals the whole: EndToEndTest and
// RandomStackTest, for whole models.)
//
//===----------------------------------------------------------------------===//

#include "CompiledFunction.h"
#include "CompleteOperation.h"
#include "RandomStacks.h"

using namespace hybrid;
using namespace hybrid::test;
using namespace hybrid::cases;

namespace {

constexpr int64_t kTokens = 75;

Tensor randomTensor(Random &random, llvm::ArrayRef<int64_t> shape,
                    double least = -1, double most = 1) {
  Tensor tensor(shape);
  for (double &x : tensor.data)
    x = static_cast<float>(random.uniform(least, most));
  return tensor;
}

/// Operands of a recurrence over lengths 5 and 70, without its state.
std::vector<Tensor> recurrenceOperands(Random &random,
                                       const RecurrenceShape &s) {
  std::vector<Tensor> arguments = {
      randomTensor(random, {kTokens, s.heads, s.keyDim}),
      l2norm(randomTensor(random, {kTokens, s.kvHeads, s.keyDim})),
      randomTensor(random, {kTokens, s.kvHeads, s.valueDim})};
  if (s.decayDim)
    arguments.push_back(
        randomTensor(random, {kTokens, s.heads, s.decayDim}, -1, 0));
  if (s.beta)
    arguments.push_back(randomTensor(random, {kTokens, s.heads}, 0, 1));
  arguments.emplace_back();
  return arguments;
}

RecurrenceShape recurrenceShape(const char *update, int64_t decayDim) {
  RecurrenceShape s;
  s.update = update;
  s.heads = 2;
  s.keyDim = 16;
  s.valueDim = 24;
  s.decayDim = decayDim;
  s.beta = update == std::string("delta");
  s.scale = 0.25;
  return s;
}

AttentionShape attentionShape(std::vector<int64_t> windows) {
  AttentionShape s;
  s.heads = 2;
  s.dim = s.valueDim = 16;
  s.scale = 0.25;
  s.windows = std::move(windows);
  s.sinks = {0, 0};
  return s;
}

std::vector<Tensor> attentionOperands(Random &random) {
  return {randomTensor(random, {kTokens, 2, 16}),
          randomTensor(random, {kTokens, 1, 16}),
          randomTensor(random, {kTokens, 1, 16}), Tensor()};
}

Call twoSequences() { return Call::packed({5, kTokens - 5}); }

/// The largest difference of two tensors.
double difference(const Tensor &a, const Tensor &b) {
  EXPECT_EQ(a.shape, b.shape);
  double worst = 0;
  for (auto [x, y] : llvm::zip(a.data, b.data))
    worst = x == y ? worst : std::max(worst, std::fabs(x - y));
  return worst;
}

/// The last 20 tokens of the second sequence do not reach the rows before.
void expectCausal(const std::string &text, std::vector<Tensor> arguments,
                  cpu::Level level) {
  CompiledFunction function(text, level);
  std::vector<Tensor> before = function.evaluate(arguments, twoSequences());
  Random random(5);
  for (Tensor &argument : arguments)
    if (argument.rank() > 0 && argument.dim(0) == kTokens) {
      int64_t row = argument.size() / kTokens;
      for (int64_t i = (kTokens - 20) * row; i < argument.size(); ++i)
        argument.data[i] = argument.data[i] * 0.5 - 0.25;
    }
  std::vector<Tensor> after = function.evaluate(arguments, twoSequences());
  ASSERT_FALSE(before.empty());
  ASSERT_EQ(before.size(), after.size());
  EXPECT_EQ(difference(rows(before[0], 0, kTokens - 20),
                       rows(after[0], 0, kTokens - 20)),
            0);
  EXPECT_GT(difference(before[0], after[0]), 0) << "nothing was changed";
}

/// Two spellings of one function give equal results; at the highest level,
/// because adjoints take long to compile, gradients too. The second may leave
/// out an operand of the first: `dropped` is the place of its gradient.
void expectSame(RandomOperation a, RandomOperation b, cpu::Level level,
                std::optional<unsigned> dropped, double tolerance) {
  for (RandomOperation *op : {&a, &b}) {
    op->adjoint = level == cpu::levelsHere().back();
    op->call = twoSequences();
  }
  unsigned forward = completeOperation(a, 9);
  completeOperation(b, 9);
  std::vector<Tensor> ours =
      CompiledFunction(a.text, level).evaluate(a.arguments, a.call);
  std::vector<Tensor> theirs =
      CompiledFunction(b.text, level).evaluate(b.arguments, b.call);
  if (dropped && a.adjoint)
    ours.erase(ours.begin() + forward + *dropped);
  ASSERT_FALSE(theirs.empty());
  ASSERT_EQ(ours.size(), theirs.size());
  for (auto [n, x, y] : llvm::enumerate(ours, theirs))
    EXPECT_LE(difference(x, y), tolerance) << "result " << n;
}

class Properties : public testing::TestWithParam<cpu::Level> {};
INSTANTIATE_TEST_SUITE_P(All, Properties, testing::ValuesIn(cpu::levelsHere()),
                         [](const auto &info) {
                           std::string name =
                               cpu::traitsOf(info.param).name.str();
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

} // namespace

TEST_P(Properties, Causality) {
  Random random(1);
  for (const std::vector<int64_t> &windows :
       {std::vector<int64_t>{0, 0}, {0, 9}})
    expectCausal(attentionShape(windows).text(), attentionOperands(random),
                 GetParam());
  for (const char *update : {"additive", "delta"})
    for (int64_t window : {0, 32}) {
      RecurrenceShape s = recurrenceShape(update, window ? 16 : 1);
      s.window = window;
      s.stride = window / 2;
      expectCausal(s.text(), recurrenceOperands(random, s), GetParam());
    }
  expectCausal(shortConvText(16, 4, false),
               {randomTensor(random, {kTokens, 16}),
                randomTensor(random, {16, 4}), Tensor()},
               GetParam());
}

TEST_P(Properties, WindowOfTheLengthIsNone) {
  Random random(2);
  RandomOperation full, windowed;
  full.text = attentionShape({0, 0}).text();
  windowed.text = attentionShape({70, 1000}).text();
  full.arguments = windowed.arguments = attentionOperands(random);
  expectSame(full, windowed, GetParam(), {}, 1e-5);
  for (const char *update : {"additive", "delta"}) {
    RecurrenceShape s = recurrenceShape(update, 1);
    full.text = s.text();
    full.arguments = windowed.arguments = recurrenceOperands(random, s);
    s.window = 80;
    s.stride = 20;
    windowed.text = s.text();
    expectSame(full, windowed, GetParam(), {}, 1e-5);
  }
}

TEST_P(Properties, GateOfOneIsNoGate) {
  Random random(3);
  for (const char *update : {"additive", "delta"})
    for (int64_t decayDim : {1, 16}) {
      RecurrenceShape gated = recurrenceShape(update, decayDim),
                      plain = recurrenceShape(update, 0);
      RandomOperation a, b;
      a.text = gated.text();
      a.arguments = b.arguments = recurrenceOperands(random, plain);
      a.arguments.insert(a.arguments.begin() + 3,
                         Tensor({kTokens, 2, decayDim}));
      b.text = plain.text();
      // Behind dq, dk and dv is the gradient of the gate.
      expectSame(a, b, GetParam(), 3, 1e-4);
    }
}

// With β = 0 nothing is written: what is read is the decayed state, which the
// additive update of values 0 has too.
TEST_P(Properties, BetaOfZeroIsDecayAlone) {
  Random random(4);
  for (int64_t decayDim : {1, 16}) {
    RecurrenceShape delta = recurrenceShape("delta", decayDim),
                    additive = recurrenceShape("additive", decayDim);
    delta.state = additive.state = true;
    std::vector<Tensor> arguments = recurrenceOperands(random, delta);
    Tensor initial = randomTensor(random, delta.stateShape(2));
    std::vector<Tensor> ofDelta = arguments, ofAdditive = arguments;
    ofDelta[4] = Tensor({kTokens, 2});
    ofAdditive[2] = Tensor(arguments[2].shape);
    ofAdditive.erase(ofAdditive.begin() + 4);
    ofDelta.push_back(initial);
    ofAdditive.push_back(initial);
    Call call = twoSequences();
    call.slots = 2;
    std::vector<Tensor> ours =
        CompiledFunction(delta.text(), GetParam()).evaluate(ofDelta, call);
    std::vector<Tensor> theirs = CompiledFunction(additive.text(), GetParam())
                                     .evaluate(ofAdditive, call);
    ASSERT_EQ(ours.size(), 2u);
    ASSERT_EQ(theirs.size(), 2u);
    EXPECT_LE(difference(ours[0], theirs[0]), 1e-6);
    EXPECT_LE(difference(ours[1], theirs[1]), 1e-6);
  }
}
