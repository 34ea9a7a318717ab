//===- Softmax.cpp - strategies of the softmax family -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Scheduler.h"
#include "SoftmaxStep.h"
#include "WarpgroupProduct.h"

#include "hybrid/Tile/Families/SoftmaxWarpgroups.h"

using namespace mlir;
using namespace hybrid;

/// Of a row of one head.
static int64_t bytesOfRow(const tile::SoftmaxShape &shape) {
  return std::max(shape.dim, shape.valueDim) *
         (shape.element ? shape.element.getIntOrFloatBitWidth() / 8 : 4);
}

template <typename Op>
static tile::SoftmaxShape shapeOf(Op op, const TargetTraits &target) {
  tile::SoftmaxShape shape;
  auto q = cast<RankedTensorType>(op.getQ().getType());
  auto k = cast<RankedTensorType>(op.getK().getType());
  auto v = cast<RankedTensorType>(op.getV().getType());
  shape.heads = q.getDimSize(1);
  shape.kvHeads = k.getDimSize(1);
  shape.dim = k.getDimSize(2);
  shape.valueDim = v.getDimSize(2);
  shape.keyTile = target.forwardKeyTile(std::max(shape.dim, shape.valueDim));
  shape.scale = op.getScale().convertToDouble();
  shape.element = q.getElementType();
  llvm::append_range(shape.windows, op.getWindows());
  llvm::append_range(shape.sinks, op.getSinks());
  shape.queryTile = target.queriesWithin(target.queryTile, bytesOfRow(shape));
  return shape;
}

static std::string tilesOf(const tile::SoftmaxShape &shape) {
  return "tiles of " + std::to_string(shape.queryTile) + " queries and " +
         std::to_string(shape.keyTile) + " keys";
}

namespace {
/// Whether an attention gets the programs of warpgroups, and what a remark adds
/// where it does not.
struct WarpgroupChoice {
  bool isTaken = false;
  std::string why;
};
} // namespace

static WarpgroupChoice chooseWarpgroups(const Scheduler &scheduler,
                                        ValueRange operands,
                                        const tile::SoftmaxShape &shape,
                                        bool isCached = false) {
  if (scheduler.target.warpgroups == 0 || !scheduler.writesRecords)
    return {};
  std::string why = tile::whyNotWarpgroups(shape, isCached);
  if (why.empty() && !llvm::all_of(operands, hasAlignedRows))
    why = "rows of an operand do not begin at multiples of 16 bytes";
  if (why.empty())
    return {true, ""};
  return {false, "; not by warpgroups: " + why};
}

static constexpr llvm::StringLiteral kWarpgroupTiles =
    "tiles of 128 queries and 128 keys for warpgroups";

LogicalResult hybrid::scheduleOp(Scheduler &scheduler, AttentionOp op) {
  tile::SoftmaxShape shape = shapeOf(op, scheduler.target);
  WarpgroupChoice warpgroups =
      chooseWarpgroups(scheduler, {op.getQ(), op.getK(), op.getV()}, shape);
  OpBuilder builder(op);
  tile::ProgramOp program =
      scheduler.programs.get(op, "forward", [&](OpBuilder &programs, ModuleOp) {
        return warpgroups.isTaken
                   ? tile::buildSoftmaxForwardWarpgroups(programs, op.getLoc(),
                                                         shape)
                   : tile::buildSoftmaxForward(programs, op.getLoc(), shape);
      });
  scheduler.chose(op, "HYB-S101",
                  warpgroups.isTaken ? kWarpgroupTiles.str() : tilesOf(shape),
                  "one pass over whole sequences" + Twine(warpgroups.why));
  DispatchOp dispatch =
      scheduler.dispatch(builder, op.getLoc(), program,
                         {op.getQ(), op.getK(), op.getV(), op.getSegments()},
                         op->getResultTypes());
  op->replaceAllUsesWith(dispatch);
  op.erase();
  return success();
}

