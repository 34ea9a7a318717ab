//===- Differentiation.cpp - reverse mode on one graph function -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Differentiation.h"

#include "hybrid/Hybrid/HybridOps.h"
#include "hybrid/Hybrid/ModelPlace.h"

using namespace mlir;
using namespace hybrid;

static constexpr StringLiteral recomputeName = "hybrid.recompute";

Differentiation::Differentiation(func::FuncOp forward, StringRef entry,
                                 Recompute recompute)
    : builder(forward.getContext()), source(forward), recompute(recompute) {
  builder.setInsertionPointAfter(source);
  backward =
      func::FuncOp::create(builder, source.getLoc(), entry,
                           builder.getFunctionType(TypeRange(), TypeRange()));
  backward->setAttr("hybrid.entry", builder.getStringAttr(entry));
  builder.setInsertionPointToStart(backward.addEntryBlock());
}

Value Differentiation::addArgument(Value like, DictionaryAttr attributes) {
  argumentAttributes.push_back(attributes ? attributes
                                          : builder.getDictionaryAttr({}));
  return backward.getBody().front().addArgument(like.getType(), like.getLoc());
}

Value Differentiation::addArgument(BlockArgument argument) {
  Value added =
      addArgument(argument, source.getArgAttrDict(argument.getArgNumber()));
  mapping.map(argument, added);
  return added;
}

void Differentiation::repeatForward() {
  for (Operation &op : source.getBody().front().without_terminator()) {
    Operation *copy = builder.clone(op, mapping);
    forward.push_back(copy);
    if (llvm::any_of(copy->getOperands(),
                     [&](Value operand) { return isActive(operand); }))
      active.insert_range(copy->getResults());
  }
}

static Type elementOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getElementType();
}

/// What a gradient was before it was rounded to the type of its value.
static Value inF32(OpBuilder &builder, Location loc, Value gradient) {
  Type f32 = builder.getF32Type();
  if (auto rounded = gradient.getDefiningOp<CastOp>();
      rounded && elementOf(rounded.getX()) == f32)
    return rounded.getX();
  auto type = cast<RankedTensorType>(gradient.getType());
  return CastOp::create(builder, loc, type.clone(f32), gradient);
}

/// Sums of narrower types than f32 are formed in f32 and rounded where they are
/// read, which is once: sums that are only added to are dead.
void Differentiation::accumulate(Value target, Value gradient, Location loc) {
  Value &sum = gradients[target];
  if (!sum) {
    sum = gradient;
    return;
  }
  if (elementOf(sum).isF32()) {
    sum = AddOp::create(builder, loc, sum, gradient);
    return;
  }
  Value &wide = wideSums[target];
  if (!wide)
    wide = CastOp::create(
        builder, loc,
        cast<RankedTensorType>(sum.getType()).clone(builder.getF32Type()), sum);
  wide = AddOp::create(builder, loc, wide, inF32(builder, loc, gradient));
  sum = CastOp::create(builder, loc, sum.getType(), wide);
}

/// Passes gradients through `forward`. `values` is the operation whose operands
/// and results the rule may use: `forward` itself, or its copy.
LogicalResult Differentiation::passBack(Operation *forward, Operation *values) {
  if (llvm::none_of(forward->getOperands(),
                    [&](Value operand) { return isActive(operand); }))
    return success();
  SmallVector<Value> resultGradients;
  for (Value result : forward->getResults())
    resultGradients.push_back(gradients.lookup(result));
  if (llvm::none_of(resultGradients, [](Value value) { return bool(value); }))
    return success();

  auto rule = dyn_cast<DifferentiableOpInterface>(values);
  if (!rule)
    return forward->emitOpError()
           << "has no adjoint, but the loss depends on a parameter through it; "
              "differentiate a function without it";
  FailureOr<SmallVector<Value>> operandGradients =
      rule.buildAdjoint(builder, resultGradients);
  if (failed(operandGradients))
    return failure();
  for (auto [operand, gradient] :
       llvm::zip_equal(forward->getOperands(), *operandGradients))
    if (gradient && isActive(operand))
      accumulate(operand, gradient, forward->getLoc());
  ++numAdjoints;
  return success();
}

/// Whether it costs little beside the memory that its result would take: it
/// reads and writes rows, and no more.
static bool isCheap(Operation *op) {
  auto rowwise = dyn_cast<RowwiseOpInterface>(op);
  return isa<ShortConvOp>(op) || (rowwise && rowwise.isRowwise());
}

