//===- CrossEntropy.cpp - loss per token and its adjoint -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Tile/Families/KernelBuilder.h"
#include "hybrid/Tile/Families/Rows.h"

#include <limits>

using namespace mlir;
using namespace hybrid::tile;

static constexpr double kMinusInfinity =
    -std::numeric_limits<double>::infinity();

namespace {
/// A block of rows of logits, column tile by column tile.
class LossRows {
public:
  LossRows(KernelBuilder &k, const CrossEntropyShape &s, unsigned logits,
           unsigned labels);

  /// Logits of the columns from `column` on; -inf past the last one.
  Value load(Value column);
  /// 1 at the label's column, 0 elsewhere; all 0 for an ignored label.
  Value isLabel(Value column);
  /// Largest logit, Σ exp(logit - largest), and the label's logit, [rows, 1].
  KernelBuilder::Values statistics();
  /// One number per row, [rows, 1].
  Value perRow(unsigned view);
  void storePerRow(Value value, Value view);
  /// `value`, and 0 where the label is -100.
  Value zeroIfIgnored(Value value);
  /// Calls `body` for the first column of every tile.
  KernelBuilder::Values overColumns(ValueRange carried,
                                    KernelBuilder::LoopBody body);

  Value row, tokens; // index: first row of the block, number of rows
  int64_t columns, shape[2], columnShape[2];

private:
  KernelBuilder &k;
  const CrossEntropyShape &s;
  unsigned logits;
  Value label;
};
} // namespace

LossRows::LossRows(KernelBuilder &k, const CrossEntropyShape &s,
                   unsigned logits, unsigned labels)
    : columns(std::min(s.columnTile, s.vocab)), shape{s.rowTile, columns},
      columnShape{s.rowTile, 1}, k(k), s(s), logits(logits) {
  row = k.mul(k.id(0), k.idx(s.rowTile));
  tokens = k.dim(k.view(labels), 0);
  label = perRow(labels);
}

Value LossRows::perRow(unsigned view) {
  return k.reshape(k.load(k.view(view), {row}, {0}, {s.rowTile}, {tokens}),
                   columnShape);
}

void LossRows::storePerRow(Value value, Value view) {
  k.store(k.reshape(value, {s.rowTile}), view, {row}, {0}, {tokens});
}

KernelBuilder::Values LossRows::overColumns(ValueRange carried,
                                            KernelBuilder::LoopBody body) {
  if (columns == s.vocab)
    return body(k.idx(0), carried);
  return k.loop(k.idx(0), k.idx(s.vocab), columns, carried, body);
}

Value LossRows::load(Value column) {
  bool ragged = s.vocab % columns != 0;
  SmallVector<Value> limits = {tokens};
  if (ragged)
    limits.push_back(k.idx(s.vocab));
  Value x = k.load(k.view(logits), {row, column}, {0, 1}, shape, limits);
  if (!ragged)
    return x;
  Value left = k.splat(k.toI32(k.sub(k.idx(s.vocab), column)), shape);
  return k.select(k.lt(k.iota(1, shape), left), x,
                  k.full(kMinusInfinity, shape));
}

Value LossRows::isLabel(Value column) {
  Value at = k.add(k.iota(1, shape), k.splat(k.toI32(column), shape));
  return k.eq(at, k.broadcast(label, shape));
}

KernelBuilder::Values LossRows::statistics() {
  KernelBuilder::Values start = {k.full(kMinusInfinity, columnShape),
                                 k.zeros(columnShape), k.zeros(columnShape)};
  return overColumns(
      start, [&](Value column, ValueRange carried) -> KernelBuilder::Values {
        Value x = load(column);
        Value largest = k.max(carried[0], k.maximum(x, 1));
        // A row of nothing but -inf so far must not give -inf - -inf.
        Value none = k.eq(largest, k.full(kMinusInfinity, columnShape));
        Value shift = k.select(none, k.zeros(columnShape), largest);
        Value terms = k.exp(k.sub(x, k.broadcast(shift, shape)));
        Value scaled = k.mul(carried[1], k.exp(k.sub(carried[0], shift)));
        Value picked = k.select(isLabel(column), x, k.zeros(shape));
        return {largest, k.add(scaled, k.sum(terms, 1)),
                k.add(carried[2], k.sum(picked, 1))};
      });
}

Value LossRows::zeroIfIgnored(Value value) {
  ArrayRef<int64_t> wide = cast<RankedTensorType>(value.getType()).getShape();
  Value ignored = k.eq(label, k.splat(k.i32(-100), columnShape));
  return k.select(k.broadcast(ignored, wide), k.zeros(wide), value);
}

