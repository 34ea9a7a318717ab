//===- Differentiate.cpp - backward of loss by reverse mode -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Grad/Passes.h"

#include "hybrid/Hybrid/HybridOps.h"
#include "hybrid/Hybrid/ModelPlace.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

namespace hybrid {
#define GEN_PASS_DEF_HYBRIDDIFFERENTIATE
#include "hybrid/Grad/Passes.h.inc"
} // namespace hybrid

using namespace mlir;
using namespace hybrid;

static constexpr StringLiteral entryName = "hybrid.entry";
static constexpr StringLiteral roleName = "hybrid.role";
static constexpr StringLiteral recomputeName = "hybrid.recompute";

static func::FuncOp lookupEntry(ModuleOp module, StringRef entry) {
  for (auto function : module.getOps<func::FuncOp>())
    if (auto name = function->getAttrOfType<StringAttr>(entryName);
        name && name == entry)
      return function;
  return nullptr;
}

namespace {

/// `backward` under construction.
class Differentiation {
public:
  Differentiation(func::FuncOp loss, Recompute recompute)
      : loss(loss), recompute(recompute), builder(loss.getContext()) {}

  /// Builds the function behind `loss`.
  LogicalResult run();

  unsigned numAdjoints = 0;
  unsigned numRecomputed = 0;

private:
  void createFunction();
  void cloneForward();
  LogicalResult passBack(ArrayRef<Operation *> layer);
  LogicalResult passBack(Operation *forward, Operation *values);
  void accumulate(Value target, Value gradient, Location loc);
  void eraseDead();

  bool isActive(Value value) const { return active.contains(value); }
  bool isParameter(unsigned argument) {
    auto role = loss.getArgAttrOfType<StringAttr>(argument, roleName);
    return role && role == "param";
  }

  func::FuncOp loss, backward;
  Recompute recompute;
  OpBuilder builder;
  /// From values of `loss` to those of `backward`.
  IRMapping mapping;
  SmallVector<Operation *> forward;
  /// Values that depend on a parameter.
  llvm::DenseSet<Value> active;
  /// What has come back to a forward value so far. That of a parameter starts
  /// as the argument it is added to.
  llvm::DenseMap<Value, Value> gradients;
  SmallVector<Value> parameters;
};

} // namespace

/// The signature: parameters, a gradient for each, then the other arguments.
void Differentiation::createFunction() {
  builder.setInsertionPointAfter(loss);
  backward =
      func::FuncOp::create(builder, loss.getLoc(), "backward",
                           builder.getFunctionType(TypeRange(), TypeRange()));
  backward->setAttr(entryName, builder.getStringAttr("backward"));
  Block *body = backward.addEntryBlock();
  builder.setInsertionPointToStart(body);

  SmallVector<Attribute> attributes;
  auto addArgument = [&](BlockArgument like, DictionaryAttr dictionary) {
    attributes.push_back(dictionary ? dictionary
                                    : builder.getDictionaryAttr({}));
    return body->addArgument(like.getType(), like.getLoc());
  };
  for (BlockArgument argument : loss.getArguments())
    if (isParameter(argument.getArgNumber())) {
      Value parameter =
          addArgument(argument, loss.getArgAttrDict(argument.getArgNumber()));
      mapping.map(argument, parameter);
      active.insert(parameter);
      parameters.push_back(parameter);
    }
  for (BlockArgument argument : loss.getArguments())
    if (isParameter(argument.getArgNumber())) {
      NamedAttrList roles(loss.getArgAttrDict(argument.getArgNumber()));
      roles.set(roleName, builder.getStringAttr("gradient"));
      gradients[mapping.lookup(argument)] =
          addArgument(argument, roles.getDictionary(builder.getContext()));
    }
  for (BlockArgument argument : loss.getArguments())
    if (!isParameter(argument.getArgNumber()))
      mapping.map(
          argument,
          addArgument(argument, loss.getArgAttrDict(argument.getArgNumber())));
  backward.setFunctionType(
      builder.getFunctionType(body->getArgumentTypes(), TypeRange()));
  backward.setArgAttrsAttr(builder.getArrayAttr(attributes));
}

