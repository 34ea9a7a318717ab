//===- Work.cpp - the work of one graph operation -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Work.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace hybrid;

static RankedTensorType getType(Value value) {
  return dyn_cast<RankedTensorType>(value.getType());
}

int64_t hybrid::getElements(RankedTensorType type, Call call) {
  Builder builder(type.getContext());
  SmallVector<Attribute> symbols(numCallSymbols);
  auto set = [&](CallSymbol symbol, int64_t value) {
    symbols[static_cast<unsigned>(symbol)] = builder.getIndexAttr(value);
  };
  set(CallSymbol::tokens, call.tokens);
  set(CallSymbol::segments, 1);
  set(CallSymbol::longest, call.tokens);
  set(CallSymbol::slots, 1);
  set(CallSymbol::context, call.past + call.tokens);
  set(CallSymbol::depth, 0);
  SmallVector<Attribute> sizes;
  if (failed(getSizes(type).constantFold(symbols, sizes)))
    llvm_unreachable("the sizes of a graph tensor are expressions of symbols");
  int64_t elements = 1;
  for (Attribute size : sizes)
    elements *= cast<IntegerAttr>(size).getInt();
  return elements;
}

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

static double elementBytes(RankedTensorType type) {
  return type.getElementTypeBitWidth() / 8.0;
}

double hybrid::getBytes(Value value, Call call) {
  RankedTensorType type = getType(value);
  return type ? elementBytes(type) * getElements(type, call) : 0.0;
}

/// Keys that a query sees, summed over the queries of the call: the last
/// `window` tokens and the first `sinks`; all without a window.
static double countVisible(int64_t window, int64_t sinks, Call call) {
  int64_t last = call.past + call.tokens;
  auto upTo = [&](int64_t tokens) -> double {
    // Σ_{t < tokens} min(t + 1, limit)
    int64_t limit = window ? window + sinks : tokens;
    int64_t ramp = std::min(tokens, limit);
    return 0.5 * ramp * (ramp + 1.0) +
           static_cast<double>(tokens - ramp) * limit;
  };
  return upTo(last) - upTo(call.past);
}

static double countVisible(ArrayRef<int64_t> windows, ArrayRef<int64_t> sinks,
                           Call call) {
  double sum = 0;
  for (auto [window, sink] : llvm::zip_equal(windows, sinks))
    sum += countVisible(window, sink, call);
  return sum;
}

