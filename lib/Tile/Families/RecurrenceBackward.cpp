//===- RecurrenceBackward.cpp - the adjoint program -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One program walks a segment twice: forward, to write the state before each
// chunk (and T and N of the delta rule) to a workspace, then back with the
// gradient of the state. Query heads of a group, blocks of value columns and
// window chains take turns, so that sums over them have one order.
//
//===----------------------------------------------------------------------===//

#include "RecurrenceKernel.h"

using namespace mlir;
using namespace hybrid::tile;
using namespace hybrid::tile::recurrence;

/// A segment of n tokens has at most ⌊n/C⌋ + 1 chunks, or one more when the
/// rows before and after `outputBegin` are cut into chunks apart. So the chunks
/// of segment s, which begins at row b, have the workspace rows from ⌊b/C⌋ + s
/// · this.
static int64_t spareChunks(const RecurrenceShape &shape) {
  return shape.window ? 2 : 1;
}

SmallVector<RecurrenceWorkspace>
hybrid::tile::recurrenceBackwardWorkspaces(MLIRContext *context,
                                           const RecurrenceShape &shape) {
  Symbols symbols(context);
  int64_t chunk = shape.chunkSize();
  auto rows = AffineMap::get(0, ProgramOp::kNumSymbols,
                             symbols.tokens.floorDiv(chunk) +
                                 symbols.segments * spareChunks(shape));
  SmallVector<RecurrenceWorkspace> workspaces;
  workspaces.push_back(
      {rows, {shape.kvHeads, shape.keyDim, shape.valueWidth()}});
  if (shape.isDelta()) {
    workspaces.push_back({rows, {shape.kvHeads, chunk, chunk}});
    workspaces.push_back({rows, {shape.kvHeads, chunk, shape.valueWidth()}});
  }
  return workspaces;
}

namespace {
/// Rows [from, to), cut into chunks; the first has workspace row
/// `workspaceRow`.
struct Stretch {
  Value from, to, workspaceRow;
  bool withOutput;
};

class Backward {
public:
  Backward(Kernel &kernel) : k(kernel), e(kernel.e), shape(kernel.shape) {}

  void bindViews();
  void build(const Span &span);

  /// Turn within the group of query heads, and among the blocks of value
  /// columns; null where there is one.
  Value groupTurn, columnTurn;

private:
  /// Walks forward and writes the workspaces; gives the state after.
  Value record(const Stretch &stretch, Value state);
  /// Walks back from the gradient of the state after to that of the state
  /// before.
  Value differentiate(const Stretch &stretch, Value dState);
  Saved loadSaved(Value row);
  void storeGradients(const Stretch &stretch, const ChunkGradient &gradient,
                      Value row);
  /// Gradient of an operand that points of some `turns` share (null where they
  /// do not), and window chains. In the rows with output a chain is the first
  /// to come; the rows before have been written by the chains before it.
  void contribute(StringRef name, const Stretch &stretch, Value tile,
                  Value view, ValueRange base, ArrayRef<int64_t> dims,
                  ArrayRef<Value> turns);

  Value workspaceTile(StringRef name, Value view, Value row, int64_t rows,
                      int64_t columns) {
    return e.named(name, e.load(view, {row, k.kvHead, k.zero, k.zero}, {2, 3},
                                {rows, columns}));
  }
  void keep(StringRef name, Value tile, Value view, Value row) {
    e.named(name, e.store(tile, view, {row, k.kvHead, k.zero, k.zero}, {2, 3}));
  }

  Kernel &k;
  Emitter &e;
  const RecurrenceShape &shape;
  Value initial, dOutput, dStates;
  Value dQuery, dKey, dValue, dDecay, dBeta;
  Value states, inverses, updates;
};
} // namespace

void Backward::bindViews() {
  if (shape.hasState)
    initial = k.next();
  dOutput = k.next();
  if (shape.hasState)
    dStates = k.next();
  dQuery = k.next();
  dKey = k.next();
  dValue = k.next();
  if (shape.hasDecay())
    dDecay = k.next();
  if (shape.hasBeta())
    dBeta = k.next();
  states = k.next();
  if (shape.isDelta()) {
    inverses = k.next();
    updates = k.next();
  }
}

