//===- ShortConvWalk.cpp - short convolutions whose rows walk -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Walker g takes the tokens first + g·n … first + g·n + n − 1, one step after
// the other. A tile has the rows of all walkers' first steps, then those of
// their second ones, so that all that the taps see beside a row is the same
// rows further on in the tile: no row leaves the registers it was loaded to,
// and every access of memory is a whole vector.
//
//===----------------------------------------------------------------------===//

#include "ShortConvParts.h"

using namespace mlir;
using namespace hybrid::tile;
using namespace hybrid::tile::shortconv;

namespace {
/// Blocks of walkers and channels, from token `first` on.
class Walk {
public:
  Walk(Emitter &e, const ShortConvShape &shape)
      : e(e), shape(shape), width(widthOf(shape)), walkers(walkersOf(shape)),
        zero(e.idx(0)) {}

  /// Of a step: four of each thread of eight warps.
  static constexpr int64_t kElements = 1024;
  static int64_t widthOf(const ShortConvShape &shape) {
    return channelBlock(shape.channels, 128);
  }
  static int64_t walkersOf(const ShortConvShape &shape) {
    return llvm::bit_floor<uint64_t>(kElements / widthOf(shape));
  }
  static int64_t tokensOf(const ShortConvShape &shape) {
    return walkersOf(shape) * shape.walkedTokens;
  }

  void moveTo(Value token, Value ofChannel) {
    first = token;
    channel = ofChannel;
  }

  /// The tokens of `steps` from `step` on that lie before `end`; `begin` bounds
  /// steps before the first.
  Value load(Value x, int64_t step, int64_t steps, Value end,
             Value begin = {}) {
    Value rows = rowsOf(step, steps);
    Value isThere = e.lt(rows, bound(end, steps));
    if (begin)
      isThere = e.both(e.le(bound(begin, steps), rows), isThere);
    return e.loadRows(x, {first, channel}, flat(rows), flat(isThere), {0, 1},
                      {steps * walkers, width});
  }
  /// What the state has for the K − 1 steps before a segment's first.
  Value loadState(Value state, const Segment &segment) {
    int64_t steps = shape.kernel - 1;
    Value rows = e.add(rowsOf(0, steps), bound(first, steps, segment.begin));
    Value isThere =
        e.both(e.le(count(0, steps), rows), e.lt(rows, count(steps, steps)));
    return e.loadRows(state, {segment.slot, zero, channel}, flat(rows),
                      flat(isThere), {1, 2}, {steps * walkers, width});
  }
  void store(ArrayRef<Value> steps, Value y, Value end) {
    int64_t count = steps.size();
    Value rows = rowsOf(0, count);
    Value isThere = e.lt(rows, bound(end, count));
    e.storeRows(e.concat(steps, 0), y, {first, channel}, flat(rows),
                flat(isThere), {0, 1});
  }
  /// Step n of what was loaded.
  Value step(Value tile, int64_t n) {
    return e.slice(tile, 0, n * walkers, walkers);
  }
  SmallVector<Value> steps(Value tile, int64_t from, int64_t count) {
    SmallVector<Value> list;
    for (int64_t n = from; n < from + count; ++n)
      list.push_back(step(tile, n));
    return list;
  }

private:
  /// Rows of steps and walkers, counted from `first`.
  Value rowsOf(int64_t step, int64_t steps) {
    Value walked =
        e.mul(e.iota(1, {steps, walkers}), count(shape.walkedTokens, steps));
    Value stepped = e.add(e.iota(0, {steps, walkers}), count(step, steps));
    return e.add(walked, stepped);
  }
  Value count(int64_t number, int64_t steps) {
    return e.splat(e.i32(number), {steps, walkers});
  }
  Value bound(Value token, int64_t steps, Value from = {}) {
    Value distance = e.toI32(e.sub(token, from ? from : first));
    return e.splat(distance, {steps, walkers});
  }
  Value flat(Value tile) {
    return e.reshape(tile, {Emitter::shapeOf(tile)[0] * walkers});
  }

  Emitter &e;
  const ShortConvShape &shape;

public:
  const int64_t width, walkers;

private:
  Value zero, first, channel;
};
} // namespace

/// Σ_i taps[i] · rows[i].
static Value weigh(Emitter &e, ArrayRef<Value> taps, ArrayRef<Value> rows) {
  Value sum;
  for (auto [tap, row] : llvm::zip_equal(taps, rows)) {
    Value term = e.mul(tap, row);
    sum = sum ? e.add(sum, term) : term;
  }
  return sum;
}

