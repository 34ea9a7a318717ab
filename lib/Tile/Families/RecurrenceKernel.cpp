//===- RecurrenceKernel.cpp - what the programs of the family share ------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RecurrenceKernel.h"

using namespace mlir;
using namespace hybrid::tile;
using namespace hybrid::tile::recurrence;

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

LogicalResult RecurrenceShape::verify(EmitError emitError) const {
  if (kvHeads < 1 || heads % kvHeads != 0)
    return emitError() << "recurrence has " << heads << " heads over "
                       << kvHeads
                       << " key/value heads; the second must divide the first";
  for (auto [name, dim] :
       {std::pair("key", keyDim), std::pair("value", valueDim)})
    if (dim < 8 || dim % 8 != 0 || dim > kMaxDim)
      return emitError() << "recurrence has " << name << " dim " << dim
                         << "; it must be a multiple of 8 from 8 to "
                         << kMaxDim;
  if (valueTile < 0 || (valueTile && valueDim % valueTile != 0))
    return emitError() << "recurrence has value tile " << valueTile
                       << ", which does not divide value dim " << valueDim;
  if (window < 0 || (window == 0) != (stride == 0))
    return emitError() << "recurrence has window " << window << " and stride "
                       << stride << "; give both, or 0 for both";
  if (window && (stride < 1 || window % stride != 0))
    return emitError() << "recurrence has stride " << stride
                       << ", which does not divide window " << window;
  return success();
}