/// The adjoint on warpgroups: what both programs need of every row, then the
/// gradients of keys and values, and those of queries.
static void gradByWarpgroups(Scheduler &scheduler, AttentionGradOp op,
                             const tile::SoftmaxShape &shape) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  auto launch = [&](StringRef variant, auto build, ValueRange inputs,
                    TypeRange results) {
    tile::ProgramOp program =
        scheduler.programs.get(op, variant, [&](OpBuilder &programs, ModuleOp) {
          return build(programs, loc, shape);
        });
    return scheduler.dispatch(builder, loc, program, inputs, results);
  };
  Type term = RankedTensorType::get({shape.heads, ShapedType::kDynamic},
                                    builder.getF32Type());
  DispatchOp terms =
      launch("row_terms", tile::buildSoftmaxRowTerms,
             {op.getO(), op.getLogSumExp(), op.getDout()}, {term, term});
  Value inputs[] = {op.getQ(),       op.getK(),           op.getV(),
                    op.getDout(),    terms->getResult(0), terms->getResult(1),
                    op.getSegments()};
  TypeRange types = op->getResultTypes();
  DispatchOp keys =
      launch("backward_keys", tile::buildSoftmaxBackwardKeysWarpgroups, inputs,
             types.drop_front());
  DispatchOp queries =
      launch("backward_queries", tile::buildSoftmaxBackwardQueriesWarpgroups,
             inputs, types.take_front());
  op->replaceAllUsesWith(ValueRange{queries->getResult(0), keys->getResult(0),
                                    keys->getResult(1)});
}

LogicalResult hybrid::scheduleOp(Scheduler &scheduler, AttentionGradOp op) {
  tile::SoftmaxShape shape = shapeOf(op, scheduler.target);
  WarpgroupChoice warpgroups = chooseWarpgroups(
      scheduler, {op.getQ(), op.getK(), op.getV(), op.getDout()}, shape);
  if (warpgroups.isTaken) {
    scheduler.chose(op, "HYB-S105",
                    "tiles of 128 keys and 64 queries, and of 128 queries and "
                    "128 keys, for warpgroups",
                    "dq and dk, dv are sums of their own, each in one order "
                    "without turns, over all processors");
    gradByWarpgroups(scheduler, op, shape);
    op.erase();
    return success();
  }
  const int64_t dim = std::max(shape.dim, shape.valueDim);
  shape.queryTile = scheduler.target.queriesWithin(
      scheduler.target.backwardQueries, 2 * bytesOfRow(shape));
  shape.keyTile = scheduler.target.backwardKeyTile(dim);
  OpBuilder builder(op);
  Location loc = op.getLoc();
  Value inputs[] = {op.getQ(),         op.getK(),    op.getV(),       op.getO(),
                    op.getLogSumExp(), op.getDout(), op.getSegments()};
  auto launch = [&](StringRef variant, auto build, TypeRange results) {
    tile::ProgramOp program =
        scheduler.programs.get(op, variant, [&](OpBuilder &programs, ModuleOp) {
          return build(programs, loc, shape);
        });
    return scheduler.dispatch(builder, loc, program, inputs, results);
  };
  TypeRange types = op->getResultTypes();
  if (scheduler.target.takesTurns) {
    scheduler.chose(
        op, "HYB-S102", tilesOf(shape),
        "key tiles take turns to add to dq, so the sum has one order");
    auto dq = cast<RankedTensorType>(types[0]);
    DispatchOp all =
        launch("backward", tile::buildSoftmaxBackward,
               {dq.clone(builder.getF32Type()), types[1], types[2]});
    for (unsigned n : {1, 2})
      op->getResult(n).replaceAllUsesWith(all->getResult(n));
    if (failed(roundInto(scheduler, builder, all->getResult(0), op.getDq())))
      return failure();
  } else {
    scheduler.chose(op, "HYB-S105", tilesOf(shape) + ", scores computed twice",
                    "dq and dk, dv are sums of their own, each in one order "
                    "without turns, over all processors" +
                        Twine(warpgroups.why));
    DispatchOp keys = launch("backward_keys", tile::buildSoftmaxBackwardKeys,
                             types.drop_front());
    DispatchOp queries =
        launch("backward_queries", tile::buildSoftmaxBackwardQueries,
               types.take_front());
    op->replaceAllUsesWith(ValueRange{queries->getResult(0), keys->getResult(0),
                                      keys->getResult(1)});
  }
  op.erase();
  return success();
}

tile::SoftmaxShape hybrid::cachedShapeOf(AttentionCachedOp op,
                                         const TargetTraits &target) {
  tile::SoftmaxShape shape = shapeOf(op, target);
  const int64_t dim = std::max(shape.dim, shape.valueDim);
  shape.keyTile =
      target.cachedKeyTile(dim, shape.anyWindow(), /*isStep=*/false);
  shape.queryTile = target.queriesWithin(
      shape.queryTile, shape.headsPerPoint() * bytesOfRow(shape));
  return shape;
}

