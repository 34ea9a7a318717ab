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
                  KernelBuilder::viewType(c, {s.vocab, s.width}, s.element),
                  KernelBuilder::viewType(c, {kDynamic, s.width}, s.element)};
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

namespace {
/// Adds rows of dy to the rows of dtable that their ids name.
class EmbedGrad {
public:
  EmbedGrad(KernelBuilder &k, const EmbedShape &s, int64_t columns)
      : k(k), s(s), columns(columns), zero(k.idx(0)), vocab(k.idx(s.vocab)),
        tokens(k.dim(k.view(Ids), 0)) {}

  void clear(Value firstRow, Value endRow, int64_t step, Value column);
  void addAll(Value column);
  void addThoseOf(Value firstRow);

private:
  enum View : unsigned { Ids, Dy, DTable };

  void add(Value token, Value id, Value column);
  /// Limits of a block of rows that end at `end`.
  SmallVector<Value> limits(Value end) {
    if (s.width % columns != 0)
      return {end, k.idx(s.width)};
    return {};
  }

  KernelBuilder &k;
  const EmbedShape &s;
  int64_t columns;
  Value zero, vocab, tokens;
};
} // namespace

void EmbedGrad::clear(Value firstRow, Value endRow, int64_t step,
                      Value column) {
  k.loop(firstRow, endRow, step, {}, [&](Value row, ValueRange) {
    k.store(k.zeros({1, columns}), k.view(DTable), {row, column}, {0, 1},
            limits(vocab));
    return KernelBuilder::Values{};
  });
}

void EmbedGrad::add(Value token, Value id, Value column) {
  Value dy =
      k.load(k.view(Dy), {token, column}, {0, 1}, {1, columns}, limits(tokens));
  k.accumulate(dy, k.view(DTable), {id, column}, {0, 1}, limits(vocab));
}

void EmbedGrad::addAll(Value column) {
  k.loop(zero, tokens, 1, {}, [&](Value token, ValueRange) {
    add(token, k.toIndex(k.loadScalar(k.view(Ids), {token})), column);
    return KernelBuilder::Values{};
  });
}

/// Ids are looked through in tiles. The tokens of a tile that have one of the
/// point's rows are taken in their order, each by what comes first after the
/// one before.
void EmbedGrad::addThoseOf(Value firstRow) {
  constexpr int64_t tile = 1024;
  auto everywhere = [&](Value index) {
    return k.splat(k.toI32(index), {tile});
  };
  auto number = [&](Value f32) {
    return k.toIndex(
        arith::FPToSIOp::create(k.ops(), k.ops().getI32Type(), f32));
  };
  // Bits of an id: the point's turn, its row there, and above them the group.
  Value pointBits = k.splat(k.i32(~((s.pointRows - 1) * s.turns)), {tile});
  // The last group may have rows that the table has not: whoever calls a
  // function is not asked for the ids.
  bool isCut = s.vocab % (s.pointRows * s.turns) != 0;
  Value counted = k.iota(0, {tile}), place = k.toF32(counted);
  k.loop(zero, tokens, tile, {}, [&](Value first, ValueRange) {
    Value ids = k.load(k.view(Ids), {first}, {0}, {tile}, {tokens});
    Value isMine = k.both(k.eq(k.both(ids, pointBits), everywhere(firstRow)),
                          k.lt(counted, everywhere(k.sub(tokens, first))));
    if (isCut)
      isMine = k.both(isMine, k.lt(ids, everywhere(vocab)));
    Value count =
        k.sum(k.select(isMine, k.full(1.0, {tile}), k.zeros({tile})), 0);
    k.loop(zero, number(k.extract(count, {zero})), 1, {k.f32(-1.0)},
           [&](Value, ValueRange before) {
             Value isLeft =
                 k.both(isMine, k.lt(k.splat(before[0], {tile}), place));
             Value nearest = k.maximum(
                 k.select(isLeft, k.neg(place), k.full(-double(tile), {tile})),
                 0);
             Value next = k.neg(k.extract(nearest, {zero}));
             Value token = k.add(first, number(next));
             add(token, k.toIndex(k.loadScalar(k.view(Ids), {token})), zero);
             return KernelBuilder::Values{next};
           });
    return KernelBuilder::Values{};
  });
}

