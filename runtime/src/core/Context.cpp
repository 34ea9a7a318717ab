//===- Context.cpp -------------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/Context.h"

#include "core/State.h"

#include <algorithm>
#include <limits>

namespace hyb::rt {

namespace {
/// Shapes remembered per context: prefill, its remainder, decode, training.
constexpr size_t kMaxInstances = 8;
} // namespace

int64_t Context::memoryBytes() const {
  int64_t sum = arena.bytes() + runner.bytes();
  for (const Memory &buffer : buffers)
    sum += buffer.bytes();
  return sum;
}

Status Context::makeRoom(Role role, int64_t elements) {
  int64_t bytes;
  if (__builtin_mul_overflow(elements, kElementBytes, &bytes))
    return failure(HYB_OUT_OF_MEMORY, "a buffer of %lld elements is too large",
                   static_cast<long long>(elements));
  if (bytes > buffers[role].bytes()) {
    HYB_ASSIGN(buffers[role], Memory::allocate(bytes));
  }
  return Status();
}

void Context::bindBuffers(Bindings &bindings) const {
  bindings.arena = arena.data();
  bindings.parameters = owner->parameters();
  bindings.ids = buffers[Ids].data();
  bindings.labels = buffers[Labels].data();
  bindings.weights = buffers[Weights].data();
  bindings.segmentTable = buffers[SegmentTable].data();
  bindings.tokenSegment = buffers[TokenSegment].data();
  bindings.loss = buffers[Loss].data();
  bindings.logits = buffers[Logits].data();
  bindings.scalars = buffers[Scalars].data();
}

Result<PlanInstance *> Context::instanceFor(const PlanEntry &entry,
                                            const CallShape &shape) {
  for (size_t i = instances.size(); i-- > 0;)
    if (&instances[i]->entry() == &entry && instances[i]->shape() == shape) {
      std::rotate(instances.begin() + static_cast<ptrdiff_t>(i),
                  instances.begin() + static_cast<ptrdiff_t>(i) + 1,
                  instances.end());
      return instances.back().get();
    }
  HYB_ASSIGN(PlanInstance made,
             PlanInstance::create(owner->planTables(), entry, shape));
  if (instances.size() == kMaxInstances)
    instances.erase(instances.begin());
  instances.push_back(std::make_unique<PlanInstance>(std::move(made)));
  return instances.back().get();
}

Status Context::reserve(const std::string &entryName, const CallShape &shape) {
  HYB_ASSIGN(const PlanEntry *entry, owner->entry(entryName));
  HYB_ASSIGN(PlanInstance * instance, instanceFor(*entry, shape));
  if (instance->arenaBytes() > arena.bytes()) {
    HYB_ASSIGN(arena, Memory::allocate(instance->arenaBytes()));
  }
  return runner.reserve(instance->launches().size(), instance->scratchBytes());
}

Status Context::run(const PlanEntry &entry, const CallShape &shape,
                    Bindings bindings) {
  HYB_TRY(reserve(entry.name, shape));
  HYB_ASSIGN(PlanInstance * instance, instanceFor(entry, shape));
  if (poison)
    std::fill_n(arena.floats(), arena.bytes() / kElementBytes,
                std::numeric_limits<float>::quiet_NaN());
  bindBuffers(bindings);
  instance->bind(bindings);
  const std::vector<Launch> &launches = instance->launches();
  if (!profiling) {
    runner.run(launches.data(), launches.size());
    return Status();
  }
  std::vector<int64_t> nanoseconds(launches.size());
  runner.run(launches.data(), launches.size(), nanoseconds.data());
  recordProfile(*instance, nanoseconds);
  return Status();
}

void Context::recordProfile(const PlanInstance &instance,
                            const std::vector<int64_t> &nanoseconds) {
  const PlanEntry &entry = instance.entry();
  Profile &record = profile[entry.name];
  record.nanoseconds.resize(entry.launches.size());
  for (size_t i = 0; i < nanoseconds.size(); ++i) {
    size_t launch =
        static_cast<size_t>(&instance.origin(i) - entry.launches.data());
    record.nanoseconds[launch] += nanoseconds[i];
  }
  ++record.calls;
}

Status Context::runExtend(State &state,
                          const std::vector<SegmentRows> &segments,
                          int64_t tokens, const PlanEntry &entry) {
  CallShape shape;
  Symbols &symbols = shape.symbols;
  symbols[Symbols::Tokens] = tokens;
  symbols[Symbols::Segments] = static_cast<int64_t>(segments.size());
  for (const SegmentRows &segment : segments)
    symbols[Symbols::Longest] =
        std::max(symbols[Symbols::Longest], segment.length);
  state.describe(shape);
  int64_t rows = entry.name == "extend" ? symbols[Symbols::Segments] : tokens;
  HYB_TRY(makeRoom(SegmentTable, 4 * symbols[Symbols::Segments]));
  HYB_TRY(makeRoom(TokenSegment, tokens));
  HYB_TRY(makeRoom(Logits, rows * owner->meta().vocabulary));
  fillSegmentTables(segments, buffers[SegmentTable].integers(),
                    buffers[TokenSegment].integers());
  Bindings bindings;
  bindings.states = &state.buffers();
  return run(entry, shape, bindings);
}

// Segments longer than the state's chunk take several rounds; in each, every
// unfinished segment advances by at most a chunk.
Status Context::extend(State &state, const hyb_batch &batch, hyb_logits which,
                       const float **logits) {
  int64_t vocabulary = owner->meta().vocabulary;
  HYB_TRY(checkBatch(batch, vocabulary));
  HYB_TRY(state.checkExtend(batch));
  HYB_ASSIGN(const PlanEntry *entry,
             owner->entry(which == HYB_LOGITS_ALL ? "extend_all" : "extend"));
  int64_t rows = which == HYB_LOGITS_ALL ? batch.tokens : batch.segment_count;
  HYB_TRY(makeRoom(Gathered, rows * vocabulary));
  float *gathered = buffers[Gathered].floats();
  // Rows of empty segments are 0 and no launch writes them.
  std::fill_n(gathered, rows * vocabulary, 0.0f);

  std::vector<int64_t> starts(static_cast<size_t>(batch.segment_count));
  for (int64_t i = 0, start = 0; i < batch.segment_count; ++i) {
    starts[static_cast<size_t>(i)] = start;
    start += batch.segments[i].length;
  }
  for (int64_t done = 0;; done += state.chunk()) {
    std::vector<SegmentRows> segments;
    std::vector<int64_t> origins;
    int64_t tokens = 0;
    for (int64_t i = 0; i < batch.segment_count; ++i) {
      const hyb_segment &segment = batch.segments[i];
      if (segment.length <= done)
        continue;
      int64_t length = std::min(state.chunk(), segment.length - done);
      segments.push_back({length, segment.slot, state.length(segment.slot)});
      origins.push_back(i);
      tokens += length;
    }
    if (segments.empty())
      break;
    HYB_TRY(makeRoom(Ids, tokens));
    int32_t *ids = buffers[Ids].integers();
    for (size_t k = 0; k < segments.size(); ++k) {
      const int32_t *source =
          batch.ids + starts[static_cast<size_t>(origins[k])] + done;
      ids = std::copy_n(source, segments[k].length, ids);
    }
    HYB_TRY(state.remember(segments));
    HYB_TRY(runExtend(state, segments, tokens, *entry));
    state.advance(segments, buffers[Ids].integers());

    const float *row = buffers[Logits].floats();
    for (size_t k = 0; k < segments.size(); ++k) {
      int64_t count = which == HYB_LOGITS_ALL ? segments[k].length : 1;
      int64_t target = which == HYB_LOGITS_ALL
                           ? starts[static_cast<size_t>(origins[k])] + done
                           : origins[k];
      std::copy_n(row, count * vocabulary, gathered + target * vocabulary);
      row += count * vocabulary;
    }
  }
  *logits = gathered;
  return Status();
}

Status Context::runWholeSequences(const hyb_batch &batch, const char *entryName,
                                  float *gradients, const float **losses) {
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
  for (Role role : {Ids, Labels, Weights, TokenSegment, Loss})
    HYB_TRY(makeRoom(role, tokens));
  HYB_TRY(makeRoom(SegmentTable, 4 * batch.segment_count));
  fillSegmentTables(segments, buffers[SegmentTable].integers(),
                    buffers[TokenSegment].integers());
  std::copy_n(batch.ids, tokens, buffers[Ids].integers());
  std::copy_n(batch.labels, tokens, buffers[Labels].integers());
  if (batch.weights)
    std::copy_n(batch.weights, tokens, buffers[Weights].floats());
  else
    std::fill_n(buffers[Weights].floats(), tokens, 1.0f);
  if (tokens > 0) {
    Bindings bindings;
    bindings.gradients = gradients;
    HYB_TRY(run(*entry, shape, bindings));
  }
  *losses = buffers[Loss].floats();
  return Status();
}

Status Context::loss(const hyb_batch &batch, const float **losses) {
  return runWholeSequences(batch, "loss", nullptr, losses);
}

Status Context::backward(const hyb_batch &batch, float *gradients,
                         const float **losses) {
  return runWholeSequences(batch, "backward", gradients, losses);
}

Status Context::update(float *gradients, float *moment1, float *moment2,
                       float *scalars) {
  HYB_ASSIGN(const PlanEntry *entry, owner->entry("update"));
  HYB_TRY(makeRoom(Scalars, 16));
  std::copy_n(scalars, 16, buffers[Scalars].floats());
  Bindings bindings;
  bindings.gradients = gradients;
  bindings.moment1 = moment1;
  bindings.moment2 = moment2;
  HYB_TRY(run(*entry, CallShape(), bindings));
  std::copy_n(buffers[Scalars].floats(), 16, scalars);
  return Status();
}

} // namespace hyb::rt
