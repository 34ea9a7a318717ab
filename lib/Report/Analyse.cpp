//===- Analyse.cpp - collect what a model costs -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Work.h"

#include "hybrid/Graph/ModelTables.h"
#include "hybrid/Graph/Passes.h"
#include "hybrid/Hybrid/NumberText.h"
#include "hybrid/Stack/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace hybrid;

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

StateBytes LayerReport::getState() const {
  StateBytes sum;
  for (const GroupReport &group : groups)
    sum += group.state;
  return sum;
}

std::string LayerReport::getMixers() const {
  return llvm::join(llvm::map_range(groups,
                                    [](const GroupReport &group) {
                                      return StringRef(group.mixer);
                                    }),
                    " | ");
}

StateBytes ModelReport::getState() const {
  StateBytes sum;
  for (const LayerReport &layer : layers)
    sum += layer.getState();
  return sum;
}

static Work sumWork(const ModelReport &report, Work PlaceReport::*which) {
  Work sum;
  for (const auto &places : report.work)
    for (const PlaceReport &place : places)
      sum += place.*which;
  return sum;
}
Work ModelReport::getForward() const {
  return sumWork(*this, &PlaceReport::forward);
}
Work ModelReport::getDecode() const {
  return sumWork(*this, &PlaceReport::decode);
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// `layers.3.mixer.q_proj` as 3 and `mixer.q_proj`; −1 outside of layers.
static std::pair<int64_t, StringRef> splitPlace(StringRef place) {
  StringRef rest = place;
  int64_t layer;
  if (!rest.consume_front("layers.") || rest.consumeInteger(10, layer) ||
      !rest.consume_front("."))
    return {-1, place};
  return {layer, rest};
}

/// The head group of `mixer.groups.1.q_proj.weight`, 0 without groups; −1 for
/// what belongs to no group.
static int64_t getGroup(StringRef rest) {
  if (!rest.consume_front("mixer."))
    return -1;
  if (!rest.consume_front("groups."))
    return 0;
  int64_t group;
  return rest.consumeInteger(10, group) ? -1 : group;
}

static std::string describe(SoftmaxOp op) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << (op.getWindow() ? "window " + std::to_string(*op.getWindow()) : "full")
     << ", " << stringifyPositionKind(op.getPosition()) << ", " << op.getHeads()
     << " heads of " << op.getHeadDim();
  if (op.getKvHeadsOrDefault() != op.getHeads())
    os << " over " << op.getKvHeadsOrDefault();
  if (op.getSinks())
    os << ", " << *op.getSinks() << " sinks";
  if (op.getLogitScale() == LogitScaleKind::log_n)
    os << ", log-n";
  return text;
}

static std::string describe(RecurrentOp op) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << op.getMixer() << ", " << op.getHeads() << " heads of "
     << op.getHeadDim();
  if (op.getValueDim() != op.getHeadDim())
    os << " x " << op.getValueDim();
  if (op.getWindow())
    os << ", history " << *op.getWindow() << " by " << *op.getStride();
  return text;
}

static GroupReport reportOn(SoftmaxOp op) {
  GroupReport group;
  group.mixer = describe(op);
  group.kind = {"softmax",
                stringifyPositionKind(op.getPosition()).str(),
                op.getWindow().value_or(0),
                op.getSinks().value_or(0),
                0,
                op.getLogitScale() == LogitScaleKind::log_n};
  group.heads = op.getHeads();
  return group;
}

static GroupReport reportOn(RecurrentOp op) {
  GroupReport group;
  group.mixer = describe(op);
  group.kind = {op.getMixer().str(),        "",   op.getWindow().value_or(0), 0,
                op.getStride().value_or(0), false};
  group.heads = op.getHeads();
  return group;
}

//===----------------------------------------------------------------------===//
// From the graph
//===----------------------------------------------------------------------===//

