//===- StateFaults.cpp - public faults of states across calls -------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Cases.h"

#include <cmath>

using namespace hybrid::cases;

/// The fixture with zeros behind its widths; row t of o begins at 8 t.
static Case gdn() {
  GdnFixture f;
  RecurrenceShape shape;
  shape.update = "delta";
  shape.keyDim = shape.valueDim = 8;
  shape.decayDim = 1;
  shape.beta = shape.state = true;
  auto wide = [](const Tensor &rows) { return widened(rows, {5, 1, 8}); };
  return {"CCH_04",
          shape.text(),
          Call::packed({5}),
          {wide(f.q), wide(f.k), wide(f.v), f.decay, f.beta, Tensor(),
           Tensor({1, 1, 8, 8})},
          {{0, 24, {-0.779616, -0.649185}}},
          {{3, 2}, {3, 1, 1}, {1, 4}, {1, 1, 1, 1, 1}, {0, 5}}};
}

/// Convolution and gated delta rule, as in a layer.
static Case convolutionLayer() {
  constexpr int64_t tokens = 512;
  return {"CCH_05",
          R"(
!c = tensor<?x3x8xf32, #hybrid.slots>
!s = tensor<?x1x8x8xf32, #hybrid.slots>
!x = tensor<?x1x8xf32>
func.func @main(%x: tensor<?x8xf32>, %q: !x, %k: !x, %g: tensor<?x1x1xf32>, %b: tensor<?x1xf32>,
                %segments: !hybrid.segments, %conv: !c, %state: !s, %w: tensor<8x4xf32>)
    -> (!x, !c, !s) {
  %y, %conv2 = hybrid.short_conv %x, %w, %segments state(%conv)
    : (tensor<?x8xf32>, tensor<8x4xf32>, !hybrid.segments, !c) -> (tensor<?x8xf32>, !c)
  %v = hybrid.reshape %y : tensor<?x8xf32> -> !x
  %o, %state2 = hybrid.recurrence delta %q, %k, %v, %segments decay(%g) beta(%b) initial(%state)
    scale 1.0
    : (!x, !x, !x, !hybrid.segments, tensor<?x1x1xf32>, tensor<?x1xf32>, !s) -> (!x, !s)
  return %o, %conv2, %state2 : !x, !c, !s
})",
          Call::packed({tokens}),
          {gen(0.3, {tokens, 8}), gen(0.1, {tokens, 1, 8}),
           l2norm(gen(0.2, {tokens, 1, 8})),
           map(gen(0.4, {tokens, 1, 1}), [](double x) { return -softplus(x); }),
           map(gen(0.5, {tokens, 1}), sigmoid), Tensor(), Tensor({1, 3, 8}),
           Tensor({1, 1, 8, 8}), gen(0.7, {8, 4})},
          {},
          {{256, 256}, {2, 510}, {510, 2}}};
}

/// q = 0 and v_j = j over a cache of `rows` rows, window 4: row i is the mean
/// of the last min(i + 1, 4) indices.
static Case windowMean(std::string name, int64_t tokens, int64_t cacheRows,
                       std::vector<std::vector<int64_t>> splits) {
  AttentionShape shape;
  shape.dim = 8;
  shape.valueDim = 1;
  shape.windows = {4};
  shape.cached = true;
  Tensor values({tokens, 1, 1});
  std::vector<double> means;
  for (int64_t t = 0; t < tokens; ++t) {
    values(t, 0, 0) = t;
    means.push_back(t < 3 ? t / 2.0 : t - 1.5);
  }
  Case fault{std::move(name),
             shape.text(),
             Call::packed({tokens}),
             {Tensor({tokens, 1, 8}), gen(0.9, {tokens, 1, 8}), values,
              Tensor({1, 1, cacheRows, 8}), Tensor({1, 1, cacheRows, 1}),
              Tensor()},
             {{0, 0, means}},
             std::move(splits)};
  fault.call.context = cacheRows;
  return fault;
}

/// q = k = v = 1 with no decay: row t reads t.
static Case countedTokens() {
  RecurrenceShape shape;
  shape.keyDim = shape.valueDim = 8;
  shape.state = true;
  Tensor one({5, 1, 8});
  for (int64_t t = 0; t < 5; ++t)
    one(t, 0, 0) = 1;
  return {"CCH_08",          shape.text(),
          Call::packed({5}), {one, one, one, Tensor(), Tensor({1, 1, 8, 8})},
          {{0, 32, {5}}},    {{4, 1}}};
}

/// A state after an unfinished chunk of 64 goes on.
static Case unfinishedChunk(std::string name, const char *update,
                            int64_t window) {
  constexpr int64_t tokens = 170;
  RecurrenceShape shape;
  shape.update = update;
  shape.heads = 2;
  shape.keyDim = shape.valueDim = shape.decayDim = 8;
  shape.beta = update == std::string("delta");
  shape.state = true;
  shape.window = window;
  shape.stride = window / 2;
  Case fault{std::move(name), shape.text(), Call::packed({tokens}), {}, {}};
  fault.arguments = {gen(0.1, {tokens, 2, 8}), l2norm(gen(0.2, {tokens, 1, 8})),
                     gen(0.3, {tokens, 1, 8}),
                     map(gen(0.4, {tokens, 2, 8}),
                         [](double x) { return -softplus(x) / 16; })};
  if (shape.beta)
    fault.arguments.push_back(map(gen(0.5, {tokens, 2}), sigmoid));
  fault.arguments.push_back(Tensor());
  fault.arguments.push_back(Tensor(shape.stateShape(1)));
  for (int64_t saved : {0, 1, 63, 64, 65, 70})
    fault.splits.push_back({saved, 1, 169 - saved});
  fault.splits.push_back({70, 100});
  return fault;
}

std::vector<Case> hybrid::cases::stateFaults() {
  return {
      gdn(), convolutionLayer(), countedTokens(),
      windowMean("ATT_01_decode", 8, 8, {std::vector<int64_t>(8, 1)}),
      // The first call is longer than the window.
      windowMean("CCH_11", 10, 10, {{7, 1, 1, 1}}),
      // A ring of the longest call + window - 1 rows; 16 rows for the whole.
      windowMean("CCH_13", 16, 16, {{6, 9, 1}}),
      unfinishedChunk("CCH_17_additive", "additive", 0),
      unfinishedChunk("CCH_17_delta", "delta", 0),
      unfinishedChunk("CCH_17_window", "delta", 32)};
}
