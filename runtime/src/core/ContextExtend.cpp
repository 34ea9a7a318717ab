//===- ContextExtend.cpp - calls that extend a state ---------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/Context.h"
#include "core/State.h"

#include <algorithm>

namespace hyb::rt {

Status Context::runExtend(State &state,
                          const std::vector<SegmentRows> &segments,
                          int64_t tokens, const PlanEntry &entry,
                          bool download) {
  CallShape shape;
  Symbols &symbols = shape.symbols;
  symbols[Symbols::Tokens] = tokens;
  symbols[Symbols::Segments] = static_cast<int64_t>(segments.size());
  for (const SegmentRows &segment : segments)
    symbols[Symbols::Longest] =
        std::max(symbols[Symbols::Longest], segment.length);
  state.describe(shape);
  int64_t rows = entry.name == "extend" ? symbols[Symbols::Segments] : tokens;
  int64_t logitBytes = rows * owner->meta().vocabulary * kElementBytes;
  if (logits.isLent())
    logits = StagedMemory();
  HYB_TRY(makeRoom(logits, logitBytes));
  fillSegmentTables(segments,
                    inputs.hostAt<int32_t>(places.offset[SegmentTable]),
                    inputs.hostAt<int32_t>(places.offset[TokenSegment]));
  HYB_TRY(runner->upload(inputs, places.bytes));
  Bindings bindings;
  bindings.states = state.buffers();
  HYB_TRY(run(entry, shape, std::move(bindings)));
  if (download)
    HYB_TRY(runner->download(logits, logitBytes));
  return runner->finish();
}

/// Runs one round and moves the state. One that ends at a number that is not
/// finite leaves it where it was.
Status Context::runRound(State &state, const std::vector<SegmentRows> &segments,
                         int64_t tokens, const PlanEntry &entry,
                         bool download) {
  HYB_TRY(state.remember(segments));
  std::vector<DeviceMemory> kept;
  if (checksFinite) {
    HYB_ASSIGN(kept, state.keep(segments));
  }
  Status status = runExtend(state, segments, tokens, entry, download);
  if (status.code() == HYB_NOT_FINITE)
    HYB_TRY(state.putBack(segments, kept));
  HYB_TRY(status);
  state.advance(segments, inputs.hostAt<int32_t>(places.offset[Ids]));
  return Status();
}

namespace {

/// The first row of every segment of a batch.
std::vector<int64_t> startsOf(const hyb_batch &batch) {
  std::vector<int64_t> starts(static_cast<size_t>(batch.segment_count));
  for (int64_t i = 0, start = 0; i < batch.segment_count; ++i) {
    starts[static_cast<size_t>(i)] = start;
    start += batch.segments[i].length;
  }
  return starts;
}

} // namespace

/// Of every segment that is not finished after `done` of its tokens, at most a
/// chunk more.
struct Context::Round {
  std::vector<SegmentRows> segments;
  std::vector<int64_t> origins; // index of the segment in the batch
  int64_t done, tokens = 0;

  Round(const State &state, const hyb_batch &batch, int64_t done) : done(done) {
    for (int64_t i = 0; i < batch.segment_count; ++i) {
      const hyb_segment &segment = batch.segments[i];
      if (segment.length <= done)
        continue;
      int64_t length = std::min(state.chunk(), segment.length - done);
      segments.push_back({length, segment.slot, state.length(segment.slot)});
      origins.push_back(i);
      tokens += length;
    }
  }

