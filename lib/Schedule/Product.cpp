//===- Product.cpp - strategies of matrix products -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Scheduler.h"
#include "WarpgroupProduct.h"

#include "hybrid/Tile/Families/Product.h"

using namespace mlir;
using namespace hybrid;

static tile::ProductShape shapeOf(ProductOp op, const TargetTraits &target) {
  auto a = cast<RankedTensorType>(op.getA().getType());
  auto c = cast<RankedTensorType>(op.getResult().getType());
  tile::ProductShape shape;
  shape.rowTile = target.productRows;
  shape.columnTile = target.productColumns;
  shape.depthTile = target.productDepth;
  shape.tailRows = target.productTail;
  shape.rows = c.getDimSize(0);
  shape.columns = c.getDimSize(1);
  unsigned depthDim = op.getTransposeA() ? 0 : 1;
  shape.depth = a.getDimSize(depthDim);
  shape.transposeA = op.getTransposeA();
  shape.transposeB = op.getTransposeB();
  shape.element = a.getElementType();
  shape.resultElement = c.getElementType();
  if (ShapedType::isDynamic(shape.rows))
    shape.dynamicSize = getSizes(c).getResult(0);
  else if (ShapedType::isDynamic(shape.depth))
    shape.dynamicSize = getSizes(a).getResult(depthDim);
  return shape;
}

/// Ranges that the depth of a weight's gradient is cut into. A launch takes as
/// many rounds as its points fill the target; each range costs a little more
/// for its sums. The fewest ranges that are nearly the best.
static int64_t splitsOf(const tile::ProductShape &shape,
                        const TargetTraits &target) {
  if (target.processors == 0 || ShapedType::isDynamic(shape.rows) ||
      !ShapedType::isDynamic(shape.depth))
    return 1;
  int64_t tiles = llvm::divideCeil(shape.rows, shape.rowTile) *
                  llvm::divideCeil(shape.columns, shape.columnTile);
  int64_t most =
      std::clamp<int64_t>(target.splitElements / (shape.rows * shape.columns),
                          1, target.mostSplits);
  auto time = [&](int64_t splits) {
    return llvm::divideCeil(tiles * splits, target.processors) *
           (1.0 / splits + 0.005);
  };
  double best = time(1);
  for (int64_t splits = 2; splits <= most; ++splits)
    best = std::min(best, time(splits));
  int64_t splits = 1;
  while (time(splits) > 1.05 * best)
    ++splits;
  return splits;
}

/// The columns of a step's tile: narrower where wide ones are too few points.
static int64_t stepColumnsOf(const tile::ProductShape &shape,
                             const TargetTraits &target) {
  int64_t columns = target.stepColumns;
  while (columns > target.leastStepColumns &&
         int64_t(llvm::divideCeil(shape.columns, columns)) < target.processors)
    columns /= 2;
  return columns;
}

namespace {
/// The launches that one product chooses from.
class ProductSchedule {
public:
  ProductSchedule(Scheduler &scheduler, ProductOp op)
      : scheduler(scheduler), target(scheduler.target), op(op),
        shape(shapeOf(op, target)), tiles(shape) {
    if (scheduler.writesRecords && fitsWarpgroups(op, shape, target)) {
      isAligned = hasAlignedRows(op.getA()) && hasAlignedRows(op.getB());
      if (isAligned)
        tiles = tiledForWarpgroups(shape, target, target.warpgroupColumns);
    }
    splits = splitsOf(tiles, target);
  }

