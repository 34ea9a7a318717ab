//===- SoftmaxAdjoint.cpp - pieces of the adjoint programs ----------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SoftmaxAdjoint.h"

using namespace mlir;
using namespace hybrid::tile;
using namespace hybrid::tile::softmax_adjoint;

static constexpr int64_t kTokens = ShapedType::kDynamic;

Type softmax_adjoint::queryType(MLIRContext *c, const SoftmaxShape &s) {
  return KernelBuilder::viewType(c, {kTokens, s.heads, s.dim}, s.element);
}

Type softmax_adjoint::keyType(MLIRContext *c, const SoftmaxShape &s) {
  return KernelBuilder::viewType(c, {kTokens, s.kvHeads, s.dim}, s.element);
}

Type softmax_adjoint::valueType(MLIRContext *c, const SoftmaxShape &s) {
  return KernelBuilder::viewType(c, {kTokens, s.kvHeads, s.valueDim},
                                 s.element);
}

SmallVector<Type> softmax_adjoint::operandTypes(MLIRContext *c,
                                                const SoftmaxShape &s) {
  Type o =
      KernelBuilder::viewType(c, {kTokens, s.heads, s.valueDim}, s.element);
  Type lse = KernelBuilder::viewType(c, {kTokens, s.heads});
  SmallVector<Type> types = {
      queryType(c, s), keyType(c, s), valueType(c, s), o, lse, o};
  llvm::append_range(types, KernelBuilder::segmentViewTypes(c));
  return types;
}

Visibility Rows::visibility(Value head) const {
  Visibility sees = Visibility::of(k, s, head);
  // Sinks that lie in front of the call's first row are not among its rows.
  if (sees.sinks)
    sees.sinks = k.max(k.idx(0), k.sub(sees.sinks, segment.first));
  return sees;
}

Value Rows::load(View view, Value row, Value head, int64_t rows,
                 int64_t width) const {
  return k.load(k.view(view), {row, head, k.idx(0)}, {0, 2}, {rows, width},
                {segment.end});
}

QueryTile QueryTile::load(const Rows &rows, Value head, Value firstQuery) {
  KernelBuilder &k = rows.k;
  const SoftmaxShape &s = rows.s;
  int64_t column[] = {s.queryTile, 1};
  Value row = k.add(rows.segment.begin, firstQuery);
  QueryTile tile;
  tile.q = k.named("load_q", rows.load(Q, row, head, s.queryTile, s.dim));
  tile.dOutput =
      k.named("load_do", rows.load(DO, row, head, s.queryTile, s.valueDim));
  Value o = k.named("load_o", rows.load(O, row, head, s.queryTile, s.valueDim));
  Value lse =
      k.load(k.view(Lse), {row, head}, {0}, {s.queryTile}, {rows.segment.end});
  tile.logSumExp = k.reshape(lse, column);
  tile.delta = k.named("delta", k.sum(k.mul(tile.dOutput, o), 1));
  tile.position =
      k.add(k.splat(k.toI32(firstQuery), column), k.iota(0, column));
  return tile;
}

ScoreAdjoint ScoreAdjoint::of(const Rows &rows, const QueryTile &queries,
                              Value keys, Value values, const Visibility &sees,
                              const KeyTile &at) {
  KernelBuilder &k = rows.k;
  int64_t shape[] = {rows.s.queryTile, rows.s.keyTile};
  Value scale = k.full(rows.s.scale, shape);
  Value product =
      k.named("scores", k.dot(queries.q, keys, k.zeros(shape), false, true));
  Value scores = k.named(
      "mask", maskScores(k, k.mul(product, scale), sees, queries.position, at));
  Value shift = k.broadcast(finiteOrZero(k, queries.logSumExp), shape);
  ScoreAdjoint adjoint;
  adjoint.probabilities = k.named("softmax", k.exp(k.sub(scores, shift)));
  Value dp = k.named(
      "dp", k.dot(queries.dOutput, values, k.zeros(shape), false, true));
  Value da = k.mul(adjoint.probabilities,
                   k.sub(dp, k.broadcast(queries.delta, shape)));
  adjoint.dScores = k.named("ds", k.mul(da, scale));
  return adjoint;
}