LogicalResult RecurrenceShape::verifyAdjoint(EmitError emitError) const {
  if (window && (hasState || hasFinalCotangent))
    return emitError() << "recurrence with window " << window
                       << " has no adjoint for its "
                       << (hasState ? "initial" : "final")
                       << " state; differentiate it without states";
  return verify(emitError);
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

void Arguments::activation(ArrayRef<int64_t> sizes, Type element) {
  SmallVector<int64_t> shape = {ShapedType::kDynamic};
  shape.append(sizes.begin(), sizes.end());
  SmallVector<int64_t> strides = ViewType::contiguousStrides(shape);
  strides.front() = ShapedType::kDynamic;
  list.push_back(ViewType::get(
      context, shape, element ? element : Float32Type::get(context), strides));
}

void Arguments::buffer(ArrayRef<int64_t> sizes, Type element) {
  SmallVector<int64_t> shape = {ShapedType::kDynamic};
  shape.append(sizes.begin(), sizes.end());
  list.push_back(KernelBuilder::viewType(context, shape, element));
}

void Arguments::segments() {
  llvm::append_range(list, KernelBuilder::segmentViewTypes(context));
}

void Arguments::operands(const RecurrenceShape &shape) {
  activation({shape.heads, shape.keyDim}, shape.element);
  activation({shape.kvHeads, shape.keyDim}, shape.element);
  activation({shape.kvHeads, shape.valueDim}, shape.element);
  segments();
  if (shape.hasDecay())
    activation({shape.heads, shape.decayDim()});
  if (shape.hasBeta())
    activation({shape.heads});
}

//===----------------------------------------------------------------------===//
// Program
//===----------------------------------------------------------------------===//

Kernel::Kernel(OpBuilder &builder, Location loc, StringRef name,
               const Grid &grid, const Arguments &arguments,
               const RecurrenceShape &shape, unsigned leaves)
    : e(builder, loc, name, grid.sizes, grid.order, arguments.types()),
      equations(e, shape), shape(shape), nextView(leaves) {
  const bool hasOperands = leaves == 0;
  if (hasOperands) {
    query = next();
    key = next();
    value = next();
  }
  table = next();
  tokenSegment = next();
  if (hasOperands && shape.hasDecay())
    decay = next();
  if (hasOperands && shape.hasBeta())
    beta = next();
  zero = e.idx(0);
  firstColumn = zero;
}

ProgramOp Kernel::finish() {
  ProgramOp program = e.finish();
  if (shape.isDelta())
    program->setAttr(
        TileDialect::kCautionAttr,
        StringAttr::get(
            program.getContext(),
            "a delta update multiplies what the state holds along a "
            "key by 1 - beta times the key's squared length, so it "
            "grows without bound where that product is above 2; "
            "normalise the keys or lower beta"));
  return program;
}

/// Chains c with c·S < p + n and c·S + W > p, for the worst p.
AffineExpr Kernel::chainCount(MLIRContext *context,
                              const RecurrenceShape &shape) {
  return (Symbols(context).longest + (shape.window - 2))
             .floorDiv(shape.stride) +
         1;
}

//===----------------------------------------------------------------------===//
// Spans
//===----------------------------------------------------------------------===//

Span Kernel::segmentSpan(Value index) {
  Span span;
  span.segment = e.segment(table, index);
  span.begin = span.outputBegin = span.segment.begin;
  span.end = span.segment.end;
  span.stateRow = head;
  return span;
}

Span Kernel::chainSpan(Value index, Value turn) {
  Span span = segmentSpan(index);
  Value window = e.idx(shape.window), stride = e.idx(shape.stride);
  Value first = span.segment.first;
  Value last = e.add(first, e.sub(span.end, span.begin));

  // The oldest chain that is still open at the first position, and `turn`
  // later.
  Value oldest =
      e.div(e.max(e.sub(first, e.sub(window, stride)), zero), stride);
  Value chain = e.add(oldest, turn);
  Value start = e.mul(chain, stride);
  Value stop = e.add(start, window);
  Value outputStart = e.select(e.eq(chain, zero), zero, e.sub(stop, stride));

  Value begin = e.max(first, start);
  Value end = e.min(last, stop);
  Value outputBegin = e.min(e.max(begin, outputStart), end);
  if (!shape.hasState) {
    Value hasOutput = e.lt(outputBegin, end);
    outputBegin = e.select(hasOutput, outputBegin, begin);
    end = e.select(hasOutput, end, begin);
  }
  Value toRow = e.sub(span.segment.begin, first);
  span.begin = e.add(begin, toRow);
  span.outputBegin = e.add(outputBegin, toRow);
  span.end = e.add(end, toRow);

  if (shape.hasState) {
    Value ring = e.rem(chain, e.idx(shape.rings()));
    span.stateRow = e.add(e.mul(ring, e.idx(shape.heads)), head);
    Value all = e.idx(shape.keyDim);
    span.loadLimit = e.select(e.lt(start, first), all, zero);
    Value isOpen = e.both(e.lt(start, last), e.lt(last, stop));
    span.storeLimit = e.select(isOpen, all, zero);
  }
  return span;
}

/// The limits of a load or store, none if `limit` is null.
static ValueRange limits(const Value &limit) {
  return limit ? ValueRange(limit) : ValueRange();
}

Value Kernel::loadState(Value view, const Span &span) {
  return e.named("load_state",
                 e.load(view,
                        {span.segment.slot, span.stateRow, zero, firstColumn},
                        {2, 3}, {shape.keyDim, shape.valueWidth()},
                        limits(span.loadLimit)));
}

void Kernel::storeState(Value state, Value view, const Span &span) {
  e.named("store_state",
          e.store(state, view,
                  {span.segment.slot, span.stateRow, zero, firstColumn}, {2, 3},
                  limits(span.storeLimit)));
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

Value Kernel::loadBlock(StringRef name, Value view, ValueRange base,
                        int64_t width, Value limit, int64_t rows) {
  if (!rows)
    rows = shape.chunkSize();
  return e.named(name, e.load(view, base, {0, 2}, {rows, width}, limit));
}

Value Kernel::loadRows(StringRef name, Value view, Value row, Value head,
                       int64_t width, Value limit, int64_t rows) {
  return loadBlock(name, view, {row, head, zero}, width, limit, rows);
}

Value Kernel::loadValueRows(StringRef name, Value view, Value row, Value head,
                            Value limit, int64_t rows) {
  return loadBlock(name, view, {row, head, firstColumn}, shape.valueWidth(),
                   limit, rows);
}

void Kernel::storeValueRows(StringRef name, Value tile, Value view, Value row,
                            Value head, Value limit) {
  e.named(name, e.store(tile, view, {row, head, firstColumn}, {0, 2}, limit));
}

void Kernel::storeRows(StringRef name, Value tile, Value view, Value row,
                       Value head, Value limit) {
  e.named(name, e.store(tile, view, {row, head, zero}, {0, 2}, limit));
}

Value Kernel::loadBeta(Value row, Value limit, int64_t rows) {
  if (!rows)
    rows = shape.chunkSize();
  return e.named("load_beta",
                 e.load(beta, {row, head}, {0, 1}, {rows, 1}, limit));
}

Value Kernel::loadQuery(Value row, Value limit) {
  return e.scaled(loadRows("load_query", query, row, head, shape.keyDim, limit),
                  shape.scale);
}

Chunk Kernel::loadChunk(Value row, Value limit, bool withQuery) {
  Chunk chunk;
  chunk.key = loadRows("load_key", key, row, kvHead, shape.keyDim, limit);
  chunk.value = loadValueRows("load_value", value, row, kvHead, limit);
  if (withQuery)
    chunk.query = loadQuery(row, limit);
  if (shape.hasBeta())
    chunk.beta = loadBeta(row, limit);
  if (shape.hasDecay())
    chunk.decay =
        loadRows("load_decay", decay, row, head, shape.decayDim(), limit);
  chunk.halfOperands = [=] {
    auto from = [&](StringRef name, Value view, Value first, Value head) {
      return loadRows(name, view, first, head, shape.keyDim, limit);
    };
    HalfOperands operands;
    if (withQuery)
      operands.query = loadQuery(row, limit);
    operands.key = from("load_key", key, row, kvHead);
    operands.decay = from("load_decay", decay, row, head);
    operands.nextDecay =
        from("load_next_decay", decay, e.add(row, e.idx(1)), head);
    return operands;
  };
  chunk.gates = equations.gates(chunk.decay);

  auto rowOf = [=](Value view, Value head, int64_t width,
                   double scale) -> RowOf {
    return [=](Value index) {
      Value at = e.add(row, index);
      return e.scaled(e.load(view, {at, head, zero}, {0, 2}, {1, width}, limit),
                      scale);
    };
  };
  chunk.keyRow = rowOf(key, kvHead, shape.keyDim, 1.0);
  chunk.queryRow = rowOf(query, head, shape.keyDim, shape.scale);
  chunk.decayRow = rowOf(decay, head, shape.decayDim(), 1.0);
  return chunk;
}
