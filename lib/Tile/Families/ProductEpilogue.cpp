//===- ProductEpilogue.cpp - a row-wise region over sums ------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile of sums is [rows, columns] whatever the region calls them: heads lie
// side by side in the columns. It is taken a group of columns at a time, each
// from the loads of the other operands to the stores, so that what is between
// needs few registers beside the sums.
//
//===----------------------------------------------------------------------===//

#include "ProductEpilogue.h"

#include "RowwiseEmitter.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::tile;

/// Columns of a group where nothing needs more: two pieces of 16 bytes for each
/// of the four lanes that share a row.
static constexpr int64_t kGroupColumns = 64;
/// Columns that a lane and its neighbours hold together.
static constexpr int64_t kFragment = 8;

bool hybrid::tile::isEpilogue(Operation *op) {
  return TypeSwitch<Operation *, bool>(op)
      .Case<AddOp, SubOp, MulOp, ScaleOp, CastOp, SiluOp, SigmoidOp,
            hybrid::ExpOp, NegOp, SiluGradOp, SigmoidGradOp, hybrid::ReshapeOp>(
          [](auto) { return true; })
      // Angles of dynamic NTK are not reduced to one turn.
      .Case([](RotaryOp rotary) {
        int64_t dim = rotary.getRotaryDim();
        return !rotary.getNtkFactor() && dim % (2 * kFragment) == 0;
      })
      .Default(false);
}

int64_t hybrid::tile::epilogueColumns(RowwiseOp region) {
  int64_t columns = 1;
  for (auto rotary : region.getBody().getOps<RotaryOp>())
    columns = cast<RankedTensorType>(rotary.getType()).getDimSize(2);
  return columns;
}

static bool isSum(const ProductEpilogue &epilogue, unsigned operand) {
  return llvm::is_contained(epilogue.sums, operand);
}

static Type viewTypeOf(Value value) {
  auto tensor = cast<RankedTensorType>(value.getType());
  return ViewType::get(tensor.getShape(), tensor.getElementType());
}

void hybrid::tile::appendEpilogueViews(const ProductEpilogue &epilogue,
                                       SmallVectorImpl<Type> &types) {
  RowwiseOp region = epilogue.region;
  for (auto [n, operand] : llvm::enumerate(region->getOperands()))
    if (isSum(epilogue, n))
      continue;
    else if (isa<SegmentsType>(operand.getType()))
      llvm::append_range(types,
                         KernelBuilder::segmentViewTypes(operand.getContext()));
    else
      types.push_back(viewTypeOf(operand));
  for (Value result : region->getResults())
    types.push_back(viewTypeOf(result));
}

namespace {
class Epilogue {
public:
  Epilogue(KernelBuilder &k, const ProductEpilogue &epilogue,
           const EpilogueTile &tile, ValueRange sums)
      : k(k), epilogue(epilogue), tile(tile), sums(sums),
        body(RowwiseOp(epilogue.region).getBody().front()) {}
  void emit();

private:
  void emitGroup(int64_t first, int64_t columns);
  void loadOperands(RowwiseEmitter &e, int64_t first, int64_t columns);
  Value load(Value view, Type type, int64_t first, int64_t columns);
  Value turn(RotaryOp op, Value x);
  /// Position in its segment of each row, [rows, 1] of i32.
  Value positionsOf(RotaryOp op);

  KernelBuilder &k;
  const ProductEpilogue &epilogue;
  const EpilogueTile &tile;
  ValueRange sums;
  Block &body;
  /// Cosines and sines are those of all heads.
  llvm::DenseMap<Operation *, std::pair<Value, Value>> turns;
};
} // namespace

/// Elements past the rows of the call or the columns of the matrix are neither
/// loaded nor stored.
Value Epilogue::load(Value view, Type type, int64_t first, int64_t columns) {
  bool hasRows = cast<RankedTensorType>(type).isDynamicDim(0);
  Value column = k.add(tile.column, k.idx(first));
  SmallVector<Value> limits = tile.limits;
  if (!hasRows && limits.size() > 1)
    limits.front() = k.idx(1);
  else if (!hasRows)
    limits.clear();
  return k.load(view, {hasRows ? tile.row : k.idx(0), column}, {0, 1},
                {hasRows ? tile.rows : 1, columns}, limits);
}

