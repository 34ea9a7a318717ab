//===- AnalysePlan.cpp - memory and launches of the calls of a model ------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operations of the fused graph are numbered through their locations, which the
// launches made of them keep; so the work of an operation, which its plain
// definition says, meets the launches that carry it out.
//
//===----------------------------------------------------------------------===//

#include "Work.h"

#include "hybrid/Fuse/Passes.h"
#include "hybrid/Grad/Passes.h"
#include "hybrid/Graph/Passes.h"
#include "hybrid/Hybrid/ModelPlace.h"
#include "hybrid/Plan/MemoryPlan.h"
#include "hybrid/Report/Page.h"
#include "hybrid/Schedule/Passes.h"
#include "hybrid/Stack/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace hybrid;

uint64_t CallReport::getBound() const {
  uint64_t sum = 0;
  for (const auto &[what, bytes] : bound)
    sum += bytes;
  return sum;
}

//===----------------------------------------------------------------------===//
// Numbered operations
//===----------------------------------------------------------------------===//

namespace {

/// The fused graph beside the module that becomes a plan.
struct NumberedGraph {
  OwningOpRef<ModuleOp> graph;
  std::vector<Operation *> operations;
};

} // namespace

static NumberedGraph numberOperations(ModuleOp module) {
  NumberedGraph numbered;
  Builder builder(module.getContext());
  auto eachOperation = [](ModuleOp module, auto callback) {
    for (auto function : module.getOps<func::FuncOp>())
      for (Operation &op : function.getBody().front().without_terminator())
        callback(op);
  };
  int64_t number = 0;
  eachOperation(module, [&](Operation &op) {
    op.setLoc(FusedLoc::get({op.getLoc()}, builder.getI64IntegerAttr(number++),
                            module.getContext()));
  });
  numbered.graph = module.clone();
  eachOperation(*numbered.graph,
                [&](Operation &op) { numbered.operations.push_back(&op); });
  return numbered;
}

/// The number of the operation that `dispatch` was made of.
static std::optional<int64_t> getNumber(Operation *dispatch) {
  auto fused = dyn_cast<FusedLoc>(dispatch->getLoc());
  auto number = fused ? dyn_cast_or_null<IntegerAttr>(fused.getMetadata())
                      : IntegerAttr();
  return number ? std::optional(number.getInt()) : std::nullopt;
}

static StringRef getKind(Operation *op) {
  return llvm::TypeSwitch<Operation *, StringRef>(op)
      .Case([](ProductOp) { return "product"; })
      .Case<AttentionOp, AttentionCachedOp, AttentionGradOp>(
          [](Operation *) { return "attention"; })
      .Case<RecurrenceOp, RecurrenceGradOp>(
          [](Operation *) { return "recurrence"; })
      .Case<EmbedOp, EmbedGradOp, LastRowsOp, CrossEntropyOp,
            CrossEntropyGradOp>([](Operation *) { return "other"; })
      .Default([](Operation *) { return "row-wise"; });
}

//===----------------------------------------------------------------------===//
// One call
//===----------------------------------------------------------------------===//

/// Whether the operation touches only some rows of an operand.
static bool readsRows(Operation *op) {
  return isa<EmbedOp, EmbedGradOp, LastRowsOp, AttentionCachedOp>(op);
}

static std::string joinKernels(ArrayRef<std::string> kernels) {
  llvm::MapVector<StringRef, unsigned> counts;
  for (const std::string &kernel : kernels)
    ++counts[kernel];
  std::string text;
  for (auto [kernel, count] : counts) {
    text += (text.empty() ? "" : ", ") + kernel.str();
    if (count > 1)
      text += " ×" + std::to_string(count);
  }
  return text;
}

