//===- RowProducts.cpp - few rows through several matrices ----------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Tile/Families/RowProducts.h"

#include "RowwiseEmitter.h"
#include "SoftmaxParts.h"

using namespace mlir;
using namespace hybrid::tile;

namespace {
class RowProducts {
public:
  RowProducts(OpBuilder &builder, Location loc, const RowProductsShape &shape,
              const RowwiseBody *body);
  ProgramOp emit();

private:
  using Values = KernelBuilder::Values;
  using Matrix = RowProductsShape::Matrix;

  SmallVector<Type> viewTypes(MLIRContext *context) const;
  KernelBuilder makeBuilder(OpBuilder &builder, Location loc) const;
  int64_t tilesOf(const Matrix &matrix) const {
    return llvm::divideCeil(matrix.columns, s.columnTile);
  }
  int64_t numConvolved() const {
    return llvm::count_if(s.matrices,
                          [](const Matrix &m) { return m.isConvolved; });
  }
  bool isNarrow() const {
    return s.element && s.element.getIntOrFloatBitWidth() == 16;
  }
  SmallVector<int64_t> depthsOfPieces() const;
  /// The first of this point's columns, if they are of matrix n.
  Value columnOf(unsigned n);
  SmallVector<Value> columnLimit(unsigned n);
  /// The weight (0) or the state (1) behind matrix n.
  Value convolutionView(unsigned n, unsigned which);
  Values loadMatrix(unsigned n);
  /// The taps, then the rows before this one, of convolution n if it is one.
  Values loadConvolution(unsigned n);
  Values ofThisPoint(llvm::function_ref<Values(unsigned)> load, unsigned n = 0);
  Value makeRow();
  /// What this point gives for its columns, and what their convolution keeps.
  struct Sums {
    Value plain, convolved;
    Values kept;
  };
  Sums convolve(Value sums, ValueRange convolution);
  void store(const Sums &sums, unsigned n);
  void keep(const Sums &sums, unsigned n);
  Value multiplyApart(ValueRange pieces, Value row, int64_t first);
  Value multiply(ValueRange pieces, Value row);

  /// In f32, one for each warp of a block: with all at once, products that wait
  /// for their sums would take the registers of the next launch's blocks.
  static constexpr int64_t kColumnsAtOnce = 8;

  const RowProductsShape &s;
  const RowwiseBody *body;
  /// Of the points of matrix n, and views.
  SmallVector<int64_t> firstTile;
  unsigned firstMatrix = 1, firstConvolution = 2;
  /// Of this point's row; where there are convolutions.
  Segment segment;
  KernelBuilder k;
};
} // namespace

RowProducts::RowProducts(OpBuilder &builder, Location loc,
                         const RowProductsShape &shape, const RowwiseBody *body)
    : s(shape), body(body), k(makeBuilder(builder, loc)) {
  const unsigned ofConvolutions = numConvolved() ? 2 + 2 * numConvolved() : 0;
  firstConvolution =
      k.numViews() - s.matrices.size() - s.kept.size() - ofConvolutions;
  firstMatrix = firstConvolution - s.matrices.size();
  firstTile.push_back(0);
  for (const Matrix &matrix : s.matrices)
    firstTile.push_back(firstTile.back() + tilesOf(matrix));
}

SmallVector<Type> RowProducts::viewTypes(MLIRContext *context) const {
  constexpr int64_t rows = ShapedType::kDynamic;
  SmallVector<Type> types;
  if (body)
    body->appendOperandViews(types);
  else if (s.ranges.count > 0)
    llvm::append_range(types,
                       rangeViews(context, s.ranges.heads, s.ranges.count,
                                  s.ranges.width, s.element));
  else
    types.push_back(
        KernelBuilder::viewType(context, {rows, s.depth}, s.element));
  if (s.isOfLastRows)
    llvm::append_range(types, KernelBuilder::segmentViewTypes(context));
  for (const Matrix &matrix : s.matrices)
    types.push_back(
        KernelBuilder::viewType(context, {matrix.columns, s.depth}, s.element));
  if (numConvolved())
    llvm::append_range(types, KernelBuilder::segmentViewTypes(context));
  for (const Matrix &matrix : s.matrices)
    if (matrix.isConvolved) {
      types.push_back(
          KernelBuilder::viewType(context, {matrix.columns, s.taps}));
      types.push_back(KernelBuilder::viewType(
          context, {rows, s.taps - 1, matrix.columns}, s.element));
    }
  for (unsigned n : s.kept)
    types.push_back(body->resultView(n));
  for (const Matrix &matrix : s.matrices)
    types.push_back(KernelBuilder::viewType(context, {rows, matrix.columns},
                                            matrix.result));
  return types;
}

KernelBuilder RowProducts::makeBuilder(OpBuilder &builder, Location loc) const {
  MLIRContext *context = builder.getContext();
  int64_t tiles = 0;
  for (const Matrix &matrix : s.matrices)
    tiles += tilesOf(matrix);
  AffineExpr rows = s.rows ? s.rows : Symbols(context).tokens;
  // Rows are the inner dim: points that read the same columns run together.
  return KernelBuilder(builder, loc, "row_products",
                       {getAffineConstantExpr(tiles, context), rows},
                       {Order::parallel, Order::parallel}, viewTypes(context));
}

