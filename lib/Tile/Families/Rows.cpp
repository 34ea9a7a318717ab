//===- Rows.cpp - sums over tokens and last rows -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Tile/Families/Rows.h"

#include "hybrid/Tile/Families/KernelBuilder.h"
#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace hybrid::tile;

static constexpr int64_t kDynamic = ShapedType::kDynamic;

/// x is a view [t, outer, columns]: `outer` is summed or one result row each.
ProgramOp hybrid::tile::buildReduceTokens(OpBuilder &builder, Location loc,
                                          const ReduceTokensShape &s) {
  enum View : unsigned { X, Y };
  MLIRContext *c = builder.getContext();
  SmallVector<int64_t> xShape = {kDynamic},
                       yShape(s.sizes.begin() + s.summed, s.sizes.end());
  llvm::append_range(xShape, s.sizes);
  int64_t rank = s.sizes.size(), width = yShape.back();
  int64_t columns = std::min(width, s.columnTile);
  bool ragged = width % columns != 0;
  // A dim before the columns that is not summed is a grid dim.
  bool perOuter = rank == 2 && s.summed == 0,
       sumsOuter = rank == 2 && s.summed == 1;
  int64_t rows = s.rowTile;
  if (sumsOuter && rows > 16)
    rows = std::clamp<int64_t>(
        llvm::bit_floor<uint64_t>(4096 / (s.sizes[0] * columns)), 1, rows);
  SmallVector<AffineExpr> grid = {
      getAffineConstantExpr(width, c).ceilDiv(columns)};
  if (perOuter)
    grid.insert(grid.begin(), getAffineConstantExpr(s.sizes[0], c));
  const unsigned partDim = grid.size();
  if (s.part) {
    grid.push_back(Symbols(c).tokens.ceilDiv(s.part));
    yShape.insert(yShape.begin(), kDynamic);
  }
  Type types[] = {KernelBuilder::viewType(c, xShape),
                  KernelBuilder::viewType(c, yShape)};
  SmallVector<Order> order(grid.size(), Order::parallel);
  KernelBuilder k(builder, loc, "reduce_tokens", grid, order, types);

  Value zero = k.idx(0), column = k.mul(k.id(perOuter ? 1 : 0), k.idx(columns));
  Value tokens = k.dim(k.view(X), 0), end = k.idx(width);
  Value first = zero, last = tokens;
  if (s.part) {
    first = k.mul(k.id(partDim), k.idx(s.part));
    last = k.min(tokens, k.add(first, k.idx(s.part)));
  }
  auto block = [&](Value row) {
    SmallVector<Value> limits = {tokens};
    if (sumsOuter) {
      if (ragged)
        limits.append({k.idx(s.sizes[0]), end});
      Value x = k.load(k.view(X), {row, zero, column}, {0, 1, 2},
                       {rows, s.sizes[0], columns}, limits);
      return k.reshape(k.sum(x, 1), {rows, columns});
    }
    if (ragged)
      limits.push_back(end);
    if (perOuter)
      return k.load(k.view(X), {row, k.id(0), column}, {0, 2}, {rows, columns},
                    limits);
    return k.load(k.view(X), {row, column}, {0, 1}, {rows, columns}, limits);
  };
  Value sum = k.loop(first, last, rows, {k.zeros({1, columns})},
                     [&](Value row, ValueRange carried) {
                       return KernelBuilder::Values{
                           k.add(carried[0], k.sum(block(row), 0))};
                     })[0];
  SmallVector<Value> at = {column}, limits;
  if (perOuter)
    at.insert(at.begin(), k.id(0));
  if (ragged)
    limits.push_back(end);
  int64_t dims[] = {perOuter ? 1 : 0};
  if (s.part) {
    at.insert(at.begin(), k.id(partDim));
    ++dims[0];
  }
  Value flat = k.reshape(sum, {columns});
  if (s.accumulate)
    k.accumulate(flat, k.view(Y), at, dims, limits);
  else
    k.store(flat, k.view(Y), at, dims, limits);
  return k.finish();
}

ProgramOp hybrid::tile::buildLastRows(OpBuilder &builder, Location loc,
                                      int64_t width, Type element) {
  enum View : unsigned { X, Table, TokenSegment, Y };
  MLIRContext *c = builder.getContext();
  Type rows = KernelBuilder::viewType(c, {kDynamic, width}, element);
  SmallVector<Type> types = {rows};
  llvm::append_range(types, KernelBuilder::segmentViewTypes(c));
  types.push_back(rows);
  KernelBuilder k(builder, loc, "last_rows", {Symbols(c).segments},
                  {Order::parallel}, types);
  Segment segment = k.segment(k.view(Table), k.id(0));
  Value zero = k.idx(0);
  Value row = k.lastRow(segment);
  Value last =
      k.load(k.view(X), {row, zero}, {0, 1}, {1, width}, {segment.end});
  k.store(last, k.view(Y), {k.id(0), zero}, {0, 1});
  return k.finish();
}
