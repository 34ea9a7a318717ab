//===- OutOfMemoryTest.cpp -----------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every allocation of the C API may fail. Each call is made again and again,
// with its first, second, ... allocation and all that follow it refused, until
// one attempt gets through; what comes out at the end has the bits of a run in
// which nothing was refused. The sanitizer's build of this program shows what
// would leak.
//
//===----------------------------------------------------------------------===//

#include "../TemporaryFolder.h"
#include "../fixture/Batches.h"
#include "../fixture/FixtureModel.h"
#include "hybrid/runtime.h"

#include <cerrno>
#include <cstdlib>
#include <gtest/gtest.h>
#include <new>
#include <sys/mman.h>

using namespace hyb::test;

//===----------------------------------------------------------------------===//
// Refusing allocations of the calling thread
//===----------------------------------------------------------------------===//

namespace {
thread_local int64_t allocationsLeft = -1; // negative: nothing is refused
thread_local bool wasRefused = false;

bool refuses() {
  if (allocationsLeft < 0)
    return false;
  if (allocationsLeft > 0) {
    --allocationsLeft;
    return false;
  }
  return wasRefused = true; // this one and all that follow
}

void *allocate(size_t size, size_t alignment) {
  if (refuses())
    return nullptr;
  return alignment > alignof(std::max_align_t)
             ? std::aligned_alloc(alignment, (size + alignment - 1) /
                                                 alignment * alignment)
             : std::malloc(size ? size : 1);
}

void *orThrow(void *memory) {
  if (!memory)
    throw std::bad_alloc();
  return memory;
}
} // namespace

