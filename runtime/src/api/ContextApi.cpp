//===- ContextApi.cpp - C API: contexts, calls, generation -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "api/Border.h"
#include "core/Sampling.h"
#include "core/SharedTensor.h"

#include <cstring>
#include <type_traits>

using namespace hyb::rt;

static hyb_context_options contextDefaults() {
  return {sizeof(hyb_context_options), 0, 0, 0, nullptr, 0};
}

static hyb_sampling samplingDefaults() {
  return {sizeof(hyb_sampling), 0.0f, 0, 1.0f, 0, 256, -1};
}

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
    context->trace = std::make_unique<Trace>(model.device().description());
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

/// A caller's C enum may hold any number, which C++ may not read as one of
/// ours.
static Status checkLogits(const hyb_logits &which) {
  std::underlying_type_t<hyb_logits> value;
  static_assert(sizeof(value) == sizeof(which));
  std::memcpy(&value, &which, sizeof(value));
  if (value == HYB_LOGITS_LAST || value == HYB_LOGITS_ALL)
    return Status();
  return failure(HYB_INVALID_ARGUMENT,
                 "which logits is %lld; pass HYB_LOGITS_LAST (0) or "
                 "HYB_LOGITS_ALL (1)",
                 static_cast<long long>(value));
}

hyb_status hyb_extend(hyb_context *context, hyb_state *state,
                      const hyb_batch *batch, hyb_logits which,
                      const float **logits, hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(context);
    HYB_NEED(state);
    HYB_NEED(batch);
    HYB_NEED(logits);
    HYB_TRY(checkLogits(which));
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
    HYB_TRY(checkLogits(which));
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
