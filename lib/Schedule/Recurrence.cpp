//===- Recurrence.cpp - strategies of the recurrence family -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Scheduler.h"

#include "hybrid/Tile/Families/Recurrence.h"

using namespace mlir;
using namespace hybrid;

template <typename Op> static tile::RecurrenceShape shapeOf(Op op) {
  tile::RecurrenceShape shape;
  auto q = cast<RankedTensorType>(op.getQ().getType());
  auto k = cast<RankedTensorType>(op.getK().getType());
  auto v = cast<RankedTensorType>(op.getV().getType());
  shape.update = op.getUpdate() == UpdateRule::delta
                     ? tile::RecurrenceUpdate::Delta
                     : tile::RecurrenceUpdate::Additive;
  if (op.getDecay())
    shape.decay = op.hasChannelDecay() ? tile::RecurrenceDecay::PerChannel
                                       : tile::RecurrenceDecay::PerHead;
  shape.beta = static_cast<bool>(op.getBeta());
  shape.heads = q.getDimSize(1);
  shape.kvHeads = k.getDimSize(1);
  shape.keyDim = k.getDimSize(2);
  shape.valueDim = v.getDimSize(2);
  shape.scale = op.getScale().convertToDouble();
  shape.window = op.getWindow().value_or(0);
  shape.stride = op.getStride().value_or(0);
  shape.hasState = static_cast<bool>(op.getInitial());
  return shape;
}

/// Programs take the rings of a sliding window and the heads as one dim.
static Value flattenState(OpBuilder &builder, Location loc, Value state) {
  auto type = cast<RankedTensorType>(state.getType());
  if (type.getRank() == 4)
    return state;
  ArrayRef<int64_t> sizes = type.getShape();
  auto flat =
      RankedTensorType::get({sizes[0], sizes[1] * sizes[2], sizes[3], sizes[4]},
                            type.getElementType(), type.getEncoding());
  return ReshapeOp::create(builder, loc, flat, state);
}

static Value restoreState(OpBuilder &builder, Location loc, Value state,
                          Type type) {
  return state.getType() == type
             ? state
             : ReshapeOp::create(builder, loc, type, state).getResult();
}

LogicalResult hybrid::scheduleOp(Scheduler &scheduler, RecurrenceOp op) {
  const int64_t longestStep = scheduler.target.longestStep;
  tile::RecurrenceShape shape = shapeOf(op);
  const TargetTraits &target = scheduler.target;
  shape.chunk = target.chunk(shape, /*isAdjoint=*/false);
  shape.valueTile = target.valueTile(shape, target.valueColumns);
  if (failed(shape.verify([&] { return op.emitOpError(); })))
    return failure();
  Location loc = op.getLoc();

  auto launch = [&](OpBuilder &builder, tile::ProgramOp program) {
    SmallVector<Value> inputs{op.getQ(), op.getK(), op.getV(),
                              op.getSegments()};
    for (Value optional : {op.getDecay(), op.getBeta()})
      if (optional)
        inputs.push_back(optional);
    SmallVector<Type> outputs{op.getO().getType()};
    SmallVector<int64_t> ties;
    if (op.getInitial()) {
      ties = {1, static_cast<int64_t>(inputs.size())};
      inputs.push_back(flattenState(builder, loc, op.getInitial()));
      outputs.push_back(inputs.back().getType());
    }
    DispatchOp dispatch =
        scheduler.dispatch(builder, loc, program, inputs, outputs, ties);
    SmallVector<Value> values{dispatch->getResult(0)};
    if (op.getInitial())
      values.push_back(restoreState(builder, loc, dispatch->getResult(1),
                                    op.getFinal().getType()));
    return values;
  };
  auto chunked = [&](OpBuilder &builder) {
    tile::ProgramOp program = scheduler.programs.get(
        op, "chunked", [&](OpBuilder &programs, ModuleOp) {
          return tile::buildRecurrenceForward(programs, loc, shape);
        });
    return launch(builder, program);
  };
  auto step = [&](OpBuilder &builder) {
    tile::ProgramOp program =
        scheduler.programs.get(op, "step", [&](OpBuilder &programs, ModuleOp) {
          tile::RecurrenceShape narrow = shape;
          narrow.valueTile = target.valueTile(shape, target.stepValueColumns);
          return tile::buildRecurrenceStep(programs, loc, narrow);
        });
    return launch(builder, program);
  };

  OpBuilder builder(op);
  std::string chunkText = "chunks of " + std::to_string(shape.chunkSize());
  if (!op.getInitial()) {
    scheduler.chose(op, "HYB-S201", chunkText, "no state: whole sequences");
    op->replaceAllUsesWith(chunked(builder));
    op.erase();
    return success();
  }
  scheduler.chose(op, "HYB-S202",
                  "token by token up to " + Twine(longestStep) +
                      " rows per segment, else " + chunkText,
                  "with a state, calls are prefill or decode");
  AffineExpr longest = getSymbolExpr(CallSymbol::longest, op.getContext());
  op->replaceAllUsesWith(scheduler.either(builder, loc, op->getResultTypes(),
                                          longestStep - longest, step,
                                          chunked));
  op.erase();
  return success();
}