/// The operations of a call in the order of their first launch.
static std::vector<OperationReport>
reportOperations(const NumberedGraph &numbered, const Plan &plan,
                 const PlanEntry &entry, const SymbolValues &symbols,
                 Call call) {
  llvm::MapVector<int64_t, OperationReport> operations;
  llvm::DenseMap<int64_t, std::vector<std::string>> kernels;
  // Launches of no operation, as those of the update, stand for themselves.
  int64_t unnumbered = -1;
  for (const PlanRun &run : listRuns(entry, symbols)) {
    const PlanLaunch &launch = entry.launches[run.launch];
    const PlanAlternative *chosen = run.chosen;
    std::optional<int64_t> number = getNumber(chosen->dispatch);
    int64_t key = number ? *number : unnumbered--;
    Operation *op = number ? numbered.operations[*number] : nullptr;
    OperationReport &report = operations[key];
    if (!report.launches) {
      report.layer = launch.layer;
      report.place = launch.op;
      report.kind = op ? getKind(op).str() : "other";
      if (op)
        report.work = getWork(op, call);
      if (!op || !readsRows(op))
        report.work.bytes = 0;
    }
    report.launches += run.times;
    if (!op || !readsRows(op))
      report.work.bytes +=
          run.times * getMovedBytes(chosen->dispatch, {run.tokens, call.past});
    kernels[key].insert(kernels[key].end(), run.times,
                        plan.kernels[chosen->kernel].name);
  }
  std::vector<OperationReport> reports;
  for (auto &[key, report] : operations) {
    report.kernels = joinKernels(kernels[key]);
    reports.push_back(std::move(report));
  }
  return reports;
}

/// What a caller calls the buffers of a kind.
static StringRef describeBound(BufferKind kind) {
  switch (kind) {
  case BufferKind::Param:
    return "parameters";
  case BufferKind::Gradient:
    return "gradients";
  case BufferKind::Moment1:
  case BufferKind::Moment2:
    return "moments";
  case BufferKind::State:
    return "states and caches";
  default:
    return "inputs and outputs";
  }
}

static void addBound(CallReport &report, StringRef what, uint64_t bytes) {
  for (auto &[known, sum] : report.bound)
    if (known == what) {
      sum += bytes;
      return;
    }
  report.bound.push_back({what.str(), bytes});
}

static llvm::Expected<CallReport>
reportCall(StringRef title, const NumberedGraph &numbered, const Plan &plan,
           const PlanEntry &entry, const SymbolValues &symbols, Call call) {
  llvm::Expected<EntryMemory> memory = planMemory(plan, entry, symbols);
  if (!memory)
    return memory.takeError();
  CallReport report;
  report.title = title.str();
  report.arena = memory->arena;
  report.withoutReuse = memory->withoutReuse;
  for (auto [kind, bytes] : memory->bound)
    addBound(report, describeBound(kind), bytes);
  std::optional<unsigned> before;
  for (const PlanRun &run : listRuns(entry, symbols)) {
    unsigned index = run.launch;
    // All pieces are alike.
    if (before == index)
      continue;
    before = index;
    const PlanLaunch &launch = entry.launches[index];
    uint64_t live = 0;
    for (const EntryMemory::Buffer &buffer : memory->buffers)
      if (buffer.buffer->first <= index && index <= buffer.buffer->last)
        live += buffer.bytes;
    report.live.push_back(live);
    report.places.push_back(launch.layer < 0
                                ? launch.op
                                : "layers." + std::to_string(launch.layer) +
                                      "." + launch.op);
  }
  report.operations = reportOperations(numbered, plan, entry, symbols, call);
  return report;
}

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

static LogicalResult buildGraph(ModuleOp module) {
  PassManager passes(module.getContext());
  passes.addPass(createHybridExpandStack());
  passes.addPass(createHybridBuildGraph());
  passes.addPass(createHybridMergeAttention());
  return passes.run(module);
}

/// With the backward function, fused: the graph that is scheduled.
static LogicalResult differentiate(ModuleOp module) {
  PassManager passes(module.getContext());
  passes.addPass(createHybridDifferentiate());
  passes.addPass(createHybridFuseRowwise());
  return passes.run(module);
}

