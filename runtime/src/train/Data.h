//===- Data.h - Sequences to train and evaluate on --------------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_TRAIN_DATA_H
#define HYBRID_RUNTIME_TRAIN_DATA_H

#include "io/MappedFile.h"
#include "io/Safetensors.h"

#include <memory>
#include <vector>

namespace hyb::rt {

/// Sequences of one length. Row i of `labels` is what row i should predict, or
/// kIgnoreLabel.
class Dataset {
public:
  virtual ~Dataset() = default;

  virtual int64_t samples() const = 0;
  virtual int64_t length() const = 0;
  /// A sample as it is in an epoch: a function of these two and of how the data
  /// set was made.
  virtual void read(int64_t epoch, int64_t sample, int32_t *ids,
                    int32_t *labels) const = 0;
};

/// The bytes of a text, cut into windows; a row predicts the next byte. Where
/// the first window begins is drawn anew each epoch.
class TextData : public Dataset {
public:
  static Result<std::unique_ptr<Dataset>> open(const std::string &path,
                                               int64_t length, uint64_t seed);

  int64_t samples() const override { return count; }
  int64_t length() const override { return window; }
  void read(int64_t epoch, int64_t sample, int32_t *ids,
            int32_t *labels) const override;

private:
  MappedFile file;
  uint64_t seed = 0;
  int64_t window = 0, count = 0, phases = 1;
};

/// A `.safetensors` file with `ids` and `labels`, both I32 [samples, length].
class TokenData : public Dataset {
public:
  static Result<std::unique_ptr<Dataset>> open(const std::string &path,
                                               int64_t vocabulary);

  int64_t samples() const override { return count; }
  int64_t length() const override { return window; }
  void read(int64_t epoch, int64_t sample, int32_t *ids,
            int32_t *labels) const override;

private:
  SafetensorsFile file;
  Bytes idBytes, labelBytes;
  int64_t window = 0, count = 0;
};

/// TokenData for a path that ends in `.safetensors`, else TextData.
Result<std::unique_ptr<Dataset>> openDataset(const std::string &path,
                                             int64_t length, uint64_t seed,
                                             int64_t vocabulary);

/// Which samples a step takes. Every epoch is a permutation of the samples
/// drawn from the seed and the epoch, so the order is a function of the step:
/// resuming needs the step and nothing else.
class SampleOrder {
public:
  /// What happens to the samples that do not fill a batch at the end of an
  /// epoch: a smaller batch, or they are left out of that epoch.
  enum class Rest : uint8_t { Keep, Drop };

  SampleOrder(int64_t samples, int64_t batch, uint64_t seed, Rest rest);

  int64_t stepsPerEpoch() const { return stepsInEpoch; }
  int64_t epochOf(int64_t step) const { return step / stepsInEpoch; }
  /// The samples of a step, in order.
  std::vector<int64_t> batchOf(int64_t step);

private:
  void drawEpoch(int64_t epoch);

  int64_t samples, batch;
  uint64_t seed;
  int64_t stepsInEpoch;
  int64_t drawnEpoch = -1;
  std::vector<int64_t> order;
};

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_TRAIN_DATA_H