namespace {
/// The launches that one cached attention chooses from.
class CachedSchedule {
public:
  CachedSchedule(Scheduler &scheduler, AttentionCachedOp op);

  void appendRows(OpBuilder &builder);
  Value output(OpBuilder &builder);
  void explain();

  /// With the new rows, once they are appended.
  Value kCache, vCache;

private:
  SmallVector<Value> append(OpBuilder &builder,
                            const tile::SoftmaxShape &shape);
  SmallVector<Value> attend(OpBuilder &builder,
                            const tile::SoftmaxShape &shape);
  SmallVector<Value> attendSplit(OpBuilder &builder);
  SmallVector<Value> attendStep(OpBuilder &builder);
  SmallVector<Value> attendWarpgroups(OpBuilder &builder);
  /// Where every segment is a decoding step.
  AffineExpr isStep() const {
    return target.stepTokens - symbol(CallSymbol::longest);
  }
  /// Whether steps have programs of their own.
  bool hasStep() const { return step.queryTile != whole.queryTile; }
  bool isSplit() const {
    return step.heads < target.headsEnough && step.splits > 1;
  }
  AffineExpr symbol(CallSymbol name) const {
    return getSymbolExpr(name, op->getContext());
  }

  using Build = tile::ProgramOp (*)(OpBuilder &, Location,
                                    const tile::SoftmaxShape &);
  tile::ProgramOp program(StringRef name, const tile::SoftmaxShape &shape,
                          Build build) {
    std::string variant = (name + "_" + Twine(shape.queryTile)).str();
    return scheduler.programs.get(op, variant,
                                  [&](OpBuilder &programs, ModuleOp) {
                                    return build(programs, op.getLoc(), shape);
                                  });
  }

  Scheduler &scheduler;
  const TargetTraits &target;
  mutable AttentionCachedOp op;
  /// Of calls with many rows per segment, and of decoding steps.
  tile::SoftmaxShape whole, step;
  WarpgroupChoice warpgroups;
};
} // namespace

CachedSchedule::CachedSchedule(Scheduler &scheduler, AttentionCachedOp op)
    : scheduler(scheduler), target(scheduler.target), op(op),
      whole(cachedShapeOf(op, target)), step(stepShapeOf(op, target)) {
  warpgroups = chooseWarpgroups(
      scheduler, {op.getQ(), op.getKCache(), op.getVCache()}, whole,
      /*isCached=*/true);
}

void CachedSchedule::appendRows(OpBuilder &builder) {
  Type caches[] = {op.getKCache().getType(), op.getVCache().getType()};
  SmallVector<Value> appended;
  if (hasStep())
    appended = scheduler.either(
        builder, op.getLoc(), caches, isStep(),
        [&](OpBuilder &inner) { return append(inner, step); },
        [&](OpBuilder &inner) { return append(inner, whole); });
  else
    appended = append(builder, whole);
  kCache = appended[0];
  vCache = appended[1];
}

/// Warpgroups read the cache for every head; where no segment has more rows
/// than the generic tile, heads that share keys are in one tile.
Value CachedSchedule::output(OpBuilder &builder) {
  if (warpgroups.isTaken)
    return scheduler
        .either(
            builder, op.getLoc(), op.getO().getType(),
            whole.queryTile - symbol(CallSymbol::longest),
            [&](OpBuilder &inner) { return attendStep(inner); },
            [&](OpBuilder &inner) { return attendWarpgroups(inner); })
        .front();
  if (!hasStep())
    return attendStep(builder).front();
  return scheduler
      .either(
          builder, op.getLoc(), op.getO().getType(), isStep(),
          [&](OpBuilder &inner) { return attendStep(inner); },
          [&](OpBuilder &inner) { return attend(inner, whole); })
      .front();
}

/// Split where few heads and rows meet many keys.
SmallVector<Value> CachedSchedule::attendStep(OpBuilder &builder) {
  auto unsplit = [&](OpBuilder &inner) { return attend(inner, step); };
  if (!isSplit())
    return unsplit(builder);
  Location loc = op.getLoc();
  Type type = op.getO().getType();
  auto fewRows = [&](OpBuilder &inner) {
    return SmallVector<Value>(scheduler.either(
        inner, loc, type, symbol(CallSymbol::context) - target.splitContext,
        [&](OpBuilder &innermost) { return attendSplit(innermost); }, unsplit));
  };
  return SmallVector<Value>(scheduler.either(
      builder, loc, type, target.splitRows - symbol(CallSymbol::tokens),
      fewRows, unsplit));
}

