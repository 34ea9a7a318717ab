//===- Context.h - Memory and launch lists of the calls of a model -------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CORE_CONTEXT_H
#define HYBRID_RUNTIME_CORE_CONTEXT_H

#include "core/Arguments.h"
#include "core/Batch.h"
#include "core/Memory.h"
#include "core/Model.h"
#include "core/Random.h"
#include "core/Trace.h"

#include <map>

namespace hyb::rt {

class State;
struct LaunchViews;

class Context {
public:
  static Result<std::unique_ptr<Context>>
  create(Model &model, const hyb_context_options &options);

  /// Waits for the work that still uses its memory.
  ~Context();

  Model &model() const { return *owner; }
  Queue &queue() const { return *runner; }
  int64_t memoryBytes() const;

  /// Appends a batch to a state; `*logits` is valid until the next call.
  Status extend(State &state, const hyb_batch &batch, hyb_logits which,
                const float **logits);
  /// The same with the logits in a new buffer of the device.
  Status extendOnDevice(State &state, const hyb_batch &batch, hyb_logits which,
                        DeviceMemory *logits);
  /// Loss per token, valid until the next call.
  Status loss(const hyb_batch &batch, const float **losses);
  /// Loss per token; gradients are added to `gradients`, a flat buffer of the
  /// device. What training leaves out at random follows from `seed`.
  Status backward(const hyb_batch &batch, void *gradients, CallSeed seed,
                  const float **losses);
  /// The optimiser step over flat buffers of the device; `scalars` is f32 [16]
  /// of the host.
  Status update(void *gradients, void *moment1, void *moment2, float *scalars);

  /// Runs a function on sequences of these lengths. With a stream of the
  /// caller's the work need not have happened when it returns.
  Status call(const std::string &entry, const hyb_argument *arguments,
              int64_t count, const int64_t *lengths, int64_t segments);

  /// Makes room for calls up to this one, so that none of them allocates.
  Status reserve(const std::string &entry, const CallShape &shape);

  /// Nanoseconds per launch of an entry's plan, summed since profiling began.
  struct Profile {
    std::vector<int64_t> nanoseconds;
    int64_t calls = 0;
  };
  /// Forgets what was recorded before.
  void startProfile() {
    profiling = true;
    profile.clear();
  }
  using Profiles = std::map<std::string, Profile>;
  const Profiles &profiles() const { return profile; }
  /// From now on records when every launch ran; null stops.
  void traceTo(Trace *target) { trace = target; }

  /// Calls `callback`, unless null, after every launch.
  void watch(hyb_launch_callback callback, void *user) {
    watcher = callback;
    watcherUser = user;
  }

private:
  /// Shapes remembered per context: prefill, its remainder, decode, training.
  static constexpr size_t kMaxInstances = 8;
  /// The bits of a number that is none: as f32, and in either half as bf16 and
  /// f16.
  static constexpr uint32_t kNotANumber = 0x7fc07fc0;

  /// What a call gives to kernels. All of it is one block, so that it travels
  /// in one copy, with places that depend on the shape of the call alone.
  enum Input {
    Ids,
    Labels,
    Weights,
    SegmentTable,
    TokenSegment,
    TokensById,
    RandomKeys,
    InputCount
  };
  struct InputPlaces {
    int64_t offset[InputCount] = {};
    int64_t bytes = 0;
  };

  Context() = default;
  // Memory and launch lists (Context.cpp).
  Status makeRoom(StagedMemory &memory, int64_t bytes);
  /// Places for the inputs of a call; labels, weights and what else an entry
  /// reads only for the `whole` sequences of one.
  Status placeInputs(int64_t tokens, int64_t segments,
                     const PlanEntry *whole = nullptr);
  Status run(const PlanEntry &entry, const CallShape &shape, Bindings bindings);
  Status refreshCopies(const PlanEntry &entry);
  Result<PlanInstance *> prepare(const PlanEntry &entry,
                                 const CallShape &shape);
  Result<PlanInstance *> instanceFor(const PlanEntry &entry,
                                     const CallShape &shape);
  void bindBuffers(Bindings &bindings) const;
  /// For contexts that are watched or check: waits after every launch.
  Status runOneByOne(PlanInstance &instance);
  void showLaunch(const PlanInstance &instance, size_t launch,
                  const LaunchViews &views) const;
  void recordProfile(const PlanInstance &instance,
                     const std::vector<int64_t> &nanoseconds);

  // Extending a state (ContextExtend.cpp).
  struct Round;
  /// Where the rows of a round go: to memory of the host, or of the device.
  struct LogitsTarget {
    const float **host = nullptr;
    DeviceMemory *device = nullptr;
  };
  Status extendTo(State &state, const hyb_batch &batch, hyb_logits which,
                  LogitsTarget target);
  Status runExtend(State &state, const std::vector<SegmentRows> &segments,
                   int64_t tokens, const PlanEntry &entry, bool download);
  Status runRound(State &state, const std::vector<SegmentRows> &segments,
                  int64_t tokens, const PlanEntry &entry, bool download);
  Status clearGathered(int64_t elements);
  Status gatherRows(const Round &round, const std::vector<int64_t> &starts,
                    bool all, const DeviceMemory &onDevice);

  // Whole sequences (ContextCalls.cpp).
  Status runWholeSequences(const hyb_batch &batch, const char *entryName,
                           void *gradients, CallSeed seed,
                           const float **losses);
  /// The segment table of sequences from position 0 on, each in the slot of its
  /// index, and the segment of every token.
  struct SequenceTables {
    std::vector<int64_t> lengths;
    StagedMemory memory;
    int64_t tokenOffset = 0;
  };
  Result<const SequenceTables *> tablesFor(const int64_t *lengths,
                                           int64_t segments, int64_t tokens);
  Status poisonOutputs(const PlanEntry &entry, const Symbols &symbols,
                       const std::vector<void *> &addresses);

  Model *owner = nullptr;
  std::unique_ptr<Queue> runner;
  bool poison = false, checksFinite = false;
  /// Calls of functions return before their work is done.
  bool sharesStream = false;
  DeviceMemory arena;
  StagedMemory inputs, losses, logits, scalars;
  InputPlaces places;
  /// Of `fillTokensById`.
  std::vector<int32_t> idPlaces;
  /// Logits of a call that takes several rounds.
  Memory gathered;
  /// Of calls of functions, in the order in which they were made: a call with
  /// the lengths of an earlier one copies nothing and so waits for nothing.
  std::vector<std::unique_ptr<SequenceTables>> sequenceTables;
  /// The most recently used is last. Gone before the queue that prepared them.
  std::vector<std::unique_ptr<PlanInstance>> instances;
  /// What the model held when they were made.
  bool sawMasters = true;
  bool profiling = false;
  Trace *trace = nullptr;
  Profiles profile;
  hyb_launch_callback watcher = nullptr;
  void *watcherUser = nullptr;
};

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_CORE_CONTEXT_H
