//===- Differentiate.cpp - backward functions by reverse mode -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Differentiation.h"

#include "hybrid/Hybrid/HybridOps.h"
#include "llvm/ADT/StringSwitch.h"

namespace hybrid {
#define GEN_PASS_DEF_HYBRIDDIFFERENTIATE
#include "hybrid/Grad/Passes.h.inc"
} // namespace hybrid

using namespace mlir;
using namespace hybrid;

static constexpr StringLiteral entryName = "hybrid.entry";
static constexpr StringLiteral roleName = "hybrid.role";

static func::FuncOp lookupEntry(ModuleOp module, StringRef entry) {
  for (auto function : module.getOps<func::FuncOp>())
    if (auto name = function->getAttrOfType<StringAttr>(entryName);
        name && name == entry)
      return function;
  return nullptr;
}

/// The signature: parameters, a gradient for each, then the other arguments.
LogicalResult hybrid::differentiateLoss(Differentiation &differentiation,
                                        func::FuncOp loss) {
  Operation *end = loss.getBody().front().getTerminator();
  if (end->getNumOperands() != 1)
    return loss.emitError()
           << "returns " << end->getNumOperands()
           << " values, but loss returns 1: the loss per token";
  OpBuilder &builder = differentiation.builder;
  SmallVector<BlockArgument> parameters, others;
  for (BlockArgument argument : loss.getArguments()) {
    auto role =
        loss.getArgAttrOfType<StringAttr>(argument.getArgNumber(), roleName);
    (role && role == "param" ? parameters : others).push_back(argument);
  }
  for (BlockArgument parameter : parameters)
    differentiation.activate(differentiation.addArgument(parameter));
  SmallVector<Attribute> resultAttributes = {
      loss.getResultAttrDict(0) ? Attribute(loss.getResultAttrDict(0))
                                : builder.getDictionaryAttr({})};
  for (BlockArgument parameter : parameters) {
    NamedAttrList roles(loss.getArgAttrDict(parameter.getArgNumber()));
    roles.set(roleName, builder.getStringAttr("gradient"));
    resultAttributes.push_back(roles.getDictionary(builder.getContext()));
    differentiation.gradients[differentiation.lookup(parameter)] =
        differentiation.addArgument(parameter,
                                    roles.getDictionary(builder.getContext()));
  }
  for (BlockArgument argument : others)
    differentiation.addArgument(argument);
  differentiation.repeatForward();

  // What is differentiated is the sum of the loss over the tokens.
  Value result = differentiation.lookup(end->getOperand(0));
  differentiation.gradients[result] = FillOp::create(
      builder, end->getLoc(), result.getType(), builder.getF64FloatAttr(1));
  if (failed(differentiation.passBack()))
    return failure();
  SmallVector<Value> results = {result};
  for (BlockArgument parameter : parameters)
    results.push_back(
        differentiation.gradients.lookup(differentiation.lookup(parameter)));
  differentiation.finish(results, resultAttributes);
  return success();
}

/// What the function chooses for itself, else `given`.
static FailureOr<Recompute> getRecompute(func::FuncOp function,
                                         Recompute given) {
  Attribute attribute = function->getAttr("hybrid.recompute");
  if (!attribute)
    return given;
  auto name = dyn_cast<StringAttr>(attribute);
  auto found = llvm::StringSwitch<std::optional<Recompute>>(
                   name ? name.getValue() : StringRef())
                   .Case("none", Recompute::none)
                   .Case("layer", Recompute::layer)
                   .Case("selective", Recompute::selective)
                   .Default(std::nullopt);
  if (found)
    return *found;
  return function.emitError("hybrid.recompute is ")
         << attribute << "; write \"none\", \"layer\" or \"selective\"";
}

namespace {
struct Differentiate
    : public hybrid::impl::HybridDifferentiateBase<Differentiate> {
  using HybridDifferentiateBase::HybridDifferentiateBase;

  using Rule = LogicalResult (*)(Differentiation &, func::FuncOp);

  LogicalResult differentiate(func::FuncOp function, StringRef entry,
                              Rule rule) {
    if (func::FuncOp backward = lookupEntry(getOperation(), entry)) {
      InFlightDiagnostic error = function.emitError()
                                 << "is differentiated already; remove "
                                 << entry << " to make it again";
      error.attachNote(backward.getLoc()) << entry << " is here";
      return error;
    }
    FailureOr<Recompute> chosen = getRecompute(function, recompute);
    if (failed(chosen))
      return failure();
    Differentiation differentiation(function, entry, *chosen);
    if (failed(rule(differentiation, function)))
      return failure();
    numAdjoints += differentiation.numAdjoints;
    numRecomputed += differentiation.numRecomputed;
    return success();
  }

  void runOnOperation() override {
    func::FuncOp training = lookupEntry(getOperation(), "training_loss");
    if (func::FuncOp loss =
            training ? training : lookupEntry(getOperation(), "loss"))
      if (failed(differentiate(loss, "backward", differentiateLoss)))
        return signalPassFailure();
    // It was there to be differentiated.
    if (training)
      training.erase();
    for (auto function :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      auto entry = function->getAttrOfType<StringAttr>(entryName);
      if (!entry || !function->removeAttr("hybrid.differentiate"))
        continue;
      if (failed(differentiate(function, (entry.getValue() + "_backward").str(),
                               differentiateFunction)))
        return signalPassFailure();
    }
  }
};
} // namespace