void Backward::build(const Span &span) {
  int64_t chunk = shape.chunkSize();
  Value first = e.add(e.div(span.segment.begin, e.idx(chunk)),
                      e.mul(e.id(0), e.idx(spareChunks(shape))));
  SmallVector<Stretch> stretches;
  if (shape.window) {
    stretches.push_back(
        {span.begin, span.outputBegin, first, /*withOutput=*/false});
    first = e.add(first,
                  e.ceilDiv(e.sub(span.outputBegin, span.begin), e.idx(chunk)));
  }
  stretches.push_back({span.outputBegin, span.end, first, /*withOutput=*/true});
  auto enter = [&](const Stretch &stretch, StringRef walk) {
    e.scope = stretch.withOutput ? walk.str() : (walk + ".advance").str();
  };

  SmallVector<int64_t> stateShape = {shape.keyDim, shape.valueWidth()};
  Value state = initial ? k.loadState(initial, span) : e.zeros(stateShape);
  for (const Stretch &stretch : stretches) {
    enter(stretch, "record");
    state = record(stretch, state);
  }
  Value dState = shape.hasFinalCotangent ? k.loadState(dStates, span)
                                         : e.zeros(stateShape);
  for (const Stretch &stretch : llvm::reverse(stretches)) {
    enter(stretch, "back");
    dState = differentiate(stretch, dState);
  }
  if (dStates)
    k.storeState(dState, dStates, span);
}

Value Backward::record(const Stretch &stretch, Value state) {
  Value chunkSize = e.idx(shape.chunkSize());
  auto body = [&](Value row, ValueRange carried) -> KernelBuilder::Values {
    Value place =
        e.add(stretch.workspaceRow, e.div(e.sub(row, stretch.from), chunkSize));
    Chunk chunk = k.loadChunk(row, stretch.to, /*withQuery=*/false);
    keep("keep_state", carried[0], states, place);
    Value inverse = shape.isDelta()
                        ? k.equations.inverse(chunk, k.equations.scores(chunk))
                        : Value();
    Value update = k.equations.updates(chunk, inverse, carried[0]);
    if (shape.isDelta()) {
      keep("keep_inverse", inverse, inverses, place);
      keep("keep_updates", update, updates, place);
    }
    return {k.equations.nextState(chunk, update, carried[0])};
  };
  return e.loop(stretch.from, stretch.to, shape.chunkSize(), state, body)[0];
}

Saved Backward::loadSaved(Value row) {
  int64_t chunk = shape.chunkSize();
  Saved saved;
  saved.state = workspaceTile("load_state", states, row, shape.keyDim,
                              shape.valueWidth());
  if (shape.isDelta()) {
    saved.inverse = workspaceTile("load_inverse", inverses, row, chunk, chunk);
    saved.updates =
        workspaceTile("load_updates", updates, row, chunk, shape.valueWidth());
  }
  return saved;
}

Value Backward::differentiate(const Stretch &stretch, Value dState) {
  Value chunkSize = e.idx(shape.chunkSize());
  Value count = e.ceilDiv(e.sub(stretch.to, stretch.from), chunkSize);
  Value last = e.sub(count, e.idx(1));
  auto body = [&](Value turn, ValueRange carried) -> KernelBuilder::Values {
    Value number = e.sub(last, turn);
    Value row = e.add(stretch.from, e.mul(number, chunkSize));
    Chunk chunk = k.loadChunk(row, stretch.to, stretch.withOutput);
    Saved saved = loadSaved(e.add(stretch.workspaceRow, number));
    if (!shape.isDelta())
      saved.updates = chunk.value;
    Value cotangent;
    if (stretch.withOutput)
      cotangent =
          k.loadValueRows("load_d_output", dOutput, row, k.head, stretch.to);
    ChunkGradient gradient =
        k.equations.adjoint(chunk, saved, cotangent, carried[0]);
    storeGradients(stretch, gradient, row);
    return {gradient.state};
  };
  return e.loop(k.zero, count, 1, dState, body)[0];
}

void Backward::storeGradients(const Stretch &stretch,
                              const ChunkGradient &gradient, Value row) {
  auto rows = [&](StringRef name, Value tile, Value view, Value head,
                  Value column, ArrayRef<Value> turns) {
    contribute(name, stretch, tile, view, {row, head, column}, {0, 2}, turns);
  };
  if (gradient.query)
    rows("store_d_query", e.scaled(gradient.query, shape.scale), dQuery, k.head,
         k.zero, columnTurn);
  rows("store_d_key", gradient.key, dKey, k.kvHead, k.zero,
       {groupTurn, columnTurn});
  rows("store_d_value", gradient.value, dValue, k.kvHead, k.firstColumn,
       groupTurn);
  if (shape.hasDecay())
    rows("store_d_decay", gradient.decay, dDecay, k.head, k.zero, columnTurn);
  if (shape.hasBeta())
    contribute("store_d_beta", stretch, gradient.beta, dBeta, {row, k.head},
               {0, 1}, columnTurn);
}

