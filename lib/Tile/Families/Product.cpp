//===- Product.cpp - matrix products -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Tile/Families/Product.h"

#include "ProductEpilogue.h"

using namespace mlir;
using namespace hybrid::tile;

/// The largest tile that divides a static size evenly and is not small, at best
/// in whole register blocks (64 columns on the widest machine); else `most`:
/// then the last tile is cut by a limit.
static int64_t tileOf(int64_t size, int64_t most) {
  if (ShapedType::isDynamic(size))
    return most;
  if (size <= most)
    return size;
  for (int64_t multiple : {64, 8})
    for (int64_t tile = most; 2 * tile >= most; --tile)
      if (size % tile == 0 && (tile % multiple == 0 || tile == most))
        return tile;
  return most;
}

namespace {
/// One dim of the product: m, n or k.
struct Axis {
  int64_t size, tile;
  /// Where the tile begins, and where reading must stop; null where every tile
  /// is full.
  Value base, limit;

  Axis(int64_t size, int64_t most, bool isWhole = false)
      : size(size), tile(isWhole ? most : tileOf(size, most)) {}
  bool isRagged() const {
    return tile > 1 && (ShapedType::isDynamic(size) || size % tile != 0);
  }
  AffineExpr tiles(AffineExpr dynamicSize) const {
    AffineExpr all =
        ShapedType::isDynamic(size)
            ? dynamicSize
            : getAffineConstantExpr(size, dynamicSize.getContext());
    return all.ceilDiv(tile);
  }
};

class Product {
public:
  Product(OpBuilder &builder, Location loc, const ProductShape &shape);
  ProgramOp emit();

private:
  SmallVector<Type> viewTypes(MLIRContext *context) const;
  KernelBuilder makeBuilder(OpBuilder &builder, Location loc) const;
  void placeRows();
  /// A block of a matrix with the given axes, of `group` where there are
  /// groups.
  Value load(Value view, Value group, const Axis &first, const Axis &second);
  Value loadRight(unsigned matrix) {
    Value view = b.view(1 + matrix);
    return s.transposeB ? load(view, group, n, k) : load(view, group, k, n);
  }
  /// Limits of a block with the given axes; none where both are full.
  SmallVector<Value> limitsOf(const Axis &first, const Axis &second);
  /// The same, of a block that ends where its view does.
  SmallVector<Value> endsOf(Value view, const Axis &first, const Axis &second);
  /// Where this point's sum over k begins and ends.
  std::pair<Value, Value> depthRange();
  /// One per matrix.
  KernelBuilder::Values sumsOverDepth();
  void emitTile();
  void emitEpilogue(ValueRange sums);

  const ProductShape &s;
  Axis m, n, k;
  /// Rows of a whole tile; m.tile is less in the tail.
  int64_t rowTile;
  KernelBuilder b;
  Value group; // slot of the segment, or null
  Value part;  // of the depth, or null
};
} // namespace

Product::Product(OpBuilder &builder, Location loc, const ProductShape &shape)
    : s(shape), m(s.rows, s.rowTile, s.wholeTiles),
      n(s.columns, s.columnTile, s.wholeTiles),
      k(s.depth, s.depthTile, s.wholeTiles), rowTile(m.tile),
      b(makeBuilder(builder, loc)) {}

SmallVector<Type> Product::viewTypes(MLIRContext *context) const {
  auto matrix = [&](int64_t first, int64_t second, bool transposed,
                    bool grouped, Type element) {
    SmallVector<int64_t> shape = {first, second};
    if (transposed)
      std::swap(shape[0], shape[1]);
    if (grouped)
      shape.insert(shape.begin(), ShapedType::kDynamic);
    return KernelBuilder::viewType(context, shape, element);
  };
  SmallVector<Type> types = {
      matrix(s.rows, s.depth, s.transposeA, false, s.element)};
  types.append(s.epilogue.matrices(),
               matrix(s.depth, s.columns, s.transposeB, s.grouped, s.element));
  if (s.epilogue.region) {
    appendEpilogueViews(s.epilogue, types);
    return types;
  }
  if (s.grouped)
    llvm::append_range(types, KernelBuilder::segmentViewTypes(context));
  types.push_back(
      s.splits > 1 ? KernelBuilder::viewType(
                         context, {ShapedType::kDynamic, s.rows, s.columns})
                   : matrix(s.rows, s.columns, false, false, s.resultElement));
  return types;
}