void Differentiation::cloneForward() {
  for (Operation &op : loss.getBody().front().without_terminator()) {
    Operation *copy = builder.clone(op, mapping);
    forward.push_back(copy);
    if (llvm::any_of(copy->getOperands(),
                     [&](Value operand) { return isActive(operand); }))
      active.insert_range(copy->getResults());
  }
}

void Differentiation::accumulate(Value target, Value gradient, Location loc) {
  Value &sum = gradients[target];
  sum = sum ? AddOp::create(builder, loc, sum, gradient).getResult() : gradient;
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

/// Passes gradients through neighbouring operations of one layer.
LogicalResult Differentiation::passBack(ArrayRef<Operation *> layer) {
  SmallVector<Operation *> values(layer);
  if (recompute == Recompute::layer &&
      getModelPlace(layer.front()->getLoc()).layer >= 0) {
    IRMapping again;
    for (Operation *&op : values) {
      op = builder.clone(*op, again);
      op->setAttr(recomputeName, builder.getUnitAttr());
    }
  }
  for (auto [forward, copy] : llvm::reverse(llvm::zip_equal(layer, values)))
    if (failed(passBack(forward, copy)))
      return failure();
  return success();
}

void Differentiation::eraseDead() {
  for (Operation &op :
       llvm::make_early_inc_range(llvm::reverse(backward.getBody().front())))
    if (isOpTriviallyDead(&op))
      op.erase();
  for (Operation &op : backward.getBody().front())
    numRecomputed += op.hasAttr(recomputeName);
}

LogicalResult Differentiation::run() {
  Operation *end = loss.getBody().front().getTerminator();
  if (end->getNumOperands() != 1)
    return loss.emitError()
           << "returns " << end->getNumOperands()
           << " values, but loss returns 1: the loss per token";
  createFunction();
  cloneForward();

  // What is differentiated is the sum of the loss over the tokens.
  Value result = mapping.lookup(end->getOperand(0));
  gradients[result] = FillOp::create(builder, end->getLoc(), result.getType(),
                                     builder.getF64FloatAttr(1));
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

  SmallVector<Value> results = {result};
  for (Value parameter : parameters)
    results.push_back(gradients.lookup(parameter));
  func::ReturnOp::create(builder, end->getLoc(), results);
  backward.setFunctionType(builder.getFunctionType(
      backward.getFunctionType().getInputs(), TypeRange(ValueRange(results))));
  SmallVector<Attribute> attributes = {
      loss.getResultAttrDict(0) ? Attribute(loss.getResultAttrDict(0))
                                : builder.getDictionaryAttr({})};
  for (size_t i = 0; i < parameters.size(); ++i)
    attributes.push_back(backward.getArgAttrDict(parameters.size() + i));
  backward.setResAttrsAttr(builder.getArrayAttr(attributes));
  eraseDead();
  return success();
}

namespace {
struct Differentiate
    : public hybrid::impl::HybridDifferentiateBase<Differentiate> {
  using HybridDifferentiateBase::HybridDifferentiateBase;

  void runOnOperation() override {
    func::FuncOp loss = lookupEntry(getOperation(), "loss");
    if (!loss)
      return;
    if (func::FuncOp backward = lookupEntry(getOperation(), "backward")) {
      InFlightDiagnostic error =
          loss.emitError() << "is differentiated already; remove backward to "
                              "make it again";
      error.attachNote(backward.getLoc()) << "backward is here";
      return signalPassFailure();
    }
    Differentiation differentiation(loss, recompute);
    if (failed(differentiation.run()))
      return signalPassFailure();
    numAdjoints += differentiation.numAdjoints;
    numRecomputed += differentiation.numRecomputed;
  }
};
} // namespace