/// Bytes of the rows of a cache that the call reads, all key heads.
static double getCacheReads(Value cache, ArrayRef<int64_t> windows,
                            ArrayRef<int64_t> sinks, Call call) {
  int64_t rows = 0;
  for (auto [window, sink] : llvm::zip_equal(windows, sinks))
    rows = std::max(rows, window ? std::min(window - 1 + sink, call.past)
                                 : call.past);
  RankedTensorType type = getType(cache);
  return elementBytes(type) * rows * type.getDimSize(1) * type.getDimSize(3);
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// Operations of a recurrence on all tokens, with a product for each read-out
/// and each update. Per state element and token a read-out is 2 and a write 2,
/// a decay 1, the delta rule's prediction 2.
template <typename OpTy>
static double getRecurrenceFlops(OpTy op, Call call, double readOuts,
                                 double updates) {
  RankedTensorType q = getType(op.getQ()), v = getType(op.getV());
  double state =
      static_cast<double>(q.getDimSize(1)) * q.getDimSize(2) * v.getDimSize(2);
  double update = 2.0 + (op.getDecay() ? 1.0 : 0.0) +
                  (op.getUpdate() == UpdateRule::delta ? 2.0 : 0.0);
  // A bounded history keeps window / stride states up to date.
  double open = op.getWindow() ? *op.getWindow() / *op.getStride() : 1;
  return call.tokens * state * (readOuts * 2.0 + updates * update * open);
}

static double getFlops(Operation *op, Call call) {
  auto elements = [&](Value value) {
    return static_cast<double>(getElements(getType(value), call));
  };
  auto headDims = [&](Value q, Value v) {
    return static_cast<double>(getType(q).getDimSize(2) +
                               getType(v).getDimSize(2));
  };
  return llvm::TypeSwitch<Operation *, double>(op)
      .Case([&](ProductOp product) {
        RankedTensorType a = getType(product.getA());
        double inner = a.getDimSize(product.getTransposeA() ? 0 : 1);
        return 2.0 * inner * elements(product.getResult());
      })
      .Case<AttentionOp, AttentionCachedOp>([&](auto attention) {
        return 2.0 * headDims(attention.getQ(), attention.getV()) *
               countVisible(attention.getWindows(), attention.getSinks(), call);
      })
      // Scores again, and the gradients of P, V, Q and K.
      .Case([&](AttentionGradOp grad) {
        double d = getType(grad.getQ()).getDimSize(2),
               dv = getType(grad.getV()).getDimSize(2);
        return 2.0 * (3.0 * d + 2.0 * dv) *
               countVisible(grad.getWindows(), grad.getSinks(), call);
      })
      // Walks back over the states, which are computed again: gradients of
      // every factor of the update and of the read-out are two products each.
      .Case([&](RecurrenceGradOp grad) {
        return getRecurrenceFlops(grad, call, /*readOuts=*/2, /*updates=*/3);
      })
      .Case([&](ShortConvGradOp grad) {
        return 4.0 * getType(grad.getWeight()).getDimSize(1) *
               elements(grad.getX());
      })
      .Case([&](RowwiseOp region) {
        double sum = 0;
        for (Operation &member : region.getBody().front().without_terminator())
          sum += getFlops(&member, call);
        return sum;
      })
      // Sums read more than they give.
      .Case<ReduceTokensOp, ReduceDimOp>(
          [&](Operation *sum) { return elements(sum->getOperand(0)); })
      .Case([&](EmbedGradOp grad) { return elements(grad.getDy()); })
      .Case([&](RecurrenceOp recurrence) {
        return getRecurrenceFlops(recurrence, call, /*readOuts=*/1,
                                  /*updates=*/1);
      })
      .Case([&](ShortConvOp conv) {
        return 2.0 * getType(conv.getWeight()).getDimSize(1) *
               elements(conv.getResult());
      })
      // A sum of squares and a product; a rotation of pairs; ln Σ exp.
      .Case<NormalizeOp, RotaryOp>(
          [&](Operation *rows) { return 3.0 * elements(rows->getResult(0)); })
      .Case(
          [&](CrossEntropyOp loss) { return 3.0 * elements(loss.getLogits()); })
      .Case<EmbedOp, ReshapeOp, SliceOp, ConcatOp, CastOp, LastRowsOp, FillOp>(
          [](Operation *) { return 0.0; })
      .Default([&](Operation *rows) { return elements(rows->getResult(0)); });
}

double hybrid::getMovedBytes(Operation *op, Call call) {
  double bytes = 0;
  for (Value value : op->getOperands())
    bytes += getBytes(value, call);
  for (Value value : op->getResults())
    bytes += getBytes(value, call);
  return bytes;
}

static double getOperationBytes(Operation *op, Call call) {
  double bytes = getMovedBytes(op, call);
  // Views move nothing, nor do casts, which are part of what reads or writes; a
  // lookup reads the rows it gives; a cache is read where
  // it is visible and written where tokens are new.
  if (isa<ReshapeOp, SliceOp, ConcatOp, CastOp, FillOp>(op))
    return 0;
  if (isa<EmbedOp, LastRowsOp>(op))
    return 2.0 * getBytes(op->getResult(0), call);
  if (auto cached = dyn_cast<AttentionCachedOp>(op)) {
    bytes =
        getBytes(cached.getQ(), call) + getBytes(cached.getO(), call) +
        2.0 * (getBytes(cached.getK(), call) + getBytes(cached.getV(), call));
    for (Value cache : {cached.getKCache(), cached.getVCache()})
      bytes +=
          getCacheReads(cache, cached.getWindows(), cached.getSinks(), call);
  }
  return bytes;
}

Work hybrid::getWork(Operation *op, Call call) {
  return {getFlops(op, call), getOperationBytes(op, call)};
}
