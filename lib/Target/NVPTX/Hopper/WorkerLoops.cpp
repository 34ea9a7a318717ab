//===- WorkerLoops.cpp - loops of the role that computes ------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Three kinds of loops:
//
//   simple   the ops of the program in their order; sums whose product has a
//            record with `wait` stay in flight until the next iteration waits
//            for a product of its own
//   flying   nothing but products that add to the sums which the loop carries:
//            the sums stay in flight from one iteration to the next
//   staged   ops of stage 1 run one time step later than those of stage 0. Time
//            step t runs stage 0 of iteration t and stage 1 of iteration t - 1,
//            in the order of `issue`; there is a first step without stage 1 and
//            a last one without stage 0.
//
//===----------------------------------------------------------------------===//

#include "StagePlan.h"

#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::hopper;

LogicalResult Worker::emitLoop(scf::ForOp loop, Frame &frame) {
  for (Value bound :
       {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})
    if (failed(get(loop, bound, frame)))
      return failure();
  settleAll(frame);
  bool isStaged = false;
  Operation *store = nullptr;
  for (Operation &op : loop.getBody()->without_terminator()) {
    isStaged |= record.number(&op, "stage", 0) > 0 && !record.isLoad(&op);
    if (op.getNumResults() == 0)
      store = &op;
  }
  // Both kinds of loops below run what values ask for.
  auto refuse = [&] {
    return store->emitError("is in a loop whose products are in flight or in "
                            "stages; put it behind the loop");
  };
  SmallVector<tile::DotOp> sums(loop.getBody()->getOps<tile::DotOp>());
  bool isFlying = !sums.empty() && sums.size() == loop.getNumRegionIterArgs();
  for (unsigned n = 0; isFlying && n < sums.size(); ++n)
    isFlying = flyingSum(loop, n) == sums[n];
  if (isFlying)
    return store ? LogicalResult(refuse()) : emitFlyingLoop(loop, sums, frame);
  if (isStaged && store)
    return refuse();
  if (failed(isStaged ? emitStagedLoop(loop, frame)
                      : emitSimpleLoop(loop, frame)))
    return failure();
  if (task &&
      llvm::any_of(rings, [&](const Ring &ring) { return ring.loop == loop; }))
    countIterations(loop, frame.map);
  return success();
}

/// The product that adds to the sum which the loop carries and may still run in
/// the next iteration; null where there is none.
tile::DotOp Worker::flyingSum(scf::ForOp loop, unsigned argument) {
  auto dot = loop.getBody()
                 ->getTerminator()
                 ->getOperand(argument)
                 .getDefiningOp<tile::DotOp>();
  bool flies = dot && dot.getAcc() == loop.getRegionIterArg(argument) &&
               record.number(dot, "wait", 0) > 0;
  return flies ? dot : tile::DotOp();
}

/// Copies of the iteration before that are free when its `dot` has ended.
SmallVector<Worker::Release> Worker::releasesBefore(tile::DotOp dot,
                                                    Frame &frame) {
  SmallVector<Release> releases;
  Value before = arith::SubIOp::create(b, frame.count, index(1));
  Value isAny = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, frame.count,
                                      index(0));
  for (Value operand :
       SetVector<Value>(dot->operand_begin(), dot->operand_end())) {
    auto load = operand.getDefiningOp<tile::LoadOp>();
    if (!load || !record.isLoad(load) || !ringOf(load).empty)
      continue;
    bool isLast = llvm::all_of(operand.getUsers(), [&](Operation *user) {
      return user == dot || user->isBeforeInBlock(dot);
    });
    if (isLast)
      releases.push_back(
          {&ringOf(load), placeOf(ringOf(load), before).copy, isAny});
  }
  return releases;
}

