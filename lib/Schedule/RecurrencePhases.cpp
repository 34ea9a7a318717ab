//===- RecurrencePhases.cpp - recurrences with all chunks at once ---------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RecurrencePhases.h"

using namespace mlir;
using namespace hybrid;

/// The widest block of at most `most` value columns that divides them; 0 is
/// all.
static int64_t columnsWithin(const tile::RecurrenceShape &shape, int64_t most) {
  if (shape.valueDim <= most)
    return 0;
  int64_t columns = most;
  while (shape.valueDim % columns != 0)
    columns -= 8;
  return columns;
}

RecurrencePhases::RecurrencePhases(Scheduler &scheduler, Operation *op,
                                   const tile::RecurrenceShape &described)
    : scheduler(scheduler), op(op), shape(described) {
  shape.chunk = scheduler.target.phasedChunk;
  shape.valueTile = 0;
  shape.byHalves = shape.decay == tile::RecurrenceDecay::PerChannel;
  // Decays per channel are tiles like the keys.
  if (shape.byHalves)
    shape.chunk /= 2;
  wideShape = walkShape = shape;
  wideShape.valueTile = columnsWithin(shape, scheduler.target.phasedDim);
  walkShape.valueTile =
      scheduler.target.valueTile(shape, scheduler.target.valueColumns);
}

/// Blocks of value columns share T of the delta rule, which no program has.
bool RecurrencePhases::fit(const TargetTraits &target,
                           const tile::RecurrenceShape &shape, bool isAdjoint) {
  return target.phasedChunk && shape.element && !shape.element.isF32() &&
         !shape.window &&
         (!isAdjoint || (shape.group() == 1 && !shape.hasState)) &&
         shape.keyDim <= target.phasedDim &&
         (!shape.isDelta() || shape.valueDim <= target.phasedDim);
}

static SmallVector<Type> typesOf(ArrayRef<tile::RecurrenceWorkspace> list) {
  return llvm::map_to_vector(
      list, [](const tile::RecurrenceWorkspace &buffer) -> Type {
        RankedTensorType type = workspaceType(buffer.rows, buffer.sizes);
        return buffer.element ? type.clone(buffer.element) : type;
      });
}

ValueRange RecurrencePhases::launch(OpBuilder &builder, StringRef variant,
                                    Build build,
                                    const tile::RecurrenceShape &made,
                                    ValueRange inputs, ArrayRef<Type> outputs,
                                    ArrayRef<int64_t> ties) {
  tile::ProgramOp program =
      scheduler.programs.get(op, variant, [&](OpBuilder &programs, ModuleOp) {
        return build(programs, op->getLoc(), made);
      });
  return scheduler
      .dispatch(builder, op->getLoc(), program, inputs, outputs, ties)
      ->getResults();
}

SmallVector<Value> RecurrencePhases::walk(OpBuilder &builder, StringRef variant,
                                          Build build, ValueRange operands,
                                          Value state, ArrayRef<Type> buffers) {
  SmallVector<Value> inputs(operands);
  SmallVector<Type> outputs(buffers);
  SmallVector<int64_t> ties;
  if (state) {
    ties = {int64_t(outputs.size()), int64_t(inputs.size())};
    inputs.push_back(state);
    outputs.push_back(state.getType());
  }
  return llvm::to_vector_of<Value>(
      launch(builder, variant, build, walkShape, inputs, outputs, ties));
}

static SmallVector<Value> joined(std::initializer_list<ValueRange> parts) {
  SmallVector<Value> all;
  for (ValueRange part : parts)
    llvm::append_range(all, part);
  return all;
}

SmallVector<Value> RecurrencePhases::forward(OpBuilder &builder,
                                             ValueRange operands, Value state,
                                             Type outputType) {
  MLIRContext *context = op->getContext();
  SmallVector<Type> prepared =
      typesOf(tile::recurrencePrepared(context, shape, /*forAdjoint=*/false));
  SmallVector<Type> walked = typesOf(tile::recurrenceWalked(context, shape));
  ValueRange made;
  if (!prepared.empty())
    made = launch(builder, "prepare", tile::buildRecurrencePrepare, shape,
                  operands, prepared);
  SmallVector<Value> states = walk(builder, "walk", tile::buildRecurrenceWalk,
                                   joined({operands, made}), state, walked);
  ValueRange kept = ValueRange(states).take_front(walked.size());
  SmallVector<Value> results{launch(builder, "outputs",
                                    tile::buildRecurrenceOutputs, wideShape,
                                    joined({operands, made, kept}), outputType)
                                 .front()};
  if (state)
    results.push_back(states.back());
  return results;
}

SmallVector<Value> RecurrencePhases::backward(OpBuilder &builder,
                                              ValueRange operands,
                                              Value dOutput, TypeRange types) {
  MLIRContext *context = op->getContext();
  SmallVector<tile::RecurrenceWorkspace> forward =
      tile::recurrencePrepared(context, shape, /*forAdjoint=*/false);
  SmallVector<Type> prepared =
      typesOf(tile::recurrencePrepared(context, shape, /*forAdjoint=*/true));
  SmallVector<Type> walked = typesOf(tile::recurrenceWalked(context, shape));
  SmallVector<Type> walkedBack =
      typesOf(tile::recurrenceWalkedBack(context, shape));
  ValueRange made;
  if (!prepared.empty())
    made =
        launch(builder, "prepare adjoint", tile::buildRecurrencePrepareAdjoint,
               shape, joined({operands, dOutput}), prepared);
  SmallVector<Value> states =
      walk(builder, "walk", tile::buildRecurrenceWalk,
           joined({operands, made.take_front(forward.size())}), /*state=*/{},
           walked);
  SmallVector<Value> dStates =
      walk(builder, "walk back", tile::buildRecurrenceWalkBack,
           joined({operands, dOutput, made}), /*state=*/{}, walkedBack);
  SmallVector<Type> gradients(types);
  if (wideShape.valueTile) // sums over blocks of columns
    for (Type &type : MutableArrayRef(gradients).take_front(2))
      type = cast<RankedTensorType>(type).clone(builder.getF32Type());
  return llvm::to_vector_of<Value>(
      launch(builder, "gradients", tile::buildRecurrenceGradients, wideShape,
             joined({operands, dOutput, made, states, dStates}), gradients));
}
