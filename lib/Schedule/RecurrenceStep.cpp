//===- RecurrenceStep.cpp - recurrences that make their operands ----------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What stands between the projections of a row and its recurrence, activations,
// norms, gates, products of a low rank, works on a few numbers per head. In a
// call of a few rows each of these launches takes longer to begin than to work,
// so every point of the step does it again for its head.
//
//===----------------------------------------------------------------------===//

#include "RecurrenceStep.h"

#include "hybrid/Tile/Families/Rowwise.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace hybrid;

namespace {
/// A recurrence and the operations that its step does.
class FoldedStep {
public:
  FoldedStep(Scheduler &scheduler, RecurrenceOp op);

  bool isWorthIt() const { return !sources.made.inside.empty(); }
  /// Replaces the operations by launches.
  LogicalResult schedule();

private:
  bool canBeInside(Operation *maker) const;
  void collect();
  void leaveOutWhatOthersRead();
  SmallVector<Operation *> inOrder() const;
  SmallVector<Value> atOnce(OpBuilder &builder, tile::ProgramOp program);
  SmallVector<Value> apart(OpBuilder &builder);

  Scheduler &scheduler;
  RecurrenceOp op;
  tile::RecurrenceShape shape;
  tile::RecurrenceSources sources;
  SmallVector<Operation *> copies;
};
} // namespace

FoldedStep::FoldedStep(Scheduler &scheduler, RecurrenceOp op)
    : scheduler(scheduler), op(op), shape(recurrenceShape(op)) {
  const TargetTraits &target = scheduler.target;
  shape.valueTile = target.valueTile(shape, target.stepValueColumns);
  sources.query = op.getQ();
  sources.key = op.getK();
  sources.value = op.getV();
  sources.decay = op.getDecay();
  sources.beta = op.getBeta();
  collect();
  leaveOutWhatOthersRead();
}

bool FoldedStep::canBeInside(Operation *maker) const {
  if (!maker || maker->getBlock() != op->getBlock() ||
      sources.made.inside.contains(maker))
    return false;
  if (isa<RowwiseOp>(maker))
    return true;
  // The second of two that make a low rank: its rows are there for it alone.
  // Others are part of the launch that makes their rows.
  if (auto product = dyn_cast<ProductOp>(maker))
    return product.getA().hasOneUse();
  // Copies of parameters are places.
  if (auto cast = dyn_cast<CastOp>(maker); cast && cast.isParameterCopy())
    return false;
  auto single = dyn_cast<RowwiseOpInterface>(maker);
  return single && single.isRowwise() && tile::hasRowwiseEmission(maker);
}

/// One operation after another, as long as a part of what it makes suffices.
void FoldedStep::collect() {
  llvm::SmallPtrSet<Operation *, 8> tried;
  while (true) {
    std::optional<SmallVector<Value>> leaves = sources.leaves(shape);
    // Operands that are not parts of rows themselves.
    if (!leaves)
      return sources.made.inside.clear();
    auto *next = llvm::find_if(*leaves, [&](Value leaf) {
      Operation *maker = leaf.getDefiningOp();
      return canBeInside(maker) && !tried.contains(maker);
    });
    if (next == leaves->end())
      return;
    Operation *maker = next->getDefiningOp();
    tried.insert(maker);
    sources.made.inside.insert(maker);
    if (!sources.leaves(shape))
      sources.made.inside.erase(maker);
  }
}

/// What is stored for others anyway costs a launch anyway.
void FoldedStep::leaveOutWhatOthersRead() {
  auto &inside = sources.made.inside;
  std::function<bool(Operation *)> isOwn = [&](Operation *user) {
    if (user == op || inside.contains(user))
      return true;
    return isa<ReshapeOp>(user) && llvm::all_of(user->getUsers(), isOwn);
  };
  auto isReadByOthers = [&](Operation *maker) {
    return !llvm::all_of(maker->getUsers(), isOwn);
  };
  while (true) {
    auto other = llvm::find_if(inside, isReadByOthers);
    if (other == inside.end())
      return;
    inside.erase(*other);
  }
}

