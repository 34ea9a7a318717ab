//===- AttentionFaults.cpp - public faults of softmax attention and losses ===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With q = 0 all scores are equal, so the output is the mean of the visible
// values: it makes masks visible as numbers.
//
//===----------------------------------------------------------------------===//

#include "Cases.h"

#include <cmath>
#include <limits>

using namespace hybrid::cases;

static const double infinity = std::numeric_limits<double>::infinity();
static const double notANumber = std::numeric_limits<double>::quiet_NaN();

/// q = 0 over the given values, one head of width 1.
static Case visibleMean(std::string name, int64_t window,
                        std::vector<double> values,
                        std::vector<double> expected) {
  AttentionShape shape;
  shape.dim = shape.valueDim = 1;
  shape.windows = {window};
  int64_t tokens = values.size();
  return {std::move(name),
          shape.text(),
          Call::packed({tokens}),
          {Tensor({tokens, 1, 1}), gen(0.9, {tokens, 1, 1}),
           Tensor({tokens, 1, 1}, values), Tensor()},
          {{0, 0, std::move(expected), 1e-6}}};
}

/// One key; the value of kv head n is n + 1.
static Case groupedHeads(std::string name, int64_t heads, int64_t kvHeads) {
  AttentionShape shape;
  shape.heads = heads;
  shape.kvHeads = kvHeads;
  shape.valueDim = 1;
  shape.windows.assign(heads, 0);
  shape.sinks.assign(heads, 0);
  Tensor v({1, kvHeads, 1});
  std::vector<double> expected;
  for (int64_t n = 0; n < kvHeads; ++n) {
    v(0, n, 0) = n + 1;
    expected.insert(expected.end(), heads / kvHeads, n + 1);
  }
  return {std::move(name),
          shape.text(),
          Call::packed({1}),
          {gen(0.1, {1, heads, 2}), gen(0.2, {1, kvHeads, 2}), v, Tensor()},
          {{0, 0, expected, 1e-6}}};
}

/// Two queries behind three cached positions see 4 and 5 keys.
static Case unlikeLengths() {
  AttentionShape shape;
  shape.dim = shape.valueDim = 1;
  shape.cached = true;
  Call call;
  call.segments = {{0, 2, 0, 3}};
  call.slots = 1;
  call.context = 5;
  Tensor cached({1, 1, 5, 1}, {1, 2, 3, 0, 0});
  return {"ATT_08",
          shape.text(),
          call,
          {Tensor({2, 1, 1}), gen(0.9, {2, 1, 1}), Tensor({2, 1, 1}, {4, 5}),
           Tensor({1, 1, 5, 1}), cached, Tensor()},
          {{0, 0, {2.5, 3.0}, 1e-6}}};
}

/// The last row of attention over scores `s` with one-hot values: softmax(s).
static Case softmaxOf(std::string name, std::vector<double> scores,
                      std::vector<double> expected) {
  AttentionShape shape;
  int64_t tokens = scores.size();
  shape.dim = 1;
  shape.valueDim = tokens;
  Tensor v({tokens, 1, tokens});
  for (int64_t t = 0; t < tokens; ++t)
    v(t, 0, t) = 1;
  return {
      std::move(name),
      shape.text(),
      Call::packed({tokens}),
      {filled({tokens, 1, 1}, 1), Tensor({tokens, 1, 1}, scores), v, Tensor()},
      {{0, (tokens - 1) * tokens, std::move(expected), 1e-6}}};
}

/// Decode of one token: the value of kv head n is n + 1.
static Case groupedDecode(std::string name, int64_t heads, int64_t kvHeads) {
  Case fault = groupedHeads(std::move(name), heads, kvHeads);
  AttentionShape shape;
  shape.heads = heads;
  shape.kvHeads = kvHeads;
  shape.valueDim = 1;
  shape.windows.assign(heads, 0);
  shape.sinks.assign(heads, 0);
  shape.cached = true;
  fault.text = shape.text();
  fault.call.slots = 1;
  fault.call.context = 4;
  fault.arguments.insert(
      fault.arguments.begin() + 3,
      {Tensor({1, kvHeads, 4, 2}), Tensor({1, kvHeads, 4, 1})});
  return fault;
}

/// A segment whose sequence is in the cache but that brings no queries, and one
/// of two queries behind one cached position: kv lengths 2 and 3.
static Case noQueries(std::string name, int64_t dim) {
  AttentionShape shape;
  shape.dim = dim;
  shape.valueDim = 1;
  shape.cached = true;
  Call call;
  call.segments = {{0, 0, 0, 2}, {0, 2, 1, 1}};
  call.slots = 2;
  call.context = 3;
  return {std::move(name),
          shape.text(),
          call,
          {Tensor({2, 1, dim}), gen(0.9, {2, 1, dim}),
           Tensor({2, 1, 1}, {4, 5}), gen(0.5, {2, 1, 3, dim}),
           Tensor({2, 1, 3, 1}, {1, 2, 0, 3, 0, 0}), Tensor()},
          {{0, 0, {3.5, 4.0}}, {2, 0, {1, 2, 0}, 0}}};
}

