//===- Model.cpp - a built model that the oracle evaluates -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Model.h"

#include "hybrid/Graph/Passes.h"
#include "hybrid/Hybrid/HybridDialect.h"
#include "hybrid/Stack/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace hybrid;
using oracle::Tensor;

Model::Model(const std::string &spec, bool small) {
  context.loadDialect<HybridDialect, func::FuncDialect>();
  module = parseSourceString<ModuleOp>(spec, &context);
  if (!module) {
    ADD_FAILURE() << "the spec does not parse:\n" << spec;
    return;
  }
  PassManager passes(&context);
  if (small)
    passes.addPass(createHybridShrinkModel());
  passes.addPass(createHybridExpandStack());
  passes.addPass(createHybridBuildGraph());
  FailureOr<ModelTables> found = failure();
  if (succeeded(passes.run(*module)))
    found = getModelTables(*module);
  if (succeeded(found))
    modelTables = std::move(*found);
  else
    ADD_FAILURE() << "the spec does not build:\n" << spec;
}

std::vector<Tensor> Model::zeroStates(const oracle::Call &call) const {
  std::vector<Tensor> states;
  for (const StateRow &row : modelTables.states)
    states.emplace_back(oracle::getShape(row.type, call));
  return states;
}

std::vector<Tensor> Model::evaluate(StringRef entry, const oracle::Call &call,
                                    const llvm::StringMap<Tensor> &params,
                                    const llvm::StringMap<Tensor> &inputs,
                                    ArrayRef<Tensor> states) {
  auto function = module->lookupSymbol<func::FuncOp>(entry);
  std::vector<Tensor> arguments;
  for (unsigned index = 0; index < function.getNumArguments(); ++index) {
    auto text = [&](StringRef key) {
      auto attr = function.getArgAttrOfType<StringAttr>(index, key);
      return attr ? attr.getValue() : StringRef();
    };
    StringRef role = text("hybrid.role");
    if (role == "param") {
      EXPECT_TRUE(params.contains(text("hybrid.path")));
      arguments.push_back(params.lookup(text("hybrid.path")));
    } else if (role == "state") {
      arguments.push_back(states.front());
      states = states.drop_front();
    } else {
      arguments.push_back(inputs.lookup(role));
    }
  }
  FailureOr<std::vector<Tensor>> results =
      oracle::evaluate(function, arguments, call);
  EXPECT_TRUE(succeeded(results)) << entry.str();
  return succeeded(results) ? *results : std::vector<Tensor>();
}
