//===- Worker.cpp - the role that computes --------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Roles.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::hopper;

/// Barrier 0 is that of the block, those after it are turns, and this one
/// follows the clearing of rows.
constexpr int64_t kClearedBarrier = 15;

//===----------------------------------------------------------------------===//
// Types and rows
//===----------------------------------------------------------------------===//

Value Worker::firstRow() {
  return arith::MulIOp::create(b, warpgroup, index(kRows));
}

/// Rows of tiles are divided among warpgroups; a single row is for all of them.
FailureOr<Type> Worker::part(Operation *op, Type type) {
  auto tile = dyn_cast<RankedTensorType>(type);
  if (!tile)
    return type;
  SmallVector<int64_t> shape(tile.getShape());
  bool isRow = tile.getRank() == 2 && shape[0] == 1;
  if (tile.getRank() > 2 || (!isRow && shape[0] != record.rows()))
    return op->emitError("makes ")
           << tile << "; tiles that a schedule for " << kTarget
           << " keeps in registers have " << record.rows() << " rows or one";
  if (!isRow)
    shape[0] = kRows;
  return Type(RankedTensorType::get(shape, tile.getElementType()));
}

static bool isZero(Value value) {
  DenseElementsAttr elements;
  if (auto constant = value.getDefiningOp<arith::ConstantOp>())
    elements = dyn_cast<DenseElementsAttr>(constant.getValue());
  return elements && elements.isSplat() &&
         elements.getSplatValue<APFloat>().isPosZero();
}

