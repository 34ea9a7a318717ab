//===- Api.cpp -----------------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The C border: null checks, option structs of other sizes, and exceptions of
// the standard library (out of memory) turned into a status. No logic.
//
//===----------------------------------------------------------------------===//

#include "core/Sampling.h"
#include "core/SharedTensor.h"
#include "core/State.h"
#include "train/Trainer.h"

#include <cstring>
#include <new>

using namespace hyb::rt;

struct hyb_runtime {
  std::unique_ptr<Runtime> impl;
};
struct hyb_model {
  std::unique_ptr<Model> impl;
};
struct hyb_context {
  std::unique_ptr<Context> impl;
  std::unique_ptr<Trace> trace;
};
struct hyb_state {
  std::unique_ptr<State> impl;
};
struct hyb_snapshot {
  Snapshot impl;
};
struct hyb_trainer {
  std::unique_ptr<Trainer> impl;
};

namespace {

hyb_status report(const Status &status, hyb_error *error) {
  if (error) {
    error->status = status.code();
    std::snprintf(error->message, sizeof(error->message), "%s",
                  status.ok() ? "no error" : status.message().c_str());
  }
  return status.code();
}

/// Runs `body`, which returns a Status, and reports it.
template <typename Body> hyb_status guarded(hyb_error *error, Body body) {
  try {
    return report(body(), error);
  } catch (const std::bad_alloc &) {
    return report(Status(HYB_OUT_OF_MEMORY, "out of memory"), error);
  } catch (const std::exception &problem) {
    return report(failure(HYB_INTERNAL, "unexpected %.200s", problem.what()),
                  error);
  }
}

Status missing(const char *argument) {
  return failure(HYB_INVALID_ARGUMENT, "argument '%s' is NULL", argument);
}

#define HYB_NEED(argument)                                                     \
  do {                                                                         \
    if (!(argument))                                                           \
      return missing(#argument);                                               \
  } while (false)

/// The caller's struct may be of an older or newer header than ours: fields
/// that only one side knows have their defaults.
template <typename T> void giveOut(T value, T *target, size_t size) {
  value.size = size;
  std::memset(static_cast<void *>(target), 0, size);
  std::memcpy(static_cast<void *>(target), &value, std::min(size, sizeof(T)));
}

template <typename T>
Result<T> takeIn(const T *given, T value, const char *what) {
  if (!given)
    return value;
  if (given->size < sizeof(size_t))
    return failure(HYB_INVALID_ARGUMENT,
                   "%s has size %zu; fill it with its init function", what,
                   given->size);
  const char *bytes = reinterpret_cast<const char *>(given);
  for (size_t i = sizeof(T); i < given->size; ++i)
    if (bytes[i] != 0)
      return failure(HYB_UNSUPPORTED,
                     "%s sets an option that this runtime (%s) does not know; "
                     "use a newer one",
                     what, hyb_version());
  std::memcpy(static_cast<void *>(&value), given,
              std::min(given->size, sizeof(T)));
  return value;
}

Result<const ParameterInfo *> parameterAt(const Model &model, int64_t index) {
  const auto &parameters = model.parameterTable().parameters;
  if (index < 0 || static_cast<size_t>(index) >= parameters.size())
    return failure(HYB_OUT_OF_RANGE,
                   "parameter %lld does not exist, the model has %zu",
                   static_cast<long long>(index), parameters.size());
  return &parameters[static_cast<size_t>(index)];
}

Status checkElements(const ParameterInfo &info, int64_t elements) {
  if (elements == info.elements)
    return Status();
  return failure(HYB_INVALID_ARGUMENT,
                 "%s has %lld elements, the buffer has %lld; give all of it",
                 info.path.c_str(), static_cast<long long>(info.elements),
                 static_cast<long long>(elements));
}

hyb_runtime_options runtimeDefaults() {
  return {
      sizeof(hyb_runtime_options), 0, nullptr, nullptr, nullptr, nullptr, 0};
}
hyb_context_options contextDefaults() {
  return {sizeof(hyb_context_options), 0, 0, 0, nullptr};
}
hyb_state_options stateDefaults() {
  return {sizeof(hyb_state_options), 1, 0, 0, 0};
}
hyb_sampling samplingDefaults() {
  return {sizeof(hyb_sampling), 0.0f, 0, 1.0f, 0, 256, -1};
}
hyb_trainer_options trainerDefaults() {
  return {sizeof(hyb_trainer_options), 0.9f, 0.95f, 1e-8f, 0.1f, 1.0f};
}

} // namespace

const char *hyb_status_name(hyb_status status) {
  switch (status) {
  case HYB_OK:
    return "ok";
  case HYB_INVALID_ARGUMENT:
    return "invalid_argument";
  case HYB_INVALID_FILE:
    return "invalid_file";
  case HYB_MISMATCH:
    return "mismatch";
  case HYB_UNSUPPORTED:
    return "unsupported";
  case HYB_OUT_OF_RANGE:
    return "out_of_range";
  case HYB_OUT_OF_MEMORY:
    return "out_of_memory";
  case HYB_IO:
    return "io";
  case HYB_CANCELLED:
    return "cancelled";
  case HYB_INTERNAL:
    return "internal";
  case HYB_DEVICE:
    return "device";
  }
  return "unknown";
}

const char *hyb_version(void) { return HYBRID_VERSION; }

//===-- Runtime -----------------------------------------------------------===//

void hyb_runtime_options_init(hyb_runtime_options *options, size_t size) {
  giveOut(runtimeDefaults(), options, size);
}

hyb_status hyb_runtime_create(const hyb_runtime_options *options,
                              hyb_runtime **runtime, hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(runtime);
    HYB_ASSIGN(hyb_runtime_options chosen,
               takeIn(options, runtimeDefaults(), "hyb_runtime_options"));
    HYB_ASSIGN(auto impl, Runtime::create(chosen));
    *runtime = new hyb_runtime{std::move(impl)};
    return Status();
  });
}

