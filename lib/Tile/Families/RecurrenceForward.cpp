//===- RecurrenceForward.cpp - the forward program -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RecurrenceKernel.h"

using namespace mlir;
using namespace hybrid::tile;
using namespace hybrid::tile::recurrence;

/// Chains that share a ring entry of the state take turns: the old one reads it
/// before the new one writes.
ProgramOp recurrence::buildWalk(OpBuilder &builder, Location loc,
                                StringRef name, const RecurrenceShape &shape,
                                Walk walk, const Arguments *leaves) {
  MLIRContext *context = builder.getContext();
  Arguments arguments(context);
  if (leaves) {
    arguments = *leaves;
    arguments.segments();
  } else {
    arguments.operands(shape);
  }
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
  Kernel k(builder, loc, name, grid, arguments, shape,
           leaves ? leaves->types().size() : 0);
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