  /// The product of whole sequences, added to `sum` where there is one.
  Value whole(OpBuilder &builder, Value sum = {});
  /// Of an entry whose calls may be decoding steps.
  Value decoded(OpBuilder &builder);
  /// What whole tiles are, and why.
  std::string blocks() const;
  std::string blocksReason() const;
  void explainDecoded();

private:
  using Build = tile::ProgramOp (*)(OpBuilder &, Location,
                                    const tile::ProductShape &);
  tile::ProgramOp program(StringRef variant, const tile::ProductShape &tiled,
                          Build build = tile::buildProduct) {
    return scheduler.programs.get(
        op, variant, [&](OpBuilder &programs, ModuleOp) {
          tile::ProgramOp made = build(programs, op.getLoc(), tiled);
          if (tiled.wholeTiles)
            recordProduct(made, tiled, target);
          return made;
        });
  }
  DispatchOp launch(OpBuilder &builder, tile::ProgramOp program) {
    return scheduler.dispatch(builder, op.getLoc(), program,
                              {op.getA(), op.getB()}, op.getResult().getType());
  }
  /// Lets a runtime compute `dispatch` otherwise. Calls of a few rows are not
  /// marked: reading the matrix once is all that they do.
  Value marked(DispatchOp dispatch, bool parts = false) {
    Type a = elementOf(op.getA()), result = elementOf(op.getResult());
    if (a == elementOf(op.getB()) && (result == a || result.isF32()))
      dispatch.setProductAttr(PlainProductAttr::get(
          op.getContext(), op.getTransposeA(), op.getTransposeB(), parts));
    return dispatch->getResult(0);
  }
  Value inSplits(OpBuilder &builder, Value sum);
  SmallVector<Value> upTo(OpBuilder &builder, int64_t rows,
                          Scheduler::Algorithm guarded,
                          Scheduler::Algorithm general);
  SmallVector<Value> few(OpBuilder &builder);
  SmallVector<Value> medium(OpBuilder &builder);
  SmallVector<Value> single(OpBuilder &builder);
  SmallVector<Value> square(OpBuilder &builder);
  /// The most rows of which tiles leave processors idle.
  int64_t rowsWithin(int64_t rowTile, int64_t columnTile) const {
    int64_t columns = llvm::divideCeil(shape.columns, columnTile);
    return (target.processors - 1) / columns * rowTile;
  }
  /// Calls of at most this many rows have too few whole tiles; 0: there are
  /// none. Tiles of warpgroups are several times as fast as smaller ones, so
  /// those are for calls that they do not fill the processors with either.
  int64_t mediumRows() const {
    if (target.mediumTile == 0)
      return 0;
    return tiles.wholeTiles ? rowsWithin(target.mediumTile, target.mediumTile)
                            : rowsWithin(shape.rowTile, shape.columnTile);
  }
  /// The same of the widest tiles of warpgroups, where narrower ones fill more
  /// processors.
  int64_t squareRows() const {
    if (!tiles.wholeTiles || tiles.columnTile <= target.productColumns)
      return 0;
    return rowsWithin(tiles.rowTile, target.productColumns);
  }

  Scheduler &scheduler;
  const TargetTraits &target;
  ProductOp op;
  /// As the generic path has it, and the whole tiles of long calls.
  tile::ProductShape shape, tiles;
  /// Whether the copy engine could read operands that would fit otherwise.
  bool isAligned = true;
  int64_t splits;
};
} // namespace

Value ProductSchedule::inSplits(OpBuilder &builder, Value sum) {
  MLIRContext *context = op.getContext();
  tile::ProductShape split = tiles;
  split.splits = splits;
  auto rows =
      AffineMap::get(0, numCallSymbols, getAffineConstantExpr(splits, context));
  Type parts = workspaceType(rows, {shape.rows, shape.columns});
  DispatchOp product =
      scheduler.dispatch(builder, op.getLoc(), program("split", split),
                         {op.getA(), op.getB()}, parts);
  // Nothing is used twice, so a tile is a few registers of each thread.
  split = shape;
  split.splits = splits;
  split.rowTile = 16;
  split.accumulate = static_cast<bool>(sum);
  SmallVector<Value> inputs{product->getResult(0)};
  SmallVector<int64_t> ties;
  if (sum) {
    inputs.push_back(sum);
    ties = {0, 1};
  }
  return marked(
      scheduler.dispatch(builder, op.getLoc(),
                         program(sum ? "split_accumulate" : "split_sum", split,
                                 tile::buildProductSum),
                         inputs, op.getResult().getType(), ties),
      /*parts=*/true);
}

Value ProductSchedule::whole(OpBuilder &builder, Value sum) {
  if (splits > 1)
    return inSplits(builder, sum);
  if (!sum)
    return marked(launch(builder, program("many", tiles)));
  tile::ProductShape added = tiles;
  added.accumulate = true;
  return marked(scheduler.dispatch(
      builder, op.getLoc(), program("accumulate", added),
      {op.getA(), op.getB(), sum}, sum.getType(), /*ties=*/{0, 2}));
}

SmallVector<Value> ProductSchedule::upTo(OpBuilder &builder, int64_t rows,
                                         Scheduler::Algorithm guarded,
                                         Scheduler::Algorithm general) {
  return llvm::to_vector_of<Value>(
      scheduler.either(builder, op.getLoc(), op->getResultTypes(),
                       rows - shape.dynamicSize, guarded, general));
}