void hyb_runtime_destroy(hyb_runtime *runtime) { delete runtime; }

int32_t hyb_runtime_threads(const hyb_runtime *runtime) {
  return runtime ? runtime->impl->threads().size() : 0;
}

//===-- Model -------------------------------------------------------------===//

hyb_status hyb_model_open(hyb_runtime *runtime, const char *path,
                          hyb_model **model, hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(runtime);
    HYB_NEED(path);
    HYB_NEED(model);
    HYB_ASSIGN(auto impl, Model::open(*runtime->impl, std::string(path)));
    *model = new hyb_model{std::move(impl)};
    return Status();
  });
}

hyb_status hyb_model_open_memory(hyb_runtime *runtime, const void *bytes,
                                 size_t size, hyb_model **model,
                                 hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(runtime);
    HYB_NEED(bytes);
    HYB_NEED(model);
    HYB_ASSIGN(auto impl,
               Model::open(*runtime->impl,
                           Bytes{static_cast<const uint8_t *>(bytes), size}));
    *model = new hyb_model{std::move(impl)};
    return Status();
  });
}

void hyb_model_destroy(hyb_model *model) { delete model; }

hyb_status hyb_model_get_info(const hyb_model *model, hyb_model_info *info,
                              size_t size, hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(model);
    HYB_NEED(info);
    const Model &impl = *model->impl;
    const ParameterTable &table = impl.parameterTable();
    hyb_model_info full = {};
    full.name = impl.meta().name.c_str();
    full.spec = impl.meta().spec.c_str();
    full.toolchain = impl.meta().toolchain.c_str();
    full.cpu_level = impl.codeName().c_str();
    full.device = impl.device().name();
    full.vocabulary = impl.meta().vocabulary;
    full.trained_length = impl.meta().trainedLength;
    full.parameters = table.scalars();
    full.parameter_tensors = static_cast<int64_t>(table.parameters.size());
    giveOut(full, info, size);
    return Status();
  });
}

hyb_status hyb_model_get_parameter(hyb_model *model, int64_t index,
                                   hyb_parameter *parameter, size_t size,
                                   hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(model);
    HYB_NEED(parameter);
    HYB_ASSIGN(const ParameterInfo *found, parameterAt(*model->impl, index));
    const ParameterInfo &info = *found;
    hyb_parameter full = {};
    full.path = info.path.c_str();
    full.rank = static_cast<int32_t>(info.shape.size());
    full.shape = info.shape.data();
    full.data =
        model->impl->device().isHost() ? model->impl->parameter(info) : nullptr;
    full.weight_decay = info.decay ? 1 : 0;
    giveOut(full, parameter, size);
    return Status();
  });
}