static void addParams(ModelReport &report, const ModelTables &tables) {
  for (const ParameterRow &row : tables.params) {
    int64_t elements = 1;
    for (int64_t size : row.shape)
      elements *= size;
    report.params += elements;
    if (row.path == "embed.weight" || row.path == "head.weight")
      report.embeddingParams += elements;
    auto [layer, rest] = splitPlace(row.path);
    if (layer < 0)
      continue;
    LayerReport &layerReport = report.layers[layer];
    layerReport.params += elements;
    int64_t group = getGroup(rest);
    bool shared = layerReport.groups.size() > 1 && !rest.contains(".groups.");
    if (group >= 0 && !shared)
      layerReport.groups[group].params += elements;
  }
}

static void addStates(ModelReport &report, const ModelTables &tables) {
  for (const StateRow &row : tables.states) {
    auto [layer, rest] = splitPlace(row.path);
    // One token at a time: the ring of a window has as many rows as it sees.
    int64_t empty = getElements(row.type, {/*tokens=*/1, /*past=*/-1});
    int64_t one = getElements(row.type, {/*tokens=*/1, /*past=*/0});
    int64_t width = row.type.getElementTypeBitWidth() / 8;
    report.layers[layer].groups[getGroup(rest)].state +=
        StateBytes{width * (one - empty), width * empty};
  }
}

/// Adds the work of each operation of `entry` to its place.
static void addWork(ModelReport &report, ModuleOp module, StringRef entry,
                    Call call, Work PlaceReport::*which) {
  auto function = module.lookupSymbol<func::FuncOp>(entry);
  function.walk([&](Operation *op) {
    if (!isa_and_nonnull<HybridDialect>(op->getDialect()))
      return;
    auto name = cast<NameLoc>(op->getLoc()).getName().getValue();
    auto [layer, rest] = splitPlace(name);
    auto &places = layer < 0 ? report.work.back() : report.work[layer];
    auto place = llvm::find_if(places, [rest = rest](const PlaceReport &place) {
      return place.name == rest;
    });
    if (place == places.end())
      place = places.insert(place, {rest.str(), {}, {}});
    (*place).*which += getWork(op, call);
  });
}

/// A module of its own with a copy of `model`, expanded and built.
static LogicalResult buildCopy(ModuleOp copy, ModelReport &report) {
  PassManager stackPasses(copy.getContext());
  stackPasses.addPass(createHybridExpandStack());
  if (failed(stackPasses.run(copy)))
    return failure();
  StackOp stack = *copy.getOps<StackOp>().begin();
  for (auto layer : stack.getBody().getOps<LayerOp>()) {
    LayerReport &layerReport = report.layers.emplace_back();
    for (MixerInterface group : layer.getGroups()) {
      auto softmax = dyn_cast<SoftmaxOp>(group.getOperation());
      layerReport.groups.push_back(
          softmax ? reportOn(softmax)
                  : reportOn(cast<RecurrentOp>(group.getOperation())));
    }
    if (MlpOp mlp = layer.getMlp())
      layerReport.feedForward = mlp.getChannels();
  }
  PassManager graphPasses(copy.getContext());
  graphPasses.addPass(createHybridBuildGraph());
  return graphPasses.run(copy);
}

FailureOr<ModelReport> hybrid::analyseModel(ModelOp model,
                                            const ReportOptions &options) {
  OwningOpRef<ModuleOp> copy = ModuleOp::create(model.getLoc());
  copy->push_back(model->clone());

  ModelReport report;
  report.name = model.getSymName().str();
  report.width = model.getWidth();
  report.vocab = model.getVocab();
  report.context =
      options.context ? options.context : model.getTrained().value_or(4096);
  if (failed(buildCopy(*copy, report)))
    return failure();
  FailureOr<ModelTables> tables = getModelTables(*copy);
  if (failed(tables))
    return failure();
  addParams(report, *tables);
  addStates(report, *tables);
  report.work.resize(report.layers.size() + 1);
  addWork(report, *copy, "loss", {report.context, 0}, &PlaceReport::forward);
  addWork(report, *copy, "extend", {1, report.context - 1},
          &PlaceReport::decode);
  return report;
}
