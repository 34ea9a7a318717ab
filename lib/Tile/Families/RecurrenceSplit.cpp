//===- RecurrenceSplit.cpp - summary, combine and apply -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RecurrenceKernel.h"

using namespace mlir;
using namespace hybrid::tile;
using namespace hybrid::tile::recurrence;

AffineMap hybrid::tile::recurrencePartRows(MLIRContext *context,
                                           const RecurrenceShape &shape) {
  Symbols symbols(context);
  return AffineMap::get(0, ProgramOp::kNumSymbols,
                        symbols.tokens.floorDiv(shape.part) + symbols.segments);
}

SmallVector<int64_t>
hybrid::tile::recurrencePartMap(const RecurrenceShape &shape) {
  if (shape.isDelta())
    return {shape.heads, shape.keyDim, shape.keyDim};
  return {shape.heads, shape.decayDim()};
}

/// First row of a segment in the part buffers.
static Value firstPart(Emitter &e, const RecurrenceShape &shape,
                       const Segment &segment, Value index) {
  return e.add(e.div(segment.begin, e.idx(shape.part)), index);
}

namespace {
/// One part of a segment: rows [from, to), empty past the segment's end.
struct Part {
  Value from, to, row;
  /// Rows of [K, ...] tiles to store: none of a part that is not there.
  Value limit;
};
} // namespace

static Part partOf(Kernel &k, Value index, Value number) {
  Emitter &e = k.e;
  Segment segment = e.segment(k.table, index);
  Part part;
  part.from = e.min(e.add(segment.begin, e.mul(number, e.idx(k.shape.part))),
                    segment.end);
  part.to = e.min(e.add(part.from, e.idx(k.shape.part)), segment.end);
  part.row = e.add(firstPart(e, k.shape, segment, index), number);
  part.limit =
      e.select(e.lt(part.from, part.to), e.idx(k.shape.keyDim), k.zero);
  return part;
}

static bool hasColumns(const RecurrenceShape &shape) {
  return shape.valueWidth() != shape.valueDim;
}

/// Segments, heads, and parts where `withParts`; then blocks of value columns,
/// unless there is one.
static Grid gridOf(MLIRContext *context, const RecurrenceShape &shape,
                   bool withParts) {
  Symbols symbols(context);
  Grid grid;
  grid.sizes = {symbols.segments, getAffineConstantExpr(shape.heads, context)};
  if (withParts)
    grid.sizes.push_back(symbols.longest.ceilDiv(shape.part));
  if (hasColumns(shape))
    grid.sizes.push_back(
        getAffineConstantExpr(shape.valueDim / shape.valueWidth(), context));
  grid.order.assign(grid.sizes.size(), Order::parallel);
  return grid;
}

/// Where this point's block of value columns begins.
static Value columnsOf(Emitter &e, const RecurrenceShape &shape, unsigned dim,
                       Value zero) {
  return hasColumns(shape) ? e.mul(e.id(dim), e.idx(shape.valueWidth())) : zero;
}

static void bindHead(Kernel &k) {
  k.head = k.e.id(1);
  k.kvHead =
      k.shape.group() == 1 ? k.head : k.e.div(k.head, k.e.idx(k.shape.group()));
  k.firstColumn = columnsOf(k.e, k.shape, 3, k.zero);
}

//===----------------------------------------------------------------------===//
// Summary
//===----------------------------------------------------------------------===//

/// M of a chunk is what `nextState` does to a state when all values are zero,
/// so the product over the chunks is that walk from the identity.
static Value deltaMap(Kernel &k, const Part &part) {
  Emitter &e = k.e;
  int64_t K = k.shape.keyDim, rows = k.shape.chunkSize();
  Value identity =
      e.masked(e.eq(e.iota(0, {K, 1}), e.iota(1, {1, K})), e.full(1.0, {K, K}));
  return e.loop(part.from, part.to, rows, identity,
                [&](Value row, ValueRange carried) -> KernelBuilder::Values {
                  Chunk chunk = k.loadChunk(row, part.to, /*withQuery=*/false);
                  Value inverse =
                      k.equations.inverse(chunk, k.equations.scores(chunk));
                  chunk.value = e.zeros({rows, K});
                  Value updates =
                      k.equations.updates(chunk, inverse, carried[0]);
                  return {k.equations.nextState(chunk, updates, carried[0])};
                })[0];
}

/// The decay over all rows of a part, [1, Kg].
static Value additiveMap(Kernel &k, const Part &part) {
  Emitter &e = k.e;
  int64_t width = k.shape.decayDim();
  Value one = e.full(1.0, {1, width});
  if (!k.shape.hasDecay())
    return one;
  return e.loop(part.from, part.to, k.shape.chunkSize(), one,
                [&](Value row, ValueRange carried) -> KernelBuilder::Values {
                  Value gates = k.loadRows("load_decay", k.decay, row, k.head,
                                           width, part.to);
                  return {e.mul(carried[0], e.exp(e.sum(gates, 0)))};
                })[0];
}