/// What the gradient of the states is before the adjoint overwrites it: a copy
/// of the final states', or zeros. Heads and key channels are one dim.
static RowwiseOp startStateGradient(OpBuilder &builder, RecurrenceGradOp op) {
  Location loc = op.getLoc();
  auto state = cast<RankedTensorType>(op.getInitial().getType());
  ArrayRef<int64_t> sizes = state.getShape();
  auto type = state.clone({sizes[0], sizes[1] * sizes[2], sizes[3]});
  Value dfinal = op.getDfinal();
  if (dfinal)
    dfinal = ReshapeOp::create(builder, loc, type, dfinal);
  auto start = RowwiseOp::create(builder, loc, type,
                                 dfinal ? ValueRange(dfinal) : ValueRange());
  OpBuilder::InsertionGuard guard(builder);
  Block *body = builder.createBlock(&start.getBody());
  Value value =
      dfinal ? Value(body->addArgument(type, loc))
             : FillOp::create(builder, loc, type, builder.getF64FloatAttr(0.0));
  YieldOp::create(builder, loc, value);
  return start;
}

LogicalResult hybrid::scheduleOp(Scheduler &scheduler, RecurrenceGradOp op) {
  tile::RecurrenceShape shape = shapeOf(op);
  shape.hasFinalCotangent = static_cast<bool>(op.getDfinal());
  const TargetTraits &target = scheduler.target;
  shape.chunk = target.chunk(shape, /*isAdjoint=*/true);
  shape.valueTile = target.valueTile(shape, target.backwardValueColumns);
  if (failed(shape.verifyAdjoint([&] { return op.emitOpError(); })))
    return failure();
  OpBuilder builder(op);
  Location loc = op.getLoc();

  SmallVector<Value> inputs{op.getQ(), op.getK(), op.getV(), op.getSegments()};
  for (Value optional : {op.getDecay(), op.getBeta()})
    if (optional)
      inputs.push_back(optional);
  if (op.getInitial())
    inputs.push_back(op.getInitial());
  inputs.push_back(op.getDout());

  SmallVector<Type> outputs(op->getResultTypes());
  SmallVector<int64_t> ties;
  RowwiseOp before;
  if (op.getDinitial()) {
    before = startStateGradient(builder, op);
    ties = {int64_t(outputs.size()) - 1, int64_t(inputs.size())};
    inputs.push_back(
        ReshapeOp::create(builder, loc, outputs.back(), before->getResult(0)));
  }
  for (const tile::RecurrenceWorkspace &workspace :
       tile::recurrenceBackwardWorkspaces(op.getContext(), shape))
    outputs.push_back(workspaceType(workspace.rows, workspace.sizes));

  tile::ProgramOp program = scheduler.programs.get(
      op, "backward", [&](OpBuilder &programs, ModuleOp) {
        return tile::buildRecurrenceBackward(programs, loc, shape);
      });
  scheduler.chose(op, "HYB-S203",
                  "chunks of " + Twine(shape.chunkSize()) + ", last to first",
                  "states at the chunk borders are computed again, not saved");
  DispatchOp dispatch =
      scheduler.dispatch(builder, loc, program, inputs, outputs, ties);
  op->replaceAllUsesWith(
      dispatch->getResults().take_front(op->getNumResults()));
  op.erase();
  return before ? scheduleRowwise(scheduler, before) : success();
}