Value RowProducts::columnOf(unsigned n) {
  Value tile =
      firstTile[n] == 0 ? k.id(0) : k.sub(k.id(0), k.idx(firstTile[n]));
  return k.mul(tile, k.idx(s.columnTile));
}

SmallVector<Value> RowProducts::columnLimit(unsigned n) {
  int64_t columns = s.matrices[n].columns;
  if (columns % s.columnTile == 0)
    return {};
  return {k.idx(columns)};
}

/// What is left behind whole steps of matrix units is a piece of its own: with
/// it, all of the depth would be multiplied as if there were 16 rows, which
/// have to be somewhere.
SmallVector<int64_t> RowProducts::depthsOfPieces() const {
  constexpr int64_t step = 32;
  SmallVector<int64_t> depths;
  for (int64_t at = 0; at < s.depth; at += s.depthTile) {
    int64_t depth = std::min(s.depthTile, s.depth - at);
    int64_t rest = isNarrow() && depth > step ? depth % step : 0;
    depths.push_back(depth - rest);
    if (rest > 0)
      depths.push_back(rest);
  }
  return depths;
}

/// This point's columns of matrix n, in pieces of the depth, as memory has
/// them: whoever makes them f32 here waits for them here.
RowProducts::Values RowProducts::loadMatrix(unsigned n) {
  Value column = columnOf(n);
  Values pieces;
  int64_t at = 0;
  for (int64_t depth : depthsOfPieces()) {
    pieces.push_back(k.loadStored(k.view(firstMatrix + n), {column, k.idx(at)},
                                  {0, 1}, {s.columnTile, depth},
                                  columnLimit(n)));
    at += depth;
  }
  return pieces;
}

Value RowProducts::convolutionView(unsigned n, unsigned which) {
  auto before = llvm::count_if(llvm::ArrayRef(s.matrices).take_front(n),
                               [](const Matrix &m) { return m.isConvolved; });
  return k.view(firstConvolution + 2 + 2 * before + which);
}

RowProducts::Values RowProducts::loadConvolution(unsigned n) {
  const int64_t columns = s.columnTile;
  if (!s.matrices[n].isConvolved) {
    Value zero = k.zeros({1, columns});
    Values nothing(s.taps, zero);
    nothing.append(s.taps - 1, s.element ? k.narrowed(zero, s.element) : zero);
    return nothing;
  }
  Value column = columnOf(n);
  Values rows;
  auto add = [&](Value row) { rows.push_back(k.reshape(row, {1, columns})); };
  for (int64_t tap = 0; tap < s.taps; ++tap)
    add(k.load(convolutionView(n, 0), {column, k.idx(tap)}, {0}, {columns}));
  for (int64_t row = 0; row + 1 < s.taps; ++row)
    add(k.loadStored(convolutionView(n, 1), {segment.slot, k.idx(row), column},
                     {2}, {columns}));
  return rows;
}

/// What `load` gives for the one of the matrices from number n on that this
/// point's columns are of.
RowProducts::Values
RowProducts::ofThisPoint(llvm::function_ref<Values(unsigned)> load,
                         unsigned n) {
  if (n + 1 == s.matrices.size())
    return load(n);
  return k.choose(
      k.lt(k.id(0), k.idx(firstTile[n + 1])), [&] { return load(n); },
      [&] { return ofThisPoint(load, n + 1); });
}

/// a as [1, depth]; what else the row-wise operation gives is stored by the
/// first point of the row.
Value RowProducts::makeRow() {
  Value row = k.id(1);
  if (s.ranges.count > 0) {
    Value joined = joinRanges(k, k.view(0), k.view(1), row);
    if (s.element)
      joined = k.rounded(joined, s.element);
    return k.reshape(joined, {1, s.depth});
  }
  if (!body)
    return k.load(k.view(0), {row, k.idx(0)}, {0, 1}, {1, s.depth});
  Value numRows = k.dim(k.view(k.numViews() - 1), 0);
  if (s.isOfLastRows) {
    Segment of = k.segment(k.view(firstMatrix - 2), row);
    row = k.lastRow(of);
    numRows = of.end;
  }
  RowwiseEmitter e(k, body->block, row, numRows);
  // What has no rows may be there before the rows are.
  body->load(e, row, numRows, /*withRows=*/false, /*withoutRows=*/true);
  body->load(e, row, numRows, /*withRows=*/true, /*withoutRows=*/false);
  body->emit(e);
  if (!s.kept.empty())
    k.when(k.eq(k.id(0), k.idx(0)), [&] {
      for (auto [n, result] : llvm::enumerate(s.kept))
        body->store(
            e, result,
            k.view(k.numViews() - s.matrices.size() - s.kept.size() + n), row,
            numRows);
    });
  return k.reshape(e.tileOf(body->results[s.row]), {1, s.depth});
}

