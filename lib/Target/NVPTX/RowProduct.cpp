//===- RowProduct.cpp - one row on tensor cores -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A row x through a matrix W [columns, depth] whose rows lie in shared memory:
// result[c] = Σ_k W[c, k] x[k], by `mma.sync` m16n8k16 with W on the left. A
// sum may go along its depth in any order, so the 16 rows of an instruction are
// C columns at Q = 16 / C places of the depth, and its 8 columns are x at these
// places in turn. Of what it gives, row (q, c) counts where the column is at
// place q:
//
//     D[q C + c, n] = Σ_k W[c, place(q) + k] x[place(n mod Q) + k]
//
// so that no row of the instruction is empty, and 16 Q of the depth are done at
// once for C columns. Warps take turns along the depth and add up their sums
// through shared memory, in the order of warps.
//
// Depth is counted in units of 8 elements, 16 bytes, which is a row of the
// 8 x 8 matrices that `ldmatrix` loads: it reads 8 rows (q, c) of one half h of
// their 16. Unit u of row c is at u xor c mod 8, or c units further where the
// copy engine brought it, so places that lie C units from each other leave all
// eight in different banks.
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::nvptx;

class KernelLowering::RowProduct {
public:
  RowProduct(KernelLowering &kernel, const SharedTile &row,
             const SharedTile &matrix, ArrayRef<int64_t> shape);

  /// This warp's part of the sums, of `width()` columns that begin at every
  /// multiple of that: lane 4g has column g mod width of each.
  Values emit();
  int64_t width() const { return C; }
  int64_t numTiles() const { return tiles; }
  int64_t numFragments() const {
    return tiles * ceilDiv(depth, stepDepth() * warps);
  }

private:
  static constexpr int64_t kUnitBytes = 16, kRows = 16;
  int64_t stepDepth() const { return kRows * Q; }
  int64_t stepBytes() const { return 2 * stepDepth(); }
  Value unitOf(Value place, Value half);
  Values matrixRow(bool isLast);
  Value rowAddress();
  void multiply(int64_t step, ValueRange row, MutableArrayRef<Values> sums);
  Value wantedOf(ValueRange sums);
  Value bit(Value number, int64_t at) {
    number =
        at == 0 ? number : b.createOrFold<arith::ShRUIOp>(number, b.i32(at));
    return b.createOrFold<arith::AndIOp>(number, b.i32(1));
  }
  Value low(Value number, int64_t below) {
    return b.createOrFold<arith::AndIOp>(number, b.i32(below - 1));
  }
  Value high(Value number, int64_t from) {
    return b.createOrFold<arith::ShRUIOp>(number, b.i32(llvm::Log2_64(from)));
  }

  GpuBuilder &b;
  const SharedTile &row, &matrix;
  int64_t columns, depth, warps;
  /// Columns of an instruction, and places of the depth.
  int64_t C = 8, Q = 2;
  int64_t tiles = 1;
  /// Instructions in turn that do not wait for each other.
  int64_t chains = 1;
  Values matrixBase, lastBase;
  Value rowBase;
};

KernelLowering::RowProduct::RowProduct(KernelLowering &kernel,
                                       const SharedTile &row,
                                       const SharedTile &matrix,
                                       ArrayRef<int64_t> shape)
    : b(kernel.b), row(row), matrix(matrix), columns(shape[0]), depth(shape[1]),
      warps(kernel.plan.numWarps()) {
  constexpr int64_t kChains = 4, kMostTiles = 8;
  // Of many columns the last instructions rather do fewer than 8: each has
  // sums.
  for (int64_t width : {8, 4, 2})
    if (columns % width == 0 && columns / width <= kMostTiles &&
        depth % (kRows * kRows / width) == 0) {
      C = width;
      break;
    }
  Q = kRows / C;
  tiles = ceilDiv(columns, C);
  chains = std::max<int64_t>(1, kChains / tiles);
  matrixBase = matrixRow(/*isLast=*/false);
  lastBase = columns % C == 0 ? matrixBase : matrixRow(/*isLast=*/true);
  rowBase = rowAddress();
}

