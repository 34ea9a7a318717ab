//===- Context.h - Memory and launch lists of the calls of a model -------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CORE_CONTEXT_H
#define HYBRID_RUNTIME_CORE_CONTEXT_H

#include "core/Batch.h"
#include "core/Memory.h"
#include "core/Model.h"
#include "cpu/LaunchRunner.h"

#include <map>

namespace hyb::rt {

class State;

class Context {
public:
  Context(Model &model, const hyb_context_options &options)
      : owner(&model), runner(model.runtime().threads()),
        poison(options.poison != 0) {}

  Model &model() const { return *owner; }
  int64_t memoryBytes() const;

  /// Appends a batch to a state; `*logits` is valid until the next call.
  Status extend(State &state, const hyb_batch &batch, hyb_logits which,
                const float **logits);
  /// Loss per token, valid until the next call.
  Status loss(const hyb_batch &batch, const float **losses);
  /// Loss per token; gradients are added to `gradients`.
  Status backward(const hyb_batch &batch, float *gradients,
                  const float **losses);
  /// The optimiser step over flat buffers; `scalars` is f32 [16].
  Status update(float *gradients, float *moment1, float *moment2,
                float *scalars);

  /// Makes room for calls up to this one, so that none of them allocates.
  Status reserve(const std::string &entry, const CallShape &shape);

  /// Nanoseconds per launch of an entry's plan, summed since profiling began.
  struct Profile {
    std::vector<int64_t> nanoseconds;
    int64_t calls = 0;
  };
  void startProfile() { profiling = true; }
  const std::map<std::string, Profile> &profiles() const { return profile; }

private:
  /// Input and output buffers, by role.
  enum Role {
    Ids,
    Labels,
    Weights,
    SegmentTable,
    TokenSegment,
    Loss,
    Logits,
    Gathered,
    Scalars,
    RoleCount
  };

  Status runExtend(State &state, const std::vector<SegmentRows> &segments,
                   int64_t tokens, const PlanEntry &entry);
  Status runWholeSequences(const hyb_batch &batch, const char *entryName,
                           float *gradients, const float **losses);
  Status run(const PlanEntry &entry, const CallShape &shape, Bindings bindings);
  Result<PlanInstance *> instanceFor(const PlanEntry &entry,
                                     const CallShape &shape);
  Status makeRoom(Role role, int64_t elements);
  void bindBuffers(Bindings &bindings) const;
  void recordProfile(const PlanInstance &instance,
                     const std::vector<int64_t> &nanoseconds);

  Model *owner;
  LaunchRunner runner;
  bool poison;
  Memory arena;
  Memory buffers[RoleCount];
  /// The most recently used is last.
  std::vector<std::unique_ptr<PlanInstance>> instances;
  bool profiling = false;
  std::map<std::string, Profile> profile;
};

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_CORE_CONTEXT_H