KernelBuilder Product::makeBuilder(OpBuilder &builder, Location loc) const {
  MLIRContext *context = builder.getContext();
  Symbols sym(context);
  AffineExpr dynamicSize = s.dynamicSize ? s.dynamicSize : sym.tokens;
  SmallVector<AffineExpr> grid = {
      m.tiles(s.grouped ? sym.longest : dynamicSize), n.tiles(dynamicSize)};
  if (s.grouped)
    grid.insert(grid.begin(), sym.segments);
  if (s.splits > 1)
    grid.insert(grid.begin(), getAffineConstantExpr(s.splits, context));
  SmallVector<Order> order(grid.size(), Order::parallel);
  return KernelBuilder(builder, loc, s.grouped ? "grouped_product" : "product",
                       grid, order, viewTypes(context));
}

SmallVector<Value> Product::limitsOf(const Axis &first, const Axis &second) {
  // Limits are given from the first dim on; one that is full ends at its end.
  SmallVector<Value> limits;
  if (first.limit)
    limits.push_back(first.limit);
  else if (second.limit)
    limits.push_back(b.add(first.base, b.idx(first.tile)));
  if (second.limit)
    limits.push_back(second.limit);
  return limits;
}

SmallVector<Value> Product::endsOf(Value view, const Axis &first,
                                   const Axis &second) {
  SmallVector<Value> limits;
  if (first.isRagged() || second.isRagged())
    limits.push_back(b.dim(view, 0));
  if (second.isRagged())
    limits.push_back(b.dim(view, 1));
  return limits;
}

Value Product::load(Value view, Value of, const Axis &first,
                    const Axis &second) {
  SmallVector<Value> indices = {first.base, second.base};
  SmallVector<int64_t> dims = {0, 1};
  if (of) {
    indices.insert(indices.begin(), of);
    dims = {1, 2};
  }
  return b.load(view, indices, dims, {first.tile, second.tile},
                s.wholeTiles ? endsOf(view, first, second)
                             : limitsOf(first, second));
}

/// Parts are whole tiles of depth, so that only the last one ends at a limit.
std::pair<Value, Value> Product::depthRange() {
  Value depth = ShapedType::isDynamic(k.size)
                    ? b.dim(b.view(0), s.transposeA ? 0 : 1)
                    : b.idx(k.size);
  if (k.isRagged())
    k.limit = depth;
  if (s.splits == 1)
    return {b.idx(0), depth};
  Value tile = b.idx(k.tile);
  Value tiles = b.ceilDiv(b.ceilDiv(depth, tile), b.idx(s.splits));
  Value extent = b.mul(tiles, tile), begin = b.mul(part, extent);
  return {begin, b.min(b.add(begin, extent), depth)};
}

/// Σ_k in ascending order, one depth tile after another.
KernelBuilder::Values Product::sumsOverDepth() {
  unsigned count = s.epilogue.matrices();
  auto step = [&](Value base, ValueRange sums) {
    k.base = base;
    Value left =
        s.transposeA ? load(b.view(0), {}, k, m) : load(b.view(0), {}, m, k);
    // Names are unique in a program, which may have tiles of two sizes.
    std::string suffix = m.tile == rowTile ? "" : "_tail";
    b.named("load_a" + suffix, left);
    KernelBuilder::Values next;
    for (unsigned n = 0; n < count; ++n) {
      Value right = loadRight(n);
      std::string own = suffix + (n == 0 ? "" : "_" + std::to_string(n));
      b.named("load_b" + own, right);
      next.push_back(
          b.named("product" + own,
                  b.dot(left, right, sums[n], s.transposeA, s.transposeB)));
    }
    return next;
  };
  KernelBuilder::Values zeros(count, b.zeros({m.tile, n.tile}));
  if (k.size == k.tile && s.splits == 1)
    return step(b.idx(0), zeros);
  auto [begin, end] = depthRange();
  return b.loop(begin, end, k.tile, zeros, step);
}

void Product::placeRows() {
  Value tile = b.idx(m.tile);
  if (s.splits > 1)
    part = b.id(0);
  if (s.grouped) {
    Segment segment = b.segment(b.view(2), b.id(0));
    group = segment.slot;
    m.base = b.add(segment.begin, b.mul(b.id(1), tile));
    m.limit = segment.end;
    return;
  }
  m.base = b.mul(b.id(part ? 1 : 0), tile);
  if (m.isRagged())
    m.limit = ShapedType::isDynamic(m.size)
                  ? b.dim(b.view(b.numViews() - 1), part ? 1 : 0)
                  : b.idx(m.size);
}

