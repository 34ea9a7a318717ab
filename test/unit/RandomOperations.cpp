//===- RandomOperations.cpp - single operations of random shape -----------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RandomOperations.h"

#include "RandomStacks.h"
#include "hybrid/Hybrid/HybridOps.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace hybrid;
using namespace hybrid::cases;
using llvm::formatv;

static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

//===----------------------------------------------------------------------===//
// Calls and numbers
//===----------------------------------------------------------------------===//

/// Segments around the sizes of tiles and chunks, slots in another order than
/// segments and some in no segment, first positions of 0 and more.
static Call randomCall(Random &random, int64_t most, bool positions) {
  Call call;
  int64_t count = random.between(1, 4), row = 0;
  for (int64_t n = 0; n < count; ++n) {
    int64_t length =
        random.pick({0, 1, 2, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129});
    if (random.chance(30))
      length = random.between(0, 150);
    length = std::min(length, most);
    int64_t position = positions && random.chance(60)
                           ? random.pick({1, 5, 16, 63, 64, 65, 200, 1000})
                           : 0;
    call.segments.push_back({row, row + length, count - n, position});
    row += length;
  }
  call.slots = count + 2;
  call.context = 0;
  return call;
}

static int64_t longestOf(const Call &call) { return call.longest(); }

/// Uniform in ±bound, as f32 holds it.
static Tensor uniform(Random &random, ArrayRef<int64_t> shape, double bound) {
  Tensor tensor(shape);
  for (double &x : tensor.data)
    x = static_cast<float>(random.uniform(-bound, bound));
  return tensor;
}

/// A scale that a program's f32 constant holds exactly.
static double exactScale(Random &random) {
  return random.pick({1.0, 0.5, 0.25, 0.125, 0.0625});
}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

static AttentionShape randomAttentionShape(Random &random, int64_t length) {
  AttentionShape shape;
  shape.kvHeads = random.between(1, 3);
  int64_t group = random.pick({1, 1, 2, 3, 4, 8});
  shape.heads = shape.kvHeads * group;
  shape.dim = random.pick({4, 16, 24, 40, 64, 80, 96, 136, 256});
  shape.valueDim =
      random.chance(50) ? shape.dim : random.pick({8, 16, 40, 72, 128});
  shape.scale = exactScale(random);
  shape.windows.clear();
  shape.sinks.clear();
  bool windows = random.chance(60), perHead = random.chance(50);
  for (int64_t head = 0; head < shape.heads; ++head) {
    if (head > 0 && !perHead) {
      shape.windows.push_back(shape.windows.front());
      shape.sinks.push_back(shape.sinks.front());
      continue;
    }
    int64_t window = random.pick({int64_t(1), int64_t(2), int64_t(7),
                                  int64_t(63), int64_t(64), int64_t(65),
                                  length - 1, length, length + 1, 3 * length});
    if (!windows || random.chance(20))
      window = 0;
    window = std::max<int64_t>(window, 0);
    shape.windows.push_back(window);
    shape.sinks.push_back(
        window && random.chance(50) ? random.pick({1, 3, 64, 65, 100}) : 0);
  }
  return shape;
}

/// Queries and keys whose scores are of ordinary size, large, or nothing.
static double fillAttention(Random &random, const AttentionShape &shape,
                            int64_t tokens, std::vector<Tensor> &arguments) {
  double queries = 1, magnitude = 1;
  if (random.chance(25)) {
    // |q·k| reaches a third of dim for numbers in ±1.
    magnitude = 1e4;
    queries = 3e4 / (shape.scale * shape.dim);
  } else if (random.chance(15)) {
    queries = random.pick({0.0, 1e-20});
  }
  arguments.push_back(
      uniform(random, {tokens, shape.heads, shape.dim}, queries));
  arguments.push_back(uniform(random, {tokens, shape.kvHeads, shape.dim}, 1));
  arguments.push_back(
      uniform(random, {tokens, shape.kvHeads, shape.valueDim}, 1));
  return magnitude;
}

static std::string describe(const AttentionShape &shape) {
  std::string text =
      formatv("{0} heads over {1}, {2} x {3}, windows", shape.heads,
              shape.kvHeads, shape.dim, shape.valueDim);
  for (auto [window, sinks] : llvm::zip(shape.windows, shape.sinks))
    text += " " + std::to_string(window) + "+" + std::to_string(sinks);
  return text;
}

static RandomOperation randomAttention(Random &random) {
  RandomOperation op;
  op.call = randomCall(random, 150, /*positions=*/true);
  AttentionShape shape = randomAttentionShape(random, longestOf(op.call));
  op.name = "attention, " + describe(shape);
  op.text = shape.text();
  op.magnitude = fillAttention(random, shape, op.call.tokens(), op.arguments);
  op.arguments.emplace_back();
  op.adjoint = true;
  return op;
}

