//===- Recurrence.cpp - strategies of the recurrence family -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RecurrencePhases.h"
#include "RecurrenceStep.h"

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
  shape.element = q.getElementType();
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

tile::RecurrenceShape hybrid::recurrenceShape(RecurrenceOp op) {
  return shapeOf(op);
}

static SmallVector<Value> resultsOf(OpBuilder &builder, RecurrenceOp op,
                                    Value output, Value state) {
  SmallVector<Value> values{output};
  if (op.getInitial())
    values.push_back(
        restoreState(builder, op.getLoc(), state, op.getFinal().getType()));
  return values;
}

SmallVector<Value> hybrid::launchRecurrence(Scheduler &scheduler,
                                            OpBuilder &builder, RecurrenceOp op,
                                            tile::ProgramOp program,
                                            SmallVector<Value> inputs) {
  SmallVector<Type> outputs{op.getO().getType()};
  SmallVector<int64_t> ties;
  if (op.getInitial()) {
    ties = {1, static_cast<int64_t>(inputs.size())};
    inputs.push_back(flattenState(builder, op.getLoc(), op.getInitial()));
    outputs.push_back(inputs.back().getType());
  }
  DispatchOp dispatch =
      scheduler.dispatch(builder, op.getLoc(), program, inputs, outputs, ties);
  return resultsOf(builder, op, dispatch->getResult(0),
                   op.getInitial() ? dispatch->getResult(1) : Value());
}

namespace {
/// The launches that one recurrence chooses from. Each gives the output and,
/// with a state, the state after.
class RecurrenceSchedule {
public:
  RecurrenceSchedule(Scheduler &scheduler, RecurrenceOp op)
      : scheduler(scheduler), target(scheduler.target), op(op),
        loc(op.getLoc()), shape(shapeOf(op)) {
    shape.chunk = target.chunk(shape, /*isAdjoint=*/false);
    shape.valueTile = target.valueTile(shape, target.valueColumns);
  }
  LogicalResult verify() {
    return shape.verify([&] { return op.emitOpError(); });
  }

  /// Of segments of any length, and of short ones.
  SmallVector<Value> whole(OpBuilder &builder);
  SmallVector<Value> step(OpBuilder &builder);
  std::string explain() const;

private:
  using Build = tile::ProgramOp (*)(OpBuilder &, Location,
                                    const tile::RecurrenceShape &);
  tile::ProgramOp program(StringRef variant, Build build,
                          const tile::RecurrenceShape &made) {
    return scheduler.programs.get(op, variant,
                                  [&](OpBuilder &programs, ModuleOp) {
                                    return build(programs, loc, made);
                                  });
  }
  /// Without the state.
  SmallVector<Value> operands();
  SmallVector<Value> launch(OpBuilder &builder, tile::ProgramOp program);
  SmallVector<Value> inParts(OpBuilder &builder);
  SmallVector<Value> inPhases(OpBuilder &builder);
  bool hasPhases() const {
    return RecurrencePhases::fit(target, shape, /*isAdjoint=*/false);
  }
  /// Calls of at most this many segments leave half of the processors idle or
  /// more. A delta rule's map of a part is a matrix: to make it costs as much
  /// again as its state, so there must be more to gain than is here. In phases
  /// nothing but the states waits for the chunk before.
  int64_t fewSegments() const {
    if (target.splitTokens == 0 || shape.isDelta() || shape.window ||
        hasPhases())
      return 0;
    int64_t points = shape.heads * (shape.valueDim / shape.valueWidth());
    return target.processors / (2 * points);
  }

  Scheduler &scheduler;
  const TargetTraits &target;
  RecurrenceOp op;
  Location loc;
  tile::RecurrenceShape shape;
};
} // namespace

SmallVector<Value> RecurrenceSchedule::operands() {
  SmallVector<Value> values{op.getQ(), op.getK(), op.getV(), op.getSegments()};
  for (Value optional : {op.getDecay(), op.getBeta()})
    if (optional)
      values.push_back(optional);
  return values;
}

SmallVector<Value> RecurrenceSchedule::launch(OpBuilder &builder,
                                              tile::ProgramOp program) {
  return launchRecurrence(scheduler, builder, op, program, operands());
}

/// Summaries of all parts, the states before them, then all outputs at once.
SmallVector<Value> RecurrenceSchedule::inParts(OpBuilder &builder) {
  AffineMap rows = tile::recurrencePartRows(op.getContext(), shape);
  Type states =
      workspaceType(rows, {shape.heads, shape.keyDim, shape.valueDim});
  Type summaries[] = {workspaceType(rows, tile::recurrencePartMap(shape)),
                      states};
  DispatchOp summary = scheduler.dispatch(
      builder, loc, program("summary", tile::buildRecurrenceSummary, shape),
      operands(), summaries);
  SmallVector<Value> combined{op.getSegments(), summary->getResult(0),
                              summary->getResult(1)};
  SmallVector<Type> types{states};
  SmallVector<int64_t> ties;
  if (op.getInitial()) {
    ties = {1, static_cast<int64_t>(combined.size())};
    combined.push_back(flattenState(builder, loc, op.getInitial()));
    types.push_back(combined.back().getType());
  }
  DispatchOp combine = scheduler.dispatch(
      builder, loc, program("combine", tile::buildRecurrenceCombine, shape),
      combined, types, ties);
  SmallVector<Value> inputs = operands();
  inputs.push_back(combine->getResult(0));
  DispatchOp apply = scheduler.dispatch(
      builder, loc, program("apply", tile::buildRecurrenceApply, shape), inputs,
      op.getO().getType());
  return resultsOf(builder, op, apply->getResult(0),
                   op.getInitial() ? combine->getResult(1) : Value());
}

