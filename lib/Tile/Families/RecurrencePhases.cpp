//===- RecurrencePhases.cpp - all chunks at once but for the state --------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Only the state passes from chunk to chunk. What the walk along the chunks
// needs of a chunk beside the state is made before, for all chunks in parallel;
// the walk writes the state before every chunk; outputs follow from it, again
// for all chunks. Back it is the same with the gradient of the state.
//
//===----------------------------------------------------------------------===//

#include "RecurrencePhaseFrame.h"

using namespace mlir;
using namespace hybrid::tile;
using namespace hybrid::tile::recurrence;

//===----------------------------------------------------------------------===//
// Before the walks
//===----------------------------------------------------------------------===//

static ProgramOp buildPrepare(OpBuilder &builder, Location loc, StringRef name,
                              const RecurrenceShape &shape, bool forAdjoint) {
  MLIRContext *context = builder.getContext();
  Arguments arguments(context);
  arguments.operands(shape);
  if (forAdjoint)
    arguments.activation({shape.heads, shape.valueDim}, shape.element);
  append(arguments, recurrencePrepared(context, shape, forAdjoint));
  Kernel k(builder, loc, name, phaseGrid(context, shape, /*byChunk=*/true),
           arguments, shape);
  Phase phase(k);
  Value dOutput = forAdjoint ? k.next() : Value();
  Prepared prepared = phase.bindPrepared(forAdjoint);
  phase.eachPoint([&](Value row, Value place, Value to) {
    Chunk chunk =
        k.loadChunk(row, to, /*withQuery=*/forAdjoint || perChannel(shape));
    auto keep = [&](StringRef name, Value tile, Value view) {
      phase.store(name, tile, view, place);
    };
    if (prepared.toEnd) {
      keep("store_from_start", chunk.gates.fromStart, prepared.fromStart);
      keep("store_to_end", chunk.gates.toEnd, prepared.toEnd);
    }
    Scores scores;
    if (shape.isDelta() || prepared.queryScores)
      scores = k.equations.scores(chunk);
    if (prepared.keyEnds) {
      keep("store_key_end", k.equations.keyEnd(chunk), prepared.keyEnds);
      keep("store_total", chunk.gates.total, prepared.totals);
      keep("store_query_scores", scores.query, prepared.queryScores);
    }
    if (prepared.queryStarts)
      keep("store_query_start", k.equations.queryStart(chunk),
           prepared.queryStarts);
    if (!shape.isDelta())
      return;
    if (prepared.keyScores)
      keep("store_key_scores", scores.key, prepared.keyScores);
    Value inverse = k.equations.inverse(chunk, scores);
    keep("store_erasers", k.equations.erasers(chunk, inverse),
         prepared.erasers);
    keep("store_replacements", k.equations.replacements(chunk, inverse),
         prepared.replacements);
    if (!forAdjoint)
      return;
    keep("store_inverse", inverse, prepared.inverses);
    Value cotangent =
        k.loadValueRows("load_d_output", dOutput, row, k.head, to);
    keep("store_d_updates", k.equations.dUpdatesInside(scores, cotangent),
         prepared.dUpdates);
  });
  return k.finish();
}

ProgramOp hybrid::tile::buildRecurrencePrepare(OpBuilder &builder, Location loc,
                                               const RecurrenceShape &shape) {
  return buildPrepare(builder, loc, "recurrence_prepare", shape, false);
}

ProgramOp
hybrid::tile::buildRecurrencePrepareAdjoint(OpBuilder &builder, Location loc,
                                            const RecurrenceShape &shape) {
  return buildPrepare(builder, loc, "recurrence_backward_prepare", shape, true);
}

//===----------------------------------------------------------------------===//
// Walks
//===----------------------------------------------------------------------===//

