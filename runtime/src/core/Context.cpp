//===- Context.cpp - memory and launch lists of calls --------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/Context.h"

#include "core/ArenaLayout.h"
#include "core/FiniteCheck.h"

#include <algorithm>

namespace hyb::rt {

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

Status Context::placeInputs(int64_t tokens, int64_t segments,
                            const PlanEntry *whole) {
  int64_t elements[InputCount] = {};
  elements[Ids] = elements[TokenSegment] = tokens;
  elements[SegmentTable] = 4 * segments;
  if (whole) {
    elements[Labels] = elements[Weights] = tokens;
    if (whole->readsTokensById)
      elements[TokensById] = tokens * kTokensByIdColumns;
    elements[RandomKeys] = static_cast<int64_t>(whole->randomKeys.size()) *
                           kRandomKeyStride / kElementBytes;
  }
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
  bindings.tokensById = inputs.deviceAt(places.offset[TokensById]);
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
  if (entry.readsTokensById &&
      shape.symbols[Symbols::Tokens] * kTokensByIdColumns * kElementBytes >
          places.offset[RandomKeys] - places.offset[TokensById])
    return failure(HYB_INVALID_FILE,
                   "entry '%s' takes tokens in the order of their ids, which "
                   "whole sequences alone are given; compile the spec again",
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

} // namespace hyb::rt
