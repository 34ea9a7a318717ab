//===- FaultArguments.cpp - arguments and comparisons of faults ----------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FaultArguments.h"

using namespace hybrid;
using namespace hybrid::cases;
using namespace hybrid::test;

cpu::Level hybrid::test::bestLevel() { return cpu::levelsHere().back(); }

double hybrid::test::distance(const Tensor &found, const Tensor &expected) {
  double worst = 0, largest = 1e-3;
  for (auto [x, y] : llvm::zip_equal(found.data, expected.data)) {
    if (!std::isfinite(x))
      return std::numeric_limits<double>::infinity();
    worst = std::max(worst, std::abs(x - y));
    largest = std::max(largest, std::abs(y));
  }
  return worst / largest;
}

void hybrid::test::expectNear(llvm::ArrayRef<Tensor> found,
                              llvm::ArrayRef<Tensor> expected,
                              double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (auto [i, results] : llvm::enumerate(llvm::zip(found, expected))) {
    auto [x, y] = results;
    EXPECT_LT(distance(x, y), tolerance) << "result " << i;
  }
}

void hybrid::test::expectSameBits(llvm::ArrayRef<Tensor> found,
                                  llvm::ArrayRef<Tensor> expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (auto [i, results] : llvm::enumerate(llvm::zip(found, expected))) {
    auto [x, y] = results;
    EXPECT_EQ(x.data, y.data) << "result " << i;
  }
}

std::vector<Tensor>
hybrid::test::recurrenceArguments(const RecurrenceShape &shape, int64_t tokens,
                                  int64_t slots, std::optional<double> gate) {
  std::vector<Tensor> arguments = {
      gen(0.1, {tokens, shape.heads, shape.keyDim}),
      l2norm(gen(0.2, {tokens, shape.kvHeads, shape.keyDim})),
      gen(0.3, {tokens, shape.kvHeads, shape.valueDim})};
  if (shape.decayDim) {
    Tensor decay = gen(0.4, {tokens, shape.heads, shape.decayDim});
    for (double &g : decay.data)
      g = gate ? *gate : -softplus(g) / 16;
    arguments.push_back(decay);
  }
  if (shape.beta)
    arguments.push_back(map(gen(0.5, {tokens, shape.heads}), sigmoid));
  arguments.push_back(Tensor());
  if (shape.state)
    arguments.push_back(gen(0.8, shape.stateShape(slots)));
  return arguments;
}

RecurrenceShape hybrid::test::gla(int64_t heads, int64_t width) {
  RecurrenceShape shape;
  shape.heads = shape.kvHeads = heads;
  shape.keyDim = shape.valueDim = shape.decayDim = width;
  return shape;
}

RecurrenceShape hybrid::test::gdn(int64_t heads, int64_t width) {
  RecurrenceShape shape = gla(heads, width);
  shape.update = "delta";
  shape.decayDim = 1;
  shape.beta = true;
  return shape;
}

AttentionShape hybrid::test::attention(int64_t heads, int64_t kvHeads,
                                       int64_t width, int64_t window) {
  AttentionShape shape;
  shape.heads = heads;
  shape.kvHeads = kvHeads;
  shape.dim = shape.valueDim = width;
  shape.windows.assign(heads, window);
  shape.sinks.assign(heads, window ? 2 : 0);
  shape.scale = 1 / std::sqrt(double(width));
  return shape;
}

std::vector<Tensor>
hybrid::test::attentionArguments(const AttentionShape &shape, int64_t tokens) {
  return {gen(0.1, {tokens, shape.heads, shape.dim}),
          gen(0.2, {tokens, shape.kvHeads, shape.dim}),
          gen(0.3, {tokens, shape.kvHeads, shape.valueDim}), Tensor()};
}

std::vector<Tensor> hybrid::test::rounded(std::vector<Tensor> arguments) {
  for (Tensor &argument : arguments)
    for (double &x : argument.data)
      x = float(x);
  return arguments;
}