ProgramOp hybrid::tile::buildRecurrenceWalk(OpBuilder &builder, Location loc,
                                            const RecurrenceShape &shape) {
  MLIRContext *context = builder.getContext();
  Arguments arguments(context);
  arguments.operands(shape);
  append(arguments, recurrencePrepared(context, shape, /*forAdjoint=*/false));
  if (shape.hasState)
    arguments.buffer({shape.heads, shape.keyDim, shape.valueDim});
  append(arguments, recurrenceWalked(context, shape));
  Kernel k(builder, loc, "recurrence_walk",
           phaseGrid(context, shape, /*byChunk=*/false), arguments, shape);
  Phase phase(k);
  Emitter &e = k.e;
  Prepared prepared = phase.bindPrepared(/*forAdjoint=*/false);
  Value stateView = shape.hasState ? k.next() : Value();
  Value states = k.next();
  Value updatesView = shape.isDelta() ? k.next() : Value();
  phase.bindHead(/*columnDim=*/2);
  Span span = k.segmentSpan(e.id(0));
  Value first = phase.firstPlace(span.segment, e.id(0));
  int64_t chunkSize = shape.chunkSize();

  Value state = shape.hasState ? k.loadState(stateView, span)
                               : e.zeros({shape.keyDim, shape.valueWidth()});
  auto body = [&](Value row, ValueRange carried) -> KernelBuilder::Values {
    Value place = e.add(first, e.div(e.sub(row, span.begin), e.idx(chunkSize)));
    phase.store("keep_state", carried[0], states, place, k.firstColumn);
    Chunk chunk =
        phase.loadForWalk(row, span.end, place, prepared, /*withQuery=*/false);
    Value updates = chunk.value;
    if (shape.isDelta()) {
      Value erasers = phase.loadErasers(place, prepared);
      Value replacements =
          phase.loadColumns("load_replacements", prepared.replacements, place);
      updates = k.equations.updatesOf(erasers, replacements, carried[0]);
      phase.store("keep_updates", updates, updatesView, place, k.firstColumn);
    }
    return {k.equations.stateAfter(chunk, updates, carried[0])};
  };
  state = e.loop(span.begin, span.end, chunkSize, state, body)[0];
  if (shape.hasState)
    k.storeState(state, stateView, span);
  return k.finish();
}

ProgramOp hybrid::tile::buildRecurrenceWalkBack(OpBuilder &builder,
                                                Location loc,
                                                const RecurrenceShape &shape) {
  MLIRContext *context = builder.getContext();
  Arguments arguments(context);
  arguments.operands(shape);
  arguments.activation({shape.heads, shape.valueDim}, shape.element);
  append(arguments, recurrencePrepared(context, shape, /*forAdjoint=*/true));
  append(arguments, recurrenceWalkedBack(context, shape));
  Kernel k(builder, loc, "recurrence_backward_walk",
           phaseGrid(context, shape, /*byChunk=*/false), arguments, shape);
  Phase phase(k);
  Emitter &e = k.e;
  Value dOutput = k.next();
  Prepared prepared = phase.bindPrepared(/*forAdjoint=*/true);
  Value dStates = k.next();
  phase.bindHead(/*columnDim=*/2);
  Span span = k.segmentSpan(e.id(0));
  Value first = phase.firstPlace(span.segment, e.id(0));
  int64_t chunkSize = shape.chunkSize();

  Value count = e.ceilDiv(e.sub(span.end, span.begin), e.idx(chunkSize));
  Value last = e.sub(count, e.idx(1));
  auto body = [&](Value turn, ValueRange carried) -> KernelBuilder::Values {
    Value number = e.sub(last, turn);
    Value row = e.add(span.begin, e.mul(number, e.idx(chunkSize)));
    Value place = e.add(first, number);
    phase.store("keep_d_state", carried[0], dStates, place, k.firstColumn);
    Chunk chunk =
        phase.loadForWalk(row, span.end, place, prepared, /*withQuery=*/true);
    Value cotangent =
        k.loadValueRows("load_d_output", dOutput, row, k.head, span.end);
    Value erasers, dUpdates;
    if (shape.isDelta()) {
      erasers = phase.loadErasers(place, prepared);
      dUpdates = phase.loadColumns("load_d_updates", prepared.dUpdates, place);
    }
    return {k.equations.dStateBefore(chunk, erasers, dUpdates, cotangent,
                                     carried[0])};
  };
  e.loop(k.zero, count, 1, e.zeros({shape.keyDim, shape.valueWidth()}), body);
  return k.finish();
}

//===----------------------------------------------------------------------===//
// After the walks
//===----------------------------------------------------------------------===//

ProgramOp hybrid::tile::buildRecurrenceOutputs(OpBuilder &builder, Location loc,
                                               const RecurrenceShape &shape) {
  MLIRContext *context = builder.getContext();
  Arguments arguments(context);
  arguments.operands(shape);
  append(arguments, recurrencePrepared(context, shape, /*forAdjoint=*/false));
  append(arguments, recurrenceWalked(context, shape));
  arguments.activation({shape.heads, shape.valueDim}, shape.element);
  Kernel k(builder, loc, "recurrence_outputs",
           phaseGrid(context, shape, /*byChunk=*/true), arguments, shape);
  Phase phase(k);
  Prepared prepared = phase.bindPrepared(/*forAdjoint=*/false);
  Value states = k.next();
  Value updatesView = shape.isDelta() ? k.next() : Value();
  Value output = k.next();
  phase.eachPoint([&](Value row, Value place, Value to) {
    Chunk chunk = k.loadChunk(row, to, /*withQuery=*/true);
    phase.loadScores(chunk, place, prepared);
    Value updates = chunk.value;
    if (shape.isDelta())
      updates = phase.loadColumns("load_updates", updatesView, place);
    Value state = phase.loadState("load_state", states, place);
    Scores scores = k.equations.queryScores(chunk);
    k.storeValueRows("store_output",
                     k.equations.outputs(chunk, scores, updates, state), output,
                     row, k.head, to);
  });
  return k.finish();
}

