//===- DifferentiateFunction.cpp - backward of a plain function -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The caller keeps what the forward function returned, so backward takes it
// back in place of computing it again; everything else that adjoints need is
// computed from the inputs.
//
//===----------------------------------------------------------------------===//

#include "Differentiation.h"

#include "hybrid/Hybrid/HybridOps.h"

using namespace mlir;
using namespace hybrid;

namespace {

/// One result of the forward function.
struct Output {
  Value value;
  StringRef name;
  /// Given back to the caller for backward alone: nothing is differentiated
  /// through it.
  bool saved;
};

} // namespace

static DictionaryAttr named(Builder &builder, StringRef role,
                            const Twine &name) {
  return builder.getDictionaryAttr(
      {builder.getNamedAttr("hybrid.role", builder.getStringAttr(role)),
       builder.getNamedAttr("hybrid.path", builder.getStringAttr(name))});
}

static FailureOr<SmallVector<Output>> getOutputs(func::FuncOp function) {
  SmallVector<Output> outputs;
  Operation *end = function.getBody().front().getTerminator();
  for (auto [index, value] : llvm::enumerate(end->getOperands())) {
    auto role = function.getResultAttrOfType<StringAttr>(index, "hybrid.role");
    auto name = function.getResultAttrOfType<StringAttr>(index, "hybrid.path");
    bool saved = role && role == "saved";
    if (!name || (!saved && role != "output"))
      return function.emitError("result ")
             << index
             << " needs hybrid.role \"output\" or \"saved\" and a name in "
                "hybrid.path to be differentiated";
    outputs.push_back({value, name.getValue(), saved});
  }
  return outputs;
}

/// Whether a gradient comes back to an argument, and its name.
static StringAttr nameOfInput(func::FuncOp function, BlockArgument argument) {
  unsigned index = argument.getArgNumber();
  auto role = function.getArgAttrOfType<StringAttr>(index, "hybrid.role");
  auto type = dyn_cast<RankedTensorType>(argument.getType());
  if (!role || role != "input" || !type ||
      !isa<FloatType>(type.getElementType()))
    return {};
  return function.getArgAttrOfType<StringAttr>(index, "hybrid.path");
}

LogicalResult hybrid::differentiateFunction(Differentiation &differentiation,
                                            func::FuncOp function) {
  FailureOr<SmallVector<Output>> outputs = getOutputs(function);
  if (failed(outputs))
    return failure();
  OpBuilder &builder = differentiation.builder;
  SmallVector<BlockArgument> inputs;
  for (BlockArgument argument : function.getArguments()) {
    Value added = differentiation.addArgument(argument);
    differentiation.makeOptional(added);
    if (nameOfInput(function, argument)) {
      differentiation.activate(added);
      inputs.push_back(argument);
    }
  }
  SmallVector<Value> kept, cotangents;
  for (const Output &output : *outputs) {
    kept.push_back(differentiation.addArgument(
        output.value, named(builder, "input", output.name)));
    differentiation.makeOptional(kept.back());
  }
  for (const Output &output : *outputs)
    cotangents.push_back(
        output.saved
            ? Value()
            : differentiation.addArgument(
                  output.value, named(builder, "input", "d" + output.name)));

  differentiation.repeatForward();
  for (auto [output, cotangent] : llvm::zip_equal(*outputs, cotangents))
    if (cotangent)
      differentiation.accumulate(differentiation.lookup(output.value),
                                 cotangent, function.getLoc());
  if (failed(differentiation.passBack()))
    return failure();
  for (auto [output, value] : llvm::zip_equal(*outputs, kept))
    if (Value again = differentiation.lookup(output.value);
        again.getDefiningOp())
      again.replaceAllUsesWith(value);

  SmallVector<Value> results;
  SmallVector<Attribute> attributes;
  for (BlockArgument input : inputs) {
    Value gradient =
        differentiation.gradients.lookup(differentiation.lookup(input));
    if (!gradient)
      gradient = FillOp::create(builder, function.getLoc(), input.getType(),
                                builder.getF64FloatAttr(0));
    results.push_back(gradient);
    attributes.push_back(named(builder, "output",
                               "d" + nameOfInput(function, input).getValue()));
  }
  differentiation.finish(results, attributes);
  return success();
}
