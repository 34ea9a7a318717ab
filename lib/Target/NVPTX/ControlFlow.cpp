//===- ControlFlow.cpp - loops and branches of a kernel -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Control flow is the same for all threads of a block, because scalars are:
// they come from arguments, ids and memory that all threads read alike.
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::nvptx;

/// Appends values as scalars: tiles in the layouts of `like`.
void KernelLowering::appendCarried(ValueRange values, ValueRange like,
                                   Values &flat) {
  for (auto [value, target] : llvm::zip_equal(values, like)) {
    if (isTile(value))
      llvm::append_range(flat, get(value, plan.layoutOf(target)));
    else
      flat.push_back(scalar(value));
  }
}

/// The other way: `targets` are what `flat` holds.
void KernelLowering::bindCarried(ValueRange targets, ValueRange flat) {
  for (Value target : targets) {
    if (!isTile(target)) {
      mapping.map(target, flat.front());
      flat = flat.drop_front();
      continue;
    }
    Layout layout = plan.layoutOf(target);
    size_t count = layout.numRegisters();
    remember(target, layout, Values(flat.take_front(count)));
    flat = flat.drop_front(count);
  }
}

/// The stage `by` places after `from`, in turn.
static Value stageAfter(GpuBuilder &b, Value from, int64_t by, int64_t stages) {
  Value next = b.add(from, b.i32(by));
  Value wrapped = b.add(next, b.i32(-stages));
  return b.select(b.less(next, b.i32(stages)), next, wrapped);
}

/// Waits for the tiles of this turn, and asks for those that the stage which is
/// free by then will hold.
void KernelLowering::beginTurn(Turn &turn, const Bounds &bounds,
                               Pipeline &pipeline, scf::ForOp loop) {
  b.waitForCopies(pipeline.ahead() - 1);
  if (!pipeline.isOwn)
    shared.barrier();
  for (int64_t stage = 0; stage < pipeline.ahead(); ++stage)
    turn.later = b.createOrFold<arith::AddIOp>(turn.later, bounds.step);
  if (!pipeline.isOwn)
    issueCopies(pipeline, loop, turn.later, bounds.upper,
                stageAfter(b, turn.slot, pipeline.stages - 1, pipeline.stages));
  turn.nextSlot = stageAfter(b, turn.slot, 1, pipeline.stages);
  for (auto [load, buffer, bytes] :
       llvm::zip(pipeline.loads, pipeline.buffers, pipeline.bytes)) {
    SharedTile current = buffer;
    current.pointer = b.address(buffer.pointer, b.mul(turn.slot, b.i32(bytes)));
    copiedAhead[load] = current;
  }
}

LogicalResult KernelLowering::lowerBody(scf::ForOp loop, scf::ForOp made,
                                        const Bounds &bounds,
                                        Pipeline &pipeline) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(made.getBody());
  size_t scope = enterScope();
  ValueRange carried = made.getRegionIterArgs();
  mapping.map(loop.getInductionVar(), made.getInductionVar());
  Turn turn;
  turn.later = made.getInductionVar();
  if (pipeline.copiesAhead()) {
    turn.slot = carried.back();
    carried = carried.drop_back();
    beginTurn(turn, bounds, pipeline, loop);
  }
  bindCarried(loop.getRegionIterArgs(), carried);
  if (failed(lowerBlock(*loop.getBody())))
    return failure();
  Values next;
  appendCarried(loop.getYieldedValues(), loop.getRegionIterArgs(), next);
  if (pipeline.isOwn)
    issueCopies(pipeline, loop, turn.later, bounds.upper, turn.slot);
  if (pipeline.copiesAhead())
    next.push_back(turn.nextSlot);
  else
    shared.flush();
  for (const SharedTile &buffer : pipeline.buffers)
    shared.keepAlive(buffer.buffer);
  scf::YieldOp::create(b, next);
  leaveScope(scope);
  return success();
}

LogicalResult KernelLowering::lowerFor(scf::ForOp loop) {
  auto stream = begun.find(loop);
  bool hasBegun = stream != begun.end();
  Pipeline pipeline = hasBegun ? stream->second : planPipeline(loop);
  bool ahead = pipeline.copiesAhead();
  stageInvariants(loop);
  Values inits;
  appendCarried(loop.getInitArgs(), loop.getRegionIterArgs(), inits);
  Value lower = scalar(loop.getLowerBound());
  Bounds bounds;
  bounds.upper = scalar(loop.getUpperBound());
  bounds.step = scalar(loop.getStep());
  if (ahead && !hasBegun) {
    issueFirstCopies(pipeline, loop);
    shared.joinCopies();
  } else {
    shared.flush();
  }
  if (ahead) // The number of the stage, in turn.
    inits.push_back(b.i32(0));

  SharedMemory::Mark mark = shared.enter();
  auto made = scf::ForOp::create(b, lower, bounds.upper, bounds.step, inits);
  if (inits.empty())
    made.getBody()->getTerminator()->erase();
  if (failed(lowerBody(loop, made, bounds, pipeline)))
    return failure();
  shared.leaveLoop(mark);
  // Also a loop that did not run must separate what is before and after, and
  // wait for what its barriers would have waited for.
  if (ahead)
    b.waitForCopies(0);
  if (shared.hadBarrier(mark))
    shared.barrierAround(mark);
  ValueRange results = made.getResults();
  bindCarried(loop.getResults(), ahead ? results.drop_back() : results);
  return success();
}

/// One side of a branch; it yields those of its results that are `results`.
LogicalResult KernelLowering::lowerBranch(Block &block, ValueRange results) {
  size_t scope = enterScope();
  if (failed(lowerBlock(block)))
    return failure();
  SmallVector<Value> yields;
  for (Value result : results)
    yields.push_back(block.getTerminator()->getOperand(
        cast<OpResult>(result).getResultNumber()));
  Values flat;
  appendCarried(yields, results, flat);
  scf::YieldOp::create(b, flat);
  leaveScope(scope);
  return success();
}

LogicalResult KernelLowering::lowerIf(scf::IfOp branch) {
  SmallVector<Type> types;
  // What is copied to shared memory is not carried in registers.
  SmallVector<Value> results;
  SmallVector<std::pair<Value, SharedTile>> copied;
  for (Value result : branch.getResults()) {
    if (isAskedEarly(result)) {
      copied.push_back({result, placeOf(result)});
      continue;
    }
    results.push_back(result);
    if (!isTile(result)) {
      types.push_back(result.getType());
      continue;
    }
    Type element = cast<RankedTensorType>(result.getType()).getElementType();
    types.append(plan.layoutOf(result).numRegisters(), element);
  }
  bool hasElse = !branch.getElseRegion().empty();
  auto made = scf::IfOp::create(b, types, scalar(branch.getCondition()),
                                /*addThenBlock=*/true, hasElse);
  SharedMemory::Mark mark = shared.enter();
  for (auto [from, to] :
       llvm::zip_equal(branch->getRegions(), made->getRegions())) {
    if (from.empty())
      continue;
    OpBuilder::InsertionGuard guard(b);
    Block &block = to.front();
    if (!block.empty())
      block.getTerminator()->erase();
    b.setInsertionPointToEnd(&block);
    // The other branch's barriers count as passed here.
    if (&from == &branch.getElseRegion() && shared.hadBarrier(mark))
      shared.barrierAround(mark);
    if (failed(lowerBranch(from.front(), results)))
      return failure();
  }
  if (shared.hadBarrier(mark))
    shared.barrierAround(mark);
  bindCarried(results, made.getResults());
  for (auto &[result, to] : copied)
    remember(result, to);
  return success();
}
