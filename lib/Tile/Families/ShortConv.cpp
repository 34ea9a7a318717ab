//===- ShortConv.cpp - tile programs of the short convolution -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ShortConvParts.h"

using namespace mlir;
using namespace hybrid::tile;
using namespace hybrid::tile::shortconv;

/// Tokens per block of the adjoint.
static constexpr int64_t kAdjointTile = 64;

LogicalResult ShortConvShape::verify(
    llvm::function_ref<InFlightDiagnostic()> emitError) const {
  if (channels < 8 || channels % 8 != 0)
    return emitError() << "short convolution has " << channels
                       << " channels; their number must be a multiple of 8";
  if (kernel < 2 || kernel > 8)
    return emitError() << "short convolution has " << kernel
                       << " taps; 2 to 8 are supported";
  if (tokenTile < kernel - 1)
    return emitError() << "short convolution of " << kernel
                       << " taps in blocks of " << tokenTile
                       << " tokens; give at least " << kernel - 1;
  if (walkedTokens < 0 || (walkedTokens > 0 && partTokens < 1))
    return emitError() << "short convolution walks " << walkedTokens
                       << " tokens in parts of " << partTokens
                       << "; give at least 0 and 1";
  return success();
}

int64_t shortconv::channelBlock(int64_t channels, int64_t limit) {
  int64_t width = std::min(limit, channels) / 8 * 8;
  while (channels % width != 0)
    width -= 8;
  return width;
}

static SmallVector<Value> rowsOf(Emitter &e, Value tile, int64_t count) {
  SmallVector<Value> rows;
  for (int64_t i = 0; i < count; ++i)
    rows.push_back(e.slice(tile, 0, i, 1));
  return rows;
}

SmallVector<Value> shortconv::loadTaps(Emitter &e, const ShortConvShape &shape,
                                       Value weight, Value channel,
                                       int64_t width) {
  Value taps =
      e.load(weight, {channel, e.idx(0)}, {0, 1}, {width, shape.kernel});
  return rowsOf(e, e.transpose(taps), shape.kernel);
}

void shortconv::storeNextState(Emitter &e, const ShortConvShape &shape, Value x,
                               Value state, Value row, Value channel,
                               int64_t width, const Segment &segment) {
  int64_t rows = shape.kernel - 1;
  Value zero = e.idx(0), all = e.idx(rows);
  Value count = e.sub(segment.end, segment.begin);
  Value offset = e.sub(e.iota(0, {rows}), e.splat(e.i32(rows), {rows}));
  Value present = e.le(e.splat(e.i32(0), {rows}),
                       e.add(offset, e.splat(e.toI32(count), {rows})));
  // A segment of no tokens keeps its state.
  Value isFirst =
      e.both(e.eq(row, segment.begin), e.lt(segment.begin, segment.end));
  e.when(isFirst, [&] {
    Value fromInput = e.loadRows(x, {segment.end, channel}, offset, present,
                                 {0, 1}, {rows, width});
    Value kept = e.load(state, {segment.slot, count, channel}, {1, 2},
                        {rows, width}, all);
    e.store(e.add(fromInput, kept), state, {segment.slot, zero, channel},
            {1, 2});
  });
}

namespace {
/// One block of tokens and channels.
class Conv {
public:
  Conv(Emitter &e, const ShortConvShape &shape, int64_t tokens, int64_t width)
      : e(e), kernel(shape.kernel), tokens(tokens), width(width),
        zero(e.idx(0)) {}

  /// Rows row − K + 1 … row + tokens − 1 of x. The K − 1 rows before a
  /// segment's first row are `before`, which must be zero for other blocks.
  Value loadWithHistory(Value x, Value row, Value channel,
                        const Segment &segment, Value before) {
    Value history = e.max(e.sub(row, e.idx(kernel - 1)), zero);
    Value isFirst = e.eq(row, segment.begin);
    Value earlier = e.load(x, {history, channel}, {0, 1}, {kernel - 1, width},
                           e.select(isFirst, zero, segment.end));
    if (before)
      earlier = e.add(earlier, before);
    Value block = e.named("load_input", e.load(x, {row, channel}, {0, 1},
                                               {tokens, width}, segment.end));
    return e.concat({earlier, block}, 0);
  }

  /// The rows of `extended` that tap i sees.
  Value seenBy(int64_t tap, Value extended) {
    return e.slice(extended, 0, tap, tokens);
  }

private:
  Emitter &e;
  int64_t kernel, tokens, width;
  Value zero;
};
} // namespace