  /// The row of the batch that segment `k` of the round goes on with.
  int64_t rowOf(size_t k, const std::vector<int64_t> &starts) const {
    return starts[static_cast<size_t>(origins[k])] + done;
  }
};

Status Context::extend(State &state, const hyb_batch &batch, hyb_logits which,
                       const float **result) {
  return extendTo(state, batch, which, {result, nullptr});
}

Status Context::extendOnDevice(State &state, const hyb_batch &batch,
                               hyb_logits which, DeviceMemory *result) {
  return extendTo(state, batch, which, {nullptr, result});
}

/// Copies the logits of a round to where the batch has their rows.
Status Context::gatherRows(const Round &round,
                           const std::vector<int64_t> &starts, bool all,
                           const DeviceMemory &onDevice) {
  int64_t vocabulary = owner->meta().vocabulary, row = 0;
  for (size_t k = 0; k < round.segments.size(); ++k) {
    int64_t count = (all ? round.segments[k].length : 1) * vocabulary;
    int64_t place =
        vocabulary * (all ? round.rowOf(k, starts) : round.origins[k]);
    if (onDevice.data())
      HYB_TRY(owner->device().copy(
          static_cast<float *>(onDevice.data()) + place,
          logits.deviceAt(row * kElementBytes), count * kElementBytes));
    else
      std::copy_n(logits.hostAt<float>(row * kElementBytes), count,
                  gathered.floats() + place);
    row += count;
  }
  return Status();
}

// Segments longer than the state's chunk take several rounds; in each, every
// unfinished segment advances by at most a chunk.
Status Context::extendTo(State &state, const hyb_batch &batch, hyb_logits which,
                         LogitsTarget target) {
  int64_t vocabulary = owner->meta().vocabulary;
  HYB_TRY(checkBatch(batch, vocabulary));
  HYB_TRY(state.checkOwner(*owner));
  HYB_TRY(state.checkExtend(batch));
  bool all = which == HYB_LOGITS_ALL;
  HYB_ASSIGN(const PlanEntry *entry,
             owner->entry(all ? "extend_all" : "extend"));
  std::vector<int64_t> starts = startsOf(batch);
  Round round(state, batch, 0);
  // One round that has every row leaves them where they belong.
  bool gathers = round.tokens < batch.tokens ||
                 (!all && round.segments.size() < starts.size()) ||
                 batch.tokens == 0;
  int64_t elements = (all ? batch.tokens : batch.segment_count) * vocabulary;
  DeviceMemory onDevice;
  // Then the caller gets the memory that they are in, and the next call other
  // memory if the caller still has it.
  bool lends = target.device && !gathers;
  if (target.device && !lends) {
    HYB_ASSIGN(onDevice, owner->device().allocate(elements * kElementBytes));
  } else if (gathers) {
    HYB_TRY(clearGathered(elements));
  }
  while (!round.segments.empty()) {
    HYB_TRY(
        placeInputs(round.tokens, static_cast<int64_t>(round.segments.size())));
    int32_t *ids = inputs.hostAt<int32_t>(places.offset[Ids]);
    for (size_t k = 0; k < round.segments.size(); ++k)
      ids = std::copy_n(batch.ids + round.rowOf(k, starts),
                        round.segments[k].length, ids);
    HYB_TRY(runRound(state, round.segments, round.tokens, *entry,
                     /*download=*/!target.device));
    if (gathers)
      HYB_TRY(gatherRows(round, starts, all, onDevice));
    round = Round(state, batch, round.done + state.chunk());
  }
  if (lends)
    *target.device = DeviceMemory(logits.device.share(), logits.device.data(),
                                  elements * kElementBytes);
  else if (target.device)
    *target.device = std::move(onDevice);
  else
    *target.host = gathers ? gathered.floats() : logits.hostAt<float>(0);
  return Status();
}

/// Rows of empty segments are 0 and no launch writes them.
Status Context::clearGathered(int64_t elements) {
  int64_t bytes;
  if (__builtin_mul_overflow(elements, kElementBytes, &bytes))
    return failure(HYB_OUT_OF_MEMORY, "a buffer of %lld elements is too large",
                   static_cast<long long>(elements));
  if (bytes > gathered.bytes()) {
    HYB_ASSIGN(gathered, Memory::allocate(bytes));
  }
  std::fill_n(gathered.floats(), elements, 0.0f);
  return Status();
}

} // namespace hyb::rt