/// The operations inside, with the reshapes between them and the recurrence.
SmallVector<Operation *> FoldedStep::inOrder() const {
  llvm::SetVector<Operation *> found;
  SmallVector<Operation *> open{op};
  while (!open.empty()) {
    Operation *reader = open.pop_back_val();
    for (Value operand : reader->getOperands()) {
      Operation *maker = operand.getDefiningOp();
      bool isOurs = maker && (sources.made.inside.contains(maker) ||
                              isa<ReshapeOp>(maker));
      if (isOurs && found.insert(maker))
        open.push_back(maker);
    }
  }
  SmallVector<Operation *> order = found.takeVector();
  llvm::sort(order,
             [](Operation *x, Operation *y) { return x->isBeforeInBlock(y); });
  return order;
}

SmallVector<Value> FoldedStep::atOnce(OpBuilder &builder,
                                      tile::ProgramOp program) {
  SmallVector<Value> inputs = *sources.leaves(shape);
  inputs.push_back(op.getSegments());
  return launchRecurrence(scheduler, builder, op, program, std::move(inputs));
}

/// Copies of the operations, which are scheduled where they are.
SmallVector<Value> FoldedStep::apart(OpBuilder &builder) {
  IRMapping mapping;
  for (Operation *inside : inOrder())
    copies.push_back(builder.clone(*inside, mapping));
  copies.push_back(builder.clone(*op, mapping));
  return SmallVector<Value>(copies.back()->getResults());
}

static LogicalResult scheduleCopy(Scheduler &scheduler, Operation *copy) {
  if (isa<ReshapeOp>(copy))
    return success();
  if (auto product = dyn_cast<ProductOp>(copy))
    return scheduleOp(scheduler, product);
  if (auto recurrence = dyn_cast<RecurrenceOp>(copy))
    return scheduleOp(scheduler, recurrence);
  return scheduleRowwise(scheduler, copy);
}

LogicalResult FoldedStep::schedule() {
  const int64_t fewRows = scheduler.target.longestStep;
  SmallVector<Operation *> order = inOrder();
  size_t count = sources.made.inside.size();
  scheduler.chose(op, "HYB-S204",
                  "up to " + Twine(fewRows) + " rows with the " + Twine(count) +
                      (count == 1 ? " operation" : " operations") +
                      " that make its operands, else apart",
                  "with a state, calls are prefill or decode");
  // One program for one chain of operations: its text is the key.
  OpBuilder programs =
      OpBuilder::atBlockEnd(op->getParentOfType<ModuleOp>().getBody());
  tile::ProgramOp program = scheduler.programs.add(
      tile::buildRecurrenceStepFrom(programs, op.getLoc(), shape, sources),
      "recurrence_step");
  OpBuilder builder(op);
  AffineExpr tokens = getSymbolExpr(CallSymbol::tokens, op.getContext());
  op->replaceAllUsesWith(scheduler.either(
      builder, op.getLoc(), op->getResultTypes(), fewRows - tokens,
      [&](OpBuilder &inner) { return atOnce(inner, program); },
      [&](OpBuilder &inner) { return apart(inner); }));
  op.erase();
  for (Operation *old : llvm::reverse(order))
    if (old->use_empty())
      old->erase();
  for (Operation *copy : copies)
    if (failed(scheduleCopy(scheduler, copy)))
      return failure();
  return success();
}

LogicalResult hybrid::scheduleRecurrenceSteps(Scheduler &scheduler,
                                              func::FuncOp function) {
  Block &block = function.getBody().front();
  if (scheduler.target.readingRows == 0 || block.empty() ||
      !isDecoded(&block.front()))
    return success();
  for (auto op : llvm::make_early_inc_range(block.getOps<RecurrenceOp>())) {
    tile::RecurrenceShape shape = recurrenceShape(op);
    if (failed(shape.verify([&] { return op.emitOpError(); })))
      return failure();
    if (!op.getInitial())
      continue;
    FoldedStep step(scheduler, op);
    if (step.isWorthIt() && failed(step.schedule()))
      return failure();
  }
  return success();
}
