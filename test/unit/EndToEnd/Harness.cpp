//===- Harness.cpp - a spec, compiled and beside the oracle -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Harness.h"

#include "hybrid/Artefact/Assemble.h"
#include "hybrid/Driver/Phases.h"
#include "hybrid/Driver/Register.h"
#include "hybrid/Graph/ModelTables.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

#include "train/Initialise.h"

#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace hybrid;
using namespace hybrid::test;

//===----------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------===//

DialectRegistry hybrid::test::makeRegistry() {
  static bool passes = [] {
    registerAllHybridPasses();
    registerTransformsPasses();
    return true;
  }();
  (void)passes;
  DialectRegistry registry;
  registerAllHybridDialects(registry);
  return registry;
}

CompiledModel::CompiledModel(StringRef spec, StringRef level, int threads,
                             cpu::ProgramCache *cache)
    : mlirContext(makeRegistry(), MLIRContext::Threading::DISABLED) {
  ScopedDiagnosticHandler handler(&mlirContext, [&](Diagnostic &diagnostic) {
    report += diagnostic.str() + "\n";
  });
  compile(spec, level, cache);
  if (!artefact.empty())
    open(level, threads);
}

static bool runPasses(ModuleOp module, StringRef pipeline) {
  PassManager passes(module.getContext());
  return succeeded(parsePassPipeline(pipeline, passes)) &&
         succeeded(passes.run(module));
}

static bool runPhases(ModuleOp module, Phase from, Phase to) {
  for (const PhaseInfo &info : phases()) {
    std::string pipeline = phasePipeline(info.phase, "cpu");
    if (info.phase >= from && info.phase <= to && !pipeline.empty() &&
        !runPasses(module, pipeline))
      return false;
  }
  return true;
}

void CompiledModel::compile(StringRef spec, StringRef level,
                            cpu::ProgramCache *cache) {
  auto module = parseSourceString<ModuleOp>(spec, &mlirContext);
  if (!module || !runPhases(*module, Phase::Spec, Phase::Grad))
    return;
  graph = parseSourceString<ModuleOp>(spec, &mlirContext);
  if (!runPasses(*graph, "hybrid-expand-stack,hybrid-build-graph,"
                         "hybrid-differentiate") ||
      !runPhases(*module, Phase::Fuse, Phase::Tile))
    return;
  FailureOr<Plan> built = buildPlan(*module);
  FailureOr<ModelTables> tables = getModelTables(*module);
  if (failed(built) || failed(tables))
    return;
  plan = std::move(*built);
  SmallVector<StringRef> symbols;
  for (const PlanKernel &kernel : plan.kernels)
    symbols.push_back(kernel.symbol);
  cpu::Options options;
  options.cache = cache;
  FailureOr<cpu::CompiledCode> code =
      cpu::compile(*module, symbols, *cpu::levelNamed(level), options);
  if (failed(code))
    return;
  for (auto [kernel, made] : llvm::zip_equal(plan.kernels, code->kernels))
    kernel.scratch = made.scratchBytes;
  ArtefactTarget target{"cpu", plan, {{"code", level.str(), code->elf}}};
  llvm::Expected<std::string> bytes = assembleArtefact(spec, *tables, target);
  if (bytes)
    artefact = std::move(*bytes);
  else
    report += llvm::toString(bytes.takeError());
}