ProgramOp hybrid::tile::buildRecurrenceSummary(OpBuilder &builder, Location loc,
                                               const RecurrenceShape &shape) {
  MLIRContext *context = builder.getContext();
  Arguments arguments(context);
  arguments.operands(shape);
  arguments.buffer(recurrencePartMap(shape));
  arguments.buffer({shape.heads, shape.keyDim, shape.valueDim});
  Kernel k(builder, loc, "recurrence_summary",
           gridOf(context, shape, /*withParts=*/true), arguments, shape);
  Emitter &e = k.e;
  Value maps = k.next(), increments = k.next();
  bindHead(k);
  Part part = partOf(k, e.id(0), e.id(2));

  Value none = e.zeros({shape.keyDim, shape.valueWidth()});
  Value increment = walkChunks(k, part.from, part.to, none, /*output=*/Value());
  e.store(increment, increments, {part.row, k.head, k.zero, k.firstColumn},
          {2, 3}, part.limit);
  e.scope = "map";
  auto storeMap = [&] {
    if (shape.isDelta()) {
      e.store(deltaMap(k, part), maps, {part.row, k.head, k.zero, k.zero},
              {2, 3}, part.limit);
      return;
    }
    Value isThere = e.lt(part.from, part.to);
    Value end = e.select(isThere, e.add(part.row, e.idx(1)), part.row);
    e.store(additiveMap(k, part), maps, {part.row, k.head, k.zero}, {0, 2},
            end);
  };
  // The map is the same for all columns.
  if (hasColumns(shape))
    e.when(e.eq(e.id(3), k.zero), storeMap);
  else
    storeMap();
  return k.finish();
}

//===----------------------------------------------------------------------===//
// Combine
//===----------------------------------------------------------------------===//

ProgramOp hybrid::tile::buildRecurrenceCombine(OpBuilder &builder, Location loc,
                                               const RecurrenceShape &shape) {
  MLIRContext *context = builder.getContext();
  SmallVector<int64_t> state = {shape.heads, shape.keyDim, shape.valueDim};
  Arguments arguments(context);
  arguments.segments();
  arguments.buffer(recurrencePartMap(shape));
  arguments.buffer(state);
  if (shape.hasState)
    arguments.buffer(state);
  arguments.buffer(state);

  Grid grid = gridOf(context, shape, /*withParts=*/false);
  Emitter e(builder, loc, "recurrence_combine", grid.sizes, grid.order,
            arguments.types());
  Value maps = e.view(2), increments = e.view(3);
  Value stateView = shape.hasState ? e.view(4) : Value();
  Value states = e.view(shape.hasState ? 5 : 4);
  Value index = e.id(0), head = e.id(1), zero = e.idx(0);
  Value column = columnsOf(e, shape, 2, zero);
  Segment segment = e.segment(e.view(0), index);
  Value first = firstPart(e, shape, segment, index);
  Value count = e.ceilDiv(e.sub(segment.end, segment.begin), e.idx(shape.part));

  SmallVector<int64_t> tile = {shape.keyDim, shape.valueWidth()};
  Value before =
      shape.hasState
          ? e.load(stateView, {segment.slot, head, zero, column}, {2, 3}, tile)
          : e.zeros(tile);
  auto body = [&](Value number, ValueRange carried) -> KernelBuilder::Values {
    Value row = e.add(first, number);
    e.store(carried[0], states, {row, head, zero, column}, {2, 3});
    Value increment =
        e.named("load_increment",
                e.load(increments, {row, head, zero, column}, {2, 3}, tile));
    if (shape.isDelta()) {
      Value map =
          e.named("load_map", e.load(maps, {row, head, zero, zero}, {2, 3},
                                     {shape.keyDim, shape.keyDim}));
      return {e.named("combine",
                      e.dot(map, carried[0], Transpose::None, increment))};
    }
    Value decay =
        e.load(maps, {row, head, zero}, {0, 2}, {1, shape.decayDim()});
    decay = e.reshape(decay, {shape.decayDim(), 1});
    return {e.named("combine", e.add(e.mul(decay, carried[0]), increment))};
  };
  Value after = e.loop(zero, count, 1, before, body)[0];
  if (shape.hasState)
    e.store(after, stateView, {segment.slot, head, zero, column}, {2, 3});
  return e.finish();
}

//===----------------------------------------------------------------------===//
// Apply
//===----------------------------------------------------------------------===//

ProgramOp hybrid::tile::buildRecurrenceApply(OpBuilder &builder, Location loc,
                                             const RecurrenceShape &shape) {
  MLIRContext *context = builder.getContext();
  Arguments arguments(context);
  arguments.operands(shape);
  arguments.buffer({shape.heads, shape.keyDim, shape.valueDim});
  arguments.activation({shape.heads, shape.valueDim}, shape.element);
  Kernel k(builder, loc, "recurrence_apply",
           gridOf(context, shape, /*withParts=*/true), arguments, shape);
  Value states = k.next(), output = k.next();
  bindHead(k);
  Part part = partOf(k, k.e.id(0), k.e.id(2));
  Value state = k.e.named(
      "load_state",
      k.e.load(states, {part.row, k.head, k.zero, k.firstColumn}, {2, 3},
               {shape.keyDim, shape.valueWidth()}, part.limit));
  walkChunks(k, part.from, part.to, state, output);
  return k.finish();
}
