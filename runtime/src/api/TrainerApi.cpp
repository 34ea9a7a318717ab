//===- TrainerApi.cpp - C API: training -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "api/Border.h"
#include "core/SharedTensor.h"

using namespace hyb::rt;

static hyb_trainer_options trainerDefaults() {
  return {sizeof(hyb_trainer_options), 0.9f, 0.95f, 1e-8f, 0.1f, 1.0f, 0};
}

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
