//===- GradientFaults.cpp - public faults of adjoints ---------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Cases.h"

#include <cmath>

using namespace hybrid::cases;

//===----------------------------------------------------------------------===//
// Recurrences
//===----------------------------------------------------------------------===//

/// The fixture with loss = sum of o · gen(0.9), and of S_5 · gen(1.1) too.
static Case gdnGradient(std::string name, bool gated, bool state,
                        bool finalCotangent, std::vector<Expected> expected) {
  GdnFixture f;
  RecurrenceShape shape;
  shape.update = "delta";
  shape.keyDim = shape.valueDim = 8;
  shape.decayDim = gated ? 1 : 0;
  shape.beta = true;
  shape.state = state;
  auto wide = [](const Tensor &rows) { return widened(rows, {5, 1, 8}); };
  Case fault{std::move(name),
             shape.gradientText(finalCotangent),
             Call::packed({5}),
             {wide(f.q), wide(f.k), wide(f.v)},
             std::move(expected)};
  if (gated)
    fault.arguments.push_back(f.decay);
  fault.arguments.push_back(f.beta);
  fault.arguments.push_back(Tensor());
  if (state)
    fault.arguments.push_back(widened(gen(0.8, {1, 1, 3, 2}), {1, 1, 8, 8}));
  fault.arguments.push_back(wide(gen(0.9, {5, 1, 2})));
  if (finalCotangent)
    fault.arguments.push_back(widened(gen(1.1, {1, 1, 3, 2}), {1, 1, 8, 8}));
  return fault;
}

static std::vector<Case> missingGates() {
  std::vector<double> first = {0.235505, 0.580378, 0.652291},
                      last = {-0.328170, 0.014652, 0.350582},
                      beta = {1.452914, 1.691005, -0.358575, 1.516038,
                              -0.427853};
  auto expected = [&](unsigned betaResult) -> std::vector<Expected> {
    return {
        {1, 0, first, 1e-5}, {1, 32, last, 1e-5}, {betaResult, 0, beta, 1e-5}};
  };
  Case zero = gdnGradient("LIN_11_gate_0", true, false, false, expected(4));
  zero.arguments[3] = Tensor({5, 1, 1});
  return {gdnGradient("LIN_11_no_gate", false, false, false, expected(3)),
          zero};
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// q = 0, values of width 1, and the cotangent of each row.
static Case visibleMean(std::string name, AttentionShape shape,
                        std::vector<int64_t> lengths,
                        std::vector<double> values,
                        std::vector<double> cotangents,
                        std::vector<Expected> expected) {
  int64_t tokens = values.size();
  shape.valueDim = 1;
  return {std::move(name),
          shape.gradientText(),
          Call::packed(lengths),
          {Tensor({tokens, 1, shape.dim}), gen(0.9, {tokens, 1, shape.dim}),
           Tensor({tokens, 1, 1}, values), Tensor(),
           Tensor({tokens, 1, 1}, cotangents)},
          std::move(expected)};
}

/// Keys without queries: rows of the stream whose output nobody uses.
static Case noQueries(std::string name, int64_t dim) {
  AttentionShape shape;
  shape.dim = dim;
  return visibleMean(std::move(name), shape, {2, 3}, {1, 2, 3, 4, 5},
                     {0, 0, 0, 1, 1},
                     {{0, 3, {3.5, 4.0}},
                      {2, 0, std::vector<double>(2 * dim, 0), 0},
                      {3, 0, {0, 0}, 0},
                      {3, 2, {0.5 + 1. / 3, 0.5 + 1. / 3, 1. / 3}}});
}

/// Key j of a window of 4 gets 1 / (visible keys) from each row that sees it.
static Case windowGradient() {
  AttentionShape shape;
  shape.dim = 8;
  shape.windows = {4};
  std::vector<double> dv(8, 0);
  for (int64_t i = 0; i < 8; ++i)
    for (int64_t j = std::max<int64_t>(0, i - 3); j <= i; ++j)
      dv[j] += 1.0 / std::min<int64_t>(i + 1, 4);
  return visibleMean("ATT_01_backward", shape, {8}, {0, 1, 2, 3, 4, 5, 6, 7},
                     std::vector<double>(8, 1), {{3, 0, dv}});
}

/// The sink of the forward case: d out_7 / d logit = -22/25.
static Case sinkGradient() {
  AttentionShape shape;
  shape.dim = 8;
  shape.valueDim = 1;
  shape.windows = {4};
  shape.sinks = {1};
  Tensor q({8, 1, 8}), k({8, 1, 8}), v({8, 1, 1}), dout({8, 1, 1});
  for (int64_t t = 0; t < 8; ++t) {
    q(t, 0, 0) = 1;
    v(t, 0, 0) = t;
  }
  dout(7, 0, 0) = 1;
  return {"ATT_11_gradient",
          shape.gradientText(),
          Call::packed({8}),
          {q, k, v, Tensor(), dout},
          {{2, 0, {-0.88}}}};
}

/// The gradient of a shared key head is the sum over its group.
static Case groupGradient() {
  AttentionShape shape;
  shape.heads = 4;
  shape.kvHeads = 2;
  shape.dim = shape.valueDim = 8;
  shape.windows = shape.sinks = {0, 0, 0, 0};
  Tensor dout({1, 4, 8});
  for (int64_t h = 0; h < 4; ++h)
    dout(0, h, 0) = 1 << h;
  Tensor dv({1, 2, 8});
  dv(0, 0, 0) = 1 + 2;
  dv(0, 1, 0) = 4 + 8;
  return {"ATT_13_backward",
          shape.gradientText(),
          Call::packed({1}),
          {gen(0.1, {1, 4, 8}), gen(0.2, {1, 2, 8}), gen(0.3, {1, 2, 8}),
           Tensor(), dout},
          {{3, 0, dv.data}}};
}

std::vector<Case> hybrid::cases::gradientFaults() {
  std::vector<Case> faults = missingGates();
  faults.push_back(
      gdnGradient("LIN_13_output", true, true, false,
                  {{3, 0, {-0.088727, 0.059358, 0.079759, 0.036573, 0.026154}},
                   {5, 0, {0.019274, 0.001402}}}));
  faults.push_back(
      gdnGradient("LIN_13_final_state", true, true, true,
                  {{3, 0, {-0.086147, 0.059729, 0.112165, 0.087271, 0.179964}},
                   {5, 0, {0.018843, 0.001964}}}));
  faults.push_back(noQueries("VAR_04_head_dim_256", 256));
  faults.push_back(noQueries("VAR_04_head_dim_64", 64));
  faults.push_back(windowGradient());
  faults.push_back(sinkGradient());
  faults.push_back(groupGradient());
  return faults;
}
