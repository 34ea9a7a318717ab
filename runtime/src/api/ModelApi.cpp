//===- ModelApi.cpp - C API: models and their parameters -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "api/Border.h"
#include "core/SharedTensor.h"

using namespace hyb::rt;

static Status checkElements(const ParameterInfo &info, int64_t elements) {
  if (elements == info.elements)
    return Status();
  return failure(HYB_INVALID_ARGUMENT,
                 "%s has %lld elements, the buffer has %lld; give all of it",
                 info.path.c_str(), static_cast<long long>(info.elements),
                 static_cast<long long>(elements));
}

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
    full.dtype = elementTypeName(impl.computeType());
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
    // Whoever has the address may write there without a word.
    if (model->impl->device().isHost()) {
      HYB_TRY(model->impl->needMasters());
      model->impl->parametersAreShared();
    }
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
    Model &impl = *model->impl;
    HYB_ASSIGN(const ParameterInfo *info, parameterAt(impl, index));
    HYB_TRY(impl.needMasters());
    impl.parametersAreShared();
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
