//===- RecurrenceFaults.cpp - public faults of recurrences ----------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Cases.h"

#include <cmath>

using namespace hybrid::cases;

static RecurrenceShape gdnShape(bool state) {
  RecurrenceShape shape;
  shape.update = "delta";
  shape.keyDim = 3;
  shape.decayDim = 1;
  shape.beta = true;
  shape.state = state;
  return shape;
}

/// The fixture from a zero state.
static Case gdnCase(std::string name, const GdnFixture &f, Call call,
                    std::vector<Expected> expected) {
  RecurrenceShape shape = gdnShape(true);
  Tensor initial(shape.stateShape(call.slots));
  return {std::move(name),
          shape.text(),
          std::move(call),
          {f.q, f.k, f.v, f.decay, f.beta, Tensor(), initial},
          std::move(expected)};
}

/// One head of width 64 with q = k = 1/8, v = 1: every output is a number that
/// can be worked out by hand.
static Case constantInputs(std::string name, Tensor decay, double beta,
                           std::vector<Expected> expected) {
  RecurrenceShape shape;
  shape.update = "delta";
  shape.keyDim = shape.valueDim = 64;
  shape.decayDim = decay.size() ? 1 : 0;
  shape.beta = true;
  int64_t tokens = decay.size() ? decay.dim(0) : 130;
  Tensor eighth = filled({tokens, 1, 64}, 0.125);
  Case fault{std::move(name),
             shape.text(),
             Call::packed({tokens}),
             {},
             std::move(expected)};
  fault.arguments = {eighth, eighth, filled({tokens, 1, 64}, 1)};
  if (shape.decayDim)
    fault.arguments.push_back(std::move(decay));
  fault.arguments.push_back(filled({tokens, 1}, beta));
  fault.arguments.push_back(Tensor());
  return fault;
}

static Case alternatingGates() {
  Tensor decay({64, 1, 1});
  std::vector<double> o;
  for (int64_t t = 0; t < 64; ++t) {
    decay(t, 0, 0) = t % 2 == 0 ? -30 : 0;
    o.insert(o.end(), 64, t % 2 == 0 ? 0.5 : 0.75);
  }
  return constantInputs("LIN_05", decay, 0.5, {{0, 0, o, 1e-6}});
}

static std::vector<Case> ungatedCases() {
  GdnFixture f;
  Case gated = gdnCase("LIN_08_zero_gate", f, Call::packed({5}),
                       {{0, 8, {0.078574, 0.403664}}});
  gated.arguments[3] = Tensor({5, 1, 1});
  Case plain = gated;
  plain.name = "LIN_08_no_gate";
  RecurrenceShape shape = gdnShape(true);
  shape.decayDim = 0;
  plain.text = shape.text();
  plain.arguments.erase(plain.arguments.begin() + 3);

  std::vector<double> o; // 1 - (-0.9)^t
  for (int64_t t = 1; t <= 130; ++t)
    o.insert(o.end(), 64, 1 - std::pow(-0.9, t));
  return {
      gated, plain,
      constantInputs("LIN_08_beta_1_9", Tensor({130, 1, 1}), 1.9, {{0, 0, o}}),
      constantInputs("LIN_08_beta_1_9_no_gate", Tensor(), 1.9, {{0, 0, o}})};
}

/// l2 normalisation adds epsilon to the sum of squares, not to the mean.
static Case smallActivations() {
  return {"LIN_25",
          R"(
func.func @main(%x: tensor<?x128xf32>) -> tensor<?x128xf32> {
  %y = hybrid.normalize l2 %x epsilon 1.000000e-06 : tensor<?x128xf32>
  return %y : tensor<?x128xf32>
})",
          Call::packed({1}),
          {filled({1, 128}, 1e-4)},
          {{0, 0, std::vector<double>(128, 0.06622662), 1e-8}}};
}

static Case zeroRow() {
  Tensor x({2, 64});
  x(1, 5) = 1e-20;
  return {"LIN_26",
          R"(
func.func @main(%x: tensor<?x64xf32>, %dy: tensor<?x64xf32>)
    -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  %y = hybrid.normalize l2 %x epsilon 1.000000e-06 : tensor<?x64xf32>
  %dx = hybrid.normalize_grad l2 %x, %dy epsilon 1.000000e-06 : tensor<?x64xf32>
  return %y, %dx : tensor<?x64xf32>, tensor<?x64xf32>
})",
          Call::packed({2}),
          {x, filled({2, 64}, 1)},
          {{0, 0, std::vector<double>(64, 0), 0},
           {0, 69, {1e-17}, 1e-20},
           {1, 0, std::vector<double>(128, 1000), 1e-6}}};
}

/// Packed lengths 3, 0, 2 with an initial state per sequence.
static Case emptySequence() {
  GdnFixture f;
  Case fault = gdnCase("VAR_01", f, Call::packed({3, 0, 2}), {});
  Tensor initial = gen(0.8, {3, 1, 3, 2});
  fault.arguments.back() = initial;
  fault.expected = {
      {1, 6, {initial.data.begin() + 6, initial.data.begin() + 12}, 0}};
  return fault;
}

/// Pads are a segment of their own, in a slot of their own.
static std::vector<Case> paddedCases() {
  GdnFixture f, pads = gdnPads();
  auto both = [](const GdnFixture &a, const GdnFixture &b) {
    GdnFixture f = a;
    f.q = stacked({a.q, b.q});
    f.k = stacked({a.k, b.k});
    f.v = stacked({a.v, b.v});
    f.decay = stacked({a.decay, b.decay});
    f.beta = stacked({a.beta, b.beta});
    return f;
  };
  return {gdnCase("CCH_01", both(f, pads), Call::packed({5, 3}),
                  {{1, 0, {-0.207366, 0.081415}}}),
          gdnCase("CCH_03", both(pads, f), Call::packed({3, 5}),
                  {{0, 6, {0.224184, 0.638346}}})};
}

/// Rows 1..n, kernel 4: what the state holds before the next token.
static std::vector<Case> convolutionHistory() {
  std::vector<std::pair<int64_t, std::vector<double>>> histories = {
      {1, {0, 0, 1}},
      {2, {0, 1, 2}},
      {3, {1, 2, 3}},
      {4, {2, 3, 4}},
      {9, {7, 8, 9}}};
  std::vector<Case> faults;
  for (auto &[tokens, history] : histories) {
    Tensor x({tokens, 1});
    for (int64_t t = 0; t < tokens; ++t)
      x(t, 0) = t + 1;
    faults.push_back({"CCH_16_prompt_" + std::to_string(tokens),
                      shortConvText(1, 4, true),
                      Call::packed({tokens}),
                      {x, filled({1, 4}, 1), Tensor(), Tensor({1, 3, 1})},
                      {{1, 0, history, 0}}});
  }
  return faults;
}

std::vector<Case> hybrid::cases::recurrenceFaults() {
  std::vector<Case> faults = {
      alternatingGates(),
      gdnCase("LIN_09", GdnFixture(), Call::packed({5}),
              {{0, 8, {-0.155340, 0.164750}}, {1, 0, {-0.207366, 0.081415}}}),
      smallActivations(), zeroRow(), emptySequence()};
  for (std::vector<Case> more :
       {ungatedCases(), paddedCases(), convolutionHistory()})
    faults.insert(faults.end(), more.begin(), more.end());
  return faults;
}
