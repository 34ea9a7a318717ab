//===- Data.cpp ----------------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "train/Data.h"

#include "core/Batch.h"
#include "core/Random.h"

#include <cinttypes>
#include <cstring>
#include <numeric>

namespace hyb::rt {

Result<std::unique_ptr<Dataset>> TextData::open(const std::string &path,
                                                int64_t length, uint64_t seed) {
  auto data = std::make_unique<TextData>();
  HYB_ASSIGN(data->file, MappedFile::open(path));
  // The last byte is predicted but predicts nothing.
  int64_t usable = static_cast<int64_t>(data->file.bytes().size) - 1;
  if (length < 1 || usable < length)
    return failure(HYB_INVALID_ARGUMENT,
                   "%s: %" PRId64 " bytes are too few for sequences of %" PRId64
                   "; give a longer text or a smaller length",
                   path.c_str(), usable + 1, length);
  data->seed = seed;
  data->window = length;
  // A window less than fits leaves room to begin anywhere in a window.
  data->count = std::max<int64_t>(1, usable / length - 1);
  data->phases = std::min(length, usable - data->count * length + 1);
  return std::unique_ptr<Dataset>(std::move(data));
}

void TextData::read(int64_t epoch, int64_t sample, int32_t *ids,
                    int32_t *labels) const {
  uint64_t phase =
      RandomStream(seed, "phase")
          .below(static_cast<uint64_t>(phases), static_cast<uint64_t>(epoch));
  const uint8_t *bytes =
      file.bytes().data + phase + static_cast<uint64_t>(sample * window);
  for (int64_t i = 0; i < window; ++i) {
    ids[i] = bytes[i];
    labels[i] = bytes[i + 1];
  }
}

namespace {

Result<Bytes> readMatrix(const SafetensorsView &view, const char *name,
                         const std::vector<uint64_t> *expected,
                         std::vector<uint64_t> *shape) {
  const TensorEntry *entry = view.find(name);
  if (!entry)
    return failure(HYB_MISMATCH,
                   "has no tensor '%s'; write 'ids' and 'labels', both I32 "
                   "[samples, length]",
                   name);
  if (entry->type != DType::I32 || entry->shape.size() != 2 ||
      (expected && entry->shape != *expected))
    return failure(HYB_MISMATCH,
                   "'%s' is %s %s; write 'ids' and 'labels', both I32 "
                   "[samples, length]",
                   name, dtypeName(entry->type),
                   shapeText(entry->shape).c_str());
  if (shape)
    *shape = entry->shape;
  return view.data(*entry);
}

Status checkTokens(Bytes bytes, const char *name, int64_t length,
                   int64_t vocabulary, bool ignoreAllowed) {
  for (size_t i = 0; i < bytes.size / 4; ++i) {
    int32_t value;
    std::memcpy(&value, bytes.data + i * 4, sizeof(value));
    if ((value < 0 || value >= vocabulary) &&
        !(ignoreAllowed && value == kIgnoreLabel))
      return failure(HYB_OUT_OF_RANGE,
                     "'%s' holds %d in sample %" PRId64 " at %" PRId64
                     ", the vocabulary has %" PRId64 " ids from 0%s",
                     name, value, static_cast<int64_t>(i) / length,
                     static_cast<int64_t>(i) % length, vocabulary,
                     ignoreAllowed ? " (-100: no label)" : "");
  }
  return Status();
}

} // namespace

Result<std::unique_ptr<Dataset>> TokenData::open(const std::string &path,
                                                 int64_t vocabulary) {
  auto data = std::make_unique<TokenData>();
  HYB_ASSIGN(data->file, SafetensorsFile::open(path));
  std::vector<uint64_t> shape;
  auto check = [&]() -> Status {
    const SafetensorsView &view = data->file.view;
    HYB_ASSIGN(data->idBytes, readMatrix(view, "ids", nullptr, &shape));
    HYB_ASSIGN(data->labelBytes, readMatrix(view, "labels", &shape, nullptr));
    if (shape[0] == 0 || shape[1] == 0)
      return failure(HYB_MISMATCH, "'ids' is empty: shape %s",
                     shapeText(shape).c_str());
    data->count = static_cast<int64_t>(shape[0]);
    data->window = static_cast<int64_t>(shape[1]);
    HYB_TRY(checkTokens(data->idBytes, "ids", data->window, vocabulary,
                        /*ignoreAllowed=*/false));
    return checkTokens(data->labelBytes, "labels", data->window, vocabulary,
                       /*ignoreAllowed=*/true);
  };
  Status status = check();
  if (!status.ok())
    return status.within(path);
  return std::unique_ptr<Dataset>(std::move(data));
}

void TokenData::read(int64_t, int64_t sample, int32_t *ids,
                     int32_t *labels) const {
  size_t bytes = static_cast<size_t>(window) * sizeof(int32_t);
  std::memcpy(ids, idBytes.data + static_cast<size_t>(sample) * bytes, bytes);
  std::memcpy(labels, labelBytes.data + static_cast<size_t>(sample) * bytes,
              bytes);
}

Result<std::unique_ptr<Dataset>> openDataset(const std::string &path,
                                             int64_t length, uint64_t seed,
                                             int64_t vocabulary) {
  constexpr std::string_view kSuffix = ".safetensors";
  if (path.size() > kSuffix.size() &&
      path.compare(path.size() - kSuffix.size(), kSuffix.size(), kSuffix) == 0)
    return TokenData::open(path, vocabulary);
  if (vocabulary < 256)
    return failure(HYB_MISMATCH,
                   "%s: text is read as bytes, but the vocabulary has %" PRId64
                   " ids; give a .safetensors file with ids and labels",
                   path.c_str(), vocabulary);
  return TextData::open(path, length, seed);
}

SampleOrder::SampleOrder(int64_t samples, int64_t batch, uint64_t seed,
                         Rest rest)
    : samples(samples), batch(batch), seed(seed),
      stepsInEpoch(rest == Rest::Keep || samples < batch
                       ? (samples + batch - 1) / batch
                       : samples / batch) {}

// Fisher and Yates; draw i of epoch e has a counter of its own.
void SampleOrder::drawEpoch(int64_t epoch) {
  if (epoch == drawnEpoch)
    return;
  order.resize(static_cast<size_t>(samples));
  std::iota(order.begin(), order.end(), int64_t(0));
  RandomStream stream(seed, "order");
  for (int64_t i = samples - 1; i > 0; --i) {
    uint64_t place =
        static_cast<uint64_t>(epoch) * static_cast<uint64_t>(samples) +
        static_cast<uint64_t>(i);
    uint64_t other = stream.below(static_cast<uint64_t>(i) + 1, place);
    std::swap(order[static_cast<size_t>(i)], order[other]);
  }
  drawnEpoch = epoch;
}

std::vector<int64_t> SampleOrder::batchOf(int64_t step) {
  drawEpoch(epochOf(step));
  int64_t begin = step % stepsInEpoch * batch;
  int64_t end = std::min(begin + batch, samples);
  return {order.begin() + begin, order.begin() + end};
}

} // namespace hyb::rt
