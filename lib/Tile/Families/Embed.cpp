//===- Embed.cpp - table look-up and its adjoint -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Tile/Families/KernelBuilder.h"
#include "hybrid/Tile/Families/Rows.h"

using namespace mlir;
using namespace hybrid::tile;

static constexpr int64_t kDynamic = ShapedType::kDynamic;

ProgramOp hybrid::tile::buildEmbed(OpBuilder &builder, Location loc,
                                   const EmbedShape &s) {
  enum View : unsigned { Ids, Table, Y };
  constexpr int64_t rows = 16;
  MLIRContext *c = builder.getContext();
  Type types[] = {KernelBuilder::viewTypeI32(c, {kDynamic}),
                  KernelBuilder::viewType(c, {s.vocab, s.width}),
                  KernelBuilder::viewType(c, {kDynamic, s.width})};
  KernelBuilder k(builder, loc, "embed", {Symbols(c).tokens.ceilDiv(rows)},
                  {Order::parallel}, types);
  Value row = k.mul(k.id(0), k.idx(rows)), zero = k.idx(0);
  Value tokens = k.dim(k.view(Ids), 0);
  Value ids = k.load(k.view(Ids), {row}, {0}, {rows}, {tokens});
  Value mask =
      k.lt(k.iota(0, {rows}), k.splat(k.toI32(k.sub(tokens, row)), {rows}));
  Value y = k.loadRows(k.view(Table), {zero, zero}, ids, mask, {0, 1},
                       {rows, s.width});
  k.store(y, k.view(Y), {row, zero}, {0, 1}, {tokens});
  return k.finish();
}

ProgramOp hybrid::tile::buildEmbedGrad(OpBuilder &builder, Location loc,
                                       const EmbedShape &s) {
  enum View : unsigned { Ids, Dy, DTable };
  MLIRContext *c = builder.getContext();
  int64_t columns = std::min<int64_t>(s.width, 32);
  bool ragged = s.width % columns != 0;
  Type types[] = {KernelBuilder::viewTypeI32(c, {kDynamic}),
                  KernelBuilder::viewType(c, {kDynamic, s.width}),
                  KernelBuilder::viewType(c, {s.vocab, s.width})};
  KernelBuilder k(builder, loc, "embed_grad",
                  {getAffineConstantExpr(s.width, c).ceilDiv(columns)},
                  {Order::parallel}, types);
  Value column = k.mul(k.id(0), k.idx(columns)), zero = k.idx(0);
  auto limits = [&](Value end) {
    return ragged ? SmallVector<Value>{end, k.idx(s.width)}
                  : SmallVector<Value>{};
  };
  Value vocab = k.idx(s.vocab), tokens = k.dim(k.view(Ids), 0);
  if (!s.accumulate)
    k.loop(zero, vocab, 1, {}, [&](Value row, ValueRange) {
      k.store(k.zeros({1, columns}), k.view(DTable), {row, column}, {0, 1},
              limits(vocab));
      return KernelBuilder::Values{};
    });
  k.loop(zero, tokens, 1, {}, [&](Value t, ValueRange) {
    Value id = k.toIndex(k.loadScalar(k.view(Ids), {t}));
    Value dy =
        k.load(k.view(Dy), {t, column}, {0, 1}, {1, columns}, limits(tokens));
    k.accumulate(dy, k.view(DTable), {id, column}, {0, 1}, limits(vocab));
    return KernelBuilder::Values{};
  });
  return k.finish();
}
