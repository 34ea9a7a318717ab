//===- SoftmaxStep.cpp - cached attention of a decoding step --------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In a step of a few rows rotating them and putting them into the cache take a
// launch each and no time. So every point of the attention rotates its query
// for itself, and the one with the last range of keys the new keys. Calls of
// more rows have the operations one by one.
//
//===----------------------------------------------------------------------===//

#include "SoftmaxStep.h"

using namespace mlir;
using namespace hybrid;

static int64_t bytesOf(const tile::SoftmaxShape &shape) {
  return shape.element ? shape.element.getIntOrFloatBitWidth() / 8 : 4;
}

/// Keys of a tile of so many bytes: every head of a point has accumulators of
/// its own.
static int64_t keysWithin(int64_t bytes, const tile::SoftmaxShape &shape,
                          const TargetTraits &target) {
  return TargetTraits::rowsWithin(
      bytes / bytesOf(shape) / shape.headsPerPoint(),
      std::max(shape.dim, shape.valueDim), target.stepKeys, /*least=*/8);
}

/// The keys that the widest window sees; 0 where a head sees all.
static int64_t widestWindow(const tile::SoftmaxShape &shape) {
  int64_t widest = 0;
  for (int64_t window : shape.windows) {
    if (window == 0)
      return 0;
    widest = std::max(widest, window);
  }
  return widest + shape.pinnedRows();
}

/// Tiles of a window's keys that one point reads sooner than it splits them.
static constexpr int64_t kTilesPerPoint = 4;

tile::SoftmaxShape hybrid::stepShapeOf(AttentionCachedOp op,
                                       const TargetTraits &target) {
  tile::SoftmaxShape step = cachedShapeOf(op, target);
  step.queryTile = target.stepQueries;
  step.elementwise = target.stepKeyBytes > 0;
  step.keyTile = target.cachedKeyTile(std::max(step.dim, step.valueDim),
                                      step.anyWindow(), /*isStep=*/true);
  step.splits = target.splits;
  if (!step.elementwise)
    return step;
  step.keyTile = keysWithin(target.stepKeyBytes, step, target);
  int64_t points = step.heads / step.headsPerPoint();
  step.splits =
      std::clamp<int64_t>(2 * target.processors / points, 1, target.splits);
  // Where all heads have windows there are few tiles of keys.
  if (int64_t widest = widestWindow(step))
    step.splits = std::min<int64_t>(
        step.splits, llvm::divideCeil(widest, kTilesPerPoint * step.keyTile));
  return step;
}

/// With one point a processor; null where all ranges are more than a reader's
/// point may take.
static std::optional<tile::SoftmaxShape>
joinedShapeOf(const tile::SoftmaxShape &step, const TargetTraits &target) {
  tile::SoftmaxShape joined = step;
  int64_t points = step.heads / step.headsPerPoint();
  joined.splits =
      std::clamp<int64_t>(target.processors / points, 1, target.splits);
  if (int64_t widest = widestWindow(step))
    joined.splits = std::min<int64_t>(joined.splits,
                                      llvm::divideCeil(widest, joined.keyTile));
  // Every point of the reader reads all of them: they are rounded as the output
  // would be.
  joined.partial = step.element;
  // In its registers they are f32.
  int64_t bytes = joined.heads * joined.splits * joined.valueDim * 4;
  if (bytes > target.joinedBytes)
    return std::nullopt;
  return joined;
}

/// As many places of a tile of keys as a block of 256 threads reads with 16
/// bytes each, and so many keys a place that a range takes few turns.
static void setPlaces(tile::SoftmaxStep &step, const TargetTraits &target) {
  constexpr int64_t kBlockBytes = 256 * 16;
  tile::SoftmaxShape &shape = step.shape;
  int64_t places = TargetTraits::rowsWithin(kBlockBytes / bytesOf(shape),
                                            std::max(shape.dim, shape.valueDim),
                                            target.stepKeys / 2, /*least=*/8);
  // Accumulators of several heads and rows that are not streamed take
  // registers.
  step.keysPerPlace = 2;
  int64_t widest = widestWindow(shape);
  bool isShort = widest > 0 && widest <= 2 * places * shape.splits;
  if (shape.headsPerPoint() == 1 && !isShort)
    step.keysPerPlace = 4;
  shape.keyTile = places * step.keysPerPlace;
}

/// What makes `rows`, if it does nothing else and a point can make its heads;
/// else null.
static Operation *makerOf(Value rows, AttentionCachedOp op) {
  Operation *maker = rows.getDefiningOp();
  if (!maker || maker->getBlock() != op->getBlock() || !rows.hasOneUse() ||
      !isa<RowwiseOp, RowwiseOpInterface>(maker) || !tile::canMakeHeads(maker))
    return nullptr;
  // Rows are of the segment that the attention knows.
  for (Value operand : maker->getOperands())
    if (isa<SegmentsType>(operand.getType()) && operand != op.getSegments())
      return nullptr;
  return maker;
}

AttentionStep::AttentionStep(Scheduler &scheduler, AttentionCachedOp op)
    : scheduler(scheduler), op(op), query(makerOf(op.getQ(), op)),
      key(makerOf(op.getK(), op)), alone(stepShapeOf(op, scheduler.target)),
      joined(joinedShapeOf(alone, scheduler.target)) {}

