//===- Accumulate.cpp - gradients that are added to in place -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Entry `backward` ends in chains gradient + x + y, one per parameter, whose
// first link is the caller's gradient buffer. Each sum overwrites that buffer,
// and where the program that makes x can add, x is never stored.
//
//===----------------------------------------------------------------------===//

#include "Scheduler.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace hybrid;

bool hybrid::isGradientSum(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (auto pieces = dyn_cast<PiecesOp>(argument.getOwner()->getParentOp())) {
      Value sum = pieces.getOperandOf(argument);
      return isGradientSum(sum) && sum.hasOneUse();
    }
    auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
    auto role = function ? function.getArgAttrOfType<StringAttr>(
                               argument.getArgNumber(), "hybrid.role")
                         : StringAttr();
    return role && role == "gradient";
  }
  if (auto sum = value.getDefiningOp<AddOp>())
    return isGradientSum(sum.getA()) && sum.getA().hasOneUse();
  if (auto pieces = value.getDefiningOp<PiecesOp>())
    return isGradientSum(pieces.getYielded(cast<OpResult>(value)));
  auto dispatch = value.getDefiningOp<DispatchOp>();
  if (!dispatch)
    return false;
  auto tied = dispatch.getTiedInput(cast<OpResult>(value).getResultNumber());
  return tied && isGradientSum(dispatch.getInputs()[*tied]);
}

bool hybrid::isAccumulated(Operation *producer) {
  if (!producer->hasOneUse())
    return false;
  auto sum = dyn_cast<AddOp>(*producer->getUsers().begin());
  return sum && sum.getB().getDefiningOp() == producer && isGradientSum(sum) &&
         sum.getA().getType() == sum.getB().getType();
}

LogicalResult hybrid::scheduleGradientSum(Scheduler &scheduler, AddOp op) {
  OpBuilder builder(op);
  Operation *producer = op.getB().getDefiningOp();
  Value sum;
  if (producer && isAccumulated(producer))
    sum =
        TypeSwitch<Operation *, Value>(producer)
            .Case<ProductOp, EmbedGradOp, ReduceTokensOp>([&](auto known) {
              return scheduleAccumulated(scheduler, known, builder, op.getA());
            })
            .Default(Value());
  if (!sum)
    return scheduleInPlace(scheduler, op);
  ++scheduler.numAccumulated;
  op.replaceAllUsesWith(sum);
  op.erase();
  producer->erase();
  return success();
}