hyb_status hyb_model_read_parameter(const hyb_model *model, int64_t index,
                                    float *target, int64_t elements,
                                    hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(model);
    HYB_NEED(target);
    HYB_ASSIGN(const ParameterInfo *info, parameterAt(*model->impl, index));
    HYB_TRY(checkElements(*info, elements));
    return model->impl->readParameter(*info, target);
  });
}

hyb_status hyb_model_write_parameter(hyb_model *model, int64_t index,
                                     const float *source, int64_t elements,
                                     hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(model);
    HYB_NEED(source);
    HYB_ASSIGN(const ParameterInfo *info, parameterAt(*model->impl, index));
    HYB_TRY(checkElements(*info, elements));
    return model->impl->writeParameter(*info, source);
  });
}

hyb_status hyb_model_share_parameter(hyb_model *model, int64_t index,
                                     hyb_dl_managed **tensor,
                                     hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(model);
    HYB_NEED(tensor);
    const Model &impl = *model->impl;
    HYB_ASSIGN(const ParameterInfo *info, parameterAt(impl, index));
    *tensor = shareTensor(impl.device(), impl.parameterMemory(),
                          info->offset * kElementBytes, info->shape);
    return Status();
  });
}

hyb_status hyb_model_load_weights(hyb_model *model, const char *path,
                                  hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(model);
    HYB_NEED(path);
    return model->impl->loadWeights(path);
  });
}

hyb_status hyb_model_save_weights(const hyb_model *model, const char *path,
                                  hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(model);
    HYB_NEED(path);
    return model->impl->saveWeights(path);
  });
}

hyb_status hyb_model_initialise(hyb_model *model, uint64_t seed,
                                hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(model);
    return model->impl->initialise(seed);
  });
}

hyb_status hyb_model_check_finite(const hyb_model *model, hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(model);
    return model->impl->checkFinite();
  });
}

//===-- Context and calls -------------------------------------------------===//

void hyb_context_options_init(hyb_context_options *options, size_t size) {
  giveOut(contextDefaults(), options, size);
}

hyb_status hyb_context_create(hyb_model *model,
                              const hyb_context_options *options,
                              hyb_context **context, hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(model);
    HYB_NEED(context);
    HYB_ASSIGN(hyb_context_options chosen,
               takeIn(options, contextDefaults(), "hyb_context_options"));
    HYB_ASSIGN(auto impl, Context::create(*model->impl, chosen));
    *context = new hyb_context{std::move(impl), nullptr};
    return Status();
  });
}

void hyb_context_destroy(hyb_context *context) { delete context; }

int64_t hyb_context_memory(const hyb_context *context) {
  return context ? context->impl->memoryBytes() : 0;
}

hyb_status hyb_context_trace(hyb_context *context, hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(context);
    const Model &model = context->impl->model();
    context->trace = std::make_unique<Trace>(model.planTables().plan,
                                             model.device().description());
    context->impl->traceTo(context->trace.get());
    return Status();
  });
}

hyb_status hyb_context_save_trace(hyb_context *context, const char *path,
                                  hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(context);
    HYB_NEED(path);
    if (!context->trace)
      return failure(HYB_INVALID_ARGUMENT,
                     "nothing was recorded; call hyb_context_trace first");
    HYB_TRY(context->trace->save(path));
    context->impl->traceTo(nullptr);
    context->trace.reset();
    return Status();
  });
}

hyb_status hyb_context_watch(hyb_context *context, hyb_launch_callback callback,
                             void *user, hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(context);
    context->impl->watch(callback, user);
    return Status();
  });
}

hyb_status hyb_extend(hyb_context *context, hyb_state *state,
                      const hyb_batch *batch, hyb_logits which,
                      const float **logits, hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(context);
    HYB_NEED(state);
    HYB_NEED(batch);
    HYB_NEED(logits);
    return context->impl->extend(*state->impl, *batch, which, logits);
  });
}

hyb_status hyb_loss(hyb_context *context, const hyb_batch *batch,
                    const float **loss, hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(context);
    HYB_NEED(batch);
    HYB_NEED(loss);
    return context->impl->loss(*batch, loss);
  });
}