void *operator new(size_t size) { return orThrow(allocate(size, 1)); }
void *operator new[](size_t size) { return orThrow(allocate(size, 1)); }
void *operator new(size_t size, std::align_val_t alignment) {
  return orThrow(allocate(size, static_cast<size_t>(alignment)));
}
void *operator new(size_t size, const std::nothrow_t &) noexcept {
  return allocate(size, 1);
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete[](void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }
void operator delete[](void *memory, size_t) noexcept { std::free(memory); }
void operator delete(void *memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void *memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}

// The linker leads calls of mmap here.
extern "C" void *__real_mmap(void *, size_t, int, int, int, off_t);
extern "C" void *__wrap_mmap(void *address, size_t size, int protection,
                             int flags, int file, off_t offset) {
  if (refuses()) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return __real_mmap(address, size, protection, flags, file, offset);
}

//===----------------------------------------------------------------------===//
// One use of everything
//===----------------------------------------------------------------------===//

namespace {

/// What a run gives.
struct Outcome {
  std::vector<float> numbers;
  std::vector<int32_t> tokens;
};

class Scenario {
public:
  explicit Scenario(bool refusing) : refusing(refusing) {}
  Outcome run();
  int64_t refusals = 0;

private:
  /// Makes a call until it gets through.
  template <typename Call> void step(const char *name, Call call) {
    for (int64_t limit = refusing ? 0 : -1;; ++limit) {
      wasRefused = false;
      allocationsLeft = limit;
      hyb_status status = call();
      allocationsLeft = -1;
      if (!wasRefused || status == HYB_OK) {
        ASSERT_EQ(status, HYB_OK) << name << ": " << error.message;
        return;
      }
      ++refusals;
      // The system refuses a mapping of a file with a message of its own.
      bool isSaid =
          status == HYB_OUT_OF_MEMORY ||
          (status == HYB_IO &&
           std::string(error.message).find("Cannot allocate memory") !=
               std::string::npos);
      ASSERT_TRUE(isSaid) << name << ", allocation " << limit << ": "
                          << hyb_status_name(status) << ", " << error.message;
    }
  }
  void open();
  void decode();
  void manageStates();
  void train();
  void close();
  void keep(const float *values, size_t count) {
    outcome.numbers.insert(outcome.numbers.end(), values, values + count);
  }

  bool refusing;
  TemporaryFolder folder;
  std::string artefact = fixtureArtefact();
  hyb_error error = {};
  hyb_runtime *runtime = nullptr;
  hyb_model *model = nullptr;
  hyb_context *context = nullptr;
  hyb_state *state = nullptr;
  hyb_trainer *trainer = nullptr;
  hyb_snapshot *snapshot = nullptr;
  Outcome outcome;
};

int keepToken(void *user, int32_t token) {
  static_cast<Outcome *>(user)->tokens.push_back(token);
  return 0;
}

void Scenario::open() {
  hyb_runtime_options options;
  hyb_runtime_options_init(&options, sizeof(options));
  options.threads = 2;
  options.device = "cpu";
  step("runtime",
       [&] { return hyb_runtime_create(&options, &runtime, &error); });
  step("open", [&] {
    return hyb_model_open_memory(runtime, artefact.data(), artefact.size(),
                                 &model, &error);
  });
  step("initialise", [&] { return hyb_model_initialise(model, 5, &error); });
  step("context",
       [&] { return hyb_context_create(model, nullptr, &context, &error); });
  hyb_state_options room;
  hyb_state_options_init(&room, sizeof(room));
  room.slots = 3;
  room.context = 24;
  room.chunk = 4;
  room.rollback_depth = 6;
  step("state", [&] { return hyb_state_create(model, &room, &state, &error); });
}

void Scenario::decode() {
  hyb_model_info info;
  ASSERT_EQ(hyb_model_get_info(model, &info, sizeof(info), &error), HYB_OK);
  size_t vocabulary = static_cast<size_t>(info.vocabulary);
  const int32_t ids[] = {1, 2, 3, 4, 5, 6};
  // Within a chunk: a call that fails leaves the state as it was.
  hyb_segment segments[] = {{3, 0}, {0, 2}, {3, 1}};
  hyb_batch batch = {};
  batch.ids = ids;
  batch.tokens = 6;
  batch.segments = segments;
  batch.segment_count = 3;
  const float *logits = nullptr;
  for (hyb_logits which : {HYB_LOGITS_LAST, HYB_LOGITS_ALL}) {
    step("extend", [&] {
      return hyb_extend(context, state, &batch, which, &logits, &error);
    });
    keep(logits, (which == HYB_LOGITS_ALL ? 6 : 3) * vocabulary);
  }
  hyb_sampling sampling;
  hyb_sampling_init(&sampling, sizeof(sampling));
  sampling.max_tokens = 1;
  outcome.tokens.reserve(1); // the callback must not throw
  step("generate", [&] {
    return hyb_generate(context, state, 2, ids, 3, &sampling, keepToken,
                        &outcome, &error);
  });
}

void Scenario::manageStates() {
  std::string path = folder.path("slot.safetensors");
  step("snapshot",
       [&] { return hyb_state_snapshot(state, 0, &snapshot, &error); });
  step("fork", [&] { return hyb_state_fork(state, 0, 1, &error); });
  step("save", [&] { return hyb_state_save(state, 1, path.c_str(), &error); });
  step("rollback", [&] {
    // A rollback that fails while it runs leaves the slot empty.
    hyb_status status = hyb_state_rollback(context, state, 1, 2, &error);
    if (status != HYB_OK && hyb_state_length(state, 1) == 0) {
      allocationsLeft = -1;
      EXPECT_EQ(hyb_state_fork(state, 0, 1, nullptr), HYB_OK);
    }
    return status;
  });
  EXPECT_EQ(hyb_state_length(state, 1), 4);
  step("load", [&] { return hyb_state_load(state, 2, path.c_str(), &error); });
  step("restore",
       [&] { return hyb_state_restore(state, 0, snapshot, &error); });
  const int32_t ids[] = {7, 1, 2};
  hyb_segment segments[] = {{1, 0}, {1, 1}, {1, 2}};
  hyb_batch batch = {};
  batch.ids = ids;
  batch.tokens = 3;
  batch.segments = segments;
  batch.segment_count = 3;
  const float *logits = nullptr;
  step("extend", [&] {
    return hyb_extend(context, state, &batch, HYB_LOGITS_LAST, &logits, &error);
  });
  keep(logits, 3 * 8);
}

void Scenario::train() {
  const int32_t ids[] = {1, 2, 3, 4, 5}, labels[] = {2, 3, 4, 5, -100};
  Sequence sequence(ids, labels, 5);
  const hyb_batch &batch = sequence.batch();
  const float *losses = nullptr;
  step("loss", [&] { return hyb_loss(context, &batch, &losses, &error); });
  keep(losses, 5);
  step("trainer",
       [&] { return hyb_trainer_create(context, nullptr, &trainer, &error); });
  double loss = 0, weight = 0;
  for (int i = 0; i < 2; ++i) {
    step("accumulate", [&] {
      return hyb_trainer_accumulate(trainer, &batch, &loss, &weight, &error);
    });
    step("update",
         [&] { return hyb_trainer_update(trainer, 0.1f, nullptr, &error); });
  }
  std::string path = folder.path("run.safetensors"),
              weights = folder.path("weights.safetensors");
  step("save", [&] { return hyb_trainer_save(trainer, path.c_str(), &error); });
  step("load", [&] { return hyb_trainer_load(trainer, path.c_str(), &error); });
  step("save weights",
       [&] { return hyb_model_save_weights(model, weights.c_str(), &error); });
  step("load weights",
       [&] { return hyb_model_load_weights(model, weights.c_str(), &error); });
  step("check", [&] { return hyb_model_check_finite(model, &error); });
  step("loss", [&] { return hyb_loss(context, &batch, &losses, &error); });
  keep(losses, 5);
}

void Scenario::close() {
  hyb_snapshot_destroy(snapshot);
  hyb_trainer_destroy(trainer);
  hyb_state_destroy(state);
  hyb_context_destroy(context);
  hyb_model_destroy(model);
  hyb_runtime_destroy(runtime);
}

Outcome Scenario::run() {
  void (Scenario::*const parts[])() = {&Scenario::open, &Scenario::decode,
                                       &Scenario::manageStates,
                                       &Scenario::train};
  for (auto part : parts)
    if (!testing::Test::HasFatalFailure())
      (this->*part)();
  close();
  return outcome;
}

} // namespace

TEST(OutOfMemory, EveryAllocationOfTheApiMayFail) {
  Outcome expected = Scenario(/*refusing=*/false).run();
  ASSERT_FALSE(testing::Test::HasFailure());
  Scenario scenario(/*refusing=*/true);
  Outcome got = scenario.run();
  // Nothing that was refused has left anything behind.
  EXPECT_EQ(got.numbers, expected.numbers);
  EXPECT_EQ(got.tokens, expected.tokens);
  // Opening alone reads tables of a few thousand values.
  EXPECT_GT(scenario.refusals, 500);
}