void Epilogue::loadOperands(RowwiseEmitter &e, int64_t first, int64_t columns) {
  unsigned view = tile.firstView;
  for (BlockArgument operand : body.getArguments()) {
    const auto *sum = llvm::find(epilogue.sums, operand.getArgNumber());
    if (sum != epilogue.sums.end()) {
      Value all = sums[sum - epilogue.sums.begin()];
      e.setTile(operand, k.slice(all, 1, first, columns));
    } else if (isa<SegmentsType>(operand.getType())) {
      e.setSegments(operand, k.view(view), k.view(view + 1));
      view += 2;
    } else {
      e.setTile(operand,
                load(k.view(view++), operand.getType(), first, columns));
    }
  }
}

Value Epilogue::positionsOf(RotaryOp op) {
  auto segments = cast<BlockArgument>(op.getSegments());
  unsigned view = tile.firstView;
  for (BlockArgument operand :
       body.getArguments().take_front(segments.getArgNumber()))
    if (!isSum(epilogue, operand.getArgNumber()))
      view += isa<SegmentsType>(operand.getType()) ? 2 : 1;
  Value table = k.view(view), tokenSegment = k.view(view + 1);
  int64_t rows[] = {tile.rows}, column[] = {tile.rows, 1};
  Value segment = k.load(tokenSegment, {tile.row}, {0}, rows, {tile.numRows});
  Value left = k.splat(k.toI32(k.sub(tile.numRows, tile.row)), rows);
  Value mask = k.lt(k.iota(0, rows), left);
  auto entry = [&](int64_t n) {
    return k.loadRows(table, {k.idx(0), k.idx(n)}, segment, mask, {0, 1},
                      column);
  };
  Value row = k.add(k.splat(k.toI32(tile.row), column), k.iota(0, column));
  return k.add(k.sub(row, entry(0)), entry(3));
}

/// Half-split rotation of one head, [rows, head_dim].
Value Epilogue::turn(RotaryOp op, Value x) {
  int64_t half = op.getRotaryDim() / 2, shape[] = {tile.rows, half};
  auto &[cos, sin] = turns[op];
  if (!cos) {
    SmallVector<int32_t> table = rotaryTurns(op);
    Value perTurn = arith::ConstantOp::create(
        k.ops(), DenseIntElementsAttr::get(
                     RankedTensorType::get({1, half}, k.ops().getI32Type()),
                     ArrayRef(table)));
    Value angle = rotaryAngles(k, k.mul(k.broadcast(perTurn, shape),
                                        k.broadcast(positionsOf(op), shape)));
    cos = math::CosOp::create(k.ops(), angle);
    sin = math::SinOp::create(k.ops(), angle);
    if (op.getInverse())
      sin = k.neg(sin);
  }
  Value low = k.slice(x, 1, 0, half), high = k.slice(x, 1, half, half);
  SmallVector<Value> parts = {k.sub(k.mul(low, cos), k.mul(high, sin)),
                              k.add(k.mul(high, cos), k.mul(low, sin))};
  int64_t columns = cast<RankedTensorType>(x.getType()).getDimSize(1);
  if (2 * half < columns)
    parts.push_back(k.slice(x, 1, 2 * half, columns - 2 * half));
  return k.concat(parts, 1);
}

void Epilogue::emitGroup(int64_t first, int64_t columns) {
  RowwiseOp region = epilogue.region;
  RowBlock block{cast<RankedTensorType>(region->getResult(0).getType()),
                 tile.rows};
  RowwiseEmitter e(k, block, tile.row, tile.numRows);
  loadOperands(e, first, columns);
  for (Operation &op : body.without_terminator()) {
    Value made;
    if (auto rotary = dyn_cast<RotaryOp>(op))
      made = turn(rotary, e.tileOf(rotary.getX()));
    else if (auto reshape = dyn_cast<hybrid::ReshapeOp>(op))
      made = e.tileOf(reshape.getX());
    else
      made = lookupRowwiseEmission(&op)(e, &op);
    e.setTile(op.getResult(0), made);
  }
  Value column = k.add(tile.column, k.idx(first));
  unsigned view = k.numViews() - region->getNumResults();
  for (Value result : body.getTerminator()->getOperands())
    k.store(e.tileOf(result), k.view(view++), {tile.row, column}, {0, 1},
            tile.limits);
}

void Epilogue::emit() {
  int64_t columns = std::max(kGroupColumns, epilogueColumns(epilogue.region));
  for (int64_t first = 0; first < tile.columns; first += columns)
    emitGroup(first, std::min(columns, tile.columns - first));
}

void hybrid::tile::emitEpilogue(KernelBuilder &k,
                                const ProductEpilogue &epilogue,
                                const EpilogueTile &tile, ValueRange sums) {
  Epilogue(k, epilogue, tile, sums).emit();
}
