//===- StagePlan.cpp - in which time step the ops of a loop run -----------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StagePlan.h"

#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::hopper;

SmallVector<Value> StagePlan::operandsOf(Operation *op) {
  SmallVector<Value> values(op->getOperands());
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  llvm::append_range(values, captured);
  return values;
}

std::optional<unsigned> StagePlan::carriedOf(Value value) const {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner() != loop.getBody() ||
      argument.getArgNumber() == 0)
    return std::nullopt;
  return argument.getArgNumber() - 1;
}

Value StagePlan::yieldOf(unsigned argument) const {
  return loop.getBody()->getTerminator()->getOperand(argument);
}

/// Constants, broadcasts and the like cost less than to keep them.
static bool isCheap(Operation *op) {
  return isa<arith::ConstantOp, tile::SplatOp, tile::IotaOp>(op);
}

void StagePlan::assign(const Record &record) {
  SmallVector<Operation *> ops;
  for (Operation &op : loop.getBody()->without_terminator())
    if (!record.isLoad(&op) && !isCheap(&op) &&
        llvm::any_of(op.getResults(), isTile))
      ops.push_back(&op);
  DenseSet<Operation *> waiting(ops.begin(), ops.end());
  for (Operation *op : ops)
    if (record.isNamed(op)) {
      stages[op] = record.number(op, "stage", 0);
      order.push_back(op);
      waiting.erase(op);
    }
  llvm::sort(order, [&](Operation *x, Operation *y) {
    int64_t first = record.number(x, "issue", 0),
            second = record.number(y, "issue", 0);
    return first != second ? first < second : x->isBeforeInBlock(y);
  });
  // With the first user; what only the loop carries on, after its operands.
  for (Operation *op : llvm::reverse(ops)) {
    if (!waiting.contains(op))
      continue;
    for (Operation *user : op->getUsers()) {
      Operation *inBody = loop.getBody()->findAncestorOpInBlock(*user);
      if (inBody && stages.count(inBody)) {
        auto [known, isNew] = stages.try_emplace(op, stages[inBody]);
        known->second = std::min(known->second, stages[inBody]);
      }
    }
    if (stages.count(op))
      waiting.erase(op);
  }
  for (Operation *op : ops) {
    if (!waiting.contains(op))
      continue;
    int64_t latest = 0;
    for (Value operand : operandsOf(op))
      if (Operation *maker = operand.getDefiningOp())
        latest = std::max(latest, stages.lookup(maker));
    stages[op] = latest;
  }
  for (Operation *op : ops)
    if (!record.isNamed(op))
      order.push_back(op);
}

LogicalResult StagePlan::checkUse(Operation *user, Value value) {
  int64_t at = stageOf(user);
  if (auto argument = carriedOf(value)) {
    int64_t made = stageOf(makerOf(*argument));
    if (made < at)
      return user->emitError(
          "is of stage 1 and reads what the iteration before "
          "made in stage 0, which is gone; give it stage 0");
    if (made == at)
      handed.push_back({yieldOf(*argument), value, made, true, *argument});
    return success();
  }
  Operation *maker = value.getDefiningOp();
  if (!maker || !isStaged(maker) || stageOf(maker) == at)
    return success();
  if (stageOf(maker) > at)
    return user->emitError("is of stage 0 and uses '")
           << maker->getName() << "' of stage 1 of its own iteration";
  handed.push_back({value, value, 0, false, 0});
  return success();
}

LogicalResult StagePlan::hand() {
  // Sums of stage 0 are results of the loop, read inside of it or not.
  for (unsigned n = 0; n < loop.getNumRegionIterArgs(); ++n)
    if (stageOf(makerOf(n)) == 0)
      handed.push_back({yieldOf(n), loop.getRegionIterArg(n), 0, true, n});
  for (Operation *op : order)
    for (Value value : operandsOf(op))
      if (failed(checkUse(op, value)))
        return failure();
  llvm::DenseSet<std::pair<Value, Value>> seen;
  llvm::erase_if(handed, [&](const Handed &item) {
    return !seen.insert({item.made, item.read}).second;
  });
  return success();
}

FailureOr<StagePlan> StagePlan::make(scf::ForOp loop, const Record &record) {
  StagePlan plan;
  plan.loop = loop;
  plan.assign(record);
  for (auto &[op, stage] : plan.stages)
    if (stage > 1)
      return op->emitError("has stage ")
             << stage << "; loops for " << kTarget << " have stages 0 and 1";
  for (unsigned n = 0; n < loop.getNumRegionIterArgs(); ++n)
    if (!plan.yieldOf(n).getDefiningOp() || !isTile(plan.yieldOf(n)) ||
        !plan.isStaged(plan.makerOf(n)))
      return loop.emitError("carries value ")
             << n << ", which is not a tile that an op of its body makes";
  if (failed(plan.hand()))
    return failure();
  return plan;
}
