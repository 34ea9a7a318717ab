//===- GoldenCases.cpp - published outputs of the mixers -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Cases.h"

#include <cmath>

using namespace hybrid::cases;

static const double goldenScale = std::sqrt(0.5);
static constexpr int64_t goldenTokens = 5;

/// The table gives o_2, o_4 and the last state, of width 2; the rows here have
/// the width that kernels want.
static std::vector<Expected> expectRecurrence(std::vector<double> o2,
                                              std::vector<double> o4,
                                              std::vector<double> state) {
  return {{0, 16, o2, 1e-7},
          {0, 32, o4, 1e-7},
          {1, 0, {state[0], state[1]}, 1e-7},
          {1, 8, {state[2], state[3]}, 1e-7}};
}

static Tensor wide(const Tensor &rows) {
  return widened(rows, {rows.dim(0), 1, 8});
}

namespace {
struct Gate {
  int64_t dim = 0;
  Tensor decay;
};
} // namespace

/// A gate from the waves x by `function`, per channel or from channel 0.
static Gate gateOf(int64_t channels, double (*function)(double),
                   int64_t tokens = goldenTokens) {
  Tensor decay = map(wave(2.5, tokens, channels), function);
  if (channels == 1)
    return {1, decay};
  return {8, wide(decay)};
}

static Case additive(std::string name, Gate gate,
                     std::vector<Expected> expected) {
  RecurrenceShape shape;
  shape.keyDim = shape.valueDim = 8;
  shape.decayDim = gate.dim;
  shape.state = true;
  shape.scale = goldenScale;
  Case golden{std::move(name),
              shape.text(),
              Call::packed({goldenTokens}),
              {},
              std::move(expected)};
  golden.arguments = {wide(wave(0.1, goldenTokens, 2)),
                      wide(wave(0.9, goldenTokens, 2)),
                      wide(wave(1.7, goldenTokens, 2))};
  if (gate.dim)
    golden.arguments.push_back(gate.decay);
  golden.arguments.push_back(Tensor());
  golden.arguments.push_back(Tensor(shape.stateShape(1)));
  return golden;
}

static Case delta(std::string name, Gate gate, std::vector<Expected> expected) {
  RecurrenceShape shape;
  shape.update = "delta";
  shape.keyDim = shape.valueDim = 8;
  shape.decayDim = gate.dim;
  shape.beta = shape.state = true;
  shape.scale = goldenScale;
  Case golden{std::move(name),
              shape.text(),
              Call::packed({goldenTokens}),
              {},
              std::move(expected)};
  golden.arguments = {wide(l2norm(wave(0.1, goldenTokens, 2))),
                      wide(l2norm(wave(0.9, goldenTokens, 2))),
                      wide(wave(1.7, goldenTokens, 2))};
  if (gate.dim)
    golden.arguments.push_back(gate.decay);
  golden.arguments.push_back(
      reshaped(map(wave(3.3, goldenTokens, 1), sigmoid), {goldenTokens, 1}));
  golden.arguments.push_back(Tensor());
  golden.arguments.push_back(Tensor(shape.stateShape(1)));
  return golden;
}

static Case softmax(std::string name, int64_t window, int64_t sinks,
                    std::vector<double> o2, std::vector<double> o4) {
  AttentionShape shape;
  shape.windows = {window};
  shape.sinks = {sinks};
  shape.scale = goldenScale;
  return {std::move(name),
          shape.text(),
          Call::packed({goldenTokens}),
          {wave(0.1, goldenTokens, 2), wave(0.9, goldenTokens, 2),
           wave(1.7, goldenTokens, 2), Tensor()},
          {{0, 4, o2, 1e-7}, {0, 8, o4, 1e-7}}};
}

/// SWLA over the GLA row: window 4, stride 2, 9 tokens.
static Case swla() {
  RecurrenceShape shape;
  shape.keyDim = shape.valueDim = shape.decayDim = 8;
  shape.scale = goldenScale;
  shape.window = 4;
  shape.stride = 2;
  Tensor decay =
      gateOf(2, [](double x) { return -softplus(-x) / 16; }, 9).decay;
  return {"SWLA",
          shape.text(),
          Call::packed({9}),
          {wide(wave(0.1, 9, 2)), wide(wave(0.9, 9, 2)), wide(wave(1.7, 9, 2)),
           decay, Tensor()},
          {{0, 24, {-2.3837918, -1.0864953}, 1e-7},
           {0, 32, {-0.7721112, -0.3228692}, 1e-7},
           {0, 48, {1.0187617, 0.2965445}, 1e-7},
           {0, 64, {-1.3613021, -0.3599865}, 1e-7}}};
}

/// Attention with queries scaled by log-n, trained at 3 tokens.
static Case logN() {
  Case golden = softmax("full_log_n", 0, 0, {0.0770654, -0.2829025},
                        {-0.3683359, -0.0967300});
  golden.text = R"(
func.func @main(%q: tensor<?x1x2xf32>, %k: tensor<?x1x2xf32>, %v: tensor<?x1x2xf32>,
                %segments: !hybrid.segments) -> tensor<?x1x2xf32> {
  %s = hybrid.log_n_scale %q, %segments trained 3 : tensor<?x1x2xf32>
  %o, %lse = hybrid.attention %s, %k, %v, %segments scale 0.70710678118654757 windows [0] sinks [0]
    : (tensor<?x1x2xf32>, tensor<?x1x2xf32>, tensor<?x1x2xf32>, !hybrid.segments)
    -> (tensor<?x1x2xf32>, tensor<?x1xf32>)
  return %o : tensor<?x1x2xf32>
})";
  return golden;
}

