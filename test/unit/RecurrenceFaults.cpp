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
  shape.keyDim = shape.valueDim = 8;
  shape.decayDim = 1;
  shape.beta = true;
  shape.state = state;
  return shape;
}

/// The fixture from a zero state: row t of o begins at 8 t, row i of S at 8 i.
static Case gdnCase(std::string name, const GdnFixture &f, Call call,
                    std::vector<Expected> expected) {
  RecurrenceShape shape = gdnShape(true);
  Tensor initial(shape.stateShape(call.slots));
  int64_t tokens = f.q.dim(0);
  return {std::move(name),
          shape.text(),
          std::move(call),
          {widened(f.q, {tokens, 1, 8}), widened(f.k, {tokens, 1, 8}),
           widened(f.v, {tokens, 1, 8}), f.decay, f.beta, Tensor(), initial},
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
                       {{0, 32, {0.078574, 0.403664}},
                        {0, 0, {0.055252}, 1e-6, /*isSum=*/true}});
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
  Tensor initial = widened(gen(0.8, {3, 1, 3, 2}), {3, 1, 8, 8});
  fault.arguments.back() = initial;
  fault.expected = {
      {1, 64, {initial.data.begin() + 64, initial.data.begin() + 128}, 0}};
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
                  {{0, 24, {0.224184, 0.638346}}})};
}

/// Rows 1..n in all of 8 channels, kernel 4: what the state holds before the
/// next token.
static std::vector<Case> convolutionHistory() {
  std::vector<std::pair<int64_t, std::vector<double>>> histories = {
      {1, {0, 0, 1}},
      {2, {0, 1, 2}},
      {3, {1, 2, 3}},
      {4, {2, 3, 4}},
      {9, {7, 8, 9}}};
  std::vector<Case> faults;
  for (auto &[tokens, history] : histories) {
    Tensor x({tokens, 8});
    for (int64_t t = 0; t < tokens; ++t)
      for (int64_t c = 0; c < 8; ++c)
        x(t, c) = t + 1;
    std::vector<double> expected;
    for (double value : history)
      expected.insert(expected.end(), 8, value);
    faults.push_back({"CCH_16_prompt_" + std::to_string(tokens),
                      shortConvText(8, 4, true),
                      Call::packed({tokens}),
                      {x, filled({8, 4}, 1), Tensor(), Tensor({1, 3, 8})},
                      {{1, 0, expected, 0}}});
  }
  return faults;
}

/// Key and value heads are shared block-wise; one token shows in the states
/// which key each of the four heads wrote under.
static Case sharedKeyHeads() {
  RecurrenceShape shape;
  shape.update = "delta";
  shape.heads = 4;
  shape.kvHeads = 2;
  shape.keyDim = shape.valueDim = 8;
  shape.beta = shape.state = true;
  Tensor k({1, 2, 8}), q({1, 4, 8}), states({1, 4, 8, 8});
  for (int64_t h = 0; h < 4; ++h) {
    int64_t kvHead = h / 2;
    q(0, h, kvHead) = 1;
    states(0, h, kvHead, 0) = kvHead + 1;
  }
  k(0, 0, 0) = k(0, 1, 1) = 1;
  Tensor v({1, 2, 8});
  v(0, 0, 0) = 1;
  v(0, 1, 0) = 2;
  return {"LIN_31",
          shape.text(),
          Call::packed({1}),
          {q, k, v, filled({1, 4}, 1), Tensor(), Tensor({1, 4, 8, 8})},
          {{1, 0, states.data, 0}}};
}

/// A state that grows past what half precision holds, then a norm.
static Case largeReadout() {
  Tensor unit({1000, 1, 8});
  for (int64_t t = 0; t < 1000; ++t)
    unit(t, 0, 3) = 1;
  return {"LIN_28",
          R"(
func.func @main(%q: tensor<?x1x8xf32>, %v: tensor<?x1x64xf32>, %g: tensor<?x1x8xf32>,
                %segments: !hybrid.segments) -> (tensor<?x1x64xf32>, tensor<?x1x64xf32>) {
  %o = hybrid.recurrence additive %q, %q, %v, %segments decay(%g) scale 1.0
    : (tensor<?x1x8xf32>, tensor<?x1x8xf32>, tensor<?x1x64xf32>, !hybrid.segments,
       tensor<?x1x8xf32>) -> tensor<?x1x64xf32>
  %y = hybrid.normalize rms %o epsilon 1.000000e-06 : tensor<?x1x64xf32>
  return %o, %y : tensor<?x1x64xf32>, tensor<?x1x64xf32>
})",
          Call::packed({1000}),
          {unit, filled({1000, 1, 64}, 100), Tensor({1000, 1, 8}), Tensor()},
          {{0, 999 * 64, std::vector<double>(64, 100000)},
           {1, 999 * 64, std::vector<double>(64, 1)}}};
}