AttentionStep::Parts AttentionStep::launch(OpBuilder &builder, bool isJoined) {
  tile::SoftmaxStep step;
  step.shape = isJoined ? *joined : alone;
  step.newRows = scheduler.target.readingRows;
  setPlaces(step, scheduler.target);
  step.query = query;
  step.key = key;
  scheduler.chose(
      op, "HYB-S106",
      "up to " + Twine(step.newRows) + " rows in one launch with " +
          (query || key ? "what makes them and the append" : "the append") +
          ", keys in " + Twine(step.shape.splits) + " ranges of " +
          Twine(step.shape.keyTile) + " at a time" +
          (isJoined ? ", joined by the product behind" : ""),
      "a launch takes longer to begin than these to work");
  auto module = op->getParentOfType<ModuleOp>();
  OpBuilder programs = OpBuilder::atBlockEnd(module.getBody());
  tile::ProgramOp made = tile::buildSoftmaxStep(programs, op.getLoc(), step);
  tile::ProgramOp program = scheduler.programs.add(made, made.getSymName());

  SmallVector<Value> inputs;
  for (auto [maker, rows] : {std::pair(query, op.getQ()), {key, op.getK()}}) {
    if (!maker)
      inputs.push_back(rows);
    else
      llvm::copy_if(
          maker->getOperands(), std::back_inserter(inputs),
          [](Value operand) { return !isa<SegmentsType>(operand.getType()); });
  }
  llvm::append_values(inputs, op.getV(), op.getKCache(), op.getVCache(),
                      op.getKCache(), op.getVCache(), op.getSegments());
  const int64_t keys = inputs.size() - 3, values = keys + 1;
  SmallVector<Type> types{op.getKCache().getType(), op.getVCache().getType()};
  const tile::SoftmaxShape &shape = step.shape;
  if (shape.splits == 1) {
    types.push_back(op.getO().getType());
  } else {
    MLIRContext *context = op.getContext();
    auto tokens = AffineMap::get(0, numCallSymbols,
                                 getSymbolExpr(CallSymbol::tokens, context));
    types.push_back(workspaceType(
        tokens, {shape.heads, shape.splits, shape.valueDim}, shape.partial));
    types.push_back(workspaceType(tokens, {shape.heads, shape.splits}));
  }
  DispatchOp dispatch =
      scheduler.dispatch(builder, op.getLoc(), program, inputs, types,
                         /*ties=*/{0, keys, 1, values});
  Parts parts{dispatch->getResult(0), dispatch->getResult(1), {}};
  llvm::append_range(parts.output, dispatch->getResults().drop_front(2));
  return parts;
}

Value AttentionStep::combine(OpBuilder &builder, const Parts &parts) {
  if (parts.output.size() == 1)
    return parts.output.front();
  tile::ProgramOp program = scheduler.programs.get(
      op, "combine_step", [&](OpBuilder &programs, ModuleOp) {
        return tile::buildSoftmaxCombine(programs, op.getLoc(), alone);
      });
  return scheduler
      .dispatch(builder, op.getLoc(), program, parts.output,
                op.getO().getType())
      ->getResult(0);
}

void AttentionStep::clone(OpBuilder &builder, IRMapping &mapping,
                          SmallVectorImpl<Operation *> &copies) {
  for (Operation *operation : {query, key, op.getOperation()})
    if (operation)
      copies.push_back(builder.clone(*operation, mapping));
}

void AttentionStep::erase() {
  op.erase();
  for (Operation *maker : {query, key})
    if (maker)
      maker->erase();
}

static LogicalResult scheduleStep(Scheduler &scheduler, AttentionCachedOp op) {
  AttentionStep step(scheduler, op);
  OpBuilder builder(op);
  auto rows = getSymbolExpr(CallSymbol::tokens, op.getContext());
  SmallVector<Operation *> copies;
  ValueRange results = scheduler.either(
      builder, op.getLoc(), op->getResultTypes(),
      scheduler.target.readingRows - rows,
      [&](OpBuilder &inner) -> SmallVector<Value> {
        AttentionStep::Parts parts = step.launch(inner, /*isJoined=*/false);
        return {step.combine(inner, parts), parts.kCache, parts.vCache};
      },
      [&](OpBuilder &inner) {
        IRMapping mapping;
        step.clone(inner, mapping, copies);
        return SmallVector<Value>(copies.back()->getResults());
      });
  op->replaceAllUsesWith(results);
  step.erase();
  for (Operation *copy : copies) {
    auto attention = dyn_cast<AttentionCachedOp>(copy);
    if (failed(attention ? scheduleOp(scheduler, attention)
                         : scheduleRowwise(scheduler, copy)))
      return failure();
  }
  return success();
}

LogicalResult hybrid::scheduleAttentionSteps(Scheduler &scheduler,
                                             func::FuncOp function) {
  if (!AttentionStep::isFor(scheduler.target))
    return success();
  // The copies for calls of more rows are in regions.
  Block &block = function.getBody().front();
  for (auto op : llvm::make_early_inc_range(block.getOps<AttentionCachedOp>()))
    if (failed(scheduleStep(scheduler, op)))
      return failure();
  return success();
}