/// Copies of the operations of a layer, each of the copies before it. Where an
/// operation is kept its readers are given what it computed first; its own copy
/// is there for the rule of its adjoint to find the operands, and is not to
/// stay.
SmallVector<Operation *>
Differentiation::repeatLayer(ArrayRef<Operation *> layer) {
  SmallVector<Operation *> copies;
  IRMapping again;
  for (Operation *op : layer) {
    Operation *copy = builder.clone(*op, again);
    copy->setAttr(recomputeName, builder.getUnitAttr());
    if (recompute == Recompute::selective && !isCheap(op))
      again.map(op->getResults(), op->getResults());
    copies.push_back(copy);
  }
  return copies;
}

/// Passes gradients through neighbouring operations of one layer.
LogicalResult Differentiation::passBack(ArrayRef<Operation *> layer) {
  SmallVector<Operation *> values(layer);
  if (recompute != Recompute::none &&
      getModelPlace(layer.front()->getLoc()).layer >= 0)
    values = repeatLayer(layer);
  for (auto [forward, copy] : llvm::reverse(llvm::zip_equal(layer, values)))
    if (failed(passBack(forward, copy)))
      return failure();
  if (recompute == Recompute::selective)
    for (auto [forward, copy] : llvm::zip_equal(layer, values))
      if (copy != forward && !isCheap(forward))
        copy->replaceAllUsesWith(forward->getResults());
  return success();
}

LogicalResult Differentiation::passBack() {
  ArrayRef<Operation *> left = forward;
  while (!left.empty()) {
    int64_t layer = getModelPlace(left.back()->getLoc()).layer;
    size_t count = 1;
    while (count < left.size() &&
           getModelPlace(left[left.size() - count - 1]->getLoc()).layer ==
               layer)
      ++count;
    if (failed(passBack(left.take_back(count))))
      return failure();
    left = left.drop_back(count);
  }
  return success();
}

/// Between forward and backward only what the forward part stores anyway is
/// kept: f32 values of row-wise operations are computed again from it. Without
/// a narrower type everything that such an operation reads is as large as what
/// it makes, and nothing is repeated.
void Differentiation::repeatRowwise() {
  if (llvm::none_of(forward, llvm::IsaPred<CastOp>))
    return;
  llvm::SmallPtrSet<Operation *, 32> first(llvm::from_range, forward);
  for (Operation *op : llvm::reverse(forward)) {
    auto rowwise = dyn_cast<RowwiseOpInterface>(op);
    if (!rowwise || !rowwise.isRowwise() ||
        !elementOf(op->getResult(0)).isF32())
      continue;
    Operation *reader = nullptr;
    for (Operation *user : op->getUsers())
      if (!first.contains(user) && (!reader || user->isBeforeInBlock(reader)))
        reader = user;
    if (!reader)
      continue;
    builder.setInsertionPoint(reader);
    Operation *again = builder.clone(*op);
    again->setAttr(recomputeName, builder.getUnitAttr());
    op->getResult(0).replaceUsesWithIf(
        again->getResult(0),
        [&](OpOperand &use) { return !first.contains(use.getOwner()); });
  }
}

void Differentiation::finish(ValueRange results,
                             ArrayRef<Attribute> attributes) {
  Block &body = backward.getBody().front();
  repeatRowwise();
  builder.setInsertionPointToEnd(&body);
  func::ReturnOp::create(
      builder, source.getBody().front().getTerminator()->getLoc(), results);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (isOpTriviallyDead(&op))
      op.erase();
  for (Operation &op : body)
    numRecomputed += op.hasAttr(recomputeName);
  for (unsigned index = body.getNumArguments(); index-- > 0;) {
    BlockArgument argument = body.getArgument(index);
    if (!optional.contains(argument) || !argument.use_empty())
      continue;
    body.eraseArgument(index);
    argumentAttributes.erase(argumentAttributes.begin() + index);
  }
  backward.setFunctionType(
      builder.getFunctionType(body.getArgumentTypes(), TypeRange(results)));
  backward.setArgAttrsAttr(builder.getArrayAttr(argumentAttributes));
  backward.setResAttrsAttr(builder.getArrayAttr(attributes));
}