ProgramOp hybrid::tile::buildRecurrenceGradients(OpBuilder &builder,
                                                 Location loc,
                                                 const RecurrenceShape &shape) {
  assert(shape.group() == 1 && "heads of this program share no gradient");
  MLIRContext *context = builder.getContext();
  Arguments arguments(context);
  arguments.operands(shape);
  arguments.activation({shape.heads, shape.valueDim}, shape.element);
  append(arguments, recurrencePrepared(context, shape, /*forAdjoint=*/true));
  append(arguments, recurrenceWalked(context, shape));
  append(arguments, recurrenceWalkedBack(context, shape));
  // Blocks of value columns take turns: the other gradients are sums over them.
  const bool hasBlocks = shape.valueWidth() != shape.valueDim;
  Type gradient = shape.gradientElement, summed = hasBlocks ? Type() : gradient;
  arguments.activation({shape.heads, shape.keyDim}, summed);
  arguments.activation({shape.heads, shape.keyDim}, summed);
  arguments.activation({shape.heads, shape.valueDim}, gradient);
  if (shape.hasDecay())
    arguments.activation({shape.heads, shape.decayDim()});
  if (shape.hasBeta())
    arguments.activation({shape.heads});
  Grid grid = phaseGrid(context, shape, /*byChunk=*/true);
  if (hasBlocks)
    grid.order.back() = Order::ordered;
  Kernel k(builder, loc, "recurrence_backward_gradients", grid, arguments,
           shape);
  Phase phase(k);
  Emitter &e = k.e;
  Value dOutput = k.next();
  Prepared prepared = phase.bindPrepared(/*forAdjoint=*/true);
  Value states = k.next();
  Value updatesView = shape.isDelta() ? k.next() : Value();
  Value dStates = k.next();
  Value dQuery = k.next(), dKey = k.next(), dValue = k.next();
  Value dDecay = shape.hasDecay() ? k.next() : Value();
  Value dBeta = shape.hasBeta() ? k.next() : Value();
  int64_t chunkSize = shape.chunkSize();
  Value isFirst = hasBlocks ? e.eq(e.id(3), k.zero) : Value();
  phase.eachPoint([&](Value row, Value place, Value to) {
    Chunk chunk = k.loadChunk(row, to, /*withQuery=*/true);
    phase.loadScores(chunk, place, prepared);
    Saved saved;
    saved.state = phase.loadState("load_state", states, place);
    saved.updates = chunk.value;
    if (shape.isDelta()) {
      saved.inverse = phase.load("load_inverse", prepared.inverses, place,
                                 chunkSize, chunkSize);
      saved.updates = phase.loadColumns("load_updates", updatesView, place);
    }
    Value dState = phase.loadState("load_d_state", dStates, place);
    Value cotangent =
        k.loadValueRows("load_d_output", dOutput, row, k.head, to);
    ChunkGradient gradient =
        k.equations.adjoint(chunk, saved, cotangent, dState);
    // Each is written as soon as it is known, to free its registers.
    auto write = [&](StringRef name, Value tile, Value view, ValueRange base,
                     ArrayRef<int64_t> dims, Value first) {
      Operation *op =
          first ? e.accumulate(tile, view, base, dims, to, first).getOperation()
                : e.store(tile, view, base, dims, to).getOperation();
      e.named(name, op);
      op->moveAfter(op->getOperand(0).getDefiningOp());
    };
    Value rows[] = {row, k.head, k.zero},
          columns[] = {row, k.head, k.firstColumn};
    write("store_d_query", e.scaled(gradient.query, shape.scale), dQuery, rows,
          {0, 2}, isFirst);
    write("store_d_key", gradient.key, dKey, rows, {0, 2}, isFirst);
    write("store_d_value", gradient.value, dValue, columns, {0, 2}, {});
    if (dDecay)
      write("store_d_decay", gradient.decay, dDecay, rows, {0, 2}, isFirst);
    if (dBeta)
      write("store_d_beta", gradient.beta, dBeta, {row, k.head}, {0, 1},
            isFirst);
  });
  return k.finish();
}