/// The write strength is not rounded on its way.
static Case writeStrength() {
  return {"LIN_27_beta",
          R"(
func.func @main(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %y = hybrid.sigmoid %x : tensor<?x8xf32>
  return %y : tensor<?x8xf32>
})",
          Call::packed({1}),
          {filled({1, 8}, 0.5)},
          {{0, 0, std::vector<double>(8, 0.6224593), 1e-7}}};
}

/// Keys that are normalised keep the delta rule bounded.
static Case normalisedKeys() {
  RecurrenceShape shape;
  shape.update = "delta";
  shape.keyDim = shape.valueDim = 64;
  shape.beta = true;
  Tensor k = l2norm(gen(0.2, {64, 1, 64}));
  // One value column is a scalar per channel: S is the same in all columns.
  std::vector<double> state(64, 0), o;
  for (int64_t t = 0; t < 64; ++t) {
    double read = 0;
    for (int64_t i = 0; i < 64; ++i)
      read += state[i] * k(t, 0, i);
    double written = 0;
    for (int64_t i = 0; i < 64; ++i) {
      state[i] += 0.5 * (1 - read) * k(t, 0, i);
      written += state[i] * k(t, 0, i);
    }
    o.insert(o.end(), 64, written);
  }
  return {"LIN_06",
          shape.text(),
          Call::packed({64}),
          {k, k, filled({64, 1, 64}, 1), filled({64, 1}, 0.5), Tensor()},
          {{0, 0, o, 1e-5}}};
}

/// A sequence that has ended is an empty segment of the next call.
static Case endedSequence() {
  GdnFixture f;
  Case fault = gdnCase("CCH_02", f.slice(3, 5), Call::packed({2, 0}), {});
  fault.call.segments[0].position = fault.call.segments[1].position = 3;
  Tensor states = widened(gen(0.8, {2, 1, 3, 2}), {2, 1, 8, 8});
  fault.arguments.back() = states;
  fault.expected = {{1, 64, {states.data.begin() + 64, states.data.end()}, 0}};
  return fault;
}

/// In one call of the chunked path and token by token.
static Case decayBeforeError() {
  Case fault = gdnCase("LIN_09", GdnFixture(), Call::packed({5}),
                       {{0, 32, {-0.155340, 0.164750}},
                        {0, 0, {-0.056920}, 1e-6, /*isSum=*/true},
                        {1, 0, {-0.207366, 0.081415}}});
  fault.splits = {{1, 1, 1, 1, 1}, {4, 1}};
  return fault;
}

/// A state of 1 that nothing is written to decays by e each step: what is left
/// after 86 to 103 of them is 4e-38 to 2e-45 and is read times 1e30. Denormals
/// have steps of 1.4e-45.
static Case denormalState() {
  constexpr int64_t tokens = 103;
  RecurrenceShape shape;
  shape.keyDim = shape.valueDim = 8;
  shape.decayDim = 1;
  shape.state = true;
  Tensor q({tokens, 1, 8}), initial({1, 1, 8, 8});
  for (int64_t t = 0; t < tokens; ++t)
    q(t, 0, 0) = 1e30;
  initial(0, 0, 0, 0) = 1;
  Case fault{"GEN_17_state",
             shape.text(),
             Call::packed({tokens}),
             {q, Tensor({tokens, 1, 8}), gen(0.3, {tokens, 1, 8}),
              filled({tokens, 1, 1}, -1), Tensor(), initial},
             {}};
  for (int64_t t = 86; t <= tokens; ++t) {
    double left = 1e30 * std::exp(-double(t));
    fault.expected.push_back({0, (t - 1) * 8, {left}, 2.8e-15 + 1e-5 * left});
  }
  fault.expected.push_back({0, 94 * 8, {5.52e-12}, 5.52e-15});
  return fault;
}

/// The convolution's history is the last three real tokens; the pads of the
/// sequence are a segment with a history of their own.
static Case paddedHistory() {
  Tensor x({8, 8});
  std::vector<double> history;
  for (int64_t t = 0; t < 8; ++t)
    for (int64_t c = 0; c < 8; ++c)
      x(t, c) = t + 1;
  for (double value : {3, 4, 5})
    history.insert(history.end(), 8, value);
  return {"CCH_01_convolution",
          shortConvText(8, 4, true),
          Call::packed({5, 3}),
          {x, filled({8, 4}, 1), Tensor(), Tensor({2, 3, 8})},
          {{1, 0, history, 0}}};
}

std::vector<Case> hybrid::cases::recurrenceFaults() {
  std::vector<Case> faults = {
      alternatingGates(), decayBeforeError(), smallActivations(),
      zeroRow(),          emptySequence(),    sharedKeyHeads(),
      largeReadout(),     writeStrength(),    normalisedKeys(),
      endedSequence(),    denormalState(),    paddedHistory()};
  for (std::vector<Case> more :
       {ungatedCases(), paddedCases(), convolutionHistory()})
    faults.insert(faults.end(), more.begin(), more.end());
  return faults;
}
