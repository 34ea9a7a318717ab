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

std::vector<Case> hybrid::cases::attentionFaults() {
  std::vector<double> eight = {0, 1, 2, 3, 4, 5, 6, 7};
  return {
      visibleMean("ATT_01", 4, eight, {0, 0.5, 1, 1.5, 2.5, 3.5, 4.5, 5.5}),
      visibleMean("ATT_02_window_1", 1, {10, 20, 30}, {10, 20, 30}),
      visibleMean("ATT_02_no_window", 0, {10, 20, 30}, {10, 15, 20}),
      unlikeLengths(),
      groupedHeads("ATT_13", 4, 2),
      groupedHeads("ATT_14_48_over_2", 48, 2),
      groupedHeads("ATT_14_40_over_2", 40, 2),
      groupedHeads("ATT_14_80_over_4", 80, 4),
      groupedHeads("ATT_14_6_over_2", 6, 2),
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

std::vector<Case> hybrid::cases::lossFaults() {
  double ln3 = std::log(3);
  std::vector<double> ignored(5, -100);
  // Logits that favour the next token of 0, 1, 0, 1; the last has none.
  Tensor next({4, 2}, {0, ln3, ln3, 0, 0, ln3, 0, 0});
  std::vector<double> uniform(5000, 2.079442), labels(5000, 3);
  uniform.back() = 0;
  labels.back() = -100;
  return {lossCase("TRN_03", gen(0.3, {5, 4}), ignored,
                   {{0, 0, std::vector<double>(5, 0), 0},
                    {1, 0, std::vector<double>(20, 0), 0}}),
          lossCase("TRN_04", Tensor({3, 3}), {2, -100, 0},
                   {{0, 0, {1.098612, 0, 1.098612}},
                    {1, 0, {1. / 3, 1. / 3, -2. / 3}},
                    {1, 3, {0, 0, 0}, 0}}),
          lossCase("PPL_03", next, {1, 0, 1, -100},
                   {{0, 0, {0.287682, 0.287682, 0.287682, 0}}}),
          lossCase("PPL_06", Tensor({5000, 8}), labels, {{0, 0, uniform}})};
}
