//===- Product.cpp - strategies of matrix products -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Scheduler.h"

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
  if (ShapedType::isDynamic(shape.rows))
    shape.dynamicSize = getSizes(c).getResult(0);
  else if (ShapedType::isDynamic(shape.depth))
    shape.dynamicSize = getSizes(a).getResult(depthDim);
  return shape;
}

LogicalResult hybrid::scheduleOp(Scheduler &scheduler, ProductOp op) {
  tile::ProductShape shape = shapeOf(op, scheduler.target);
  const int64_t fewRows = scheduler.target.fewRows,
                manyRows = scheduler.target.productRows,
                stepColumns = scheduler.target.stepColumns;
  const bool hasSingle = scheduler.target.singleRows > 0;
  Location loc = op.getLoc();
  OpBuilder builder(op);
  auto launch = [&](OpBuilder &builder, StringRef variant, int64_t rowTile,
                    int64_t columnTile) {
    tile::ProgramOp program =
        scheduler.programs.get(op, variant, [&](OpBuilder &programs, ModuleOp) {
          tile::ProductShape tiled = shape;
          if (ShapedType::isDynamic(shape.rows))
            tiled.rowTile = rowTile;
          tiled.columnTile = columnTile;
          return tile::buildProduct(programs, loc, tiled);
        });
    DispatchOp dispatch =
        scheduler.dispatch(builder, loc, program, {op.getA(), op.getB()},
                           op.getResult().getType());
    return SmallVector<Value>(dispatch->getResults());
  };
  auto many = [&](OpBuilder &builder) {
    return launch(builder, "many", manyRows, shape.columnTile);
  };
  auto few = [&](OpBuilder &builder) {
    return launch(builder, "few", fewRows, stepColumns);
  };
  auto single = [&](OpBuilder &builder) {
    return launch(builder, "single", 1, stepColumns);
  };

  if (ShapedType::isDynamic(shape.rows) && isDecoded(op)) {
    scheduler.chose(op, "HYB-S402",
                    Twine("the matrix read once for ") +
                        (hasSingle ? "one row and for " : "") + "up to " +
                        Twine(fewRows) + " rows, else blocks of " +
                        Twine(manyRows),
                    "with a state, calls are prefill or decode");
    auto step = [&](OpBuilder &inner) {
      if (!hasSingle)
        return few(inner);
      return SmallVector<Value>(
          scheduler.either(inner, loc, op->getResultTypes(),
                           1 - shape.dynamicSize, single, few));
    };
    op->replaceAllUsesWith(scheduler.either(builder, loc, op->getResultTypes(),
                                            fewRows - shape.dynamicSize, step,
                                            many));
  } else {
    scheduler.chose(op, "HYB-S401", "blocks of " + Twine(manyRows) + " rows",
                    "whole sequences");
    op->replaceAllUsesWith(many(builder));
  }
  op.erase();
  return success();
}

Value hybrid::scheduleAccumulated(Scheduler &scheduler, ProductOp op,
                                  OpBuilder &builder, Value sum) {
  tile::ProductShape shape = shapeOf(op, scheduler.target);
  shape.accumulate = true;
  tile::ProgramOp program = scheduler.programs.get(
      op, "accumulate", [&](OpBuilder &programs, ModuleOp) {
        return tile::buildProduct(programs, op.getLoc(), shape);
      });
  scheduler.chose(op, "HYB-S403", "added to the gradient in place",
                  "nothing else reads the product");
  return scheduler
      .dispatch(builder, op.getLoc(), program, {op.getA(), op.getB(), sum},
                sum.getType(), /*ties=*/{0, 2})
      ->getResult(0);
}
