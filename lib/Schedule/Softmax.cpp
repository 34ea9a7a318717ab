//===- Softmax.cpp - strategies of the softmax family -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Scheduler.h"

#include "hybrid/Tile/Families/Softmax.h"

using namespace mlir;
using namespace hybrid;

template <typename Op>
static tile::SoftmaxShape shapeOf(Op op, const TargetTraits &target) {
  tile::SoftmaxShape shape;
  shape.queryTile = target.queryTile;
  shape.keyTile = target.keyTile;
  auto q = cast<RankedTensorType>(op.getQ().getType());
  auto k = cast<RankedTensorType>(op.getK().getType());
  auto v = cast<RankedTensorType>(op.getV().getType());
  shape.heads = q.getDimSize(1);
  shape.kvHeads = k.getDimSize(1);
  shape.dim = k.getDimSize(2);
  shape.valueDim = v.getDimSize(2);
  shape.scale = op.getScale().convertToDouble();
  llvm::append_range(shape.windows, op.getWindows());
  llvm::append_range(shape.sinks, op.getSinks());
  return shape;
}

static std::string tilesOf(const tile::SoftmaxShape &shape) {
  return "tiles of " + std::to_string(shape.queryTile) + " queries and " +
         std::to_string(shape.keyTile) + " keys";
}

LogicalResult hybrid::scheduleOp(Scheduler &scheduler, AttentionOp op) {
  tile::SoftmaxShape shape = shapeOf(op, scheduler.target);
  OpBuilder builder(op);
  tile::ProgramOp program =
      scheduler.programs.get(op, "forward", [&](OpBuilder &programs, ModuleOp) {
        return tile::buildSoftmaxForward(programs, op.getLoc(), shape);
      });
  scheduler.chose(op, "HYB-S101", tilesOf(shape),
                  "one pass over whole sequences");
  DispatchOp dispatch =
      scheduler.dispatch(builder, op.getLoc(), program,
                         {op.getQ(), op.getK(), op.getV(), op.getSegments()},
                         op->getResultTypes());
  op->replaceAllUsesWith(dispatch);
  op.erase();
  return success();
}

LogicalResult hybrid::scheduleOp(Scheduler &scheduler, AttentionGradOp op) {
  tile::SoftmaxShape shape = shapeOf(op, scheduler.target);
  shape.keyTile =
      scheduler.target.backwardKeyTile(std::max(shape.dim, shape.valueDim));
  OpBuilder builder(op);
  tile::ProgramOp program = scheduler.programs.get(
      op, "backward", [&](OpBuilder &programs, ModuleOp) {
        return tile::buildSoftmaxBackward(programs, op.getLoc(), shape);
      });
  scheduler.chose(
      op, "HYB-S102", tilesOf(shape),
      "key tiles take turns to add to dq, so the sum has one order");
  DispatchOp dispatch =
      scheduler.dispatch(builder, op.getLoc(), program,
                         {op.getQ(), op.getK(), op.getV(), op.getO(),
                          op.getLogSumExp(), op.getDout(), op.getSegments()},
                         op->getResultTypes());
  op->replaceAllUsesWith(dispatch);
  op.erase();
  return success();
}

/// Appends the new keys and values, then attends over the cache, whole or in
/// `splits` ranges of keys that are combined.
LogicalResult hybrid::scheduleOp(Scheduler &scheduler, AttentionCachedOp op) {
  tile::SoftmaxShape shape = shapeOf(op, scheduler.target);
  const TargetTraits &target = scheduler.target;
  Location loc = op.getLoc();
  MLIRContext *context = op.getContext();

  auto append = [&](OpBuilder &builder) {
    tile::ProgramOp program = scheduler.programs.get(
        op, "append", [&](OpBuilder &programs, ModuleOp) {
          return tile::buildSoftmaxAppend(programs, loc, shape);
        });
    Type caches[] = {op.getKCache().getType(), op.getVCache().getType()};
    return scheduler.dispatch(builder, loc, program,
                              {op.getK(), op.getV(), op.getKCache(),
                               op.getVCache(), op.getSegments()},
                              caches, /*ties=*/{0, 2, 1, 3});
  };
  OpBuilder builder(op);
  DispatchOp caches = append(builder);
  Value kCache = caches->getResult(0), vCache = caches->getResult(1);
  op.getNewKCache().replaceAllUsesWith(kCache);
  op.getNewVCache().replaceAllUsesWith(vCache);

  auto whole = [&](OpBuilder &builder) {
    tile::ProgramOp program = scheduler.programs.get(
        op, "cached", [&](OpBuilder &programs, ModuleOp) {
          return tile::buildSoftmaxCached(programs, loc, shape);
        });
    DispatchOp dispatch = scheduler.dispatch(
        builder, loc, program, {op.getQ(), kCache, vCache, op.getSegments()},
        op.getO().getType());
    return SmallVector<Value>(dispatch->getResults());
  };
  if (shape.heads >= target.headsEnough) {
    scheduler.chose(op, "HYB-S103", tilesOf(shape) + " over the cache",
                    Twine(shape.heads) + " heads keep the processors busy");
    op.getO().replaceAllUsesWith(whole(builder).front());
    op.erase();
    return success();
  }

  shape.splits = target.splits;
  auto split = [&](OpBuilder &builder) {
    tile::ProgramOp splitProgram =
        scheduler.programs.get(op, "split", [&](OpBuilder &programs, ModuleOp) {
          return tile::buildSoftmaxSplit(programs, loc, shape);
        });
    tile::ProgramOp combineProgram = scheduler.programs.get(
        op, "combine", [&](OpBuilder &programs, ModuleOp) {
          return tile::buildSoftmaxCombine(programs, loc, shape);
        });
    auto tokens = AffineMap::get(0, numCallSymbols,
                                 getSymbolExpr(CallSymbol::tokens, context));
    Type partial[] = {
        workspaceType(tokens, {shape.heads, shape.splits, shape.valueDim}),
        workspaceType(tokens, {shape.heads, shape.splits})};
    DispatchOp parts = scheduler.dispatch(
        builder, loc, splitProgram,
        {op.getQ(), kCache, vCache, op.getSegments()}, partial);
    DispatchOp combined = scheduler.dispatch(
        builder, loc, combineProgram, parts->getResults(), op.getO().getType());
    return SmallVector<Value>(combined->getResults());
  };
  scheduler.chose(op, "HYB-S104",
                  "up to " + Twine(target.splitRows) + " rows keys in " +
                      Twine(shape.splits) + " ranges from a context of " +
                      Twine(target.splitContext) + ", else " + tilesOf(shape),
                  Twine(shape.heads) + " heads alone leave processors idle");
  // The caches are replaced above; what is left to choose is the output.
  Type type = op.getO().getType();
  AffineExpr rows = getSymbolExpr(CallSymbol::tokens, context);
  AffineExpr capacity = getSymbolExpr(CallSymbol::context, context);
  auto fewRows = [&](OpBuilder &builder) {
    return SmallVector<Value>(scheduler.either(
        builder, loc, type, capacity - target.splitContext, split, whole));
  };
  ValueRange o = scheduler.either(builder, loc, type, target.splitRows - rows,
                                  fewRows, whole);
  op.getO().replaceAllUsesWith(o.front());
  op.erase();
  return success();
}