/// The GDN row with norms and gate as graph operations.
static Case gatedLayer() {
  Case golden =
      delta("GDN_layer", gateOf(1, [](double x) { return x; }),
            expectRecurrence({-0.0214814, -0.0949499}, {-0.0730795, 0.0140690},
                             {-0.0360798, -0.2349864, 0.4321919, 0.6374161}));
  golden.text = R"(
!s = tensor<?x1x8x8xf32, #hybrid.slots>
func.func @main(%q: tensor<?x1x8xf32>, %k: tensor<?x1x8xf32>, %v: tensor<?x1x8xf32>,
                %x: tensor<?x1x1xf32>, %z: tensor<?x1xf32>, %segments: !hybrid.segments,
                %s: !s, %bias: tensor<1xf32>, %rate: tensor<1x1xf32>) -> (tensor<?x1x8xf32>, !s) {
  %qn = hybrid.normalize l2 %q epsilon 1.000000e-06 : tensor<?x1x8xf32>
  %kn = hybrid.normalize l2 %k epsilon 1.000000e-06 : tensor<?x1x8xf32>
  %shifted = hybrid.add %x, %bias : tensor<?x1x1xf32>, tensor<1xf32>
  %sp = hybrid.softplus %shifted : tensor<?x1x1xf32>
  %a = hybrid.exp %rate : tensor<1x1xf32>
  %ag = hybrid.mul %sp, %a : tensor<?x1x1xf32>, tensor<1x1xf32>
  %g = hybrid.neg %ag : tensor<?x1x1xf32>
  %b = hybrid.sigmoid %z : tensor<?x1xf32>
  %o, %f = hybrid.recurrence delta %qn, %kn, %v, %segments decay(%g) beta(%b) initial(%s)
    scale 0.70710678118654757
    : (tensor<?x1x8xf32>, tensor<?x1x8xf32>, tensor<?x1x8xf32>, !hybrid.segments,
       tensor<?x1x1xf32>, tensor<?x1xf32>, !s) -> (tensor<?x1x8xf32>, !s)
  return %o, %f : tensor<?x1x8xf32>, !s
})";
  golden.arguments = {wide(wave(0.1, goldenTokens, 2)),
                      wide(wave(0.9, goldenTokens, 2)),
                      wide(wave(1.7, goldenTokens, 2)),
                      wave(2.5, goldenTokens, 1),
                      reshaped(wave(3.3, goldenTokens, 1), {goldenTokens, 1}),
                      Tensor(),
                      Tensor({1, 1, 8, 8}),
                      Tensor({1}, {-1}),
                      Tensor({1, 1}, {std::log(2)})};
  return golden;
}

std::vector<Case> hybrid::cases::goldenCases() {
  auto gdnGate = [](double x) { return -2 * softplus(x - 1); };
  std::vector<Case> all = {
      additive("linear_attention", {},
               expectRecurrence({0.0368520, -0.1180187},
                                {-1.5262399, -0.5092532},
                                {1.7357438, 0.2440443, 2.5547117, 1.8505865})),
      additive("RetNet",
               {1, filled({goldenTokens, 1, 1}, std::log(1 - std::exp2(-5)))},
               expectRecurrence({0.0325421, -0.1170207},
                                {-1.4059994, -0.4594294},
                                {1.5933124, 0.1996883, 2.3703819, 1.7305314})),
      additive("GLA", gateOf(2, [](double x) { return -softplus(-x) / 16; }),
               expectRecurrence({0.0265898, -0.1149940},
                                {-1.3719044, -0.4454401},
                                {1.5470078, 0.1827742, 2.3357386, 1.7101072})),
      delta("DeltaNet", {},
            expectRecurrence({-0.0125300, -0.1092750}, {-0.3552001, 0.0065040},
                             {0.3036419, -0.2554993, 0.6738821, 0.7321306})),
      delta("GDN", gateOf(1, gdnGate),
            expectRecurrence({-0.0214814, -0.0949499}, {-0.0730795, 0.0140690},
                             {-0.0360798, -0.2349864, 0.4321919, 0.6374161})),
      delta("KDA", gateOf(2, gdnGate),
            expectRecurrence({-0.0202594, -0.0956905}, {-0.0764028, 0.0127955},
                             {-0.0310119, -0.2319848, 0.4318635, 0.6341341})),
      softmax("softmax_full", 0, 0, {0.0770654, -0.2829025},
              {-0.2587774, -0.0624706}),
      softmax("SWA", 2, 0, {-0.3480494, -0.7283603}, {-0.2341684, 0.3290239}),
      softmax("SWA_sink_token", 2, 1, {0.0770654, -0.2829025},
              {-0.0575807, 0.3789303}),
      logN(),
      swla(),
      gatedLayer()};

  // HGRN-2 is the additive rule with q, k and the decay made from gates.
  Case hgrn2 = additive(
      "HGRN2", gateOf(2, [](double x) { return -softplus(-x); }),
      expectRecurrence({-0.0718465, -0.0838126}, {0.0680552, 0.0077416},
                       {-0.2891670, -0.0248414, -0.1935190, -0.0389015}));
  hgrn2.arguments[0] =
      map(hgrn2.arguments[0], [](double x) { return x * sigmoid(x); });
  hgrn2.arguments[1] = wide(
      map(wave(2.5, goldenTokens, 2), [](double x) { return sigmoid(-x); }));
  all.push_back(hgrn2);
  return all;
}