/// Whether the limit is where the view ends: then the copy engine gives zeros.
static bool isEndOfView(tile::LoadOp load, unsigned dim) {
  auto size = load.getLimits()[dim].getDefiningOp<tile::DimOp>();
  return size && size.getView() == load.getView() &&
         int64_t(size.getDim()) == load.getDims()[dim];
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

LogicalResult Worker::await(tile::LoadOp load, Frame &frame) {
  if (frame.places.count(load.getTile()))
    return success();
  const Ring &ring = ringOf(load);
  Place place = placeOf(ring, frame.count);
  frame.places[load.getTile()] = place;
  WaitOp::create(b, ring.full, place.copy, place.parity);
  if (load.getLimits().size() > 1 && !isEndOfView(load, 1))
    return load.emitError("limits columns by something else than the view's "
                          "size, which the copy engine does not know");
  if (load.getLimits().empty() || isEndOfView(load, 0))
    return success();
  // Rows past the limit are another segment's, and 0 times NaN is NaN.
  int64_t rows = ring.buffer.getType().getRows();
  if (failed(need(load, frame)))
    return failure();
  Value left = arith::SubIOp::create(
      b, frame.map.lookup(load.getLimits()[0]),
      frame.map.lookup(load.getIndices()[load.getDims()[0]]));
  Value isCut =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, left, index(rows));
  auto branch = scf::IfOp::create(b, isCut, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  Value first = arith::MaxSIOp::create(b, left, index(0));
  ClearRowsOp::create(b, ring.buffer, place.copy, toI32(first));
  SyncOp::create(b, i32(kClearedBarrier),
                 record.worker().warpgroups * kWarpgroupThreads);
  return success();
}

FailureOr<Value> Worker::operand(tile::DotOp dot, Value tile, bool left,
                                 Frame &frame) {
  auto load = tile.getDefiningOp<tile::LoadOp>();
  if (!load || !record.isLoad(load)) {
    if (left)
      return get(dot, tile, frame);
    return dot.emitError("has a right operand that no load of role ")
           << record.loader().name << " brings into shared memory";
  }
  if (failed(await(load, frame)))
    return failure();
  const Ring &ring = ringOf(load);
  BufferType buffer = ring.buffer.getType();
  int64_t rows = buffer.getRows(), columns = buffer.getColumns();
  Value row = i32(0), column;
  // A warpgroup's rows of the result are columns of a left operand that is
  // read transposed: a panel.
  if (left && dot.getTransposeA()) {
    columns = kRows;
    column = toI32(firstRow());
  } else if (left) {
    rows = kRows;
    row = toI32(firstRow());
  }
  auto type = MatrixType::get({rows, columns, buffer.getRows()},
                              buffer.getElementType());
  return SubmatrixOp::create(b, type, ring.buffer,
                             frame.places[load.getTile()].copy, row, column)
      .getResult();
}

//===----------------------------------------------------------------------===//
// Products in flight
//===----------------------------------------------------------------------===//

void Worker::release(const Release &release) {
  if (!release.ring->empty)
    return;
  OpBuilder::InsertionGuard guard(b);
  if (release.condition) {
    auto branch =
        scf::IfOp::create(b, release.condition, /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
  }
  ArriveOp::create(b, release.ring->empty, release.copy);
}

/// Products end in the order they were started in, so those before end too.
void Worker::settle(Value dot, Frame &frame) {
  size_t count = 0;
  for (auto [number, product] : llvm::enumerate(running))
    if (product.dot == dot)
      count = number + 1;
  if (count == 0)
    return;
  SmallVector<Value> flights;
  SmallVector<Type> types;
  for (Running &product : ArrayRef(running).take_front(count).vec()) {
    flights.push_back(product.flight);
    auto type = cast<FlightType>(product.flight.getType());
    types.push_back(
        RankedTensorType::get(type.getShape(), type.getElementType()));
  }
  auto wait = ProductWaitOp::create(b, types, flights, running.size() - count);
  for (auto [product, tile] : llvm::zip_equal(
           ArrayRef(running).take_front(count).vec(), wait.getTiles())) {
    product.frame->map.map(product.dot, tile);
    for (const Release &free : product.releases)
      release(free);
  }
  running.erase(running.begin(), running.begin() + count);
}

void Worker::settleAll(Frame &frame) {
  if (!running.empty())
    settle(running.back().dot, frame);
}

FailureOr<Value> Worker::get(Operation *user, Value value, Frame &frame) {
  settle(value, frame);
  if (!frame.map.contains(value) && failed(emitDefinition(value, frame)))
    return failure();
  if (!frame.map.contains(value))
    return user->emitError(
               "uses a tile that is not in registers; loads of role ")
           << record.loader().name << " are operands of products alone";
  return frame.map.lookup(value);
}

/// Scalars and constants are computed where they are used.
LogicalResult Worker::emitDefinition(Value value, Frame &frame) {
  Operation *op = value.getDefiningOp();
  if (!op || record.isLoad(op) || isa<tile::DotOp>(op) ||
      op->getNumRegions() != 0)
    return success();
  for (Value operand : op->getOperands())
    if (!frame.map.contains(operand) && failed(emitDefinition(operand, frame)))
      return failure();
  return emitOp(op, frame);
}

LogicalResult Worker::need(Operation *op, Frame &frame) {
  for (Value operand : op->getOperands())
    if (!isTile(operand) && !isa<tile::ViewType>(operand.getType()) &&
        !frame.map.contains(operand) && failed(emitDefinition(operand, frame)))
      return failure();
  return success();
}

/// Whether all products of what a loop loads have started with this one. They
/// end in that order, so the copy is free when the last one has.
FailureOr<bool> Worker::isLastUse(tile::LoadOp load, Frame &frame) {
  Value tile = load.getTile();
  int64_t stage = record.number(*tile.user_begin(), "stage", 0);
  for (Operation *user : tile.getUsers())
    if (record.number(user, "stage", 0) != stage)
      return user->emitError("is of another stage than another product of the "
                             "same operand; a copy is kept for one stage");
  int64_t uses = std::distance(tile.use_begin(), tile.use_end());
  return ++frame.started[tile] == uses;
}

LogicalResult Worker::emitDot(tile::DotOp dot, Frame &frame, Value flight) {
  FailureOr<Value> a = operand(dot, dot.getA(), /*left=*/true, frame);
  if (failed(a))
    return failure();
  FailureOr<Value> right = operand(dot, dot.getB(), /*left=*/false, frame);
  if (failed(right))
    return failure();
  Value acc = flight;
  if (!acc && !isZero(dot.getAcc())) {
    FailureOr<Value> sum = get(dot, dot.getAcc(), frame);
    if (failed(sum))
      return failure();
    acc = *sum;
  }
  auto sums = cast<RankedTensorType>(dot.getResult().getType());
  auto type =
      FlightType::get({kRows, sums.getDimSize(1)}, sums.getElementType());
  ProductFenceOp::create(b);
  Value result =
      ProductOp::create(b, type, *a, *right, acc,
                        dot.getTransposeA() ? b.getUnitAttr() : UnitAttr(),
                        dot.getTransposeB() ? b.getUnitAttr() : UnitAttr());
  ProductCommitOp::create(b);
  Running product{dot.getResult(), result, &frame, {}};
  for (Value tile : {dot.getA(), dot.getB()}) {
    auto load = tile.getDefiningOp<tile::LoadOp>();
    if (!load || !record.isLoad(load) || !ringOf(load).empty)
      continue;
    FailureOr<bool> isLast = isLastUse(load, frame);
    if (failed(isLast))
      return failure();
    if (*isLast)
      product.releases.push_back({&ringOf(load), frame.places[tile].copy, {}});
  }
  running.push_back(product);
  return success();
}

//===----------------------------------------------------------------------===//
// Everything else
//===----------------------------------------------------------------------===//

LogicalResult Worker::emitIf(scf::IfOp branch, Frame &frame) {
  // What a branch uses of products has to be there in both ways.
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(branch->getRegions(), captured);
  for (Value value : captured)
    if (isTile(value) && !value.getDefiningOp<tile::LoadOp>() &&
        failed(get(branch, value, frame)))
      return failure();
  if (failed(need(branch, frame)))
    return failure();
  // Products in flight pass by a branch that has none of its own.
  bool hasProducts =
      branch->walk([](tile::DotOp) { return WalkResult::interrupt(); })
          .wasInterrupted();
  if (hasProducts)
    settleAll(frame);
  SmallVector<Type> types;
  for (Type type : branch.getResultTypes()) {
    FailureOr<Type> own = part(branch, type);
    if (failed(own))
      return failure();
    types.push_back(*own);
  }
  auto made =
      scf::IfOp::create(b, types, frame.map.lookup(branch.getCondition()),
                        branch.elseBlock() != nullptr);
  for (auto [from, to] :
       llvm::zip_equal(branch->getRegions(), made->getRegions())) {
    if (from.empty())
      continue;
    Frame inner = frame;
    OpBuilder::InsertionGuard guard(b);
    if (types.empty())
      b.setInsertionPoint(to.front().getTerminator());
    else
      b.setInsertionPointToStart(&to.front());
    if (failed(emitBlock(from.front(), inner)))
      return failure();
    SmallVector<Value> results;
    for (Value value : from.front().getTerminator()->getOperands()) {
      FailureOr<Value> result = get(branch, value, inner);
      if (failed(result))
        return failure();
      results.push_back(*result);
    }
    if (hasProducts)
      settleAll(inner);
    if (!types.empty())
      scf::YieldOp::create(b, results);
  }
  frame.map.map(branch.getResults(), made.getResults());
  return success();
}

/// A load or store of a tile's rows, divided among warpgroups, at those of this
/// one.
template <typename Access> void Worker::placeRows(Access from, Access made) {
  if (cast<RankedTensorType>(from.getTile().getType()).getDimSize(0) !=
      record.rows())
    return;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(made);
  int64_t rowDim = made.getDims()[0];
  Value row = made.getIndices()[rowDim];
  made.getIndicesMutable()[rowDim].set(
      arith::AddIOp::create(b, row, firstRow()));
}

/// Whether a thread can do its part of `op` on the fragments it holds.
static bool keepsFragments(Operation *op) {
  auto holdsWholeRows = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getDimSize(1) %
               kFragmentColumns ==
           0;
  };
  if (auto reduce = dyn_cast<tile::ReduceOp>(op))
    return reduce.getDim() == 1;
  if (auto slice = dyn_cast<tile::SliceOp>(op))
    return slice.getDim() == 1 && slice.getOffset() % kFragmentColumns == 0 &&
           holdsWholeRows(slice.getInput()) &&
           holdsWholeRows(slice.getResult());
  if (auto concat = dyn_cast<tile::ConcatOp>(op))
    return concat.getDim() == 1 &&
           llvm::all_of(concat.getInputs(), holdsWholeRows);
  if (auto gather = dyn_cast<tile::LoadRowsOp>(op))
    return gather.getTile().getType().getNumElements() ==
           gather.getTile().getType().getDimSize(0);
  if (auto load = dyn_cast<tile::LoadOp>(op)) {
    auto type = load.getTile().getType();
    constexpr int64_t kPieces = 4 * kFragmentColumns;
    return getElementTypeOrSelf(type).getIntOrFloatBitWidth() != 16 ||
           (type.getRank() == 2 && type.getDimSize(0) > 1 &&
            type.getDimSize(1) % kPieces == 0);
  }
  return isa<tile::SplatOp, tile::IotaOp, tile::BroadcastOp, tile::ReshapeOp,
             tile::StoreOp, tile::AccumulateOp, arith::ConstantOp>(op) ||
         !isa<tile::TileDialect>(op->getDialect());
}

/// The op on this warpgroup's rows.
LogicalResult Worker::emitTile(Operation *op, Frame &frame) {
  if (!keepsFragments(op))
    return op->emitError("mixes rows or is unknown to a schedule for ")
           << kTarget << "; leave the program to the generic path";
  for (Value operand : op->getOperands())
    if (isTile(operand) && failed(get(op, operand, frame)))
      return failure();
  if (failed(need(op, frame)))
    return failure();
  Operation *made = op->clone(frame.map);
  made->removeDiscardableAttr(tile::TileDialect::kNameAttr);
  b.insert(made);
  for (OpResult result : made->getResults()) {
    FailureOr<Type> type = part(op, result.getType());
    if (failed(type))
      return failure();
    result.setType(*type);
  }
  if (auto constant = dyn_cast<arith::ConstantOp>(made)) {
    auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
    auto own = cast<RankedTensorType>(made->getResult(0).getType());
    bool isRow = own.getRank() == 2 && own.getDimSize(0) == 1;
    if (!elements || !(elements.isSplat() || isRow))
      return op->emitError("must be a row, or the same number everywhere");
    if (elements.isSplat())
      constant.setValueAttr(elements.resizeSplat(own));
  }
  if (auto load = dyn_cast<tile::LoadOp>(made))
    placeRows(cast<tile::LoadOp>(op), load);
  if (auto store = dyn_cast<tile::StoreOp>(made))
    placeRows(cast<tile::StoreOp>(op), store);
  if (auto sum = dyn_cast<tile::AccumulateOp>(made))
    placeRows(cast<tile::AccumulateOp>(op), sum);
  frame.map.map(op->getResults(), made->getResults());
  auto iota = dyn_cast<tile::IotaOp>(op);
  if (iota && iota.getDim() == 0 &&
      cast<RankedTensorType>(iota.getResult().getType()).getDimSize(0) != 1) {
    Value count = made->getResult(0);
    Value first = tile::SplatOp::create(b, count.getType(), toI32(firstRow()));
    frame.map.map(op->getResult(0),
                  arith::AddIOp::create(b, count, first).getResult());
  }
  return success();
}

LogicalResult Worker::emitOp(Operation *op, Frame &frame) {
  b.setLoc(op->getLoc());
  if (record.isLoad(op)) {
    auto load = cast<tile::LoadOp>(op);
    // Around loops there is nothing to do meanwhile.
    return ringOf(load).loop ? success() : await(load, frame);
  }
  if (auto dot = dyn_cast<tile::DotOp>(op))
    return emitDot(dot, frame);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return emitLoop(loop, frame);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return emitIf(branch, frame);
  if (isa<tile::ReturnOp, scf::YieldOp>(op))
    return success();
  if (isa<tile::StoreOp, tile::AccumulateOp>(op) ||
      llvm::any_of(op->getResults(), isTile))
    return emitTile(op, frame);
  if (op->getNumResults() == 0 || llvm::any_of(op->getOperands(), isTile))
    return op->emitError("is unknown to a schedule for ")
           << kTarget << "; leave the program to the generic path";
  if (failed(need(op, frame)))
    return failure();
  cloneScalar(op, frame.map);
  return success();
}

LogicalResult Worker::emitBlock(Block &block, Frame &frame) {
  for (Operation &op : block)
    if (llvm::any_of(op.getResults(),
                     [&](Value result) { return frame.map.contains(result); }))
      continue;
    else if (failed(emitOp(&op, frame)))
      return failure();
  return success();
}

LogicalResult Worker::emit(Block &program, IRMapping outer) {
  Frame frame;
  frame.map = std::move(outer);
  warpgroup = WarpgroupOp::create(b);
  if (failed(emitBlock(program, frame)))
    return failure();
  settleAll(frame);
  return success();
}
