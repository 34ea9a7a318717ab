//===- Reference.cpp - a graph, and the launches that compute it ---------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reference.h"

#include "hybrid/Driver/Compile.h"
#include "hybrid/Hybrid/HybridOps.h"
#include "hybrid/Plan/Plan.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace hybrid;

//===----------------------------------------------------------------------===//
// Numbers in locations
//===----------------------------------------------------------------------===//

using NumberedLoc = FusedLocWith<IntegerAttr>;

/// Numbers the operations of an entry; the terminator has no launch.
static void numberOperations(func::FuncOp function) {
  MLIRContext *context = function.getContext();
  Type type = IntegerType::get(context, 64);
  int64_t number = 0;
  for (Operation &op : function.getBody().front().without_terminator())
    op.setLoc(
        FusedLoc::get(context, op.getLoc(), IntegerAttr::get(type, number++)));
}

static std::optional<int64_t> numberOf(Operation *op) {
  if (auto numbered = dyn_cast<NumberedLoc>(op->getLoc()))
    return numbered.getMetadata().getInt();
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Launches and values
//===----------------------------------------------------------------------===//

/// Whether both types hold the same elements in the same order: launches may
/// see some dims as one.
static bool holdSameElements(Type a, Type b) {
  auto left = cast<RankedTensorType>(a), right = cast<RankedTensorType>(b);
  auto count = [](RankedTensorType type) {
    int64_t product = 1;
    for (int64_t size : type.getShape())
      product *= ShapedType::isDynamic(size) ? 1 : size;
    return product;
  };
  return left.getElementType() == right.getElementType() &&
         left.getEncoding() == right.getEncoding() &&
         left.getNumDynamicDims() == right.getNumDynamicDims() &&
         count(left) == count(right);
}

namespace {

/// Matches one scheduled entry with its graph.
class LaunchMatcher {
public:
  LaunchMatcher(func::FuncOp graph, func::FuncOp scheduled) {
    for (Operation &op : graph.getBody().front().without_terminator())
      operations.push_back(&op);
    matchBlock(scheduled.getBody().front());
  }

  Reference::Choice choiceOf(DispatchOp dispatch) const;

private:
  void matchBlock(Block &block);
  void match(Operation *op);
  void matchInside(AlternativesOp op);

  std::vector<Operation *> operations;
  /// From results of launches to the graph.
  DenseMap<Value, Value> valueOf;
  DenseSet<Value> matched;
};

} // namespace

/// The sum that a launch of `producer` adds to in place: it has the sum as one
/// more input.
static Operation *sumWrittenBy(Operation *launch, Operation *producer) {
  auto dispatch = dyn_cast<DispatchOp>(launch);
  if (!dispatch || dispatch.getInputs().size() <= producer->getNumOperands() ||
      !producer->hasOneUse())
    return nullptr;
  return dyn_cast<AddOp>(*producer->getUsers().begin());
}

void LaunchMatcher::matchBlock(Block &block) {
  for (Operation &op : block)
    if (isa<DispatchOp, AlternativesOp>(op))
      match(&op);
    else if (auto pieces = dyn_cast<PiecesOp>(op))
      matchBlock(pieces.getBlock());
}

void LaunchMatcher::match(Operation *launch) {
  std::optional<int64_t> number = numberOf(launch);
  if (!number)
    return;
  Operation *op = operations.at(*number);
  // A copy that schedule has put before a view.
  if (isa<ReshapeOp, SliceOp, ConcatOp>(op))
    return;
  if (Operation *sum = sumWrittenBy(launch, op))
    op = sum;
  // A launch that makes everything has the results in order, some perhaps in a
  // wider type that a cast follows.
  bool makesAll = launch->getNumResults() >= op->getNumResults();
  for (OpResult result : launch->getResults())
    for (OpResult value : op->getResults())
      if (holdSameElements(result.getType(), value.getType()) &&
          (!makesAll || result.getResultNumber() == value.getResultNumber()) &&
          matched.insert(value).second) {
        valueOf[result] = value;
        break;
      }
  if (auto alternatives = dyn_cast<AlternativesOp>(launch))
    matchInside(alternatives);
}

/// Each algorithm yields the results of the whole.
void LaunchMatcher::matchInside(AlternativesOp op) {
  for (Region &region : op.getAlgorithms()) {
    Operation *yield = region.front().getTerminator();
    for (auto [yielded, result] :
         llvm::zip_equal(yield->getOperands(), op->getResults())) {
      Value source = yielded;
      while (auto reshape = source.getDefiningOp<ReshapeOp>())
        source = reshape.getX();
      if (Value value = valueOf.lookup(result))
        valueOf[source] = value;
    }
    for (auto nested : region.front().getOps<AlternativesOp>())
      matchInside(nested);
  }
}

Reference::Choice LaunchMatcher::choiceOf(DispatchOp dispatch) const {
  Reference::Choice choice;
  choice.inPieces = static_cast<bool>(dispatch->getParentOfType<PiecesOp>());
  // A segments value is two views.
  SmallVector<unsigned> viewOfInput;
  unsigned views = 0;
  for (Value input : dispatch.getInputs()) {
    viewOfInput.push_back(views);
    views += isa<SegmentsType>(input.getType()) ? 2 : 1;
  }
  for (OpResult result : dispatch->getResults()) {
    std::optional<unsigned> tied =
        dispatch.getTiedInput(result.getResultNumber());
    unsigned view = tied ? viewOfInput[*tied] : views++;
    if (Value value = valueOf.lookup(result))
      choice.outputs.push_back({view, value});
  }
  return choice;
}

//===----------------------------------------------------------------------===//
// Reference
//===----------------------------------------------------------------------===//

static LogicalResult runPhases(ModuleOp module, Phase first, Phase last,
                               StringRef target) {
  for (const PhaseInfo &info : phases()) {
    // Passes know kinds of targets, not chips.
    std::string pipeline = phasePipeline(info.phase, target.split(':').first);
    if (info.phase < first || info.phase > last || pipeline.empty())
      continue;
    PassManager passes(module.getContext());
    if (failed(parsePassPipeline(pipeline, passes)) ||
        failed(passes.run(module)))
      return failure();
  }
  return success();
}

template <typename Callback>
static void forEachEntry(ModuleOp module, Callback callback) {
  for (auto function : module.getOps<func::FuncOp>())
    if (auto name = function->getAttrOfType<StringAttr>("hybrid.entry"))
      callback(name.getValue(), function);
}

void Reference::collect(ModuleOp scheduled, const Plan &plan) {
  llvm::StringMap<func::FuncOp> compiled;
  forEachEntry(scheduled, [&](StringRef name, func::FuncOp function) {
    compiled[name] = function;
  });
  forEachEntry(*graph, [&](StringRef name, func::FuncOp function) {
    entries[name].function = function;
    LaunchMatcher matcher(function, compiled.at(name));
    for (const PlanEntry &planned : plan.entries) {
      if (planned.name != name)
        continue;
      for (const PlanLaunch &launch : planned.launches) {
        auto &choices = entries[name].launches.emplace_back();
        for (const PlanAlternative &alternative : launch.alternatives) {
          Choice choice =
              matcher.choiceOf(cast<DispatchOp>(alternative.dispatch));
          choice.kernel = plan.kernels[alternative.kernel].name;
          choices.push_back(std::move(choice));
        }
      }
    }
  });
}

llvm::Expected<Reference> Reference::create(MLIRContext &context,
                                            StringRef spec, StringRef target) {
  auto refuse = [] {
    return llvm::createStringError(
        "the spec in the artefact does not compile with this hybridc; use the "
        "one that made the artefact");
  };
  auto module = parseSourceString<ModuleOp>(spec, &context, "spec");
  if (!module ||
      failed(runPhases(*module, firstPhaseOf(*module), Phase::Fuse, target)))
    return refuse();
  forEachEntry(*module, [](StringRef, func::FuncOp function) {
    numberOperations(function);
  });
  Reference reference;
  reference.graph = module->clone();
  if (failed(runPhases(*module, Phase::Schedule, Phase::Tile, target)))
    return refuse();
  FailureOr<Plan> plan = buildPlan(*module);
  if (failed(plan))
    return refuse();
  reference.collect(*module, *plan);
  return reference;
}
