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

namespace {
/// A function in a call of so many tokens.
class Description {
public:
  Description(func::FuncOp function, int64_t tokens)
      : function(function), tokens(tokens) {}
  llvm::json::Object make();

private:
  void add(Value value, std::optional<int64_t> viewOf = {});
  void addSegments(Value value);
  void addLaunch(DispatchOp dispatch);

  func::FuncOp function;
  int64_t tokens;
  llvm::json::Array values, launches;
  /// Where the values of the function begin among those described.
  llvm::DenseMap<Value, int64_t> numbers;
};
} // namespace

void Description::add(Value value, std::optional<int64_t> viewOf) {
  auto type = cast<RankedTensorType>(value.getType());
  std::string element;
  llvm::raw_string_ostream(element) << type.getElementType();
  numbers[value] = int64_t(values.size());
  llvm::json::Object described{
      {"shape", llvm::json::Array(evaluated(getSizes(type), tokens))},
      {"type", element}};
  if (viewOf)
    described["view_of"] = *viewOf;
  values.push_back(std::move(described));
}

/// One sequence: the table of segments, and whose each token is.
void Description::addSegments(Value value) {
  numbers[value] = int64_t(values.size());
  for (llvm::json::Array shape :
       {llvm::json::Array{1, 4}, llvm::json::Array{tokens}})
    values.push_back(
        llvm::json::Object{{"shape", std::move(shape)}, {"type", "i32"}});
}

void Description::addLaunch(DispatchOp dispatch) {
  llvm::json::Array views;
  for (Value input : dispatch.getInputs()) {
    views.push_back(numbers.at(input));
    if (isa<SegmentsType>(input.getType()))
      views.push_back(numbers.at(input) + 1);
  }
  for (OpResult result : dispatch->getResults()) {
    if (auto input = dispatch.getTiedInput(result.getResultNumber())) {
      numbers[result] = numbers.at(dispatch.getInputs()[*input]);
      continue;
    }
    add(result);
    views.push_back(numbers.at(result));
  }
  auto program = SymbolTable::lookupNearestSymbolFrom<tile::ProgramOp>(
      dispatch, dispatch.getProgramAttr());
  launches.push_back(llvm::json::Object{
      {"kernel", dispatch.getProgram()},
      {"views", std::move(views)},
      {"grid", llvm::json::Array(evaluated(program.getGrid(), tokens))}});
}

llvm::json::Object Description::make() {
  for (Value argument : function.getArguments())
    if (isa<SegmentsType>(argument.getType()))
      addSegments(argument);
    else
      add(argument);
  int64_t arguments = int64_t(values.size());
  for (Operation &op : function.front())
    if (auto reshape = dyn_cast<ReshapeOp>(op))
      add(reshape, numbers.at(reshape.getX()));
    else if (auto dispatch = dyn_cast<DispatchOp>(op))
      addLaunch(dispatch);
  llvm::json::Array results;
  for (Value result : function.front().getTerminator()->getOperands())
    results.push_back(numbers.at(result));
  return llvm::json::Object{{"function", function.getSymName()},
                            {"tokens", tokens},
                            {"arguments", arguments},
                            {"values", std::move(values)},
                            {"launches", std::move(launches)},
                            {"results", std::move(results)}};
}

void hybrid::describeFunctions(ModuleOp module, ArrayRef<int64_t> tokens) {
  for (auto function : module.getOps<func::FuncOp>())
    for (int64_t count : tokens)
      llvm::outs() << llvm::json::Value(Description(function, count).make())
                   << "\n";
}
