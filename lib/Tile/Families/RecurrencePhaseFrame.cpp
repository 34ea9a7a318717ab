//===- RecurrencePhaseFrame.cpp - what the programs of phases have in common
//===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RecurrencePhaseFrame.h"

using namespace mlir;
using namespace hybrid::tile;
using namespace hybrid::tile::recurrence;

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

/// Chunks of segment s, which begins at row b, have the rows from ⌊b/C⌋ + s on.
static AffineMap chunkRows(MLIRContext *context, const RecurrenceShape &shape) {
  Symbols symbols(context);
  return AffineMap::get(0, ProgramOp::kNumSymbols,
                        symbols.tokens.floorDiv(shape.chunkSize()) +
                            symbols.segments);
}

SmallVector<RecurrenceWorkspace> hybrid::tile::recurrencePrepared(
    MLIRContext *context, const RecurrenceShape &shape, bool forAdjoint) {
  AffineMap rows = chunkRows(context, shape);
  int64_t chunk = shape.chunkSize();
  SmallVector<RecurrenceWorkspace> list;
  if (shape.isDelta()) {
    list.push_back({rows, {shape.heads, chunk, shape.keyDim}, shape.element});
    list.push_back({rows, {shape.heads, chunk, shape.valueDim}, shape.element});
  }
  if (perHead(shape))
    list.append(2, {rows, {shape.heads, chunk, 1}, {}});
  if (perChannel(shape)) {
    list.push_back({rows, {shape.heads, chunk, shape.keyDim}, shape.element});
    list.push_back({rows, {shape.heads, shape.keyDim, 1}, {}});
    list.push_back({rows, {shape.heads, chunk, chunk}, shape.element});
  }
  if (forAdjoint && shape.isDelta()) {
    list.push_back({rows, {shape.heads, chunk, chunk}, shape.element});
    list.push_back({rows, {shape.heads, chunk, shape.valueDim}, shape.element});
  }
  if (forAdjoint && perChannel(shape)) {
    list.push_back({rows, {shape.heads, chunk, shape.keyDim}, shape.element});
    if (shape.isDelta())
      list.push_back({rows, {shape.heads, chunk, chunk}, shape.element});
  }
  return list;
}

SmallVector<RecurrenceWorkspace>
hybrid::tile::recurrenceWalked(MLIRContext *context,
                               const RecurrenceShape &shape) {
  AffineMap rows = chunkRows(context, shape);
  SmallVector<RecurrenceWorkspace> list;
  list.push_back(
      {rows, {shape.heads, shape.keyDim, shape.valueDim}, shape.element});
  if (shape.isDelta())
    list.push_back({rows,
                    {shape.heads, shape.chunkSize(), shape.valueDim},
                    shape.element});
  return list;
}

RecurrenceWorkspace
hybrid::tile::recurrenceWalkedBack(MLIRContext *context,
                                   const RecurrenceShape &shape) {
  return recurrenceWalked(context, shape).front();
}

//===----------------------------------------------------------------------===//
// Frame
//===----------------------------------------------------------------------===//

void recurrence::append(Arguments &arguments,
                        ArrayRef<RecurrenceWorkspace> list) {
  for (const RecurrenceWorkspace &buffer : list)
    arguments.buffer(buffer.sizes, buffer.element);
}

Prepared Phase::bindPrepared(bool forAdjoint) {
  Prepared prepared;
  if (shape.isDelta()) {
    prepared.erasers = k.next();
    prepared.replacements = k.next();
  }
  if (perHead(shape)) {
    prepared.fromStart = k.next();
    prepared.toEnd = k.next();
  }
  if (perChannel(shape)) {
    prepared.keyEnds = k.next();
    prepared.totals = k.next();
    prepared.queryScores = k.next();
  }
  if (forAdjoint && shape.isDelta()) {
    prepared.inverses = k.next();
    prepared.dUpdates = k.next();
  }
  if (forAdjoint && perChannel(shape)) {
    prepared.queryStarts = k.next();
    if (shape.isDelta())
      prepared.keyScores = k.next();
  }
  return prepared;
}

void Phase::bindHead(unsigned columnDim) {
  k.head = k.e.id(1);
  k.kvHead = shape.group() == 1 ? k.head : e.div(k.head, e.idx(shape.group()));
  if (shape.valueWidth() != shape.valueDim)
    k.firstColumn = e.mul(e.id(columnDim), e.idx(shape.valueWidth()));
}

void Phase::eachPoint(
    llvm::function_ref<void(Value row, Value place, Value to)> body) {
  bindHead(/*columnDim=*/3);
  Segment segment = e.segment(k.table, e.id(0));
  Value number = e.id(2);
  Value row = e.add(segment.begin, e.mul(number, e.idx(shape.chunkSize())));
  Value place = e.add(firstPlace(segment, e.id(0)), number);
  e.when(e.lt(row, segment.end), [&] { body(row, place, segment.end); });
}

Chunk Phase::loadForWalk(Value row, Value to, Value place,
                         const Prepared &prepared, bool withQuery) {
  int64_t chunkSize = shape.chunkSize();
  Chunk chunk;
  if (!withQuery && !shape.isDelta())
    chunk.value = k.loadValueRows("load_value", k.value, row, k.kvHead, to);
  if (perChannel(shape)) {
    chunk.keyEnd =
        load("load_key_end", prepared.keyEnds, place, chunkSize, shape.keyDim);
    chunk.gates.total =
        load("load_total", prepared.totals, place, shape.keyDim, 1);
    if (withQuery)
      chunk.queryStart = load("load_query_start", prepared.queryStarts, place,
                              chunkSize, shape.keyDim);
    return chunk;
  }
  chunk.key = k.loadRows("load_key", k.key, row, k.kvHead, shape.keyDim, to);
  if (withQuery)
    chunk.query = k.loadQuery(row, to);
  if (!perHead(shape))
    return chunk;
  Value last = e.idx(chunkSize - 1);
  chunk.gates.total =
      e.load(prepared.fromStart, {place, k.head, last, k.zero}, {2, 3}, {1, 1});
  chunk.gates.toEnd = load("load_to_end", prepared.toEnd, place, chunkSize, 1);
  if (withQuery)
    chunk.gates.fromStart =
        load("load_from_start", prepared.fromStart, place, chunkSize, 1);
  return chunk;
}

Grid recurrence::phaseGrid(MLIRContext *context, const RecurrenceShape &shape,
                           bool byChunk) {
  Symbols symbols(context);
  Grid grid;
  grid.sizes = {symbols.segments, getAffineConstantExpr(shape.heads, context)};
  if (byChunk)
    grid.sizes.push_back(symbols.longest.ceilDiv(shape.chunkSize()));
  if (shape.valueWidth() != shape.valueDim)
    grid.sizes.push_back(
        getAffineConstantExpr(shape.valueDim / shape.valueWidth(), context));
  grid.order.assign(grid.sizes.size(), Order::parallel);
  return grid;
}