/// The unit where a half of a place begins: places of one 8 x 8 matrix are C
/// units apart, the four halves that its lanes' fragments have besides lie
/// between.
Value KernelLowering::RowProduct::unitOf(Value place, Value half) {
  int64_t perMatrix = 8 / C;
  Value between = b.add(b.mul(high(place, perMatrix), b.i32(2)), half);
  Value unit = b.add(low(between, C), b.mul(low(place, perMatrix), b.i32(C)));
  return b.add(unit, b.mul(high(between, C), b.i32(8)));
}

/// Which row of the four matrices of a fragment a lane gives, as column and
/// depth: rows 0 to 7 of the first half, 8 to 15 of it, then of the second.
KernelLowering::Values KernelLowering::RowProduct::matrixRow(bool isLast) {
  Value of16 = low(b.lane(), 16);
  Value column = low(of16, C);
  if (isLast)
    column = b.createOrFold<arith::MinSIOp>(column, b.i32(columns % C - 1));
  Value unit = unitOf(high(of16, C), bit(b.lane(), 4));
  return {column,
          b.add(b.mul(unit, b.i32(8)), b.mul(b.warp(), b.i32(stepDepth())))};
}

/// The same for x: its two halves in one step, then in this warp's next.
Value KernelLowering::RowProduct::rowAddress() {
  Value unit = unitOf(low(low(b.lane(), 8), Q), bit(b.lane(), 3));
  Value bytes = b.add(b.mul(unit, b.i32(kUnitBytes)),
                      b.mul(b.warp(), b.i32(stepBytes())));
  bytes = b.add(bytes, b.mul(bit(b.lane(), 4), b.i32(warps * stepBytes())));
  return b.address(row.pointer, bytes);
}

/// Step `step` of this warp for all columns.
void KernelLowering::RowProduct::multiply(int64_t step, ValueRange row,
                                          MutableArrayRef<Values> sums) {
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const Values &base = tile + 1 == tiles ? lastBase : matrixBase;
    Value from =
        addressIn(b, matrix, base, {tile * C, step * warps * stepDepth()});
    Values &sum = sums[tile * chains + step % chains];
    sum = b.multiplyMatrices(matrix.element, b.loadMatrices(from, 4), row, sum);
  }
}