static SmallVector<Type> viewTypes(MLIRContext *c, const CrossEntropyShape &s) {
  constexpr int64_t t = ShapedType::kDynamic;
  return {KernelBuilder::viewType(c, {t, s.vocab}),
          KernelBuilder::viewTypeI32(c, {t}), KernelBuilder::viewType(c, {t})};
}

static Type perRowType(MLIRContext *c) {
  return KernelBuilder::viewType(c, {ShapedType::kDynamic});
}

ProgramOp hybrid::tile::buildCrossEntropy(OpBuilder &builder, Location loc,
                                          const CrossEntropyShape &s) {
  enum View : unsigned { Logits, Labels, Weights, Loss, Largest, Sum };
  MLIRContext *c = builder.getContext();
  SmallVector<Type> types = viewTypes(c, s);
  types.append(s.hasStatistics ? 3 : 1, perRowType(c));
  KernelBuilder k(builder, loc, "cross_entropy",
                  {Symbols(c).tokens.ceilDiv(s.rowTile)}, {Order::parallel},
                  types);
  LossRows rows(k, s, Logits, Labels);
  KernelBuilder::Values stats = rows.statistics();
  Value logSum = k.add(stats[0], k.log(stats[1]));
  Value loss = k.mul(rows.perRow(Weights), k.sub(logSum, stats[2]));
  rows.storePerRow(rows.zeroIfIgnored(loss), k.view(Loss));
  if (s.hasStatistics) {
    rows.storePerRow(stats[0], k.view(Largest));
    rows.storePerRow(stats[1], k.view(Sum));
  }
  return k.finish();
}

/// softmax - onehot of the columns from `column` on, times `factor`, which is
/// `share` times the sum of the row's exponentials.
static void storeGradient(KernelBuilder &k, const CrossEntropyShape &s,
                          LossRows &rows, Value column, Value largest,
                          Value share, Value factor, Value dlogits) {
  Value terms =
      k.exp(k.sub(rows.load(column), k.broadcast(largest, rows.shape)));
  Value softmax = k.mul(terms, k.broadcast(share, rows.shape));
  Value onehot = k.select(rows.isLabel(column), k.broadcast(factor, rows.shape),
                          k.zeros(rows.shape));
  Value gradient = rows.zeroIfIgnored(k.sub(softmax, onehot));
  SmallVector<Value> limits = {rows.tokens};
  if (s.vocab % rows.columns != 0)
    limits.push_back(k.idx(s.vocab));
  k.store(gradient, dlogits, {rows.row, column}, {0, 1}, limits);
}

/// With statistics at hand every tile stands alone; else a point goes through
/// its rows twice.
ProgramOp hybrid::tile::buildCrossEntropyGrad(OpBuilder &builder, Location loc,
                                              const CrossEntropyShape &s) {
  enum View : unsigned { Logits, Labels, Weights };
  MLIRContext *c = builder.getContext();
  SmallVector<Type> types = viewTypes(c, s);
  auto viewIf = [&](bool isThere, unsigned count) {
    unsigned first = types.size();
    types.append(isThere ? count : 0, perRowType(c));
    return first;
  };
  unsigned dloss = viewIf(s.hasLossGradient, 1);
  unsigned statistics = viewIf(s.hasStatistics, 2);
  if (!s.inPlace)
    types.push_back(KernelBuilder::viewType(c, {ShapedType::kDynamic, s.vocab},
                                            s.gradientElement));
  SmallVector<AffineExpr> grid = {Symbols(c).tokens.ceilDiv(s.rowTile)};
  int64_t columns = std::min(s.columnTile, s.vocab);
  if (s.hasStatistics)
    grid.push_back(getAffineConstantExpr(s.vocab, c).ceilDiv(columns));
  KernelBuilder k(builder, loc, "cross_entropy_grad", grid,
                  SmallVector<Order>(grid.size(), Order::parallel), types);
  LossRows rows(k, s, Logits, Labels);
  KernelBuilder::Values stats =
      s.hasStatistics ? KernelBuilder::Values{rows.perRow(statistics),
                                              rows.perRow(statistics + 1)}
                      : rows.statistics();
  Value factor = rows.perRow(Weights);
  if (s.hasLossGradient)
    factor = k.mul(factor, rows.perRow(dloss));
  Value share = k.div(factor, stats[1]),
        dlogits = k.view(s.inPlace ? Logits : k.numViews() - 1);
  auto store = [&](Value column, ValueRange) {
    storeGradient(k, s, rows, column, stats[0], share, factor, dlogits);
    return KernelBuilder::Values{};
  };
  if (s.hasStatistics)
    store(k.mul(k.id(1), k.idx(columns)), {});
  else
    rows.overColumns({}, store);
  return k.finish();
}