/// Window 4, v_j = j: token 0 is always visible with the logit `sink` and has
/// the value 0, which makes it a sink in the denominator alone.
static Case sinkLogit(std::string name, double sink, double expected,
                      double tolerance) {
  AttentionShape shape;
  shape.valueDim = 1;
  shape.windows = {4};
  shape.sinks = {1};
  Tensor q({8, 1, 2}), k({8, 1, 2}), v({8, 1, 1});
  for (int64_t t = 0; t < 8; ++t) {
    q(t, 0, 0) = 1;
    v(t, 0, 0) = t;
  }
  k(0, 0, 0) = sink;
  return {std::move(name),
          shape.text(),
          Call::packed({8}),
          {q, k, v, Tensor()},
          {{0, 7, {expected}, tolerance}}};
}

/// 441 keys of width 64 of which the first 128 carry a mask of the most
/// negative number, added to the score by a channel of its own. Value 1 on the
/// masked keys and 2 on the others.
static Case finiteMask(std::string name, int64_t masked, double scale,
                       double expected) {
  constexpr int64_t heads = 12, tokens = 441, dim = 64;
  AttentionShape shape;
  shape.heads = shape.kvHeads = heads;
  shape.dim = dim;
  shape.valueDim = 1;
  shape.windows.assign(heads, 0);
  shape.sinks.assign(heads, 0);
  shape.scale = scale;
  Tensor q = gen(0.1, {tokens, heads, dim}), k = gen(0.2, {tokens, heads, dim}),
         v({tokens, heads, 1});
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t h = 0; h < heads; ++h) {
      q(t, h, dim - 1) = 1;
      k(t, h, dim - 1) = t < masked ? -3.4028235e38 : 0;
      v(t, h, 0) = t < 128 ? 1 : 2;
    }
  return {std::move(name),
          shape.text(),
          Call::packed({tokens}),
          {q, k, v, Tensor()},
          {{0, (tokens - 1) * heads, std::vector<double>(heads, expected)}}};
}

/// The first tile of keys is masked, a later key is not.
static Case maskedFirstTile() {
  constexpr int64_t tokens = 130;
  AttentionShape shape;
  shape.dim = shape.valueDim = 1;
  Tensor k = filled({tokens, 1, 1}, -infinity), v = filled({tokens, 1, 1}, 7);
  k(129, 0, 0) = 1;
  v(129, 0, 0) = 3;
  std::vector<double> o(tokens, 0);
  o.back() = 3;
  return {"GEN_05_first_tile_masked",
          shape.text(),
          Call::packed({tokens}),
          {filled({tokens, 1, 1}, 1), k, v, Tensor()},
          {{0, 0, o}}};
}

std::vector<Case> hybrid::cases::attentionFaults() {
  std::vector<double> eight = {0, 1, 2, 3, 4, 5, 6, 7};
  return {
      visibleMean("ATT_01", 4, eight, {0, 0.5, 1, 1.5, 2.5, 3.5, 4.5, 5.5}),
      visibleMean("ATT_02_window_1", 1, {10, 20, 30}, {10, 20, 30}),
      visibleMean("ATT_02_no_window", 0, {10, 20, 30}, {10, 15, 20}),
      unlikeLengths(), groupedHeads("ATT_13", 4, 2),
      groupedHeads("ATT_14_48_over_2", 48, 2),
      groupedHeads("ATT_14_40_over_2", 40, 2),
      groupedHeads("ATT_14_80_over_4", 80, 4),
      groupedHeads("ATT_14_6_over_2", 6, 2),
      groupedDecode("ATT_14_decode_48_over_2", 48, 2),
      groupedDecode("ATT_14_decode_40_over_2", 40, 2),
      groupedDecode("ATT_14_decode_80_over_4", 80, 4),
      groupedDecode("ATT_14_decode_6_over_2", 6, 2),
      noQueries("VAR_04_head_dim_256", 256),
      noQueries("VAR_04_head_dim_64", 64),
      sinkLogit("ATT_11_sink_0", 0, 4.4, 1e-6),
      sinkLogit("ATT_11_sink_ln_4", std::log(4), 2.75, 1e-6),
      sinkLogit("ATT_11_sink_minus_40", -40, 5.5, 1e-6),
      sinkLogit("ATT_11_sink_40", 40, 22 * std::exp(-40), 1e-22),
      finiteMask("ATT_07_some_keys", 128, 1, 2),
      finiteMask("ATT_07_scaled", 128, 0.125, 2),
      // Every score of the row is the same number: the plain mean.
      finiteMask("ATT_07_all_keys", 441, 0.125, (128 + 2 * 313) / 441.0),
      maskedFirstTile(),
      softmaxOf("GEN_05_nan", {notANumber, 1}, {notANumber, notANumber}),
      softmaxOf("GEN_05_all_masked", {-infinity, -infinity}, {0, 0}),
      softmaxOf("GEN_06_one_masked", {-infinity, 0, 3},
                {0, 0.047426, 0.952574}),
      softmaxOf("GEN_06_large", {88, 89, 90}, {0.090031, 0.244728, 0.665241}),
      softmaxOf("GEN_06_very_negative", {-1e30, -1e30}, {0.5, 0.5})};
}

