//===- Trainer.cpp -------------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "train/Trainer.h"

#include <cmath>
#include <optional>

namespace hyb::rt {

namespace {

/// Places in the `scalars` buffer of the entry `update`.
enum Scalar {
  LearningRate,
  Beta1,
  Beta2,
  Epsilon,
  WeightDecay,
  ClipNorm,
  BiasCorrection1,
  BiasCorrection2,
  GradientScale,
  GradientNorm,
  StepTaken,
  ScalarCount = 16
};

/// Of the number of a call: the low bits count the batches of a step.
constexpr int kPartBits = 24;

constexpr const char *kMoment1 = "moment1:";
constexpr const char *kMoment2 = "moment2:";

} // namespace

Result<std::unique_ptr<Trainer>>
Trainer::create(Context &context, const hyb_trainer_options &options) {
  auto inside = [](float value, float high) {
    return value >= 0 && value < high;
  };
  if (!inside(options.beta1, 1) || !inside(options.beta2, 1) ||
      !inside(options.epsilon, INFINITY) || options.epsilon == 0 ||
      !inside(options.weight_decay, INFINITY) ||
      !inside(options.clip_norm, INFINITY))
    return failure(HYB_INVALID_ARGUMENT,
                   "optimiser has beta1 %g, beta2 %g, epsilon %g, weight decay "
                   "%g, clip norm %g; the betas are below 1, epsilon is "
                   "positive, and none is negative",
                   static_cast<double>(options.beta1),
                   static_cast<double>(options.beta2),
                   static_cast<double>(options.epsilon),
                   static_cast<double>(options.weight_decay),
                   static_cast<double>(options.clip_norm));
  for (const char *name : {"backward", "update"})
    HYB_TRY(context.model().entry(name).status());
  HYB_TRY(context.model().needMasters());
  std::unique_ptr<Trainer> trainer(new Trainer(context, options));
  for (DeviceMemory *flat :
       {&trainer->gradients, &trainer->moment1, &trainer->moment2}) {
    HYB_ASSIGN(*flat,
               context.model().device().allocate(context.model().flatBytes()));
  }
  return trainer;
}

// Also in a run that continues from a checkpoint: the updates are in it, and
// nothing is accumulated then.
CallSeed Trainer::nextSeed() const {
  return {options.seed, static_cast<uint64_t>(updates) << kPartBits | parts};
}

Status Trainer::accumulate(const hyb_batch &batch, double *loss,
                           double *weight) {
  const float *losses;
  HYB_TRY(context.backward(batch, gradients.data(), nextSeed(), &losses));
  accumulated = true;
  ++parts;
  double lossSum = 0, weightSum = 0;
  for (int64_t i = 0; i < batch.tokens; ++i) {
    lossSum += losses[i];
    if (batch.labels[i] != kIgnoreLabel)
      weightSum += batch.weights ? batch.weights[i] : 1.0f;
  }
  accumulatedWeight += weightSum;
  if (loss)
    *loss = lossSum;
  if (weight)
    *weight = weightSum;
  return Status();
}

Status Trainer::clearGradients() {
  accumulatedWeight = 0;
  parts = 0;
  HYB_TRY(context.queue().fill(gradients.data(), gradients.bytes(), 0));
  HYB_TRY(context.queue().finish());
  accumulated = false;
  return Status();
}

Status Trainer::update(float learningRate, hyb_update *result) {
  if (!(learningRate >= 0) || !std::isfinite(learningRate))
    return failure(HYB_INVALID_ARGUMENT,
                   "learning rate is %g; give a finite number that is not "
                   "negative",
                   static_cast<double>(learningRate));
  hyb_update report = {};
  report.weight = accumulatedWeight;
  report.skipped = 1;
  // No row had a label: there is no mean to take a gradient of.
  if (accumulatedWeight > 0) {
    double t = static_cast<double>(steps + 1);
    float scalars[ScalarCount] = {};
    scalars[LearningRate] = learningRate;
    scalars[Beta1] = options.beta1;
    scalars[Beta2] = options.beta2;
    scalars[Epsilon] = options.epsilon;
    scalars[WeightDecay] = options.weight_decay;
    scalars[ClipNorm] = options.clip_norm;
    scalars[BiasCorrection1] =
        static_cast<float>(1 - std::pow(static_cast<double>(options.beta1), t));
    scalars[BiasCorrection2] =
        static_cast<float>(1 - std::pow(static_cast<double>(options.beta2), t));
    scalars[GradientScale] = static_cast<float>(1 / accumulatedWeight);
    HYB_TRY(context.update(gradients.data(), moment1.data(), moment2.data(),
                           scalars));
    report.gradient_norm = static_cast<double>(scalars[GradientNorm]);
    report.skipped = scalars[StepTaken] == 1.0f ? 0 : 1;
    steps += report.skipped ? 0 : 1;
  }
  ++updates;
  report.step = steps;
  HYB_TRY(clearGradients());
  if (result)
    *result = report;
  return Status();
}

Status Trainer::save(const std::string &path,
                     std::map<std::string, std::string> metadata) const {
  // The file has no place for gradients: what resumes from it would lack them.
  if (accumulated)
    return failure(HYB_INVALID_ARGUMENT,
                   "gradients are accumulated and a checkpoint holds none; "
                   "call update first");
  const Model &model = context.model();
  std::vector<TensorToWrite> tensors;
  std::vector<HostView> views;
  for (auto [prefix, flat] :
       {std::pair<const char *, const void *>{"", model.parameters()},
        {kMoment1, moment1.data()},
        {kMoment2, moment2.data()}}) {
    HYB_ASSIGN(HostView view,
               HostView::of(model.device(), flat, model.flatBytes()));
    views.push_back(std::move(view));
    for (const ParameterInfo &info : model.parameterTable().parameters)
      tensors.push_back({prefix + info.path,
                         DType::F32,
                         {info.shape.begin(), info.shape.end()},
                         views.back().floats() + info.offset});
  }
  metadata["format"] = "hybridc checkpoint";
  metadata["model"] = model.meta().name;
  metadata["optimiser_step"] = std::to_string(steps);
  metadata["optimiser_updates"] = std::to_string(updates);
  return writeSafetensors(path, tensors, metadata);
}

static std::optional<int64_t> countIn(const SafetensorsView &view,
                                      const char *key) {
  auto found = view.metadata().find(key);
  if (found == view.metadata().end() || found->second.empty() ||
      found->second.size() > 15 ||
      found->second.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::stoll(found->second);
}

Status Trainer::load(const SafetensorsView &view) {
  const ParameterTable &table = context.model().parameterTable();
  std::optional<int64_t> step = countIn(view, "optimiser_step");
  if (!step)
    return failure(HYB_MISMATCH,
                   "not a checkpoint: its metadata has no "
                   "optimiser_step; start from it as weights instead");
  // Each part is checked whole before it is copied; the parameters come last,
  // so that a bad file leaves them alone.
  Model &model = context.model();
  HYB_TRY(
      copyParameters(view, table, kMoment1, model.device(), moment1.data()));
  HYB_TRY(
      copyParameters(view, table, kMoment2, model.device(), moment2.data()));
  model.parametersChanged();
  HYB_TRY(copyParameters(view, table, "", model.device(), model.parameters()));
  steps = *step;
  // Checkpoints of before the updates were counted had none that was skipped,
  // or keys that came twice.
  updates = countIn(view, "optimiser_updates").value_or(steps);
  return Status();
}

} // namespace hyb::rt
