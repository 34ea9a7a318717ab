//===- SoftmaxGraph.cpp - softmax attention as graph operations -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MixerGraph.h"

using namespace mlir;
using namespace hybrid;

/// Queries or keys [tokens, heads, head_dim]: projection, norm, rotation.
static Value buildRotated(EntryBuilder &entry, SoftmaxOp group, Value x,
                          char letter, int64_t heads) {
  OpBuilder &builder = entry.builder;
  std::string name = std::string(1, letter) + "_proj";
  Value y = entry.linear(name, x, heads * group.getHeadDim());
  y = entry.splitHeads(name, y, heads);
  if (group.getQkNorm())
    y = entry.rmsNorm(std::string(1, letter) + "_norm", y);
  if (group.getPosition() == PositionKind::nope)
    return y;

  FloatAttr factor = group.getDynamicNtkAttr();
  IntegerAttr original;
  if (factor)
    original = builder.getI64IntegerAttr(entry.stack.getTrained());
  y = entry.widen(y);
  return RotaryOp::create(
      builder, entry.at(std::string(1, letter) + "_rotary"), y.getType(), y,
      entry.segments(), group.getRopeBaseAttr(),
      builder.getI64IntegerAttr(group.getHeadDim()), factor, original,
      /*inverse=*/nullptr);
}

/// Rows of the cache: every token of the slot, or with a window the sink tokens
/// and a ring that holds the window behind the first token of the largest
/// chunk, and as far again as a caller may roll back.
static AffineExpr getCacheRows(SoftmaxOp group) {
  MLIRContext *context = group.getContext();
  if (!group.getWindow())
    return getSymbolExpr(CallSymbol::context, context);
  return getSymbolExpr(CallSymbol::longest, context) +
         getSymbolExpr(CallSymbol::depth, context) +
         (*group.getWindow() - 1 + group.getSinks().value_or(0));
}

Value hybrid::buildSoftmax(EntryBuilder &entry, SoftmaxOp group, Value x) {
  OpBuilder &builder = entry.builder;
  int64_t heads = group.getHeads(), headDim = group.getHeadDim();
  int64_t kvHeads = group.getKvHeadsOrDefault();

  Value q = buildRotated(entry, group, x, 'q', heads);
  Value k = buildRotated(entry, group, x, 'k', kvHeads);
  Value v = entry.linear("v_proj", x, kvHeads * headDim);
  v = entry.splitHeads("v_proj", v, kvHeads);

  double scale = 1.0 / std::sqrt(static_cast<double>(headDim));
  if (group.getLogitScale() == LogitScaleKind::constant)
    scale *= *group.getLogitFactor();
  if (group.getLogitScale() == LogitScaleKind::log_n) {
    q = entry.widen(q);
    q = LogNScaleOp::create(builder, entry.at("q_log_n"), q.getType(), q,
                            entry.segments(), *group.getLogitTrained());
  }

  q = entry.narrow(q);
  k = entry.narrow(k);
  SmallVector<int64_t> windows(heads, group.getWindow().value_or(0));
  SmallVector<int64_t> sinks(heads, group.getSinks().value_or(0));
  Location loc = entry.at("attention");
  if (!entry.isCached()) {
    auto attention =
        AttentionOp::create(builder, loc, q, k, v, entry.segments(),
                            llvm::APFloat(scale), windows, sinks);
    return entry.joinHeads("attention", attention.getO());
  }

  SmallVector<int64_t> shape = {kvHeads, ShapedType::kDynamic, headDim};
  AffineExpr rows = getCacheRows(group);
  Type element = entry.computeType();
  Value kCache = entry.state("k_cache", "kv", element, shape, rows);
  Value vCache = entry.state("v_cache", "kv", element, shape, rows);
  auto attention = AttentionCachedOp::create(
      builder, loc, q, k, v, kCache, vCache, entry.segments(),
      llvm::APFloat(scale), windows, sinks);
  entry.setNewState("k_cache", attention.getNewKCache());
  entry.setNewState("v_cache", attention.getNewVCache());
  return entry.joinHeads("attention", attention.getO());
}
