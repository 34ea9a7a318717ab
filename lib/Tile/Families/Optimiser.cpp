//===- Optimiser.cpp - gradient norm and AdamW over flat buffers ---------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Tile/Families/Optimiser.h"

#include "hybrid/Tile/Families/KernelBuilder.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <limits>

using namespace mlir;
using namespace hybrid::tile;

/// Elements worked on at once.
static constexpr int64_t kTile = 1024;

static Type flat(MLIRContext *c, int64_t size) {
  return KernelBuilder::viewType(c, {size});
}
static Type scalarsType(MLIRContext *c) { return flat(c, NumOptimiserScalars); }

static Value scalar(KernelBuilder &k, Value scalars, OptimiserScalar which) {
  return k.loadScalar(scalars, {k.idx(which)});
}

namespace {
/// The elements [first, end) of this point's block.
struct Elements {
  Elements(KernelBuilder &k, const OptimiserShape &s)
      : first(k.mul(k.id(0), k.idx(s.block))),
        end(k.min(k.idx(s.elements), k.add(first, k.idx(s.block)))) {}
  Value first, end;
};
} // namespace

ProgramOp hybrid::tile::buildGradientSquares(OpBuilder &builder, Location loc,
                                             const OptimiserShape &s) {
  enum View : unsigned { Gradient, Scalars, Sums };
  MLIRContext *c = builder.getContext();
  KernelBuilder k(builder, loc, "gradient_squares",
                  {getAffineConstantExpr(s.blocks(), c)}, {Order::parallel},
                  {flat(c, s.elements), scalarsType(c), flat(c, s.blocks())});
  Elements block(k, s);
  Value scale = k.splat(scalar(k, k.view(Scalars), GradientScale), {kTile});
  // A sum per lane, and one over the lanes at the end.
  Value lanes = k.loop(
      block.first, block.end, kTile, {k.zeros({kTile})},
      [&](Value at, ValueRange carried) {
        Value g = k.mul(
            k.load(k.view(Gradient), {at}, {0}, {kTile}, {block.end}), scale);
        return KernelBuilder::Values{k.add(carried[0], k.mul(g, g))};
      })[0];
  k.store(k.sum(lanes, 0), k.view(Sums), {k.id(0)}, {0});
  return k.finish();
}

ProgramOp hybrid::tile::buildGradientNorm(OpBuilder &builder, Location loc,
                                          const OptimiserShape &s) {
  enum View : unsigned { Sums, Scalars };
  constexpr int64_t tile = 64;
  MLIRContext *c = builder.getContext();
  KernelBuilder k(builder, loc, "gradient_norm", {}, {},
                  {flat(c, s.blocks()), scalarsType(c)});
  Value end = k.idx(s.blocks());
  Value lanes =
      k.loop(k.idx(0), end, tile, {k.zeros({tile})},
             [&](Value at, ValueRange carried) {
               return KernelBuilder::Values{k.add(
                   carried[0], k.load(k.view(Sums), {at}, {0}, {tile}, {end}))};
             })[0];
  Value norm =
      math::SqrtOp::create(k.ops(), k.extract(k.sum(lanes, 0), {k.idx(0)}));
  // Neither infinity nor NaN is below infinity.
  Value finite = k.lt(norm, k.f32(std::numeric_limits<double>::infinity()));
  k.storeScalar(norm, k.view(Scalars), {k.idx(GradientNorm)});
  k.storeScalar(k.select(finite, k.f32(1.0), k.f32(0.0)), k.view(Scalars),
                {k.idx(StepTaken)});
  return k.finish();
}

namespace {
/// The numbers of one step, each in every lane of a tile.
struct Step {
  Step(KernelBuilder &k, Value scalars);
  Value factor; // of the accumulated gradient
  Value beta1, beta2, rest1, rest2, inverse1, inverse2, epsilon, rate, decay;
};
} // namespace

