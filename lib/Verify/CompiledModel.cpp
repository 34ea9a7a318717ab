//===- CompiledModel.cpp - an artefact in the runtime, watched -----------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompiledModel.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace hybrid;

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// Element `index` of a view of numbers.
static double elementAt(const hyb_launch_view &view, int64_t index) {
  if (view.type == HYB_F32)
    return static_cast<const float *>(view.data)[index];
  const llvm::fltSemantics &semantics = view.type == HYB_BF16
                                            ? llvm::APFloat::BFloat()
                                            : llvm::APFloat::IEEEhalf();
  uint16_t bits = static_cast<const uint16_t *>(view.data)[index];
  llvm::APFloat number(semantics, llvm::APInt(16, bits));
  bool losesInfo = false;
  number.convert(llvm::APFloat::IEEEdouble(),
                 llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return number.convertToDouble();
}

/// Appends the elements of dims `dim` and later from `first` on, in row-major
/// order.
static void appendElements(const hyb_launch_view &view, int32_t dim,
                           int64_t first, std::vector<double> &elements) {
  if (dim == view.rank) {
    elements.push_back(elementAt(view, first));
    return;
  }
  for (int64_t i = 0; i < view.sizes[dim]; ++i)
    appendElements(view, dim + 1, first + i * view.strides[dim], elements);
}

void Recorder::record(const hyb_launch &launch) {
  const Reference::Entry *entry = reference.entry(launch.entry);
  if (!entry || !problem.empty())
    return;
  const Reference::Choice *choice = nullptr;
  if (static_cast<size_t>(launch.index) < entry->launches.size())
    choice = llvm::find_if(entry->launches[launch.index],
                           [&](const Reference::Choice &known) {
                             return known.kernel == launch.kernel;
                           });
  if (!choice || choice == entry->launches[launch.index].end()) {
    problem = llvm::formatv("launch {0} of entry '{1}' runs kernel '{2}', "
                            "which this hybridc does not plan there",
                            launch.index, launch.entry, launch.kernel);
    return;
  }
  if (choice->outputs.empty())
    algorithms.insert(algorithmOf(launch.kernel).str());
  for (const Reference::Output &output : choice->outputs) {
    const hyb_launch_view &view = launch.views[output.view];
    auto type = cast<RankedTensorType>(output.value.getType());
    Written &written = values[output.value];
    written.layer = launch.layer;
    written.op = launch.op;
    written.kernel = launch.kernel;
    written.tensor.shape = oracle::getShape(type, call);
    // Rows come in order; what has none is written again.
    if (!choice->inPieces || type.hasStaticShape())
      written.tensor.data.clear();
    appendElements(view, 0, /*first=*/0, written.tensor.data);
  }
}

//===----------------------------------------------------------------------===//
// The runtime
//===----------------------------------------------------------------------===//

/// Runs a call of the C API.
template <typename Call> static llvm::Error check(Call call) {
  hyb_error error;
  if (call(&error) == HYB_OK)
    return llvm::Error::success();
  return llvm::createStringError(error.message);
}

hyb_batch Tokens::view() const {
  hyb_batch batch = {};
  batch.ids = ids.data();
  batch.tokens = ids.size();
  batch.segments = segments.data();
  batch.segment_count = segments.size();
  batch.labels = labels.data();
  batch.weights = weights.data();
  return batch;
}

llvm::Error CompiledModel::open(const std::string &path,
                                const VerifyOptions &options) {
  hyb_runtime_options settings;
  hyb_runtime_options_init(&settings, sizeof(settings));
  settings.threads = options.threads;
  settings.device = options.device.c_str();
  settings.cpu_level =
      options.cpuLevel.empty() ? nullptr : options.cpuLevel.c_str();
  hyb_context_options room;
  hyb_context_options_init(&room, sizeof(room));
  // A value that no launch writes is to be seen.
  room.poison = 1;

  hyb_runtime *newRuntime = nullptr;
  hyb_model *newModel = nullptr;
  hyb_context *newContext = nullptr;
  if (auto error = check([&](auto *e) {
        return hyb_runtime_create(&settings, &newRuntime, e);
      }))
    return error;
  runtime.reset(newRuntime);
  if (auto error = check([&](auto *e) {
        return hyb_model_open(newRuntime, path.c_str(), &newModel, e);
      }))
    return error;
  model.reset(newModel);
  if (auto error = check([&](auto *e) {
        return options.weights.empty()
                   ? hyb_model_initialise(newModel, options.seed, e)
                   : hyb_model_load_weights(newModel, options.weights.c_str(),
                                            e);
      }))
    return error;
  if (auto error = check([&](auto *e) {
        return hyb_context_create(newModel, &room, &newContext, e);
      }))
    return error;
  context.reset(newContext);
  return llvm::Error::success();
}

llvm::Error CompiledModel::createState(int64_t slots, int64_t capacity,
                                       int64_t chunk) {
  hyb_state_options options;
  hyb_state_options_init(&options, sizeof(options));
  options.slots = slots;
  options.context = capacity;
  options.chunk = chunk;
  hyb_state *handle = nullptr;
  auto error = check([&](auto *e) {
    return hyb_state_create(model.get(), &options, &handle, e);
  });
  state.reset(handle);
  return error;
}

llvm::Error CompiledModel::watch(Recorder &recorder) {
  auto note = [](void *user, const hyb_launch *launch) {
    static_cast<Recorder *>(user)->record(*launch);
  };
  return check([&](auto *e) {
    return hyb_context_watch(context.get(), note, &recorder, e);
  });
}

hyb_model_info CompiledModel::info() const {
  hyb_model_info info = {};
  hyb_model_get_info(model.get(), &info, sizeof(info), nullptr);
  return info;
}

std::string CompiledModel::target() const {
  hyb_model_info model = info();
  if (StringRef(model.device) == "cpu")
    return "cpu";
  return std::string("cuda:") + model.cpu_level;
}

oracle::Tensor CompiledModel::parameter(StringRef path) const {
  for (int64_t i = 0; i < info().parameter_tensors; ++i) {
    hyb_parameter found;
    hyb_model_get_parameter(model.get(), i, &found, sizeof(found), nullptr);
    if (found.path != path)
      continue;
    oracle::Tensor tensor;
    tensor.shape.assign(found.shape, found.shape + found.rank);
    int64_t elements = 1;
    for (int64_t size : tensor.shape)
      elements *= size;
    std::vector<float> values(elements);
    hyb_model_read_parameter(model.get(), i, values.data(), elements, nullptr);
    tensor.data.assign(values.begin(), values.end());
    return tensor;
  }
  return {};
}

llvm::Error CompiledModel::loss(const Tokens &tokens) {
  hyb_batch batch = tokens.view();
  const float *losses = nullptr;
  return check(
      [&](auto *e) { return hyb_loss(context.get(), &batch, &losses, e); });
}

llvm::Error CompiledModel::backward(const Tokens &tokens) {
  hyb_trainer *handle = nullptr;
  if (auto error = check([&](auto *e) {
        return hyb_trainer_create(context.get(), nullptr, &handle, e);
      }))
    return error;
  Owner<hyb_trainer, hyb_trainer_destroy> trainer(handle);
  hyb_batch batch = tokens.view();
  return check([&](auto *e) {
    return hyb_trainer_accumulate(trainer.get(), &batch, nullptr, nullptr, e);
  });
}

llvm::Error CompiledModel::extend(const Tokens &tokens, hyb_logits which) {
  hyb_batch batch = tokens.view();
  const float *logits = nullptr;
  return check([&](auto *e) {
    return hyb_extend(context.get(), state.get(), &batch, which, &logits, e);
  });
}