void Backward::contribute(StringRef name, const Stretch &stretch, Value tile,
                          Value view, ValueRange base, ArrayRef<int64_t> dims,
                          ArrayRef<Value> turns) {
  Value isFirst;
  for (Value turn : turns)
    if (turn) {
      Value begins = e.eq(turn, k.zero);
      isFirst = isFirst ? e.both(isFirst, begins) : begins;
    }
  Operation *write;
  if (!stretch.withOutput)
    write = e.accumulate(tile, view, base, dims, stretch.to);
  else if (isFirst)
    write = e.accumulate(tile, view, base, dims, stretch.to, isFirst);
  else
    write = e.store(tile, view, base, dims, stretch.to);
  e.named(name, write);
}

//===----------------------------------------------------------------------===//
// Program
//===----------------------------------------------------------------------===//

static Arguments backwardArguments(MLIRContext *context,
                                   const RecurrenceShape &shape) {
  Arguments arguments(context);
  SmallVector<int64_t> state = {shape.heads, shape.keyDim, shape.valueDim};
  arguments.operands(shape);
  if (shape.hasState)
    arguments.buffer(state);
  arguments.activation({shape.heads, shape.valueDim}, shape.element);
  if (shape.hasState)
    arguments.buffer(state);
  Type gradient = shape.gradientElement;
  arguments.activation({shape.heads, shape.keyDim}, gradient);
  arguments.activation({shape.kvHeads, shape.keyDim}, gradient);
  arguments.activation({shape.kvHeads, shape.valueDim}, gradient);
  if (shape.hasDecay())
    arguments.activation({shape.heads, shape.decayDim()});
  if (shape.hasBeta())
    arguments.activation({shape.heads});
  for (const RecurrenceWorkspace &workspace :
       recurrenceBackwardWorkspaces(context, shape))
    arguments.buffer(workspace.sizes);
  return arguments;
}

bool RecurrenceShape::sharesGradients() const {
  return window || group() > 1 || valueDim > valueWidth();
}

ProgramOp hybrid::tile::buildRecurrenceBackward(OpBuilder &builder,
                                                Location loc,
                                                const RecurrenceShape &shape) {
  assert(!(shape.window && (shape.hasState || shape.hasFinalCotangent)) &&
         "states of a sliding window have no adjoint program");
  MLIRContext *context = builder.getContext();
  Grid grid{{Symbols(context).segments,
             getAffineConstantExpr(shape.kvHeads, context)},
            {Order::parallel, Order::parallel}};
  // Query heads of a group, and within one of them blocks of value columns.
  const int64_t blocks = shape.valueDim / shape.valueWidth();
  const unsigned turnDim = grid.sizes.size();
  if (shape.group() * blocks > 1) {
    grid.sizes.push_back(
        getAffineConstantExpr(shape.group() * blocks, context));
    grid.order.push_back(Order::ordered);
  }
  unsigned chainDim = grid.sizes.size();
  if (shape.window) {
    grid.sizes.push_back(Kernel::chainCount(context, shape));
    grid.order.push_back(Order::ordered);
  }

  Kernel k(builder, loc, "recurrence_backward", grid,
           backwardArguments(context, shape), shape);
  Backward backward(k);
  backward.bindViews();
  k.kvHead = k.head = k.e.id(1);
  if (shape.group() > 1) {
    backward.groupTurn = k.e.div(k.e.id(turnDim), k.e.idx(blocks));
    k.head =
        k.e.add(k.e.mul(k.kvHead, k.e.idx(shape.group())), backward.groupTurn);
  }
  if (blocks > 1) {
    backward.columnTurn = k.e.rem(k.e.id(turnDim), k.e.idx(blocks));
    k.firstColumn = k.e.mul(backward.columnTurn, k.e.idx(shape.valueWidth()));
  }
  backward.build(shape.window ? k.chainSpan(k.e.id(0), k.e.id(chainDim))
                              : k.segmentSpan(k.e.id(0)));
  return k.finish();
}