SmallVector<Value> RecurrenceSchedule::inPhases(OpBuilder &builder) {
  Value state;
  if (op.getInitial())
    state = flattenState(builder, loc, op.getInitial());
  SmallVector<Value> made =
      RecurrencePhases(scheduler, op, shape)
          .forward(builder, operands(), state, op.getO().getType());
  return resultsOf(builder, op, made.front(), state ? made.back() : Value());
}

SmallVector<Value> RecurrenceSchedule::whole(OpBuilder &builder) {
  auto chunked = [&](OpBuilder &inner) {
    if (hasPhases())
      return inPhases(inner);
    return launch(inner,
                  program("chunked", tile::buildRecurrenceForward, shape));
  };
  if (fewSegments() == 0)
    return chunked(builder);
  auto symbol = [&](CallSymbol name) {
    return getSymbolExpr(name, op.getContext());
  };
  auto either = [&](OpBuilder &inner, AffineExpr guard,
                    Scheduler::Algorithm guarded) {
    return llvm::to_vector_of<Value>(scheduler.either(
        inner, loc, op->getResultTypes(), guard, guarded, chunked));
  };
  return either(builder, symbol(CallSymbol::longest) - target.splitTokens,
                [&](OpBuilder &inner) {
                  return either(
                      inner, fewSegments() - symbol(CallSymbol::segments),
                      [&](OpBuilder &innermost) { return inParts(innermost); });
                });
}

SmallVector<Value> RecurrenceSchedule::step(OpBuilder &builder) {
  tile::RecurrenceShape narrow = shape;
  narrow.valueTile = target.valueTile(shape, target.stepValueColumns);
  return launch(builder, program("step", tile::buildRecurrenceStep, narrow));
}

std::string RecurrenceSchedule::explain() const {
  std::string text =
      hasPhases()
          ? "all chunks of " + std::to_string(target.phasedChunk) + " at once"
          : "chunks of " + std::to_string(shape.chunkSize());
  if (fewSegments() == 0)
    return text;
  return text + ", up to " + std::to_string(fewSegments()) + " segments of " +
         std::to_string(target.splitTokens) + " tokens or more in parts of " +
         std::to_string(shape.part);
}

LogicalResult hybrid::scheduleOp(Scheduler &scheduler, RecurrenceOp op) {
  RecurrenceSchedule schedule(scheduler, op);
  if (failed(schedule.verify()))
    return failure();
  OpBuilder builder(op);
  if (!op.getInitial()) {
    scheduler.chose(op, "HYB-S201", schedule.explain(),
                    "no state: whole sequences");
    op->replaceAllUsesWith(schedule.whole(builder));
    op.erase();
    return success();
  }
  const int64_t longestStep = scheduler.target.longestStep;
  scheduler.chose(op, "HYB-S202",
                  "token by token up to " + Twine(longestStep) +
                      " rows per segment, else " + schedule.explain(),
                  "with a state, calls are prefill or decode");
  AffineExpr longest = getSymbolExpr(CallSymbol::longest, op.getContext());
  op->replaceAllUsesWith(scheduler.either(
      builder, op.getLoc(), op->getResultTypes(), longestStep - longest,
      [&](OpBuilder &inner) { return schedule.step(inner); },
      [&](OpBuilder &inner) { return schedule.whole(inner); }));
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
  if (RecurrencePhases::fit(target, shape, /*isAdjoint=*/true)) {
    shape.gradientElement = shape.element;
    scheduler.chose(op, "HYB-S203",
                    "all chunks of " + Twine(target.phasedChunk) +
                        " at once, between walks of the states alone",
                    "states at the chunk borders are computed again, not "
                    "saved");
    SmallVector<Value> gradients =
        RecurrencePhases(scheduler, op, shape)
            .backward(builder, inputs, op.getDout(), op->getResultTypes());
    for (auto [old, made] : llvm::zip_equal(op->getResults(), gradients))
      if (failed(roundInto(scheduler, builder, made, old)))
        return failure();
    op.erase();
    return success();
  }
  inputs.push_back(op.getDout());

  SmallVector<Type> outputs(op->getResultTypes());
  if (!shape.sharesGradients())
    shape.gradientElement = shape.element;
  else
    for (Type &type : MutableArrayRef(outputs).take_front(3))
      type = cast<RankedTensorType>(type).clone(builder.getF32Type());
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
  for (auto [old, made] : llvm::zip(op->getResults(), dispatch->getResults()))
    if (failed(roundInto(scheduler, builder, made, old)))
      return failure();
  op.erase();
  return before ? scheduleRowwise(scheduler, before) : success();
}