/// NaN in every cache row that no query of the call may see.
static void hideRows(Tensor &cache, const Call &call, int64_t pinned,
                     int64_t window) {
  int64_t ring = cache.dim(2) - pinned;
  std::vector<bool> seen(cache.dim(0) * cache.dim(2));
  for (const oracle::Segment &segment : call.segments)
    for (int64_t p = 0; p < segment.position; ++p) {
      if (window && p >= pinned && p + window <= segment.position)
        continue;
      int64_t row = p < pinned ? p : pinned + (p - pinned) % ring;
      seen[segment.slot * cache.dim(2) + row] = true;
    }
  for (int64_t slot = 0; slot < cache.dim(0); ++slot)
    for (int64_t head = 0; head < cache.dim(1); ++head)
      for (int64_t row = 0; row < cache.dim(2); ++row)
        for (int64_t c = 0; c < cache.dim(3); ++c)
          if (!seen[slot * cache.dim(2) + row])
            cache(slot, head, row, c) = kNaN;
}

static RandomOperation randomCachedAttention(Random &random) {
  RandomOperation op;
  bool decode = random.chance(50);
  op.call = randomCall(random, decode ? random.pick({1, 3, 4, 5}) : 100,
                       /*positions=*/true);
  int64_t longest = longestOf(op.call), last = 0;
  AttentionShape shape = randomAttentionShape(random, longest);
  shape.cached = true;
  for (const oracle::Segment &segment : op.call.segments)
    last = std::max(last, segment.position + segment.length());
  int64_t pinned = *llvm::max_element(shape.sinks);
  int64_t window = *llvm::max_element(shape.windows);
  bool all = llvm::is_contained(shape.windows, 0);
  // The smallest ring that is enough, or a few rows more.
  op.call.context = all ? std::max<int64_t>(last, pinned + 1)
                        : pinned + window - 1 + std::max<int64_t>(longest, 1);
  if (random.chance(50))
    op.call.context += random.between(1, 70);
  // A long context brings the split over keys into play.
  if (all && decode && random.chance(30))
    op.call.context = 2048 + random.between(0, 1);
  op.name = "attention over a cache of " + std::to_string(op.call.context) +
            " rows, " + describe(shape);
  op.text = shape.text();
  op.magnitude = fillAttention(random, shape, op.call.tokens(), op.arguments);
  for (int64_t width : {shape.dim, shape.valueDim}) {
    Tensor cache = uniform(
        random, {op.call.slots, shape.kvHeads, op.call.context, width}, 1);
    hideRows(cache, op.call, pinned, all ? 0 : window);
    op.arguments.push_back(std::move(cache));
  }
  op.arguments.emplace_back();
  return op;
}

//===----------------------------------------------------------------------===//
// Recurrence
//===----------------------------------------------------------------------===//

static RecurrenceShape randomRecurrenceShape(Random &random, int64_t length) {
  RecurrenceShape shape;
  bool delta = random.chance(50);
  shape.update = delta ? "delta" : "additive";
  shape.kvHeads = random.between(1, 2);
  shape.heads = shape.kvHeads * random.pick({1, 1, 2, 3});
  shape.keyDim = random.pick({8, 16, 24, 40, 64, 72, 136});
  shape.valueDim =
      random.chance(40) ? shape.keyDim : random.pick({8, 24, 56, 128});
  shape.decayDim = random.pick({int64_t(0), int64_t(1), shape.keyDim});
  shape.beta = delta && random.chance(80);
  shape.state = random.chance(50);
  shape.scale = exactScale(random);
  if (random.chance(50)) {
    shape.stride = random.pick({int64_t(1), int64_t(2), int64_t(16),
                                int64_t(17), int64_t(64), length + 1});
    shape.window = shape.stride * random.pick({1, 1, 2, 4, 5});
  }
  return shape;
}

/// Entries of the new state's ring whose window ended with the call.
static std::vector<int64_t> findDeadEntries(const Call &call, int64_t window,
                                            int64_t stride) {
  std::vector<int64_t> dead;
  for (const oracle::Segment &segment : call.segments) {
    int64_t last = segment.position + segment.length();
    if (segment.length() > 0 && last >= window && last % stride == 0)
      dead.push_back(segment.slot * (window / stride) +
                     (last - window) / stride % (window / stride));
  }
  return dead;
}

void RandomOperation::forget(std::vector<Tensor> &results) const {
  if (deadEntries.empty() || results.size() < 2)
    return;
  Tensor &state = results[1];
  int64_t size = state.size() / (state.dim(0) * state.dim(1));
  for (int64_t entry : deadEntries)
    std::fill_n(state.data.begin() + entry * size, size, 0.0);
}

/// 0, small, a third of them 0, or so strong that nothing is left.
static Tensor randomDecay(Random &random, ArrayRef<int64_t> shape) {
  Tensor decay(shape);
  int64_t kind = random.between(0, 4);
  for (double &g : decay.data) {
    if (kind == 0)
      g = 0;
    else if (kind == 1)
      g = -random.uniform(0, 0.2);
    else if (kind == 2)
      g = random.chance(30) ? 0 : -random.uniform(0, 3);
    else
      g = random.chance(kind == 3 ? 10 : 60) ? -1e3 : -random.uniform(0, 0.5);
    g = static_cast<float>(g);
  }
  return decay;
}

