//===- Rows.cpp - strategies of everything around the mixers -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Scheduler.h"

#include "hybrid/Tile/Families/ShortConv.h"

using namespace mlir;
using namespace hybrid;

//===----------------------------------------------------------------------===//
// Short convolution
//===----------------------------------------------------------------------===//

static tile::ShortConvShape shapeOf(Value weight) {
  auto type = cast<RankedTensorType>(weight.getType());
  tile::ShortConvShape shape;
  shape.channels = type.getDimSize(0);
  shape.kernel = type.getDimSize(1);
  return shape;
}

LogicalResult hybrid::scheduleOp(Scheduler &scheduler, ShortConvOp op) {
  tile::ShortConvShape shape = shapeOf(op.getWeight());
  shape.hasState = static_cast<bool>(op.getState());
  if (failed(shape.verify([&] { return op.emitOpError(); })))
    return failure();
  OpBuilder builder(op);
  tile::ProgramOp program =
      scheduler.programs.get(op, "forward", [&](OpBuilder &programs, ModuleOp) {
        return tile::buildShortConvForward(programs, op.getLoc(), shape);
      });
  SmallVector<Value> inputs{op.getX(), op.getWeight(), op.getSegments()};
  SmallVector<int64_t> ties;
  if (op.getState()) {
    ties = {1, 3};
    inputs.push_back(op.getState());
  }
  scheduler.chose(op, "HYB-S301", "one pass over " + Twine(shape.channels) + " channels",
                  shape.hasState ? "earlier rows come from the state"
                                 : "whole sequences");
  DispatchOp dispatch = scheduler.dispatch(builder, op.getLoc(), program, inputs,
                                           op->getResultTypes(), ties);
  op->replaceAllUsesWith(dispatch);
  op.erase();
  return success();
}

LogicalResult hybrid::scheduleOp(Scheduler &scheduler, ShortConvGradOp op) {
  tile::ShortConvShape shape = shapeOf(op.getWeight());
  if (failed(shape.verify([&] { return op.emitOpError(); })))
    return failure();
  OpBuilder builder(op);
  tile::ProgramOp program =
      scheduler.programs.get(op, "backward", [&](OpBuilder &programs, ModuleOp) {
        return tile::buildShortConvBackward(programs, op.getLoc(), shape);
      });
  scheduler.chose(op, "HYB-S302", "one pass over " + Twine(shape.channels) + " channels",
                  "the weight's gradient is summed in token order");
  DispatchOp dispatch = scheduler.dispatch(
      builder, op.getLoc(), program,
      {op.getX(), op.getWeight(), op.getSegments(), op.getDy()}, op->getResultTypes());
  op->replaceAllUsesWith(dispatch);
  op.erase();
  return success();
}