hyb_status hyb_extend_shared(hyb_context *context, hyb_state *state,
                             const hyb_dl_tensor *ids,
                             const hyb_segment *segments, int64_t segment_count,
                             hyb_logits which, hyb_dl_managed **logits,
                             hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(context);
    HYB_NEED(state);
    HYB_NEED(ids);
    HYB_NEED(segments);
    HYB_NEED(logits);
    Context &impl = *context->impl;
    const Device &device = impl.model().device();
    // The ids may come out of the stream that the context shares.
    HYB_TRY(impl.queue().finish());
    HYB_ASSIGN(std::vector<int32_t> values, readIds(device, *ids));
    hyb_batch batch = {};
    batch.ids = values.data();
    batch.tokens = static_cast<int64_t>(values.size());
    batch.segments = segments;
    batch.segment_count = segment_count;
    DeviceMemory memory;
    HYB_TRY(impl.extendOnDevice(*state->impl, batch, which, &memory));
    *logits = shareTensor(
        device, memory, 0,
        {which == HYB_LOGITS_ALL ? batch.tokens : batch.segment_count,
         impl.model().meta().vocabulary});
    return Status();
  });
}

//===-- State -------------------------------------------------------------===//

void hyb_state_options_init(hyb_state_options *options, size_t size) {
  giveOut(stateDefaults(), options, size);
}

hyb_status hyb_state_create(hyb_model *model, const hyb_state_options *options,
                            hyb_state **state, hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(model);
    HYB_NEED(state);
    HYB_ASSIGN(hyb_state_options chosen,
               takeIn(options, stateDefaults(), "hyb_state_options"));
    HYB_ASSIGN(auto impl, State::create(*model->impl, chosen));
    *state = new hyb_state{std::move(impl)};
    return Status();
  });
}

void hyb_state_destroy(hyb_state *state) { delete state; }

hyb_status hyb_state_measure(const hyb_model *model,
                             const hyb_state_options *options, int64_t *bytes,
                             hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(model);
    HYB_NEED(bytes);
    HYB_ASSIGN(hyb_state_options chosen,
               takeIn(options, stateDefaults(), "hyb_state_options"));
    HYB_ASSIGN(*bytes, State::measure(*model->impl, chosen));
    return Status();
  });
}

int64_t hyb_state_length(const hyb_state *state, int64_t slot) {
  return state && state->impl->checkSlot(slot).ok() ? state->impl->length(slot)
                                                    : -1;
}

hyb_status hyb_state_reset(hyb_state *state, int64_t slot, hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(state);
    return state->impl->reset(slot);
  });
}

hyb_status hyb_state_fork(hyb_state *state, int64_t from, int64_t to,
                          hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(state);
    return state->impl->fork(from, to);
  });
}

hyb_status hyb_state_rollback(hyb_context *context, hyb_state *state,
                              int64_t slot, int64_t tokens, hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(context);
    HYB_NEED(state);
    return state->impl->rollback(*context->impl, slot, tokens);
  });
}

hyb_status hyb_state_snapshot(const hyb_state *state, int64_t slot,
                              hyb_snapshot **snapshot, hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(state);
    HYB_NEED(snapshot);
    HYB_ASSIGN(Snapshot copy, state->impl->snapshot(slot));
    *snapshot = new hyb_snapshot{std::move(copy)};
    return Status();
  });
}

hyb_status hyb_state_restore(hyb_state *state, int64_t slot,
                             const hyb_snapshot *snapshot, hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(state);
    HYB_NEED(snapshot);
    return state->impl->restore(slot, snapshot->impl);
  });
}

void hyb_snapshot_destroy(hyb_snapshot *snapshot) { delete snapshot; }

hyb_status hyb_state_save(const hyb_state *state, int64_t slot,
                          const char *path, hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(state);
    HYB_NEED(path);
    return state->impl->save(slot, path);
  });
}

hyb_status hyb_state_load(hyb_state *state, int64_t slot, const char *path,
                          hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(state);
    HYB_NEED(path);
    return state->impl->load(slot, path);
  });
}

hyb_status hyb_state_share(hyb_state *state, int64_t index,
                           hyb_dl_managed **tensor, hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(state);
    HYB_NEED(tensor);
    const State &impl = *state->impl;
    if (index < 0 || static_cast<size_t>(index) >= impl.buffers().size())
      return failure(HYB_OUT_OF_RANGE,
                     "buffer %lld does not exist, the state has %zu",
                     static_cast<long long>(index), impl.buffers().size());
    size_t place = static_cast<size_t>(index);
    *tensor = shareTensor(impl.device(), impl.allMemory(),
                          impl.bufferOffset(place), impl.bufferShape(place));
    return Status();
  });
}

//===-- Sampling ----------------------------------------------------------===//