LogicalResult Worker::emitSimpleLoop(scf::ForOp loop, Frame &frame) {
  SmallVector<Value> inits;
  // Sums in flight in the order of their products.
  SmallVector<std::pair<tile::DotOp, unsigned>> flying;
  for (auto [number, init] : llvm::enumerate(loop.getInitArgs())) {
    FailureOr<Value> value = get(loop, init, frame);
    if (failed(value))
      return failure();
    inits.push_back(*value);
    tile::DotOp dot = flyingSum(loop, number);
    if (!dot)
      continue;
    flying.push_back({dot, number});
    auto tile = cast<RankedTensorType>(value->getType());
    auto type = FlightType::get(tile.getShape(), tile.getElementType());
    inits.back() = AccumulatorOp::create(b, type, *value);
  }
  llvm::sort(flying, [](const auto &x, const auto &y) {
    return x.first->isBeforeInBlock(y.first);
  });
  auto made = scf::ForOp::create(b, frame.map.lookup(loop.getLowerBound()),
                                 frame.map.lookup(loop.getUpperBound()),
                                 frame.map.lookup(loop.getStep()), inits);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(made.getBody());
    Frame inner = frame;
    inner.map.map(loop.getRegionIterArgs(), made.getRegionIterArgs());
    inner.map.map(loop.getInductionVar(), made.getInductionVar());
    inner.count =
        countOf(made.getLowerBound(), made.getStep(), made.getInductionVar());
    for (auto [dot, number] : flying) {
      Value sum = loop.getRegionIterArg(number);
      inner.map.erase(sum);
      running.push_back({sum, made.getRegionIterArg(number), &inner,
                         releasesBefore(dot, inner)});
    }
    if (failed(emitBlock(*loop.getBody(), inner)))
      return failure();
    SmallVector<Value> next;
    for (Value value : loop.getBody()->getTerminator()->getOperands()) {
      bool flies = llvm::any_of(
          flying, [&](auto sum) { return sum.first.getResult() == value; });
      FailureOr<Value> result = flies ? value : get(loop, value, inner);
      if (failed(result))
        return failure();
      next.push_back(*result);
    }
    for (auto [dot, number] : flying) {
      Value product = dot.getResult();
      auto *sum = llvm::find_if(
          running, [&](const Running &one) { return one.dot == product; });
      if (sum == running.end())
        return dot.emitError(
            "is waited for in its own iteration; leave out its "
            "'wait'");
      next[number] = sum->flight;
    }
    if (flying.empty())
      settleAll(inner);
    else if (running.size() != flying.size())
      return loop.emitError("ends with products in flight that it does not "
                            "carry; give them stages or take out 'wait'");
    running.clear();
    if (made.getBody()->mightHaveTerminator())
      made.getBody()->getTerminator()->erase();
    b.setInsertionPointToEnd(made.getBody());
    scf::YieldOp::create(b, next);
  }
  frame.map.map(loop.getResults(), made.getResults());
  for (auto [dot, number] : flying)
    running.push_back(
        {loop.getResult(number), made.getResult(number), &frame, {}});
  for (auto [dot, number] : flying)
    frame.map.erase(loop.getResult(number));
  settleAll(frame);
  return success();
}