Step::Step(KernelBuilder &k, Value scalars) {
  Value one = k.f32(1.0), zero = k.f32(0.0);
  auto lanes = [&](Value value) { return k.splat(value, {kTile}); };
  Value largest = scalar(k, scalars, LargestNorm);
  Value ratio = k.min(one, k.div(largest, scalar(k, scalars, GradientNorm)));
  // Without clipping, and for a gradient of nothing but zeros (0 / 0).
  Value clips =
      k.both(k.gt(largest, zero), k.gt(scalar(k, scalars, GradientNorm), zero));
  factor = lanes(
      k.mul(scalar(k, scalars, GradientScale), k.select(clips, ratio, one)));
  Value b1 = scalar(k, scalars, Beta1), b2 = scalar(k, scalars, Beta2);
  beta1 = lanes(b1);
  beta2 = lanes(b2);
  rest1 = lanes(k.sub(one, b1));
  rest2 = lanes(k.sub(one, b2));
  inverse1 = lanes(k.div(one, scalar(k, scalars, Correction1)));
  inverse2 = lanes(k.div(one, scalar(k, scalars, Correction2)));
  epsilon = lanes(scalar(k, scalars, Epsilon));
  rate = lanes(scalar(k, scalars, LearningRate));
  decay = lanes(scalar(k, scalars, WeightDecay));
}

ProgramOp hybrid::tile::buildAdamW(OpBuilder &builder, Location loc,
                                   const OptimiserShape &s) {
  enum View : unsigned {
    Parameters,
    Gradient,
    Moment1,
    Moment2,
    Scalars,
    Copy
  };
  MLIRContext *c = builder.getContext();
  Type buffer = flat(c, s.elements);
  SmallVector<Type> types = {buffer, buffer, buffer, buffer, scalarsType(c)};
  if (s.copyElement)
    types.push_back(KernelBuilder::viewType(c, {s.elements}, s.copyElement));
  KernelBuilder k(builder, loc, "adamw", {getAffineConstantExpr(s.blocks(), c)},
                  {Order::parallel}, types);
  Elements block(k, s);
  auto tileOfStep = [&](const Step &step, Value at) {
    auto load = [&](View view) {
      return k.load(k.view(view), {at}, {0}, {kTile}, {block.end});
    };
    auto store = [&](Value tile, View view) {
      k.store(tile, k.view(view), {at}, {0}, {block.end});
    };
    Value p = load(Parameters), g = k.mul(load(Gradient), step.factor);
    Value m = k.add(k.mul(load(Moment1), step.beta1), k.mul(g, step.rest1));
    Value v =
        k.add(k.mul(load(Moment2), step.beta2), k.mul(k.mul(g, g), step.rest2));
    store(m, Moment1);
    store(v, Moment2);
    Value root = math::SqrtOp::create(k.ops(), k.mul(v, step.inverse2));
    Value update = k.div(k.mul(m, step.inverse1), k.add(root, step.epsilon));
    // How many lanes of this tile decay.
    Value left =
        k.max(k.idx(0), k.min(k.idx(kTile), k.sub(k.idx(s.decayElements), at)));
    Value decays = k.lt(k.iota(0, {kTile}), k.splat(k.toI32(left), {kTile}));
    Value decayed = k.select(decays, k.mul(step.decay, p), k.zeros({kTile}));
    Value next = k.sub(p, k.mul(step.rate, k.add(update, decayed)));
    store(next, Parameters);
    if (s.copyElement)
      store(next, Copy);
  };
  k.when(k.gt(scalar(k, k.view(Scalars), StepTaken), k.f32(0.0)), [&] {
    Step step(k, k.view(Scalars));
    k.loop(block.first, block.end, kTile, {}, [&](Value at, ValueRange) {
      tileOfStep(step, at);
      return KernelBuilder::Values{};
    });
  });
  return k.finish();
}

ProgramOp hybrid::tile::buildParameterCopy(OpBuilder &builder, Location loc,
                                           const OptimiserShape &s) {
  enum View : unsigned { Parameters, Copy };
  MLIRContext *c = builder.getContext();
  Type types[] = {flat(c, s.elements),
                  KernelBuilder::viewType(c, {s.elements}, s.copyElement)};
  KernelBuilder k(builder, loc, "parameter_copy",
                  {getAffineConstantExpr(s.blocks(), c)}, {Order::parallel},
                  types);
  Elements block(k, s);
  k.loop(block.first, block.end, kTile, {}, [&](Value at, ValueRange) {
    Value p = k.load(k.view(Parameters), {at}, {0}, {kTile}, {block.end});
    k.store(p, k.view(Copy), {at}, {0}, {block.end});
    return KernelBuilder::Values{};
  });
  return k.finish();
}