ProgramOp hybrid::tile::buildEmbedGrad(OpBuilder &builder, Location loc,
                                       const EmbedShape &s) {
  MLIRContext *c = builder.getContext();
  int64_t columns = s.pointRows ? s.width : std::min<int64_t>(s.width, 32);
  Type types[] = {KernelBuilder::viewTypeI32(c, {kDynamic}),
                  KernelBuilder::viewType(c, {kDynamic, s.width}, s.element),
                  KernelBuilder::viewType(c, {s.vocab, s.width})};
  const int64_t group = s.pointRows * s.turns; // rows dealt to `turns` points
  AffineExpr points =
      s.pointRows
          ? getAffineConstantExpr(llvm::divideCeil(s.vocab, group) * s.turns, c)
          : getAffineConstantExpr(s.width, c).ceilDiv(columns);
  KernelBuilder k(builder, loc, "embed_grad", {points}, {Order::parallel},
                  types);
  EmbedGrad grad(k, s, columns);
  if (!s.pointRows) {
    Value column = k.mul(k.id(0), k.idx(columns));
    if (!s.accumulate)
      grad.clear(k.idx(0), k.idx(s.vocab), 1, column);
    grad.addAll(column);
    return k.finish();
  }
  Value turns = k.idx(s.turns);
  Value groupRow = k.mul(k.div(k.id(0), turns), k.idx(group));
  Value firstRow = k.add(groupRow, k.rem(k.id(0), turns));
  if (!s.accumulate)
    grad.clear(firstRow, k.min(k.idx(s.vocab), k.add(groupRow, k.idx(group))),
               s.turns, k.idx(0));
  grad.addThoseOf(firstRow);
  return k.finish();
}

/// A point has the tokens of one id, if its number is that of the first of
/// them, and adds up their rows before it touches the table's.
ProgramOp hybrid::tile::buildEmbedGradByIds(OpBuilder &builder, Location loc,
                                            const EmbedShape &s) {
  enum View : unsigned { ById, Dy, DTable };
  enum Column : int64_t { Token, Id, End, NumColumns };
  // Rows that are on their way at once: twice as many take so many registers
  // that fewer blocks share a processor.
  constexpr int64_t group = 4;
  // Wider rows are of several points.
  constexpr int64_t widest = 2048;
  const int64_t parts = llvm::divideCeil(s.width, widest);
  const int64_t columns =
      parts == 1 ? s.width
                 : llvm::alignTo(llvm::divideCeil(s.width, parts), 128);
  MLIRContext *c = builder.getContext();
  Type types[] = {KernelBuilder::viewTypeI32(c, {kDynamic, NumColumns}),
                  KernelBuilder::viewType(c, {kDynamic, s.width}, s.element),
                  KernelBuilder::viewType(c, {s.vocab, s.width})};
  SmallVector<AffineExpr> points{Symbols(c).tokens};
  if (parts > 1)
    points.push_back(getAffineConstantExpr(parts, c));
  SmallVector<Order> order(points.size(), Order::parallel);
  KernelBuilder k(builder, loc, "embed_grad", points, order, types);
  Value number = k.id(0), tokens = k.dim(k.view(ById), 0);
  Value column = parts > 1 ? k.mul(k.id(1), k.idx(columns)) : k.idx(0);
  auto at = [&](Value row, Column of) {
    return k.toIndex(k.loadScalar(k.view(ById), {row, k.idx(of)}));
  };
  // Columns are cut where they are of several points.
  auto limits = [&](Value rows) {
    return parts > 1 ? KernelBuilder::Values{rows, k.idx(s.width)}
                     : KernelBuilder::Values{};
  };
  Value end = at(number, End);
  k.when(k.lt(number, end), [&] {
    Value id = at(number, Id), token = at(number, Token);
    KernelBuilder::Values tableLimits = limits(k.idx(s.vocab));
    Value old =
        k.load(k.view(DTable), {id, column}, {0, 1}, {1, columns}, tableLimits);
    Value first = k.load(k.view(Dy), {token, column}, {0, 1}, {1, columns},
                         limits(tokens));
    Value sum =
        k.loop(k.add(number, k.idx(1)), end, group, {first},
               [&](Value from, ValueRange carried) {
                 Value last = k.sub(end, k.idx(1)), sum = carried[0];
                 SmallVector<Value> rows;
                 for (int64_t n = 0; n < group; ++n) {
                   Value next = k.add(from, k.idx(n));
                   // Zeros behind the last.
                   Value limit = k.select(k.lt(next, end), tokens, k.idx(0));
                   rows.push_back(k.load(
                       k.view(Dy), {at(k.min(next, last), Token), column},
                       {0, 1}, {1, columns}, {limit, k.idx(s.width)}));
                 }
                 for (Value row : rows)
                   sum = k.add(sum, row);
                 return KernelBuilder::Values{sum};
               })[0];
    k.store(k.add(old, sum), k.view(DTable), {id, column}, {0, 1}, tableLimits);
  });
  return k.finish();
}