/// Releases what the products of iteration `count` have read, where it is
/// taken.
void Worker::releaseOperands(ArrayRef<tile::DotOp> dots, Value isTaken,
                             Value count) {
  auto branch = scf::IfOp::create(b, isTaken, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard inBranch(b);
  b.setInsertionPointToStart(branch.thenBlock());
  SetVector<Value> operands;
  for (tile::DotOp dot : dots)
    operands.insert(dot->operand_begin(), dot->operand_end());
  for (Value operand : operands)
    if (auto load = operand.getDefiningOp<tile::LoadOp>();
        load && record.isLoad(load) && ringOf(load).empty)
      release({&ringOf(load), placeOf(ringOf(load), count).copy, {}});
}

/// Before the products of an iteration start, those of at most `wait`
/// iterations before may still run; what the others have read is released.
LogicalResult Worker::emitFlyingLoop(scf::ForOp loop,
                                     ArrayRef<tile::DotOp> dots, Frame &frame) {
  int64_t pending = 0, count = int64_t(dots.size());
  for (tile::DotOp dot : dots)
    pending = std::max(pending, record.number(dot, "wait", 0));
  SmallVector<Value> starts;
  SmallVector<Type> tiles;
  for (Value carried : loop.getInitArgs()) {
    FailureOr<Value> init = get(loop, carried, frame);
    if (failed(init))
      return failure();
    auto tile = cast<RankedTensorType>(init->getType());
    auto type = FlightType::get(tile.getShape(), tile.getElementType());
    starts.push_back(AccumulatorOp::create(b, type, *init));
    tiles.push_back(tile);
  }
  Value lower = frame.map.lookup(loop.getLowerBound());
  auto made =
      scf::ForOp::create(b, lower, frame.map.lookup(loop.getUpperBound()),
                         frame.map.lookup(loop.getStep()), starts);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(made.getBody());
    Frame inner = frame;
    inner.map.map(loop.getInductionVar(), made.getInductionVar());
    inner.count = countOf(lower, made.getStep(), made.getInductionVar());
    ProductWaitOp::create(b, TypeRange(), ValueRange(), pending * count);
    // The last iteration whose products are done by now.
    Value done = arith::SubIOp::create(b, inner.count, index(pending + 1));
    Value isAny = arith::CmpIOp::create(b, arith::CmpIPredicate::sge, done,
                                        passed ? passed : index(0));
    releaseOperands(dots, isAny, done);
    SmallVector<Value> flights;
    for (auto [dot, sum] : llvm::zip_equal(dots, made.getRegionIterArgs())) {
      if (failed(emitDot(dot, inner, sum)))
        return failure();
      flights.push_back(running.back().flight);
    }
    running.clear();
    if (made.getBody()->mightHaveTerminator())
      made.getBody()->getTerminator()->erase();
    b.setInsertionPointToEnd(made.getBody());
    scf::YieldOp::create(b, flights);
  }
  for (auto load : record.getLoads())
    if (ringOf(load).loop == loop &&
        ringOf(load).buffer.getType().getCopies() < pending + 2)
      return load.emitError("has ")
             << ringOf(load).buffer.getType().getCopies()
             << " buffers; products that wait for " << pending
             << " need at least " << pending + 2;
  auto wait = ProductWaitOp::create(b, tiles, made.getResults(), 0);
  frame.map.map(loop.getResults(), wait.getTiles());
  if (!task)
    return success();
  // The copies of the last products are for the next point.
  Value iterations = countIterations(loop, frame.map);
  for (int64_t last = pending + 1; last > 0; --last) {
    Value isTaken = arith::CmpIOp::create(b, arith::CmpIPredicate::sge,
                                          iterations, index(last));
    releaseOperands(dots, isTaken,
                    arith::SubIOp::create(b, passedAfter, index(last)));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Staged loops
//===----------------------------------------------------------------------===//

/// One time step: the frames of the iterations in it, null where none is.
struct Worker::Step {
  Worker &worker;
  const StagePlan &plan;
  Frame *now, *before;
  DenseSet<Operation *> done;

  Frame *frameOf(Operation *op) const {
    return plan.stageOf(op) == 0 ? now : before;
  }
  LogicalResult run();
  LogicalResult emit(Operation *op);
  LogicalResult prepare(Operation *op, Value operand);
};

LogicalResult Worker::Step::prepare(Operation *op, Value operand) {
  Frame *frame = frameOf(op);
  if (auto argument = plan.carriedOf(operand)) {
    // The sum of a later stage, which this time step has just made.
    Operation *maker = plan.makerOf(*argument);
    if (plan.stageOf(maker) <= plan.stageOf(op) || !before)
      return success();
    if (!done.contains(maker))
      return op->emitError("is issued before '")
             << maker->getName() << "' gives what it needs; issue it later";
    FailureOr<Value> value = worker.get(op, plan.yieldOf(*argument), *before);
    if (failed(value))
      return failure();
    frame->map.map(operand, *value);
    return success();
  }
  Operation *maker = operand.getDefiningOp();
  if (!maker || !plan.isStaged(maker) ||
      plan.stageOf(maker) != plan.stageOf(op))
    return success();
  return emit(maker);
}

LogicalResult Worker::Step::emit(Operation *op) {
  Frame *frame = frameOf(op);
  if (!frame || !done.insert(op).second)
    return success();
  for (Value operand : StagePlan::operandsOf(op))
    if (failed(prepare(op, operand)))
      return failure();
  return worker.emitOp(op, *frame);
}

LogicalResult Worker::Step::run() {
  // All operands first: a warpgroup that has the turn must not wait for what
  // another one takes part in.
  Operation *firstTurn = nullptr, *lastTurn = nullptr;
  for (Operation *op : plan.getOrder()) {
    Frame *frame = frameOf(op);
    auto dot = dyn_cast<tile::DotOp>(op);
    if (!frame || !dot)
      continue;
    for (Value operand : {dot.getA(), dot.getB()})
      if (auto load = operand.getDefiningOp<tile::LoadOp>();
          load && worker.record.isLoad(load) &&
          failed(worker.await(load, *frame)))
        return failure();
    if (worker.record.takesTurns(op)) {
      firstTurn = firstTurn ? firstTurn : op;
      lastTurn = op;
    }
  }
  for (Operation *op : plan.getOrder()) {
    if (op == firstTurn)
      worker.takeTurn();
    if (failed(emit(op)))
      return failure();
    if (op == lastTurn)
      worker.passTurn();
  }
  return success();
}

/// Turn n is the named barrier n + 1: its warpgroup waits there, the one before
/// it arrives.
void Worker::takeTurn() {
  Value number = arith::AddIOp::create(b, toI32(warpgroup), i32(1));
  SyncOp::create(b, number, 2 * kWarpgroupThreads);
}

void Worker::passTurn() {
  Value next = arith::AddIOp::create(b, toI32(warpgroup), i32(1));
  Value isLast = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, next,
                                       i32(record.worker().warpgroups));
  next = arith::SelectOp::create(b, isLast, i32(0), next);
  SignalOp::create(b, arith::AddIOp::create(b, next, i32(1)),
                   2 * kWarpgroupThreads);
}

/// The first warpgroup has the first turn.
void Worker::beginTurns(const StagePlan &plan) {
  if (record.worker().warpgroups < 2 ||
      llvm::none_of(
          plan.getOrder(),
          [&](Operation *op) { return record.takesTurns(op); }))
    return;
  Value isLast = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, warpgroup,
                                       index(record.worker().warpgroups - 1));
  auto branch = scf::IfOp::create(b, isLast, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  SignalOp::create(b, i32(1), 2 * kWarpgroupThreads);
}

LogicalResult Worker::emitStagedLoop(scf::ForOp loop, Frame &frame) {
  FailureOr<StagePlan> plan = StagePlan::make(loop, record);
  if (failed(plan))
    return failure();
  Value lower = frame.map.lookup(loop.getLowerBound()),
        upper = frame.map.lookup(loop.getUpperBound()),
        step = frame.map.lookup(loop.getStep());
  SmallVector<Value> inits;
  SmallVector<Type> types;
  for (Value init : loop.getInitArgs()) {
    FailureOr<Value> value = get(loop, init, frame);
    if (failed(value))
      return failure();
    inits.push_back(*value);
    types.push_back(value->getType());
  }
  Value isAny =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, lower, upper);
  auto branch = scf::IfOp::create(b, types, isAny, /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, inits);
  }
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  beginTurns(*plan);
  auto makeFrame = [&](Value at) {
    Frame made = frame;
    made.map.map(loop.getInductionVar(), at);
    made.count = countOf(lower, step, at);
    return made;
  };
  // What is handed from one time step to the next: sums of stage 0, sums that
  // stage 1 reads itself, and what stage 0 makes for stage 1.
  auto gather = [&](Frame *now,
                    Frame *before) -> FailureOr<SmallVector<Value>> {
    SmallVector<Value> handed;
    for (const StagePlan::Handed &item : plan->getHanded()) {
      Frame *from = item.stage == 0 ? now : before;
      FailureOr<Value> value = from ? get(loop, item.made, *from)
                                    : FailureOr<Value>(inits[item.argument]);
      if (failed(value))
        return failure();
      handed.push_back(*value);
    }
    return handed;
  };
  auto receive = [&](ValueRange handed, Frame *now, Frame *before) {
    for (auto [item, value] : llvm::zip_equal(plan->getHanded(), handed)) {
      Frame *to = item.isSum && item.stage == 0 ? now : before;
      if (to)
        to->map.map(item.read, value);
    }
  };

  Frame first = makeFrame(lower);
  first.map.map(loop.getRegionIterArgs(), inits);
  if (failed(Step{*this, *plan, &first, nullptr, {}}.run()))
    return failure();
  FailureOr<SmallVector<Value>> handed = gather(&first, nullptr);
  if (failed(handed))
    return failure();
  settleAll(first);

  Value second = arith::AddIOp::create(b, lower, step);
  auto made = scf::ForOp::create(b, second, upper, step, *handed);
  {
    OpBuilder::InsertionGuard inLoop(b);
    b.setInsertionPointToStart(made.getBody());
    Value at = made.getInductionVar();
    Frame now = makeFrame(at),
          before = makeFrame(arith::SubIOp::create(b, at, step));
    receive(made.getRegionIterArgs(), &now, &before);
    if (failed(Step{*this, *plan, &now, &before, {}}.run()))
      return failure();
    FailureOr<SmallVector<Value>> next = gather(&now, &before);
    if (failed(next))
      return failure();
    settleAll(now);
    if (made.getBody()->mightHaveTerminator())
      made.getBody()->getTerminator()->erase();
    b.setInsertionPointToEnd(made.getBody());
    scf::YieldOp::create(b, *next);
  }

  Value passed = arith::SubIOp::create(
      b, arith::SubIOp::create(b, upper, lower), index(1));
  Value count = arith::DivUIOp::create(b, passed, step);
  Frame last = makeFrame(
      arith::AddIOp::create(b, lower, arith::MulIOp::create(b, count, step)));
  Frame sums = last;
  receive(made.getResults(), &sums, &last);
  if (failed(Step{*this, *plan, nullptr, &last, {}}.run()))
    return failure();
  SmallVector<Value> results;
  for (unsigned n = 0; n < loop.getNumRegionIterArgs(); ++n) {
    bool isLate = plan->stageOf(plan->makerOf(n)) == 1;
    FailureOr<Value> value =
        isLate ? get(loop, plan->yieldOf(n), last)
               : FailureOr<Value>(sums.map.lookup(loop.getRegionIterArg(n)));
    if (failed(value))
      return failure();
    results.push_back(*value);
  }
  settleAll(last);
  scf::YieldOp::create(b, results);
  frame.map.map(loop.getResults(), branch.getResults());
  return success();
}