void CachedSchedule::explain() {
  std::string text = hasStep() ? "up to " + std::to_string(target.stepTokens) +
                                     " rows per segment in " + tilesOf(step) +
                                     ", else "
                               : "";
  std::string many;
  if (warpgroups.isTaken)
    many = "more than " + std::to_string(whole.queryTile) +
           " rows per segment in " + kWarpgroupTiles.str() + ", else ";
  if (!isSplit())
    return scheduler.chose(
        op, "HYB-S103", many + text + tilesOf(whole) + " over the cache",
        Twine(step.heads) + " heads keep the processors busy" + warpgroups.why);
  scheduler.chose(op, "HYB-S104",
                  many + "up to " + Twine(target.splitRows) + " rows keys in " +
                      Twine(step.splits) + " ranges from a context of " +
                      Twine(target.splitContext) + ", else " + text +
                      tilesOf(whole),
                  Twine(step.heads) + " heads alone leave processors idle" +
                      warpgroups.why);
}

SmallVector<Value> CachedSchedule::append(OpBuilder &builder,
                                          const tile::SoftmaxShape &shape) {
  Type caches[] = {op.getKCache().getType(), op.getVCache().getType()};
  DispatchOp dispatch = scheduler.dispatch(
      builder, op.getLoc(), program("append", shape, tile::buildSoftmaxAppend),
      {op.getK(), op.getV(), op.getKCache(), op.getVCache(), op.getSegments()},
      caches, /*ties=*/{0, 2, 1, 3});
  return SmallVector<Value>(dispatch->getResults());
}

SmallVector<Value> CachedSchedule::attend(OpBuilder &builder,
                                          const tile::SoftmaxShape &shape) {
  DispatchOp dispatch = scheduler.dispatch(
      builder, op.getLoc(), program("cached", shape, tile::buildSoftmaxCached),
      {op.getQ(), kCache, vCache, op.getSegments()}, op.getO().getType());
  return SmallVector<Value>(dispatch->getResults());
}

SmallVector<Value> CachedSchedule::attendWarpgroups(OpBuilder &builder) {
  tile::ProgramOp made =
      program("warpgroups", whole, tile::buildSoftmaxCachedWarpgroups);
  DispatchOp dispatch = scheduler.dispatch(
      builder, op.getLoc(), made, {op.getQ(), kCache, vCache, op.getSegments()},
      op.getO().getType());
  return SmallVector<Value>(dispatch->getResults());
}

SmallVector<Value> CachedSchedule::attendSplit(OpBuilder &builder) {
  MLIRContext *context = op.getContext();
  auto tokens = AffineMap::get(0, numCallSymbols,
                               getSymbolExpr(CallSymbol::tokens, context));
  Type partial[] = {
      workspaceType(tokens, {step.heads, step.splits, step.valueDim}),
      workspaceType(tokens, {step.heads, step.splits})};
  DispatchOp parts = scheduler.dispatch(
      builder, op.getLoc(), program("split", step, tile::buildSoftmaxSplit),
      {op.getQ(), kCache, vCache, op.getSegments()}, partial);
  DispatchOp combined = scheduler.dispatch(
      builder, op.getLoc(), program("combine", step, tile::buildSoftmaxCombine),
      parts->getResults(), op.getO().getType());
  return SmallVector<Value>(combined->getResults());
}

/// Appends the new keys and values, then attends over the cache, whole or in
/// `splits` ranges of keys that are combined.
LogicalResult hybrid::scheduleOp(Scheduler &scheduler, AttentionCachedOp op) {
  CachedSchedule schedule(scheduler, op);
  OpBuilder builder(op);
  schedule.appendRows(builder);
  op.getNewKCache().replaceAllUsesWith(schedule.kCache);
  op.getNewVCache().replaceAllUsesWith(schedule.vCache);
  // The caches are replaced; what is left to choose is the output.
  op.getO().replaceAllUsesWith(schedule.output(builder));
  schedule.explain();
  op.erase();
  return success();
}
