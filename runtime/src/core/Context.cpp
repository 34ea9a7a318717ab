//===- Context.cpp -------------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/Context.h"

#include "core/ArenaLayout.h"
#include "core/FiniteCheck.h"
#include "core/State.h"

#include <algorithm>

namespace hyb::rt {

namespace {
/// Shapes remembered per context: prefill, its remainder, decode, training.
constexpr size_t kMaxInstances = 8;
/// The bits of a float that is not a number.
/// As f32, and in either half as bf16 and f16.
constexpr uint32_t kNotANumber = 0x7fc07fc0;
} // namespace

Result<std::unique_ptr<Context>>
Context::create(Model &model, const hyb_context_options &options) {
  if (options.poison && options.check_finite)
    return failure(HYB_INVALID_ARGUMENT,
                   "poison is %d and check_finite is %d; memory that nobody "
                   "writes would be found, so ask for one of them",
                   options.poison, options.check_finite);
  std::unique_ptr<Context> context(new Context());
  context->owner = &model;
  context->poison = options.poison != 0;
  context->checksFinite = options.check_finite != 0;
  context->sharesStream = options.use_stream != 0;
  QueueOptions wanted;
  wanted.checkEachLaunch = context->poison;
  wanted.prepare = options.launch_one_by_one == 0;
  wanted.useStream = options.use_stream != 0;
  wanted.stream = options.stream;
  HYB_ASSIGN(context->runner, model.device().createQueue(wanted));
  return context;
}

Context::~Context() {
  if (runner)
    (void)runner->finish();
}

int64_t Context::memoryBytes() const {
  return arena.bytes() + runner->bytes() + inputs.bytes() + losses.bytes() +
         logits.bytes() + scalars.bytes() + gathered.bytes();
}

Status Context::makeRoom(StagedMemory &memory, int64_t bytes) {
  if (bytes > memory.bytes()) {
    memory = StagedMemory(); // the old and the new need not fit together
    HYB_ASSIGN(memory, owner->device().allocateStaged(bytes));
  }
  return Status();
}

Status Context::placeInputs(int64_t tokens, int64_t segments, bool withLabels,
                            int64_t randomKeys) {
  int64_t elements[InputCount] = {tokens,
                                  withLabels ? tokens : 0,
                                  withLabels ? tokens : 0,
                                  4 * segments,
                                  tokens,
                                  randomKeys * kRandomKeyStride /
                                      kElementBytes};
  places = InputPlaces();
  for (size_t i = 0; i < InputCount; ++i) {
    places.offset[i] = places.bytes;
    constexpr int64_t kAlignment = kArenaAlignment;
    places.bytes += (elements[i] * kElementBytes + kAlignment - 1) /
                    kAlignment * kAlignment;
  }
  return makeRoom(inputs, places.bytes);
}

void Context::bindBuffers(Bindings &bindings) const {
  bindings.arena = arena.data();
  bindings.parameters = owner->boundParameters(sawMasters);
  bindings.parameterCopies = owner->parameterCopies();
  bindings.constants = owner->constants();
  bindings.ids = inputs.deviceAt(places.offset[Ids]);
  bindings.labels = inputs.deviceAt(places.offset[Labels]);
  bindings.weights = inputs.deviceAt(places.offset[Weights]);
  if (!bindings.segmentTable) {
    bindings.segmentTable = inputs.deviceAt(places.offset[SegmentTable]);
    bindings.tokenSegment = inputs.deviceAt(places.offset[TokenSegment]);
  }
  bindings.randomKeys = inputs.deviceAt(places.offset[RandomKeys]);
  bindings.loss = losses.device.data();
  bindings.logits = logits.device.data();
  bindings.scalars = scalars.device.data();
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
             PlanInstance::create(owner->planTables(sawMasters), entry, shape));
  if (instances.size() == kMaxInstances) {
    HYB_TRY(runner->finish());
    instances.erase(instances.begin());
  }
  instances.push_back(std::make_unique<PlanInstance>(std::move(made)));
  return instances.back().get();
}