ProgramOp shortconv::buildWalkedForward(OpBuilder &builder, Location loc,
                                        const ShortConvShape &shape) {
  MLIRContext *context = builder.getContext();
  Symbols symbols(context);
  Arguments arguments(context);
  arguments.buffer({shape.channels}, shape.element);
  arguments.weight({shape.channels, shape.kernel});
  arguments.segments();
  if (shape.hasState)
    arguments.buffer({shape.kernel - 1, shape.channels}, shape.element);
  arguments.buffer({shape.channels}, shape.element);

  int64_t tokens = Walk::tokensOf(shape);
  Emitter e(
      builder, loc, "short_conv_forward",
      {symbols.segments,
       getAffineConstantExpr(shape.channels / Walk::widthOf(shape), context),
       symbols.longest.ceilDiv(tokens)},
      {Order::parallel, Order::parallel, Order::parallel}, arguments.types());
  Walk walk(e, shape);
  Value x = e.view(0), state = shape.hasState ? e.view(4) : Value();
  Value y = e.view(shape.hasState ? 5 : 4);
  Segment segment = e.segment(e.view(2), e.id(0));
  Value channel = e.mul(e.id(1), e.idx(walk.width));
  Value row = e.add(segment.begin, e.mul(e.id(2), e.idx(tokens)));
  walk.moveTo(row, channel);
  const int64_t history = shape.kernel - 1;
  Value extended = walk.load(x, -history, history + shape.walkedTokens,
                             segment.end, segment.begin);
  SmallVector<Value> inputs =
      walk.steps(extended, 0, history + shape.walkedTokens);
  if (shape.hasState) {
    Value before = walk.loadState(state, segment);
    for (int64_t n = 0; n < history; ++n)
      inputs[n] = e.add(inputs[n], walk.step(before, n));
  }
  SmallVector<Value> taps = loadTaps(e, shape, e.view(1), channel, walk.width);
  SmallVector<Value> outputs;
  for (int64_t step = 0; step < shape.walkedTokens; ++step)
    outputs.push_back(
        weigh(e, taps, ArrayRef(inputs).slice(step, shape.kernel)));
  walk.store(outputs, y, segment.end);
  if (shape.hasState)
    storeNextState(e, shape, x, state, row, channel, walk.width, segment);
  return e.finish();
}

/// dx and dw of the rows of x from `begin` to `end`, of which only dy reaches
/// past `end`, up to the segment's:
///
///     dx_u[c]  = Σ_i w[c, i] · dy_{u+K−1−i}[c]
///     dw[c, i] = Σ_u x_u[c] · dy_{u+K−1−i}[c]
static KernelBuilder::Values walkRows(Emitter &e, const ShortConvShape &shape,
                                      ArrayRef<Value> taps, Value channel,
                                      Value begin, Value end,
                                      const Segment &segment, ValueRange sums) {
  Value x = e.view(0), dy = e.view(4), dx = e.view(5);
  auto block = [&](Value row, ValueRange carried) {
    Walk walk(e, shape);
    walk.moveTo(row, channel);
    const int64_t steps = shape.walkedTokens;
    Value inputs = walk.load(x, 0, steps, end);
    SmallVector<Value> gradients =
        walk.steps(walk.load(dy, 0, steps + shape.kernel - 1, segment.end), 0,
                   steps + shape.kernel - 1);
    KernelBuilder::Values next(carried);
    SmallVector<Value> dInputs;
    for (int64_t step = 0; step < steps; ++step) {
      // The last tap sees the row itself.
      SmallVector<Value> seen(
          llvm::reverse(ArrayRef(gradients).slice(step, shape.kernel)));
      dInputs.push_back(weigh(e, taps, seen));
      for (auto [sum, gradient] : llvm::zip_equal(next, seen))
        sum = e.add(sum, e.mul(walk.step(inputs, step), gradient));
    }
    walk.store(dInputs, dx, end);
    return next;
  };
  return e.loop(begin, end, Walk::tokensOf(shape), sums, block);
}

/// A point takes a part of the stream, whatever segments it holds. Sums have a
/// row per walker until the end of the part.
ProgramOp shortconv::buildWalkedBackward(OpBuilder &builder, Location loc,
                                         const ShortConvShape &shape) {
  MLIRContext *context = builder.getContext();
  Arguments arguments(context);
  arguments.buffer({shape.channels}, shape.element);
  arguments.weight({shape.channels, shape.kernel});
  arguments.segments();
  arguments.buffer({shape.channels}, shape.element);
  arguments.buffer({shape.channels}, shape.element);
  arguments.buffer({shape.channels * shape.kernel});

  const int64_t width = Walk::widthOf(shape);
  Emitter e(builder, loc, "short_conv_backward",
            {Symbols(context).tokens.ceilDiv(shape.partTokens),
             getAffineConstantExpr(shape.channels / width, context)},
            {Order::parallel, Order::parallel}, arguments.types());
  Value table = e.view(2), owners = e.view(3), parts = e.view(6);
  Value channel = e.mul(e.id(1), e.idx(width));
  Value from = e.mul(e.id(0), e.idx(shape.partTokens));
  Value to = e.min(e.dim(owners, 0), e.add(from, e.idx(shape.partTokens)));
  SmallVector<Value> taps = loadTaps(e, shape, e.view(1), channel, width);
  Value none = e.zeros({Walk::walkersOf(shape), width});

  Value one = e.idx(1);
  auto owner = [&](Value token) {
    return e.toIndex(e.loadScalar(owners, {token}));
  };
  KernelBuilder::Values sums = e.loop(
      owner(from), e.add(owner(e.sub(to, one)), one), 1,
      KernelBuilder::Values(shape.kernel, none),
      [&](Value index, ValueRange carried) {
        Segment segment = e.segment(table, index);
        return walkRows(e, shape, taps, channel, e.max(segment.begin, from),
                        e.min(segment.end, to), segment, carried);
      });
  for (Value &sum : sums)
    sum = e.sum(sum, 0);
  Value part =
      e.reshape(e.transpose(e.concat(sums, 0)), {1, width * shape.kernel});
  e.store(part, parts, {e.id(0), e.mul(channel, e.idx(shape.kernel))}, {0, 1});
  return e.finish();
}