void Product::emitEpilogue(ValueRange sums) {
  EpilogueTile tile;
  tile.firstView = 1 + s.epilogue.matrices();
  tile.row = m.base, tile.column = n.base;
  tile.rows = m.tile, tile.columns = n.tile;
  tile.limits = limitsOf(m, n);
  tile.numRows = b.dim(b.view(b.numViews() - 1), 0);
  hybrid::tile::emitEpilogue(b, s.epilogue, tile, sums);
}

void Product::emitTile() {
  KernelBuilder::Values sums = sumsOverDepth();
  if (s.epilogue.region)
    return emitEpilogue(sums);
  Value sum = sums.front(), c = b.view(b.numViews() - 1);
  SmallVector<Value> limits = limitsOf(m, n);
  if (part)
    return b.store(sum, c, {part, m.base, n.base}, {1, 2}, limits);
  if (s.accumulate)
    b.accumulate(sum, c, {m.base, n.base}, {0, 1}, limits);
  else
    b.store(sum, c, {m.base, n.base}, {0, 1}, limits);
}

ProgramOp Product::emit() {
  placeRows();
  n.base = b.mul(b.id(s.grouped || part ? 2 : 1), b.idx(n.tile));
  if (n.isRagged())
    n.limit = b.idx(n.size);
  if (!ShapedType::isDynamic(m.size) || s.tailRows == 0 ||
      rowTile <= s.tailRows) {
    // Of a short segment there may be no such tile.
    if (s.grouped)
      b.when(b.lt(m.base, m.limit), [&] { emitTile(); });
    else
      emitTile();
    return b.finish();
  }
  Value first = m.base, last = m.limit, end = b.add(first, b.idx(rowTile));
  b.when(b.le(end, last), [&] {
    m.limit = {};
    emitTile();
  });
  b.when(b.gt(end, last), [&] {
    m.limit = last;
    m.tile = s.tailRows;
    b.loop(first, last, s.tailRows, {}, [&](Value row, ValueRange) {
      m.base = row;
      emitTile();
      return KernelBuilder::Values{};
    });
  });
  return b.finish();
}

ProgramOp hybrid::tile::buildProduct(OpBuilder &builder, Location loc,
                                     const ProductShape &shape) {
  return Product(builder, loc, shape).emit();
}

ProgramOp hybrid::tile::buildProductSum(OpBuilder &builder, Location loc,
                                        const ProductShape &s) {
  MLIRContext *context = builder.getContext();
  AffineExpr tokens = Symbols(context).tokens;
  Axis m(s.rows, s.rowTile), n(s.columns, s.columnTile);
  AffineExpr dynamicSize = s.dynamicSize ? s.dynamicSize : tokens;
  Order order[] = {Order::parallel, Order::parallel};
  KernelBuilder b(
      builder, loc, "product_sum", {m.tiles(dynamicSize), n.tiles(dynamicSize)},
      order,
      {KernelBuilder::viewType(context,
                               {ShapedType::kDynamic, s.rows, s.columns}),
       KernelBuilder::viewType(context, {s.rows, s.columns}, s.resultElement)});
  Value parts = b.view(0), c = b.view(1);
  Value row = b.mul(b.id(0), b.idx(m.tile)),
        column = b.mul(b.id(1), b.idx(n.tile));
  // The second limit needs the first, which ends a full tile at its end.
  SmallVector<Value> limits;
  if (m.isRagged() || n.isRagged())
    limits.push_back(ShapedType::isDynamic(m.size) ? b.dim(c, 0)
                     : m.isRagged()                ? b.idx(m.size)
                                                   : b.add(row, b.idx(m.tile)));
  if (n.isRagged())
    limits.push_back(b.idx(n.size));
  Value sum =
      b.loop(b.idx(0), b.idx(s.splits), 1, {b.zeros({m.tile, n.tile})},
             [&](Value part, ValueRange carried) {
               Value one = b.load(parts, {part, row, column}, {1, 2},
                                  {m.tile, n.tile}, limits);
               return KernelBuilder::Values{b.add(carried.front(), one)};
             })[0];
  if (s.accumulate)
    b.accumulate(sum, c, {row, column}, {0, 1}, limits);
  else
    b.store(sum, c, {row, column}, {0, 1}, limits);
  return b.finish();
}
