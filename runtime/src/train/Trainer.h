//===- Trainer.h - Gradients, moments and the optimiser step ----*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_TRAIN_TRAINER_H
#define HYBRID_RUNTIME_TRAIN_TRAINER_H

#include "core/Context.h"
#include "io/Safetensors.h"

#include <map>

namespace hyb::rt {

/// AdamW through the artefact's own `update`. Accumulated gradients are those
/// of a sum of losses; the step divides by the summed weights, so that how a
/// batch is cut into micro-batches does not matter.
class Trainer {
public:
  static Result<std::unique_ptr<Trainer>>
  create(Context &context, const hyb_trainer_options &options);

  Status accumulate(const hyb_batch &batch, double *loss, double *weight);
  Status update(float learningRate, hyb_update *result);

  const Model &model() const { return context.model(); }
  int64_t step() const { return steps; }
  /// What the random keys of the next batch follow from. A skipped update
  /// counts: the batch after it leaves out other elements.
  CallSeed nextSeed() const;
  /// What was accumulated: a flat buffer of the device.
  const DeviceMemory &gradientMemory() const { return gradients; }
  int64_t memoryBytes() const {
    return gradients.bytes() + moment1.bytes() + moment2.bytes();
  }

  /// Parameters under their paths, moments under `moment1:` and `moment2:`; the
  /// step and `metadata` as texts. One file, so that it is whole or old.
  Status save(const std::string &path,
              std::map<std::string, std::string> metadata) const;
  Status load(const SafetensorsView &view);

private:
  Trainer(Context &context, const hyb_trainer_options &options)
      : context(context), options(options) {}

  Status clearGradients();

  Context &context;
  hyb_trainer_options options;
  DeviceMemory gradients, moment1, moment2;
  double accumulatedWeight = 0;
  /// Between accumulate and update, also of batches without labels.
  bool accumulated = false;
  int64_t steps = 0;
  /// Updates, those that were skipped included: what random keys follow from.
  int64_t updates = 0;
  /// Batches accumulated for the next step.
  uint64_t parts = 0;
};

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_TRAIN_TRAINER_H