KernelLowering::Values KernelLowering::RowProduct::emit() {
  int64_t steps = depth / stepDepth(), whole = steps / warps;
  SmallVector<Values> sums(tiles * chains, Values(4, b.zero(b.getF32Type())));
  for (int64_t step = 0; step < whole; step += 2) {
    int64_t count = std::min<int64_t>(2, whole - step);
    Values words = b.loadMatrices(
        b.address(rowBase, step * warps * stepBytes()), 2 * count);
    for (int64_t n = 0; n < count; ++n)
      multiply(step + n, ValueRange(words).slice(2 * n, 2), sums);
  }
  if (int64_t rest = steps % warps) {
    // The first warps have one step more.
    Values before;
    for (int64_t tile = 0; tile < tiles; ++tile)
      llvm::append_range(before, sums[tile * chains + whole % chains]);
    auto branch =
        scf::IfOp::create(b, SmallVector<Type>(before.size(), b.getF32Type()),
                          b.less(b.warp(), b.i32(rest)), /*addThenBlock=*/true,
                          /*addElseBlock=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(branch.thenBlock());
    SmallVector<Values> more(sums);
    multiply(whole,
             b.loadMatrices(b.address(rowBase, whole * warps * stepBytes()), 2),
             more);
    Values after;
    for (int64_t tile = 0; tile < tiles; ++tile)
      llvm::append_range(after, more[tile * chains + whole % chains]);
    scf::YieldOp::create(b, after);
    b.setInsertionPointToEnd(branch.elseBlock());
    scf::YieldOp::create(b, before);
    for (int64_t tile = 0; tile < tiles; ++tile)
      sums[tile * chains + whole % chains] =
          Values(branch.getResults().slice(4 * tile, 4));
  }
  Values parts;
  for (int64_t tile = 0; tile < tiles; ++tile) {
    Values &all = sums[tile * chains];
    for (int64_t chain = 1; chain < chains; ++chain)
      for (auto [sum, more] : llvm::zip_equal(all, sums[tile * chains + chain]))
        sum = arith::AddFOp::create(b, sum, more);
    parts.push_back(wantedOf(all));
  }
  return parts;
}

/// What counts of a fragment, rows g and g + 8 of columns 2t and 2t + 1, added
/// up over the places.
Value KernelLowering::RowProduct::wantedOf(ValueRange sums) {
  // Places 0 and 1 are the even and the odd columns of every lane.
  if (C == 8)
    return arith::AddFOp::create(b, sums[0], sums[3]);
  Value group = high(b.lane(), 4), pair = b.mul(low(b.lane(), 4), b.i32(2));
  Value zero = b.zero(b.getF32Type()), wanted;
  for (int64_t n = 0; n < 4; ++n) {
    Value place = high(b.add(group, b.i32(n / 2 * 8)), C);
    Value column = low(b.add(pair, b.i32(n % 2)), Q);
    Value isHere =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, place, column);
    Value value = b.select(isHere, sums[n], zero);
    wanted = wanted ? arith::AddFOp::create(b, wanted, value) : value;
  }
  // Lanes 4g + t: places are in the upper digits of g, columns in t.
  for (int64_t mask = 1; 4 * mask <= Q; mask *= 2)
    wanted = arith::AddFOp::create(b, wanted, b.shuffleXor(wanted, mask));
  for (int64_t mask = 4 * C; mask < kLanes; mask *= 2)
    wanted = arith::AddFOp::create(b, wanted, b.shuffleXor(wanted, mask));
  return wanted;
}

void KernelLowering::lowerRowProduct(tile::DotOp dot) {
  Value result = dot.getResult();
  Layout layout = plan.layoutOf(result);
  SharedTile row = staged(dot.getA()), matrix = staged(dot.getB());
  shared.reads({row.buffer, matrix.buffer});
  RowProduct product(*this, row, matrix, shapeOf(dot.getB()));
  Values parts = product.emit();
  rowFragments = std::max(rowFragments, product.numFragments());

  // A row of sums for each warp.
  int64_t width = product.width(), columns = width * product.numTiles();
  Type sum = b.getF32Type();
  SharedTile all = allocateRowMajor(sum, {plan.numWarps(), columns});
  shared.writes(all.buffer);
  Value group = arith::ShRUIOp::create(b, b.lane(), b.i32(2));
  Value column = arith::AndIOp::create(b, group, b.i32(width - 1));
  Value own = b.address(all.pointer,
                        b.mul(b.add(b.mul(b.warp(), b.i32(columns)), column),
                              b.i32(storedBytes(sum))));
  for (auto [tile, part] : llvm::enumerate(parts))
    b.store(part, b.address(own, int64_t(tile) * width * storedBytes(sum)));

  SharedTile one = all;
  one.extents.front() = 1;
  Value acc = dot.getAcc();
  Values sums;
  if (!matchPattern(acc, m_AnyZeroFloat()))
    sums = get(acc, layout);
  for (int64_t warp = 0; warp < plan.numWarps(); ++warp) {
    one.pointer = b.address(all.pointer, warp * columns * storedBytes(sum));
    Values more = read(one, layout);
    if (sums.empty())
      sums = more;
    else
      for (auto [value, next] : llvm::zip_equal(sums, more))
        value = arith::AddFOp::create(b, value, next);
  }
  remember(result, layout, sums);
}