void hyb_sampling_init(hyb_sampling *sampling, size_t size) {
  giveOut(samplingDefaults(), sampling, size);
}

hyb_status hyb_sample(const float *logits, int64_t vocabulary,
                      const hyb_sampling *sampling, uint64_t step,
                      int32_t *token, hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(logits);
    HYB_NEED(token);
    HYB_ASSIGN(hyb_sampling chosen,
               takeIn(sampling, samplingDefaults(), "hyb_sampling"));
    HYB_TRY(checkSampling(chosen));
    if (vocabulary < 1)
      return failure(HYB_INVALID_ARGUMENT, "vocabulary is %lld",
                     static_cast<long long>(vocabulary));
    HYB_ASSIGN(*token, sampleToken(logits, vocabulary, chosen, step));
    return Status();
  });
}

hyb_status hyb_generate(hyb_context *context, hyb_state *state, int64_t slot,
                        const int32_t *prompt, int64_t prompt_tokens,
                        const hyb_sampling *sampling,
                        hyb_token_callback callback, void *user,
                        hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(context);
    HYB_NEED(state);
    HYB_NEED(prompt);
    HYB_ASSIGN(hyb_sampling chosen,
               takeIn(sampling, samplingDefaults(), "hyb_sampling"));
    return generate(*context->impl, *state->impl, slot, prompt, prompt_tokens,
                    chosen, callback, user);
  });
}

hyb_status hyb_generate_bytes(hyb_context *context, hyb_state *state,
                              int64_t slot, const char *prompt,
                              size_t prompt_bytes, const hyb_sampling *sampling,
                              hyb_token_callback callback, void *user,
                              hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(context);
    HYB_NEED(state);
    HYB_NEED(prompt);
    HYB_ASSIGN(hyb_sampling chosen,
               takeIn(sampling, samplingDefaults(), "hyb_sampling"));
    std::vector<int32_t> ids;
    for (size_t i = 0; i < prompt_bytes; ++i)
      ids.push_back(static_cast<unsigned char>(prompt[i]));
    return generate(*context->impl, *state->impl, slot, ids.data(),
                    static_cast<int64_t>(ids.size()), chosen, callback, user);
  });
}

//===-- Training ----------------------------------------------------------===//

void hyb_trainer_options_init(hyb_trainer_options *options, size_t size) {
  giveOut(trainerDefaults(), options, size);
}

hyb_status hyb_trainer_create(hyb_context *context,
                              const hyb_trainer_options *options,
                              hyb_trainer **trainer, hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(context);
    HYB_NEED(trainer);
    HYB_ASSIGN(hyb_trainer_options chosen,
               takeIn(options, trainerDefaults(), "hyb_trainer_options"));
    HYB_ASSIGN(auto impl, Trainer::create(*context->impl, chosen));
    *trainer = new hyb_trainer{std::move(impl)};
    return Status();
  });
}

void hyb_trainer_destroy(hyb_trainer *trainer) { delete trainer; }

hyb_status hyb_trainer_accumulate(hyb_trainer *trainer, const hyb_batch *batch,
                                  double *loss, double *weight,
                                  hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(trainer);
    HYB_NEED(batch);
    return trainer->impl->accumulate(*batch, loss, weight);
  });
}

hyb_status hyb_trainer_update(hyb_trainer *trainer, float learning_rate,
                              hyb_update *update, hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(trainer);
    return trainer->impl->update(learning_rate, update);
  });
}

hyb_status hyb_trainer_share_gradient(hyb_trainer *trainer, int64_t index,
                                      hyb_dl_managed **tensor,
                                      hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(trainer);
    HYB_NEED(tensor);
    const Model &model = trainer->impl->model();
    HYB_ASSIGN(const ParameterInfo *info, parameterAt(model, index));
    *tensor = shareTensor(model.device(), trainer->impl->gradientMemory(),
                          info->offset * kElementBytes, info->shape);
    return Status();
  });
}

hyb_status hyb_trainer_save(const hyb_trainer *trainer, const char *path,
                            hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(trainer);
    HYB_NEED(path);
    return trainer->impl->save(path, {});
  });
}

hyb_status hyb_trainer_load(hyb_trainer *trainer, const char *path,
                            hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(trainer);
    HYB_NEED(path);
    HYB_ASSIGN(SafetensorsFile file, SafetensorsFile::open(path));
    return trainer->impl->load(file.view).within(path);
  });
}
