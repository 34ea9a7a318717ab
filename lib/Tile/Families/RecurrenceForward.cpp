//===- RecurrenceForward.cpp - forward and step programs -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RecurrenceKernel.h"

using namespace mlir;
using namespace hybrid::tile;
using namespace hybrid::tile::recurrence;

namespace {
/// Carries the state over the rows [from, to) and gives the state after them. A
/// null `output` asks for no outputs.
using Walk = llvm::function_ref<Value(Kernel &, Value from, Value to,
                                      Value state, Value output)>;
} // namespace

/// The frame of forward and step: one point per segment, head and block of
/// value columns, or per window chain of them. Chains that share a ring entry
/// of the state take turns: the old one reads it before the new one writes.
static ProgramOp buildWalk(OpBuilder &builder, Location loc, StringRef name,
                           const RecurrenceShape &shape, Walk walk) {
  MLIRContext *context = builder.getContext();
  Arguments arguments(context);
  arguments.operands(shape);
  if (shape.hasState)
    arguments.buffer(
        {shape.rings() * shape.heads, shape.keyDim, shape.valueDim});
  arguments.activation({shape.heads, shape.valueDim}, shape.element);

  Grid grid{
      {Symbols(context).segments, getAffineConstantExpr(shape.heads, context)},
      {Order::parallel, Order::parallel}};
  const bool hasColumns = shape.valueWidth() != shape.valueDim;
  if (hasColumns) {
    int64_t blocks = shape.valueDim / shape.valueWidth();
    grid.sizes.push_back(getAffineConstantExpr(blocks, context));
    grid.order.push_back(Order::parallel);
  }
  const unsigned chainDim = grid.sizes.size();
  if (shape.window) {
    grid.sizes.push_back(Kernel::chainCount(context, shape));
    grid.order.push_back(shape.hasState ? Order::ordered : Order::parallel);
  }
  Kernel k(builder, loc, name, grid, arguments, shape);
  Value stateView = shape.hasState ? k.next() : Value();
  Value output = k.next();

  k.head = k.e.id(1);
  k.kvHead =
      shape.group() == 1 ? k.head : k.e.div(k.head, k.e.idx(shape.group()));
  if (hasColumns)
    k.firstColumn = k.e.mul(k.e.id(2), k.e.idx(shape.valueWidth()));
  Span span = shape.window ? k.chainSpan(k.e.id(0), k.e.id(chainDim))
                           : k.segmentSpan(k.e.id(0));
  Value state = shape.hasState ? k.loadState(stateView, span)
                               : k.e.zeros({shape.keyDim, shape.valueWidth()});
  if (shape.window) {
    k.e.scope = "advance";
    state = walk(k, span.begin, span.outputBegin, state, /*output=*/Value());
    k.e.scope = "";
  }
  state = walk(k, span.outputBegin, span.end, state, output);
  if (shape.hasState)
    k.storeState(state, stateView, span);
  return k.finish();
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

Value recurrence::walkChunks(Kernel &k, Value from, Value to, Value state,
                             Value output) {
  Equations &eq = k.equations;
  auto body = [&](Value row, ValueRange carried) -> SmallVector<Value> {
    Chunk chunk = k.loadChunk(row, to, /*withQuery=*/bool(output));
    Scores scores = eq.scores(chunk);
    Value inverse = k.shape.isDelta() ? eq.inverse(chunk, scores) : Value();
    Value updates = eq.updates(chunk, inverse, carried[0]);
    if (output)
      k.storeValueRows("store_output",
                       eq.outputs(chunk, scores, updates, carried[0]), output,
                       row, k.head, to);
    return {eq.nextState(chunk, updates, carried[0])};
  };
  return k.e.loop(from, to, k.shape.chunkSize(), {state}, body)[0];
}

ProgramOp hybrid::tile::buildRecurrenceForward(OpBuilder &builder, Location loc,
                                               const RecurrenceShape &shape) {
  return buildWalk(builder, loc, "recurrence_forward", shape, walkChunks);
}

//===----------------------------------------------------------------------===//
// Step
//===----------------------------------------------------------------------===//

/// The recurrence as it is defined, on the whole state: for a few tokens this
/// reads and writes the state less often than a chunk of mostly empty rows.
static Value walkTokens(Kernel &k, Value from, Value to, Value state,
                        Value output) {
  const RecurrenceShape &shape = k.shape;
  Emitter &e = k.e;
  auto column = [&](StringRef name, Value view, Value row, Value head,
                    int64_t width) {
    return e.reshape(k.loadRows(name, view, row, head, width, to, 1),
                     {width, 1});
  };
  auto body = [&](Value row, ValueRange carried) -> SmallVector<Value> {
    Value state = carried[0];
    Value key = column("load_key", k.key, row, k.kvHead, shape.keyDim);
    Value update = k.loadValueRows("load_value", k.value, row, k.kvHead, to, 1);
    if (shape.hasDecay())
      state = e.mul(
          e.exp(column("load_decay", k.decay, row, k.head, shape.decayDim())),
          state);
    if (shape.isDelta()) {
      Value predicted = e.named("predict", e.sum(e.mul(key, state), 0));
      update = e.sub(update, predicted);
      if (shape.hasBeta())
        update = e.mul(k.loadBeta(row, to, 1), update);
    }
    state = e.named("next_state", e.add(state, e.mul(key, update)));
    if (output) {
      Value query =
          e.scaled(column("load_query", k.query, row, k.head, shape.keyDim),
                   shape.scale);
      Value read = e.named("outputs", e.sum(e.mul(query, state), 0));
      k.storeValueRows("store_output", read, output, row, k.head, to);
    }
    return {state};
  };
  return e.loop(from, to, 1, {state}, body)[0];
}

ProgramOp hybrid::tile::buildRecurrenceStep(OpBuilder &builder, Location loc,
                                            const RecurrenceShape &shape) {
  return buildWalk(builder, loc, "recurrence_step", shape, walkTokens);
}