/// Rows of length 1, some of length 0.
static Tensor randomKeys(Random &random, ArrayRef<int64_t> shape) {
  Tensor keys = l2norm(uniform(random, shape, 1));
  for (int64_t start = 0; start < keys.size(); start += shape.back()) {
    bool none = random.chance(5);
    for (int64_t i = start; i < start + shape.back(); ++i)
      keys.data[i] = none ? 0 : static_cast<float>(keys.data[i]);
  }
  return keys;
}

static RandomOperation randomRecurrence(Random &random) {
  RandomOperation op;
  op.call = randomCall(random, 150, /*positions=*/true);
  RecurrenceShape shape = randomRecurrenceShape(random, longestOf(op.call));
  int64_t tokens = op.call.tokens();
  op.name = formatv("recurrence {0}, {1} heads over {2}, {3} x {4}, decay of "
                    "{5}, window {6} by {7}{8}",
                    shape.update, shape.heads, shape.kvHeads, shape.keyDim,
                    shape.valueDim, shape.decayDim, shape.window, shape.stride,
                    shape.state ? ", with a state" : "");
  op.text = shape.text();
  op.arguments = {uniform(random, {tokens, shape.heads, shape.keyDim}, 1),
                  randomKeys(random, {tokens, shape.kvHeads, shape.keyDim}),
                  uniform(random, {tokens, shape.kvHeads, shape.valueDim}, 1)};
  if (shape.decayDim)
    op.arguments.push_back(
        randomDecay(random, {tokens, shape.heads, shape.decayDim}));
  if (shape.beta) {
    Tensor beta = uniform(random, {tokens, shape.heads}, 1);
    int64_t kind = random.between(0, 3);
    for (double &b : beta.data)
      b = kind == 3 ? std::fabs(b) : kind; // 0, 1, 2, or between 0 and 1
    op.arguments.push_back(std::move(beta));
  }
  op.arguments.emplace_back();
  if (shape.state)
    op.arguments.push_back(uniform(random, shape.stateShape(op.call.slots), 1));
  if (shape.state && shape.window)
    op.deadEntries = findDeadEntries(op.call, shape.window, shape.stride);
  // A sliding window has no adjoint for its states.
  op.adjoint = !(shape.state && (shape.window || random.chance(40)));
  return op;
}

//===----------------------------------------------------------------------===//
// Short convolution
//===----------------------------------------------------------------------===//

static RandomOperation randomShortConv(Random &random) {
  RandomOperation op;
  op.call = randomCall(random, 150, /*positions=*/true);
  int64_t channels = 8 * random.between(1, 20), kernel = random.between(2, 8);
  bool state = random.chance(50);
  op.name = formatv("short_conv of {0} channels, {1} taps{2}", channels, kernel,
                    state ? ", with a state" : "");
  op.text = shortConvText(channels, kernel, state);
  op.arguments = {uniform(random, {op.call.tokens(), channels}, 1),
                  uniform(random, {channels, kernel}, 1), Tensor()};
  if (state)
    op.arguments.push_back(
        uniform(random, {op.call.slots, kernel - 1, channels}, 1));
  op.adjoint = !state;
  return op;
}

RandomOperation cases::makeRandomOperation(uint64_t seed) {
  Random random(seed * 7919 + 1);
  switch (seed % 8) {
  case 0:
  case 1:
    return randomAttention(random);
  case 2:
  case 3:
    return randomCachedAttention(random);
  case 4:
    return randomShortConv(random);
  default:
    return randomRecurrence(random);
  }
}

//===----------------------------------------------------------------------===//
// Adjoint
//===----------------------------------------------------------------------===//

FailureOr<AppendedAdjoint> cases::appendAdjoint(func::FuncOp function) {
  Block &body = function.getBody().front();
  auto op = cast<DifferentiableOpInterface>(body.front());
  AppendedAdjoint adjoint;
  SmallVector<Value> resultGradients;
  for (OpResult result : op->getResults()) {
    // What the adjoint of attention reads, and nothing flows back from.
    if (isa<AttentionOp>(op) && result.getResultNumber() == 1) {
      resultGradients.push_back(Value());
      continue;
    }
    adjoint.cotangents.push_back(cast<RankedTensorType>(result.getType()));
    resultGradients.push_back(body.addArgument(result.getType(), op->getLoc()));
  }
  Operation *end = body.getTerminator();
  OpBuilder builder(end);
  FailureOr<SmallVector<Value>> gradients =
      op.buildAdjoint(builder, resultGradients);
  if (failed(gradients))
    return failure();
  // A new state lies where the old one did, which the adjoint reads.
  auto recurrence = dyn_cast<RecurrenceOp>(*op);
  SmallVector<Value> results;
  if (!recurrence || !recurrence.getInitial())
    results = end->getOperands();
  adjoint.forwardResults = results.size();
  for (Value gradient : *gradients)
    if (gradient)
      results.push_back(gradient);
  end->setOperands(results);
  function.setFunctionType(FunctionType::get(function.getContext(),
                                             body.getArgumentTypes(),
                                             TypeRange(ValueRange(results))));
  return adjoint;
}