Status Context::reserve(const std::string &entryName, const CallShape &shape) {
  HYB_ASSIGN(const PlanEntry *entry, owner->entry(entryName));
  return prepare(*entry, shape).status();
}

/// The launch list of a call, with everything that it needs to run.
Result<PlanInstance *> Context::prepare(const PlanEntry &entry,
                                        const CallShape &shape) {
  // Parameters are elsewhere from the first optimiser on, which another thread
  // may make at any time: one look is for the whole call.
  bool masters = owner->holdsMasters();
  if (masters != sawMasters) {
    HYB_TRY(runner->finish());
    instances.clear();
    sawMasters = masters;
  }
  HYB_ASSIGN(PlanInstance * instance, instanceFor(entry, shape));
  if (instance->arenaBytes() > arena.bytes()) {
    HYB_TRY(runner->finish());
    arena = DeviceMemory();
    HYB_ASSIGN(arena, owner->device().allocate(instance->arenaBytes(),
                                               Contents::Anything));
  }
  HYB_TRY(runner->reserve(*instance));
  return instance;
}

/// Entries read the parameters' copies in the compute type; what changes the
/// parameters other than `update`, which writes both, makes them stale.
Status Context::refreshCopies(const PlanEntry &entry) {
  if (!owner->parameterCopies() || !owner->holdsMasters() ||
      entry.name == kCopyEntry)
    return Status();
  std::unique_lock<std::mutex> lock = owner->lockCopies();
  if (!owner->copiesAreStale())
    return Status();
  HYB_ASSIGN(const PlanEntry *copy, owner->entry(kCopyEntry));
  HYB_TRY(run(*copy, CallShape(), Bindings()));
  HYB_TRY(runner->finish());
  owner->copiesAreFresh();
  return Status();
}

Status Context::run(const PlanEntry &entry, const CallShape &shape,
                    Bindings bindings) {
  HYB_TRY(refreshCopies(entry));
  HYB_ASSIGN(PlanInstance * instance, prepare(entry, shape));
  if (bindings.arguments.size() != entry.arguments.size())
    return failure(HYB_UNSUPPORTED,
                   "entry '%s' takes %zu named tensors; call it with hyb_call",
                   entry.name.c_str(), entry.arguments.size());
  if (static_cast<int64_t>(entry.randomKeys.size()) * kRandomKeyStride >
      places.bytes - places.offset[RandomKeys])
    return failure(HYB_INVALID_FILE,
                   "entry '%s' takes random keys, which whole sequences alone "
                   "are given; compile the spec again",
                   entry.name.c_str());
  if (poison)
    HYB_TRY(runner->fill(arena.data(), arena.bytes(), kNotANumber));
  bindBuffers(bindings);
  instance->bind(std::move(bindings));
  if (watcher || checksFinite)
    return runOneByOne(*instance);
  if (!profiling && !trace)
    return runner->run(*instance, nullptr);
  LaunchTimes times;
  HYB_TRY(runner->run(*instance, &times));
  // States have moved: running out of memory costs the measurement alone.
  try {
    if (profiling)
      recordProfile(*instance, times.nanoseconds);
    if (trace)
      trace->add(*instance, times);
  } catch (const std::bad_alloc &) {
  }
  return Status();
}

/// A launch is looked at when it has run, and before the next one begins.
Status Context::runOneByOne(PlanInstance &instance) {
  // What a workspace holds where no kernel writes is not to be found.
  if (checksFinite)
    HYB_TRY(runner->fill(arena.data(), arena.bytes(), 0));
  for (size_t i = 0; i < instance.launches().size(); ++i) {
    if (checksFinite) {
      HYB_ASSIGN(LaunchViews before,
                 LaunchViews::of(owner->device(), instance, i));
      HYB_TRY(checkGiven(instance, i, before));
    }
    HYB_TRY(runner->runOne(instance, i));
    HYB_ASSIGN(LaunchViews after,
               LaunchViews::of(owner->device(), instance, i));
    if (checksFinite)
      HYB_TRY(checkMade(instance, i, after));
    if (watcher)
      showLaunch(instance, i, after);
  }
  return Status();
}