static void segmentsAndWeights(Arguments &arguments,
                               const ShortConvShape &shape) {
  arguments.activation({shape.channels}, shape.element);
  arguments.weight({shape.channels, shape.kernel});
  arguments.segments();
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

/// Blocks of a segment are independent: the first reads the state and
/// overwrites it.
ProgramOp hybrid::tile::buildShortConvForward(OpBuilder &builder, Location loc,
                                              const ShortConvShape &shape) {
  if (shape.walkedTokens > 0)
    return buildWalkedForward(builder, loc, shape);
  MLIRContext *context = builder.getContext();
  Symbols symbols(context);
  int64_t width = channelBlock(shape.channels, 64);
  Arguments arguments(context);
  segmentsAndWeights(arguments, shape);
  if (shape.hasState)
    arguments.buffer({shape.kernel - 1, shape.channels}, shape.element);
  arguments.activation({shape.channels}, shape.element);

  Emitter e(
      builder, loc, "short_conv_forward",
      {symbols.segments, getAffineConstantExpr(shape.channels / width, context),
       symbols.longest.ceilDiv(shape.tokenTile)},
      {Order::parallel, Order::parallel, Order::parallel}, arguments.types());
  Value x = e.view(0), state = shape.hasState ? e.view(4) : Value();
  Value y = e.view(shape.hasState ? 5 : 4);
  Conv conv(e, shape, shape.tokenTile, width);
  Value zero = e.idx(0), rows = e.idx(shape.kernel - 1);

  Segment segment = e.segment(e.view(2), e.id(0));
  Value channel = e.mul(e.id(1), e.idx(width));
  Value row = e.add(segment.begin, e.mul(e.id(2), e.idx(shape.tokenTile)));
  Value before;
  if (shape.hasState)
    before = e.load(state, {segment.slot, zero, channel}, {1, 2},
                    {shape.kernel - 1, width},
                    e.select(e.eq(row, segment.begin), rows, zero));
  Value extended = conv.loadWithHistory(x, row, channel, segment, before);
  SmallVector<Value> taps = loadTaps(e, shape, e.view(1), channel, width);
  Value sum;
  for (auto [i, tap] : llvm::enumerate(taps)) {
    Value term = e.mul(tap, conv.seenBy(i, extended));
    sum = sum ? e.add(sum, term) : term;
  }
  e.store(sum, y, {row, channel}, {0, 1}, segment.end);

  if (shape.hasState)
    storeNextState(e, shape, x, state, row, channel, width, segment);
  return e.finish();
}

//===----------------------------------------------------------------------===//
// Backward
//===----------------------------------------------------------------------===//

/// One program walks the whole stream for its channels, because dw is one sum
/// in token order; narrow blocks of channels keep the cores busy.
ProgramOp hybrid::tile::buildShortConvBackward(OpBuilder &builder, Location loc,
                                               const ShortConvShape &shape) {
  if (shape.walkedTokens > 0)
    return buildWalkedBackward(builder, loc, shape);
  MLIRContext *context = builder.getContext();
  int64_t width = channelBlock(shape.channels, 16);
  Arguments arguments(context);
  segmentsAndWeights(arguments, shape);
  arguments.activation({shape.channels}, shape.element);
  arguments.activation({shape.channels}, shape.element);
  arguments.weight({shape.channels, shape.kernel});

  Emitter e(builder, loc, "short_conv_backward",
            {getAffineConstantExpr(shape.channels / width, context)},
            {Order::parallel}, arguments.types());
  Value x = e.view(0), table = e.view(2), dy = e.view(4), dx = e.view(5),
        dw = e.view(6);
  Conv conv(e, shape, kAdjointTile, width);
  Value zero = e.idx(0);
  Value channel = e.mul(e.id(0), e.idx(width));
  SmallVector<Value> taps = loadTaps(e, shape, e.view(1), channel, width);

  auto block = [&](const Segment &segment, Value row,
                   ValueRange sums) -> KernelBuilder::Values {
    Value extended =
        conv.loadWithHistory(x, row, channel, segment, /*before=*/Value());
    KernelBuilder::Values next;
    Value dInput;
    for (auto [i, tap] : llvm::enumerate(taps)) {
      int64_t lag = shape.kernel - 1 - i;
      Value later = e.load(dy, {e.add(row, e.idx(lag)), channel}, {0, 1},
                           {kAdjointTile, width}, segment.end);
      Value term = e.mul(tap, later);
      dInput = dInput ? e.add(dInput, term) : term;
      Value now = lag == 0 ? later
                           : e.load(dy, {row, channel}, {0, 1},
                                    {kAdjointTile, width}, segment.end);
      next.push_back(
          e.add(sums[i], e.sum(e.mul(now, conv.seenBy(i, extended)), 0)));
    }
    e.store(dInput, dx, {row, channel}, {0, 1}, segment.end);
    return next;
  };
  KernelBuilder::Values none(shape.kernel, e.zeros({1, width}));
  KernelBuilder::Values sums = e.loop(
      zero, e.dim(table, 0), 1, none, [&](Value index, ValueRange carried) {
        Segment segment = e.segment(table, index);
        return e.loop(segment.begin, segment.end, kAdjointTile, carried,
                      [&](Value row, ValueRange sums) {
                        return block(segment, row, sums);
                      });
      });
  e.store(e.transpose(e.concat(sums, 0)), dw, {channel, zero}, {0, 1});
  return e.finish();
}