/// Of this point's columns from `first` on, as many as are multiplied at once.
Value RowProducts::multiplyApart(ValueRange pieces, Value row, int64_t first) {
  int64_t columns = std::min(kColumnsAtOnce, s.columnTile - first);
  Value sums;
  for (auto [n, piece] : llvm::enumerate(pieces)) {
    int64_t depth = cast<RankedTensorType>(piece.getType()).getShape().back();
    Value part =
        depth == s.depth ? row : k.slice(row, 1, n * s.depthTile, depth);
    Value some =
        columns == s.columnTile ? piece : k.slice(piece, 0, first, columns);
    Value sum =
        k.sum(k.mul(k.widened(some), k.broadcast(part, {columns, depth})), 1);
    sums = sums ? k.add(sums, sum) : sum;
  }
  return k.reshape(sums, {1, columns});
}

/// One product of the row with this point's columns. Matrix units multiply
/// numbers of 16 bits, as the row is too: f32 would be three products of parts
/// of it, with other bits than one sum after another.
Value RowProducts::multiply(ValueRange pieces, Value row) {
  if (!isNarrow()) {
    Values some;
    for (int64_t at = 0; at < s.columnTile; at += kColumnsAtOnce)
      some.push_back(multiplyApart(pieces, row, at));
    return some.size() == 1 ? some.front() : k.concat(some, 1);
  }
  Value sums = k.zeros({1, s.columnTile});
  int64_t at = 0;
  for (auto [piece, depth] : llvm::zip_equal(pieces, depthsOfPieces())) {
    sums = k.dot(k.slice(row, 1, at, depth), k.widened(piece), sums,
                 /*transposeA=*/false, /*transposeB=*/true);
    at += depth;
  }
  return sums;
}

/// The row is the only one of its segment, so that all before it are in the
/// state. Done for columns without a convolution too, where it gives nothing:
/// outside of the choice between matrices no thread waits for another.
RowProducts::Sums RowProducts::convolve(Value sums, ValueRange convolution) {
  Sums result{sums, {}, {}};
  if (convolution.empty())
    return result;
  // Not before: who widens what was asked for waits for it, and with it the
  // launch behind, which begins when this one has asked for all.
  Values seen = llvm::map_to_vector(convolution.drop_front(s.taps),
                                    [&](Value row) { return k.widened(row); });
  seen.push_back(s.element ? k.rounded(sums, s.element) : sums);
  for (auto [tap, row] :
       llvm::zip_equal(convolution.take_front(s.taps), seen)) {
    Value term = k.mul(tap, row);
    result.convolved = result.convolved ? k.add(result.convolved, term) : term;
  }
  result.kept.assign(seen.begin() + 1, seen.end());
  return result;
}

/// The state has these columns of this point alone. Rows behind the last
/// segment are of none.
void RowProducts::keep(const Sums &sums, unsigned n) {
  Value row = k.id(1), column = columnOf(n);
  Value isReal = k.both(k.le(segment.begin, row), k.lt(row, segment.end));
  k.when(isReal, [&] {
    for (auto [at, kept] : llvm::enumerate(sums.kept))
      k.store(kept, convolutionView(n, 1), {segment.slot, k.idx(at), column},
              {1, 2});
  });
}

void RowProducts::store(const Sums &sums, unsigned n) {
  bool isConvolved = s.matrices[n].isConvolved;
  Value column = columnOf(n), row = k.id(1);
  SmallVector<Value> limits = columnLimit(n);
  if (!limits.empty())
    limits.insert(limits.begin(), k.add(row, k.idx(1)));
  k.store(isConvolved ? sums.convolved : sums.plain,
          k.view(k.numViews() - s.matrices.size() + n), {row, column}, {0, 1},
          limits);
  if (isConvolved)
    keep(sums, n);
}

ProgramOp RowProducts::emit() {
  Values pieces = ofThisPoint([&](unsigned n) { return loadMatrix(n); });
  // Behind the matrix, for which it would wait: where the states are is read.
  Values convolution;
  if (numConvolved()) {
    Value of = k.loadScalar(k.view(firstConvolution + 1), {k.id(1)});
    segment = k.segment(k.view(firstConvolution), k.toIndex(of));
    convolution = ofThisPoint([&](unsigned n) { return loadConvolution(n); });
  }
  Sums sums = convolve(multiply(pieces, makeRow()), convolution);
  if (s.matrices.size() == 1) {
    store(sums, 0);
    return k.finish();
  }
  for (unsigned n = 0; n < s.matrices.size(); ++n) {
    Value isHere = k.lt(k.id(0), k.idx(firstTile[n + 1]));
    if (n > 0)
      isHere = k.both(isHere, k.ge(k.id(0), k.idx(firstTile[n])));
    k.when(isHere, [&] { store(sums, n); });
  }
  return k.finish();
}

FailureOr<ProgramOp>
hybrid::tile::buildRowProducts(OpBuilder &builder, Location loc,
                               const RowProductsShape &shape) {
  if (!shape.rowwise)
    return RowProducts(builder, loc, shape, nullptr).emit();
  RowwiseBody body(shape.rowwise);
  body.block.mayLackRows = shape.isOfLastRows;
  if (failed(body.check()))
    return failure();
  return RowProducts(builder, loc, shape, &body).emit();
}