void Context::showLaunch(const PlanInstance &instance, size_t launch,
                         const LaunchViews &views) const {
  const PlanEntry &entry = instance.entry();
  const PlanLaunch &origin = instance.origin(launch);
  hyb_launch shown = {sizeof(hyb_launch),
                      entry.name.c_str(),
                      &origin - entry.launches.data(),
                      origin.layer,
                      origin.op.c_str(),
                      instance.workerName(launch).c_str(),
                      views.views.data(),
                      static_cast<int64_t>(views.views.size())};
  watcher(watcherUser, &shown);
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

/// Of every segment that is not finished after `done` of its tokens, at most a
/// chunk more.
struct Round {
  std::vector<SegmentRows> segments;
  std::vector<int64_t> origins; // index of the segment in the batch
  int64_t tokens = 0;

  Round(const State &state, const hyb_batch &batch, int64_t done) {
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
};

} // namespace

Status Context::extend(State &state, const hyb_batch &batch, hyb_logits which,
                       const float **result) {
  return extendTo(state, batch, which, {result, nullptr});
}

Status Context::extendOnDevice(State &state, const hyb_batch &batch,
                               hyb_logits which, DeviceMemory *result) {
  return extendTo(state, batch, which, {nullptr, result});
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
  std::vector<int64_t> starts(static_cast<size_t>(batch.segment_count));
  for (int64_t i = 0, start = 0; i < batch.segment_count; ++i) {
    starts[static_cast<size_t>(i)] = start;
    start += batch.segments[i].length;
  }
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
  for (int64_t done = 0; !round.segments.empty();) {
    HYB_TRY(placeInputs(round.tokens,
                        static_cast<int64_t>(round.segments.size()), false));
    int32_t *ids = inputs.hostAt<int32_t>(places.offset[Ids]);
    for (size_t k = 0; k < round.segments.size(); ++k)
      ids = std::copy_n(
          batch.ids + starts[static_cast<size_t>(round.origins[k])] + done,
          round.segments[k].length, ids);
    HYB_TRY(runRound(state, round.segments, round.tokens, *entry,
                     /*download=*/!target.device));
    int64_t row = 0;
    for (size_t k = 0; k < round.segments.size(); ++k) {
      int64_t origin = round.origins[k];
      int64_t count = (all ? round.segments[k].length : 1) * vocabulary;
      int64_t place =
          vocabulary *
          (all ? starts[static_cast<size_t>(origin)] + done : origin);
      if (onDevice.data())
        HYB_TRY(owner->device().copy(
            static_cast<float *>(onDevice.data()) + place,
            logits.deviceAt(row * kElementBytes), count * kElementBytes));
      else if (gathers)
        std::copy_n(logits.hostAt<float>(row * kElementBytes), count,
                    gathered.floats() + place);
      row += count;
    }
    done += state.chunk();
    round = Round(state, batch, done);
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
  HYB_TRY(placeInputs(tokens, batch.segment_count, /*withLabels=*/true,
                      static_cast<int64_t>(entry->randomKeys.size())));
  HYB_TRY(makeRoom(losses, tokens * kElementBytes));
  fillSegmentTables(segments,
                    inputs.hostAt<int32_t>(places.offset[SegmentTable]),
                    inputs.hostAt<int32_t>(places.offset[TokenSegment]));
  std::copy_n(batch.ids, tokens, inputs.hostAt<int32_t>(places.offset[Ids]));
  std::copy_n(batch.labels, tokens,
              inputs.hostAt<int32_t>(places.offset[Labels]));
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