static FailureOr<Plan> schedule(ModuleOp module, StringRef target) {
  PassManager passes(module.getContext());
  HybridScheduleOptions options;
  options.target = target.str();
  passes.addPass(createHybridSchedule(options));
  if (failed(passes.run(module)))
    return failure();
  return buildPlan(module);
}

static const PlanEntry *findEntry(const Plan &plan, StringRef name) {
  auto entry = llvm::find_if(
      plan.entries, [&](const PlanEntry &entry) { return entry.name == name; });
  return entry == plan.entries.end() ? nullptr : &*entry;
}

/// The memory of a training step of `context` tokens for each choice of what
/// backward computes again. `graph` is not differentiated yet.
static LogicalResult compareRecompute(ModuleOp graph, StringRef target,
                                      int64_t context, PlanReport &report) {
  static constexpr llvm::StringLiteral name = "hybrid.recompute";
  // What is differentiated.
  auto loss = graph.lookupSymbol<func::FuncOp>("training_loss");
  if (!loss)
    loss = graph.lookupSymbol<func::FuncOp>("loss");
  auto chosen = loss->getAttrOfType<StringAttr>(name);
  for (StringRef choice : {"none", "selective", "layer"}) {
    loss->setAttr(name, StringAttr::get(graph.getContext(), choice));
    OwningOpRef<ModuleOp> copy = graph.clone();
    if (failed(differentiate(*copy)))
      return failure();
    RecomputeReport row;
    row.name = choice.str();
    row.isChosen = choice == (chosen ? chosen.getValue() : "none");
    copy->lookupSymbol("backward")->walk([&](Operation *op) {
      row.recomputed += op->hasAttr(name);
    });
    FailureOr<Plan> plan = schedule(*copy, target);
    if (failed(plan))
      return failure();
    auto memory = planMemory(*plan, *findEntry(*plan, "backward"),
                             {context, 1, context, 0, 0, 0});
    if (!memory)
      return emitError(graph.getLoc()) << llvm::toString(memory.takeError());
    row.arena = memory->arena;
    row.launches = memory->launches;
    row.total = memory->arena;
    for (auto [kind, bytes] : memory->bound)
      row.total += bytes;
    report.recompute.push_back(std::move(row));
  }
  if (chosen)
    loss->setAttr(name, chosen);
  else
    loss->removeAttr(name);
  return success();
}

FailureOr<PlanReport> hybrid::analysePlan(ModelOp model, StringRef target,
                                          const ReportOptions &options) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(model.getLoc());
  module->push_back(model->clone());
  int64_t context =
      options.context ? options.context : model.getTrained().value_or(4096);
  PlanReport report;
  if (failed(buildGraph(*module)) ||
      failed(compareRecompute(*module, target, context, report)) ||
      failed(differentiate(*module)))
    return failure();
  NumberedGraph numbered = numberOperations(*module);
  FailureOr<Plan> plan = schedule(*module, target);
  if (failed(plan))
    return failure();

  struct Wanted {
    StringRef entry, title;
    SymbolValues symbols;
    Call call;
  };
  const Wanted wanted[] = {
      {"backward",
       "training, forward and backward",
       {context, 1, context, 0, 0, 0},
       {context, 0}},
      {"update", "training, update", {}, {0, 0}},
      {"extend", "prefill", {context, 1, context, 1, context, 0}, {context, 0}},
      {"extend",
       "decoding one token",
       {1, 1, 1, 1, context, 0},
       {1, context - 1}},
  };
  for (const Wanted &call : wanted) {
    const PlanEntry *entry = findEntry(*plan, call.entry);
    if (!entry)
      continue;
    llvm::Expected<CallReport> found = reportCall(
        call.title, numbered, *plan, *entry, call.symbols, call.call);
    if (!found) {
      emitError(model.getLoc())
          << llvm::toString(found.takeError()) << "; give a smaller --context";
      return failure();
    }
    report.calls.push_back(std::move(*found));
  }
  return report;
}