SmallVector<Value> ProductSchedule::few(OpBuilder &builder) {
  tile::ProductShape tiled = shape;
  tiled.rowTile = target.fewRows;
  tiled.columnTile = stepColumnsOf(shape, target);
  // Narrow tiles are deeper, so that enough is on its way from memory.
  tiled.depthTile =
      std::max(shape.depthTile,
               shape.depthTile / 2 * (target.stepColumns / tiled.columnTile));
  return {launch(builder, program("few", tiled))->getResult(0)};
}

SmallVector<Value> ProductSchedule::medium(OpBuilder &builder) {
  tile::ProductShape tiled = shape;
  tiled.rowTile = tiled.columnTile = target.mediumTile;
  return {marked(launch(builder, program("medium", tiled)))};
}

SmallVector<Value> ProductSchedule::single(OpBuilder &builder) {
  tile::ProductShape tiled = shape;
  tiled.rowTile = 1;
  tiled.columnTile = target.stepColumns;
  return {launch(builder, program("single", tiled))->getResult(0)};
}

SmallVector<Value> ProductSchedule::square(OpBuilder &builder) {
  return {marked(launch(
      builder, program("square", tiledForWarpgroups(shape, target,
                                                    target.productColumns))))};
}

Value ProductSchedule::decoded(OpBuilder &builder) {
  auto fewOrSingle = [&](OpBuilder &inner) {
    if (target.singleRows == 0)
      return few(inner);
    return upTo(
        inner, 1, [&](OpBuilder &at) { return single(at); },
        [&](OpBuilder &at) { return few(at); });
  };
  auto widest = [&](OpBuilder &inner) {
    return SmallVector<Value>{whole(inner)};
  };
  auto many = [&](OpBuilder &inner) {
    if (squareRows() <= std::max(mediumRows(), target.fewRows))
      return widest(inner);
    return upTo(
        inner, squareRows(), [&](OpBuilder &at) { return square(at); }, widest);
  };
  auto mediumOrMany = [&](OpBuilder &inner) {
    if (mediumRows() <= target.fewRows)
      return many(inner);
    return upTo(
        inner, mediumRows(), [&](OpBuilder &at) { return medium(at); }, many);
  };
  return upTo(builder, target.fewRows, fewOrSingle, mediumOrMany).front();
}

std::string ProductSchedule::blocks() const {
  std::string text = "blocks of " + std::to_string(tiles.rowTile);
  if (!tiles.wholeTiles)
    return text + " rows";
  return text + " x " + std::to_string(tiles.columnTile) + " for warpgroups";
}

std::string ProductSchedule::blocksReason() const {
  return isAligned ? "whole sequences"
                   : "whole sequences; no tiles for warpgroups, because rows "
                     "of an operand do not begin at multiples of 16 bytes";
}

void ProductSchedule::explainDecoded() {
  std::string text = "the matrix read once for ";
  if (target.singleRows > 0)
    text += "one row and for ";
  text += "up to " + std::to_string(target.fewRows) + " rows, else ";
  if (mediumRows() > target.fewRows)
    text += "blocks of " + std::to_string(target.mediumTile) + " rows up to " +
            std::to_string(mediumRows()) + ", else ";
  if (squareRows() > std::max(mediumRows(), target.fewRows))
    text += "narrower ones up to " + std::to_string(squareRows()) + ", else ";
  scheduler.chose(op, "HYB-S402", text + blocks(),
                  "with a state, calls are prefill or decode");
}

LogicalResult hybrid::scheduleOp(Scheduler &scheduler, ProductOp op) {
  ProductSchedule schedule(scheduler, op);
  OpBuilder builder(op);
  bool isStream =
      ShapedType::isDynamic(cast<RankedTensorType>(op.getType()).getDimSize(0));
  if (isStream && isDecoded(op)) {
    schedule.explainDecoded();
    op.replaceAllUsesWith(schedule.decoded(builder));
  } else {
    scheduler.chose(op, "HYB-S401", schedule.blocks(), schedule.blocksReason());
    op.replaceAllUsesWith(schedule.whole(builder));
  }
  op.erase();
  return success();
}

Value hybrid::scheduleAccumulated(Scheduler &scheduler, ProductOp op,
                                  OpBuilder &builder, Value sum) {
  scheduler.chose(op, "HYB-S403", "added to the gradient in place",
                  "nothing else reads the product");
  return ProductSchedule(scheduler, op).whole(builder, sum);
}