//===----------------------------------------------------------------------===//
// Losses
//===----------------------------------------------------------------------===//

/// Losses and the gradients of the logits, weights 1.
static Case lossCase(std::string name, Tensor logits,
                     std::vector<double> labels,
                     std::vector<Expected> expected) {
  int64_t tokens = logits.dim(0);
  std::string type = "tensor<?x" + std::to_string(logits.dim(1)) + "xf32>";
  std::string operands = "%logits, %labels, %weights : (" + type +
                         ", tensor<?xi32>, tensor<?xf32>)";
  std::string text = "func.func @main(%logits: " + type +
                     ", %labels: tensor<?xi32>, %weights: tensor<?xf32>)\n"
                     "    -> (tensor<?xf32>, " +
                     type + ") {\n  %loss = hybrid.cross_entropy " + operands +
                     " -> tensor<?xf32>\n  %d = hybrid.cross_entropy_grad " +
                     operands + " -> " + type +
                     "\n  return %loss, %d : tensor<?xf32>, " + type + "\n}\n";
  return {std::move(name),
          std::move(text),
          Call::packed({tokens}),
          {std::move(logits), Tensor({tokens}, std::move(labels)),
           filled({tokens}, 1)},
          std::move(expected)};
}

/// Losses of the long context, and weights min(exp(short - long), 5) or 1 for
/// the key tokens (short - long > 2 and long < 2), which are 0 and 3: the
/// caller's sums give LongCE, LongPPL and plain perplexity.
static Case weightedLoss(std::string name, std::vector<double> weights,
                         std::vector<double> expected, double sum) {
  std::vector<double> nll = {0.5, 3.0, 1.0, 1.9, 0.2};
  Tensor logits({5, 2});
  // exp(-nll) is the probability of class 0.
  for (int64_t t = 0; t < 5; ++t)
    logits(t, 0) = -std::log(std::expm1(nll[t]));
  Case fault = lossCase(
      std::move(name), logits, std::vector<double>(5, 0),
      {{0, 0, std::move(expected)}, {0, 0, {sum}, 5e-6, /*isSum=*/true}});
  fault.arguments[2] = Tensor({5}, std::move(weights));
  return fault;
}

static std::vector<Case> longContextLosses() {
  std::vector<double> nll = {0.5, 3.0, 1.0, 1.9, 0.2},
                      ofShort = {3.0, 6.0, 2.5, 4.0, 2.2}, weights, weighted,
                      keys, keyed;
  for (size_t t = 0; t < nll.size(); ++t) {
    double gap = ofShort[t] - nll[t];
    weights.push_back(std::min(std::exp(gap), 5.0));
    weighted.push_back(weights[t] * nll[t]);
    keys.push_back(gap > 2 && nll[t] < 2);
    keyed.push_back(keys[t] * nll[t]);
  }
  return {
      weightedLoss("PPL_01_long_ce", weights, weighted, 5 * 6.496338),
      weightedLoss("PPL_01_key_tokens", keys, keyed, 2 * std::log(3.320117)),
      weightedLoss("PPL_01_plain", {1, 1, 1, 1, 1}, nll,
                   5 * std::log(3.743421))};
}

std::vector<Case> hybrid::cases::lossFaults() {
  double ln3 = std::log(3);
  std::vector<double> ignored(5, -100);
  // Logits that favour the next token of 0, 1, 0, 1; the last has none.
  Tensor next({4, 2}, {0, ln3, ln3, 0, 0, ln3, 0, 0});
  std::vector<double> uniform(5000, 2.079442), labels(5000, 3);
  uniform.back() = 0;
  labels.back() = -100;
  std::vector<Case> faults = {
      lossCase("TRN_03", gen(0.3, {5, 4}), ignored,
               {{0, 0, std::vector<double>(5, 0), 0},
                {1, 0, std::vector<double>(20, 0), 0}}),
      lossCase("TRN_04", Tensor({3, 3}), {2, -100, 0},
               {{0, 0, {1.098612, 0, 1.098612}},
                {1, 0, {1. / 3, 1. / 3, -2. / 3}},
                {1, 3, {0, 0, 0}, 0}}),
      lossCase("PPL_03", next, {1, 0, 1, -100},
               {{0, 0, {0.287682, 0.287682, 0.287682, 0}}}),
      lossCase("PPL_06", Tensor({5000, 8}), labels, {{0, 0, uniform}})};
  for (Case &fault : longContextLosses())
    faults.push_back(std::move(fault));
  return faults;
}
