//===- gpu_functions.cpp - graph functions as launches --------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gpu_functions.h"

#include "hybrid/Driver/Phases.h"
#include "hybrid/Hybrid/GraphShapes.h"
#include "hybrid/Hybrid/HybridOps.h"
#include "hybrid/Tile/TileOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace hybrid;

LogicalResult hybrid::scheduleFunctions(ModuleOp module, StringRef target) {
  for (Phase phase : {Phase::Schedule, Phase::Tile}) {
    PassManager passes(module.getContext());
    if (failed(parsePassPipeline(phasePipeline(phase, target), passes)) ||
        failed(passes.run(module)))
      return failure();
  }
  return success();
}

/// The values of a map of the six symbols in a call on one sequence.
static SmallVector<int64_t> evaluated(AffineMap map, int64_t tokens) {
  Builder builder(map.getContext());
  SmallVector<Attribute> symbols, results;
  for (int64_t symbol :
       {tokens, int64_t(1), tokens, int64_t(0), int64_t(0), int64_t(0)})
    symbols.push_back(builder.getIndexAttr(symbol));
  if (failed(map.constantFold(symbols, results)))
    return {};
  return llvm::map_to_vector(
      results, [](Attribute size) { return cast<IntegerAttr>(size).getInt(); });
}

static llvm::json::Object describe(func::FuncOp function, int64_t tokens) {
  llvm::json::Array values, launches;
  llvm::DenseMap<Value, int64_t> numbers;
  auto number = [&](Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    std::string element;
    llvm::raw_string_ostream(element) << type.getElementType();
    numbers[value] = int64_t(values.size());
    values.push_back(llvm::json::Object{
        {"shape", llvm::json::Array(evaluated(getSizes(type), tokens))},
        {"type", element}});
  };
  llvm::for_each(function.getArguments(), number);
  int64_t arguments = int64_t(values.size());
  for (auto dispatch : function.getOps<DispatchOp>()) {
    llvm::json::Array views;
    for (Value input : dispatch.getInputs())
      views.push_back(numbers.at(input));
    for (OpResult result : dispatch->getResults()) {
      if (auto input = dispatch.getTiedInput(result.getResultNumber())) {
        numbers[result] = numbers.at(dispatch.getInputs()[*input]);
        continue;
      }
      number(result);
      views.push_back(numbers.at(result));
    }
    auto program = SymbolTable::lookupNearestSymbolFrom<tile::ProgramOp>(
        dispatch, dispatch.getProgramAttr());
    launches.push_back(llvm::json::Object{
        {"kernel", dispatch.getProgram()},
        {"views", std::move(views)},
        {"grid", llvm::json::Array(evaluated(program.getGrid(), tokens))}});
  }
  Value result = function.front().getTerminator()->getOperand(0);
  return llvm::json::Object{{"function", function.getSymName()},
                            {"tokens", tokens},
                            {"arguments", arguments},
                            {"values", std::move(values)},
                            {"launches", std::move(launches)},
                            {"result", numbers.at(result)}};
}

void hybrid::describeFunctions(ModuleOp module, ArrayRef<int64_t> tokens) {
  for (auto function : module.getOps<func::FuncOp>())
    for (int64_t count : tokens)
      llvm::outs() << llvm::json::Value(describe(function, count)) << "\n";
}
