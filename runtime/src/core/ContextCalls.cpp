//===- ContextCalls.cpp - calls on whole sequences -----------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Losses, gradients, functions and the optimiser: what has no state.
//
//===----------------------------------------------------------------------===//

#include "core/ArenaLayout.h"
#include "core/Context.h"

#include <algorithm>

namespace hyb::rt {

Status Context::runWholeSequences(const hyb_batch &batch, const char *entryName,
                                  void *gradients, CallSeed seed,
                                  const float **result) {
  HYB_TRY(checkBatch(batch, owner->meta().vocabulary));
  HYB_TRY(checkLabels(batch, owner->meta().vocabulary));
  HYB_ASSIGN(const PlanEntry *entry, owner->entry(entryName));
  int64_t tokens = batch.tokens;
  CallShape shape;
  shape.symbols[Symbols::Tokens] = tokens;
  shape.symbols[Symbols::Segments] = batch.segment_count;
  std::vector<SegmentRows> segments;
  for (int64_t i = 0; i < batch.segment_count; ++i) {
    segments.push_back({batch.segments[i].length, 0, 0});
    shape.symbols[Symbols::Longest] =
        std::max(shape.symbols[Symbols::Longest], batch.segments[i].length);
  }
  HYB_TRY(placeInputs(tokens, batch.segment_count, entry));
  HYB_TRY(makeRoom(losses, tokens * kElementBytes));
  fillSegmentTables(segments,
                    inputs.hostAt<int32_t>(places.offset[SegmentTable]),
                    inputs.hostAt<int32_t>(places.offset[TokenSegment]));
  std::copy_n(batch.ids, tokens, inputs.hostAt<int32_t>(places.offset[Ids]));
  std::copy_n(batch.labels, tokens,
              inputs.hostAt<int32_t>(places.offset[Labels]));
  if (entry->readsTokensById)
    fillTokensById(batch, owner->meta().vocabulary, idPlaces,
                   inputs.hostAt<int32_t>(places.offset[TokensById]));
  float *weights = inputs.hostAt<float>(places.offset[Weights]);
  if (batch.weights)
    std::copy_n(batch.weights, tokens, weights);
  else
    std::fill_n(weights, tokens, 1.0f);
  auto *key = inputs.hostAt<uint32_t>(places.offset[RandomKeys]);
  for (uint32_t index : entry->randomKeys) {
    *key = seed.keyOf(entry->buffers[index].path);
    key += kRandomKeyStride / kElementBytes;
  }
  if (tokens > 0) {
    Bindings bindings;
    bindings.gradients = gradients;
    HYB_TRY(runner->upload(inputs, places.bytes));
    HYB_TRY(run(*entry, shape, std::move(bindings)));
    HYB_TRY(runner->download(losses, tokens * kElementBytes));
    HYB_TRY(runner->finish());
  }
  *result = losses.hostAt<float>(0);
  return Status();
}

Status Context::loss(const hyb_batch &batch, const float **result) {
  return runWholeSequences(batch, "loss", nullptr, CallSeed(), result);
}

Status Context::backward(const hyb_batch &batch, void *gradients, CallSeed seed,
                         const float **result) {
  return runWholeSequences(batch, "backward", gradients, seed, result);
}

Result<const Context::SequenceTables *>
Context::tablesFor(const int64_t *lengths, int64_t segments, int64_t tokens) {
  std::vector<int64_t> wanted(lengths, lengths + segments);
  for (const auto &tables : sequenceTables)
    if (tables->lengths == wanted)
      return tables.get();
  auto tables = std::make_unique<SequenceTables>();
  constexpr int64_t kAlignment = kArenaAlignment;
  tables->tokenOffset =
      (4 * segments * kElementBytes + kAlignment - 1) / kAlignment * kAlignment;
  int64_t bytes = tables->tokenOffset + tokens * kElementBytes;
  HYB_ASSIGN(tables->memory, owner->device().allocateStaged(bytes));
  std::vector<SegmentRows> rows;
  for (int64_t i = 0; i < segments; ++i)
    rows.push_back({wanted[static_cast<size_t>(i)], i, 0});
  fillSegmentTables(rows, tables->memory.hostAt<int32_t>(0),
                    tables->memory.hostAt<int32_t>(tables->tokenOffset));
  HYB_TRY(runner->upload(tables->memory, bytes));
  tables->lengths = std::move(wanted);
  if (sequenceTables.size() == kMaxInstances) {
    HYB_TRY(runner->finish());
    sequenceTables.erase(sequenceTables.begin());
  }
  sequenceTables.push_back(std::move(tables));
  return sequenceTables.back().get();
}

Status Context::call(const std::string &entryName,
                     const hyb_argument *arguments, int64_t count,
                     const int64_t *lengths, int64_t segments) {
  HYB_ASSIGN(const PlanEntry *entry, owner->entry(entryName));
  HYB_TRY(checkFunction(*entry));
  CallShape shape;
  HYB_ASSIGN(shape.symbols, describeCall(lengths, segments));
  Bindings bindings;
  HYB_ASSIGN(
      bindings.arguments,
      checkArguments(*entry, shape.symbols, owner->device(), arguments, count));
  HYB_ASSIGN(const SequenceTables *tables,
             tablesFor(lengths, segments, shape.symbols[Symbols::Tokens]));
  bindings.segmentTable = tables->memory.deviceAt(0);
  bindings.tokenSegment = tables->memory.deviceAt(tables->tokenOffset);
  if (poison)
    HYB_TRY(poisonOutputs(*entry, shape.symbols, bindings.arguments));
  HYB_TRY(run(*entry, shape, std::move(bindings)));
  return sharesStream ? Status() : runner->finish();
}

/// What no launch writes is then found by its NaN, as in the arena.
Status Context::poisonOutputs(const PlanEntry &entry, const Symbols &symbols,
                              const std::vector<void *> &addresses) {
  for (size_t i = 0; i < addresses.size(); ++i) {
    const PlanBuffer &buffer = entry.buffers[entry.arguments[i]];
    if (buffer.kind != BufferKind::Output)
      continue;
    HYB_ASSIGN(std::vector<int64_t> sizes, shapeOf(buffer, symbols));
    int64_t bytes = elementBytes(buffer.type);
    for (int64_t size : sizes)
      bytes *= size;
    // Whole words: an odd element of two bytes is left.
    HYB_TRY(runner->fill(addresses[i], bytes / kElementBytes * kElementBytes,
                         kNotANumber));
  }
  return Status();
}

Status Context::update(void *gradients, void *moment1, void *moment2,
                       float *values) {
  constexpr int64_t kScalars = 16, kBytes = kScalars * kElementBytes;
  HYB_ASSIGN(const PlanEntry *entry, owner->entry("update"));
  HYB_TRY(makeRoom(scalars, kBytes));
  std::copy_n(values, kScalars, scalars.hostAt<float>(0));
  HYB_TRY(runner->upload(scalars, kBytes));
  Bindings bindings;
  bindings.gradients = gradients;
  bindings.moment1 = moment1;
  bindings.moment2 = moment2;
  HYB_TRY(run(*entry, CallShape(), std::move(bindings)));
  HYB_TRY(runner->download(scalars, kBytes));
  HYB_TRY(runner->finish());
  std::copy_n(scalars.hostAt<float>(0), kScalars, values);
  return Status();
}

} // namespace hyb::rt