void CompiledModel::open(StringRef level, int threads) {
  std::string levelName = level.str();
  hyb_runtime_options options;
  hyb_runtime_options_init(&options, sizeof(options));
  options.threads = threads;
  options.cpu_level = levelName.c_str();
  auto made = hyb::rt::Runtime::create(options);
  if (!made.ok()) {
    report += made.status().message();
    return;
  }
  runtime = std::move(*made);
  auto opened = hyb::rt::Model::open(
      *runtime,
      hyb::rt::Bytes{reinterpret_cast<const uint8_t *>(artefact.data()),
                     artefact.size()});
  if (!opened.ok()) {
    report += opened.status().message();
    return;
  }
  model = std::move(*opened);
  if (hyb::rt::Status status = model->needMasters(); !status.ok()) {
    report += status.message();
    model = nullptr;
    return;
  }
  hyb::rt::initialiseParameters(model->parameterTable(), 7,
                                model->parameters());
  // Norms and gates away from where they start, so that nothing cancels.
  std::mt19937 generator(11);
  std::normal_distribution<float> noise(0.0f, 0.1f);
  for (const hyb::rt::ParameterInfo &info : model->parameterTable().parameters)
    for (int64_t i = 0; i < info.elements; ++i)
      model->parameter(info)[i] += noise(generator);
  hyb_context_options room;
  hyb_context_options_init(&room, sizeof(room));
  room.poison = 1;
  auto created = hyb::rt::Context::create(*model, room);
  if (created.ok())
    context = std::move(*created);
  else
    report += created.status().message();
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

hyb_batch CompiledModel::Batch::view() const {
  hyb_batch batch = {};
  batch.ids = ids.data();
  batch.tokens = ids.size();
  batch.segments = segments.data();
  batch.segment_count = segments.size();
  batch.labels = labels.data();
  batch.weights = weights.data();
  return batch;
}

CompiledModel::Batch CompiledModel::randomBatch(std::vector<int64_t> lengths,
                                                unsigned seed) const {
  std::mt19937 generator(seed);
  int32_t vocab = model->meta().vocabulary;
  Batch batch;
  batch.lengths = lengths;
  for (auto [slot, length] : llvm::enumerate(lengths)) {
    batch.segments.push_back({length, static_cast<int64_t>(slot)});
    for (int64_t i = 0; i < length; ++i) {
      batch.ids.push_back(generator() % vocab);
      batch.labels.push_back(generator() % 8 ? generator() % vocab : -100);
      batch.weights.push_back(0.5f + generator() % 100 / 100.0f);
    }
  }
  return batch;
}

static void expectOk(const hyb::rt::Status &status) {
  EXPECT_TRUE(status.ok()) << status.message();
}

std::vector<float> CompiledModel::loss(const Batch &batch) {
  const float *losses = nullptr;
  expectOk(context->loss(batch.view(), &losses));
  return losses ? std::vector<float>(losses, losses + batch.ids.size())
                : std::vector<float>();
}

std::map<std::string, std::vector<float>>
CompiledModel::backward(const Batch &batch, std::vector<float> &losses) {
  const hyb::rt::ParameterTable &table = model->parameterTable();
  std::vector<float> gradients(table.elements, 0.0f);
  const float *values = nullptr;
  expectOk(context->backward(batch.view(), gradients.data(), seedOfBackward,
                             &values));
  if (values)
    losses.assign(values, values + batch.ids.size());
  std::map<std::string, std::vector<float>> result;
  for (const hyb::rt::ParameterInfo &info : table.parameters)
    result[info.path].assign(gradients.begin() + info.offset,
                             gradients.begin() + info.offset + info.elements);
  return result;
}

std::vector<float> CompiledModel::logits(const std::vector<int32_t> &ids,
                                         const std::vector<int64_t> &pieces,
                                         std::vector<float> *finalState) {
  hyb_state_options options;
  hyb_state_options_init(&options, sizeof(options));
  options.context = ids.size();
  options.chunk = ids.size();
  auto state = hyb::rt::State::create(*model, options);
  EXPECT_TRUE(state.ok()) << state.status().message();
  std::vector<float> result;
  int64_t begin = 0;
  for (int64_t size : pieces) {
    hyb_segment segment = {size, 0};
    hyb_batch batch = {};
    batch.ids = ids.data() + begin;
    batch.tokens = size;
    batch.segments = &segment;
    batch.segment_count = 1;
    const float *values = nullptr;
    expectOk(context->extend(**state, batch, HYB_LOGITS_ALL, &values));
    if (values)
      result.insert(result.end(), values,
                    values + size * model->meta().vocabulary);
    begin += size;
  }
  for (auto [i, buffer] : llvm::enumerate((*state)->buffers())) {
    int64_t elements = 1;
    for (int64_t size : (*state)->bufferShape(i))
      elements *= size;
    const auto *values = static_cast<const float *>(buffer);
    if (finalState)
      finalState->insert(finalState->end(), values, values + elements);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Oracle
//===----------------------------------------------------------------------===//

func::FuncOp CompiledModel::entry(StringRef name) {
  for (auto function : graph->getOps<func::FuncOp>())
    if (function->getAttrOfType<StringAttr>("hybrid.entry") == name)
      return function;
  return {};
}

oracle::Tensor CompiledModel::argument(func::FuncOp function, unsigned index,
                                       const Batch &batch,
                                       const oracle::Call &call) {
  auto type = dyn_cast<RankedTensorType>(function.getArgument(index).getType());
  if (!type)
    return {};
  oracle::Tensor tensor(oracle::getShape(type, call));
  StringRef role = function.getArgAttrOfType<StringAttr>(index, "hybrid.role");
  auto path = function.getArgAttrOfType<StringAttr>(index, "hybrid.path");
  if (role == "ids")
    tensor.data.assign(batch.ids.begin(), batch.ids.end());
  else if (role == "labels")
    tensor.data.assign(batch.labels.begin(), batch.labels.end());
  else if (role == "weights")
    tensor.data.assign(batch.weights.begin(), batch.weights.end());
  else if (role == "random_key")
    tensor.data = {static_cast<double>(
        static_cast<int32_t>(seedOfBackward.keyOf(path.getValue())))};
  else if (role == "param")
    if (const hyb::rt::ParameterInfo *info =
            model->parameterTable().find(path.str()))
      tensor.data.assign(model->parameter(*info),
                         model->parameter(*info) + info->elements);
  return tensor;
}

std::vector<oracle::Tensor> CompiledModel::evaluate(StringRef name,
                                                    const Batch &batch,
                                                    const oracle::Call &call) {
  func::FuncOp function = entry(name);
  std::vector<oracle::Tensor> arguments;
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    arguments.push_back(argument(function, index, batch, call));
  FailureOr<std::vector<oracle::Tensor>> results =
      oracle::evaluate(function, arguments, call);
  EXPECT_TRUE(succeeded(results));
  return succeeded(results) ? *results : std::vector<oracle::Tensor>();
}

std::vector<double> CompiledModel::oracleLoss(const Batch &batch) {
  return evaluate("loss", batch, batch.call()).at(0).data;
}

std::map<std::string, std::vector<double>>
CompiledModel::oracleBackward(const Batch &batch, std::vector<double> *losses) {
  func::FuncOp function = entry("backward");
  std::vector<oracle::Tensor> results =
      evaluate("backward", batch, batch.call());
  if (losses)
    *losses = results.at(0).data;
  std::map<std::string, std::vector<double>> gradients;
  for (auto [index, result] : llvm::enumerate(results))
    if (auto path =
            function.getResultAttrOfType<StringAttr>(index, "hybrid.path"))
      gradients[path.str()] = result.data;
  return gradients;
}

std::vector<double>
CompiledModel::oracleLogits(const std::vector<int32_t> &ids) {
  Batch batch;
  batch.lengths = {static_cast<int64_t>(ids.size())};
  batch.ids = ids;
  oracle::Call call = batch.call();
  call.slots = 1;
  call.context = call.chunk = ids.size();
  return evaluate("extend_all", batch, call).at(0).data;
}

double hybrid::test::distance(ArrayRef<float> a, ArrayRef<double> b) {
  if (a.size() != b.size())
    return std::numeric_limits<double>::infinity();
  double difference = 0, largest = 1e-30;
  for (auto [x, y] : llvm::zip_equal(a, b)) {
    // A NaN is a difference too.
    if (!(std::abs(x - y) <= difference))
      difference = std::isnan(x) ? std::numeric_limits<double>::infinity()
                                 : std::abs(x - y);
    largest = std::max(largest, std::abs(y));
  }
  return difference / largest;
}
