//===- StateTest.cpp -----------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/State.h"

#include "../TemporaryFolder.h"
#include "../fixture/LoadedFixture.h"

using namespace hyb::rt;
using namespace hyb::test;

namespace {

std::vector<int32_t> tokens(size_t count, int32_t factor = 5) {
  std::vector<int32_t> ids(count);
  for (size_t i = 0; i < count; ++i)
    ids[i] = static_cast<int32_t>(i) * factor % 8;
  return ids;
}

std::vector<int32_t> part(const std::vector<int32_t> &ids, size_t begin,
                          size_t end) {
  return {ids.begin() + static_cast<ptrdiff_t>(begin),
          ids.begin() + static_cast<ptrdiff_t>(end)};
}

} // namespace

// Any split equals the whole, 0 tokens and pieces longer than a chunk included.
TEST(State, AnySplitIsTheWhole) {
  LoadedFixture fixture;
  std::vector<int32_t> ids = tokens(20);
  auto whole = fixture.state();
  std::vector<float> expected = fixture.extend(*whole, 0, ids, HYB_LOGITS_ALL);
  for (const std::vector<size_t> &split : {std::vector<size_t>{20},
                                           {1, 19},
                                           {0, 7, 13},
                                           {3, 1, 1, 15},
                                           std::vector<size_t>(20, 1)}) {
    auto state = fixture.state();
    std::vector<float> logits;
    size_t begin = 0;
    for (size_t length : split) {
      std::vector<float> piece = fixture.extend(
          *state, 1, part(ids, begin, begin + length), HYB_LOGITS_ALL);
      logits.insert(logits.end(), piece.begin(), piece.end());
      begin += length;
    }
    EXPECT_EQ(logits, expected);
    EXPECT_EQ(state->length(1), 20);
    EXPECT_EQ(state->length(0), 0);
  }
}

TEST(State, SegmentsOfUnlikeLengthDoNotMix) {
  LoadedFixture fixture;
  std::vector<int32_t> a = tokens(13), b = tokens(2, 3), c = tokens(7, 7);
  auto apart = fixture.state(4);
  std::vector<float> expected;
  for (const auto &[slot, ids] :
       {std::pair{0, a}, std::pair{2, b}, std::pair{3, c}}) {
    std::vector<float> row = fixture.extend(*apart, slot, ids);
    expected.insert(expected.end(), row.begin(), row.end());
  }
  auto together = fixture.state(4);
  std::vector<int32_t> ids = a;
  ids.insert(ids.end(), b.begin(), b.end());
  ids.insert(ids.end(), c.begin(), c.end());
  std::vector<hyb_segment> segments = {{13, 0}, {2, 2}, {0, 1}, {7, 3}};
  hyb_batch batch = batchOf(ids, segments);
  const float *logits;
  ASSERT_TRUE(
      fixture.context->extend(*together, batch, HYB_LOGITS_LAST, &logits).ok());
  std::vector<float> rows(logits, logits + 32);
  // The empty segment has a row of zeros.
  EXPECT_EQ(std::vector<float>(rows.begin() + 16, rows.begin() + 24),
            std::vector<float>(8));
  rows.erase(rows.begin() + 16, rows.begin() + 24);
  EXPECT_EQ(rows, expected);
}

TEST(State, ForkAndResetAreCopiesAndZeros) {
  LoadedFixture fixture;
  auto state = fixture.state(3);
  fixture.extend(*state, 0, tokens(9));
  ASSERT_TRUE(state->fork(0, 2).ok());
  EXPECT_EQ(state->length(2), 9);
  std::vector<float> a = fixture.extend(*state, 0, {1, 2});
  std::vector<float> b = fixture.extend(*state, 2, {1, 2});
  EXPECT_EQ(a, b);
  ASSERT_TRUE(state->reset(2).ok());
  EXPECT_EQ(state->length(2), 0);
  EXPECT_EQ(fixture.extend(*state, 2, tokens(9)),
            fixture.extend(*state, 1, tokens(9)));
  EXPECT_FALSE(state->fork(0, 3).ok());
  EXPECT_FALSE(state->reset(-1).ok());
}

// Every depth up to the one asked for, after every way of feeding the tokens:
// the state afterwards is that of a run that never saw the tokens taken back.
TEST(State, RollbackIsAsIfNeverSeen) {
  LoadedFixture fixture;
  constexpr int64_t kDepth = 6;
  std::vector<int32_t> ids = tokens(24);
  for (size_t step : {1, 2, 3, 5, 8, 24}) {
    for (int64_t back = 0; back <= kDepth; ++back) {
      auto state = fixture.state(2, kDepth);
      for (size_t begin = 0; begin < ids.size(); begin += step)
        fixture.extend(*state, 0,
                       part(ids, begin, std::min(begin + step, ids.size())));
      Status status = state->rollback(*fixture.context, 0, back);
      ASSERT_TRUE(status.ok()) << status.message();
      size_t left = ids.size() - static_cast<size_t>(back);
      EXPECT_EQ(state->length(0), static_cast<int64_t>(left));
      auto fresh = fixture.state(2, kDepth);
      fixture.extend(*fresh, 0, part(ids, 0, left));
      std::vector<int32_t> other = tokens(7, 3);
      EXPECT_EQ(fixture.extend(*state, 0, other, HYB_LOGITS_ALL),
                fixture.extend(*fresh, 0, other, HYB_LOGITS_ALL))
          << "step " << step << ", back " << back;
    }
  }
}

TEST(State, RollbackCanBeRepeatedWithinTheDepth) {
  LoadedFixture fixture;
  auto state = fixture.state(1, 4);
  fixture.extend(*state, 0, tokens(11));
  for (int round = 0; round < 5; ++round) {
    fixture.extend(*state, 0, {1, 2, 3, 4});
    ASSERT_TRUE(state->rollback(*fixture.context, 0, 3).ok());
  }
  auto fresh = fixture.state(1, 4);
  fixture.extend(*fresh, 0, tokens(11));
  fixture.extend(*fresh, 0, {1, 1, 1, 1, 1});
  EXPECT_EQ(fixture.extend(*state, 0, {6}), fixture.extend(*fresh, 0, {6}));
}

TEST(State, RollbackBeyondTheDepthIsAnError) {
  LoadedFixture fixture;
  auto state = fixture.state(1, 4);
  fixture.extend(*state, 0, tokens(9));
  Status status = state->rollback(*fixture.context, 0, 5);
  EXPECT_EQ(status.code(), HYB_OUT_OF_RANGE);
  EXPECT_NE(status.message().find("cannot take back 5 of 9 tokens: the state "
                                  "has rollback depth 4"),
            std::string::npos)
      << status.message();
  EXPECT_FALSE(state->rollback(*fixture.context, 0, -1).ok());
  EXPECT_EQ(state->length(0), 9);
}

// A ring has no rows left that the tokens taken back overwrote: the depth
// counts from the furthest token that a slot has held, and copies of a slot
// know it.
TEST(State, RollbacksTogetherStayWithinTheDepth) {
  LoadedFixture fixture;
  auto state = fixture.state(3, 4, /*chunk=*/1);
  fixture.extend(*state, 0, tokens(12));
  ASSERT_TRUE(state->rollback(*fixture.context, 0, 3).ok());
  auto copy = state->snapshot(0);
  ASSERT_TRUE(copy.ok() && state->fork(0, 1).ok() &&
              state->restore(2, *copy).ok());
  for (int64_t slot : {0, 1, 2}) {
    Status status = state->rollback(*fixture.context, slot, 2);
    EXPECT_EQ(status.code(), HYB_OUT_OF_RANGE);
    EXPECT_NE(status.message().find("cannot take back 2 of 9 tokens: slot " +
                                    std::to_string(slot) + " has held 12"),
              std::string::npos)
        << status.message();
    EXPECT_EQ(state->length(slot), 9);
    EXPECT_TRUE(state->rollback(*fixture.context, slot, 1).ok());
    auto fresh = fixture.state(1, 4, 1);
    fixture.extend(*fresh, 0, tokens(8));
    EXPECT_EQ(fixture.extend(*state, slot, {3}),
              fixture.extend(*fresh, 0, {3}));
  }
}

// A recurrence is overwritten in place, so what a call had before it met a
// number that is not finite is put back.
TEST(State, CallThatIsNotFiniteChangesNothing) {
  LoadedFixture fixture;
  hyb_context_options checking;
  hyb_context_options_init(&checking, sizeof(checking));
  checking.check_finite = 1;
  auto context = Context::create(*fixture.model, checking);
  ASSERT_TRUE(context.ok()) << context.status().message();
  fixture.context = std::move(*context);
  fixture.setParameter(8, 3e38f); // of token 1: one is a number, two are not
  for (int64_t depth : {0, 4}) {
    auto state = fixture.state(1, depth), fresh = fixture.state(1, depth);
    for (State *each : {state.get(), fresh.get()})
      fixture.extend(*each, 0, {1, 2, 3});
    std::vector<int32_t> ids = {4, 1};
    Sequence sequence(ids);
    const float *ignored;
    for (int repeat = 0; repeat < 3; ++repeat)
      EXPECT_EQ(fixture.context
                    ->extend(*state, sequence.batch(), HYB_LOGITS_ALL, &ignored)
                    .code(),
                HYB_NOT_FINITE);
    EXPECT_EQ(state->length(0), 3);
    EXPECT_EQ(fixture.extend(*state, 0, {5}), fixture.extend(*fresh, 0, {5}));
  }
}

// A snapshot reaches further back than the depth does.
TEST(State, SnapshotAtAnyToken) {
  LoadedFixture fixture;
  for (size_t at : {0, 1, 4, 5, 6, 13}) {
    auto state = fixture.state(2, 2);
    fixture.extend(*state, 0, tokens(at));
    auto snapshot = state->snapshot(0);
    ASSERT_TRUE(snapshot.ok());
    fixture.extend(*state, 0, tokens(17, 3));
    ASSERT_TRUE(state->restore(1, *snapshot).ok());
    EXPECT_EQ(state->length(1), static_cast<int64_t>(at));
    auto fresh = fixture.state(2, 2);
    fixture.extend(*fresh, 0, tokens(at));
    EXPECT_EQ(fixture.extend(*state, 1, tokens(6)),
              fixture.extend(*fresh, 0, tokens(6)));
    // What could be rolled back before can be afterwards.
    ASSERT_TRUE(state->rollback(*fixture.context, 1, 2).ok());
    auto other = fixture.state(2, 3);
    EXPECT_EQ(other->restore(0, *snapshot).code(), HYB_MISMATCH);
  }
}

// fla-org/flash-linear-attention#1176 (CCH-17): saved at 0, 1, chunk - 1,
// chunk, chunk + 1 and in the middle; continued with 1 and with many tokens.
TEST(State, CCH_17) {
  LoadedFixture fixture;
  TemporaryFolder folder;
  std::string path = folder.path("state.safetensors");
  for (size_t at : {0, 1, 4, 5, 6, 17})
    for (size_t more : {1, 20}) {
      auto state = fixture.state(2);
      fixture.extend(*state, 0, tokens(at));
      ASSERT_TRUE(state->save(0, path).ok());
      std::vector<float> expected =
          fixture.extend(*state, 0, tokens(more, 3), HYB_LOGITS_ALL);
      auto loaded = fixture.state(3);
      Status status = loaded->load(2, path);
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(loaded->length(2), static_cast<int64_t>(at));
      EXPECT_EQ(fixture.extend(*loaded, 2, tokens(more, 3), HYB_LOGITS_ALL),
                expected);
    }
}

TEST(State, LoadRefusesOtherStates) {
  LoadedFixture fixture;
  TemporaryFolder folder;
  std::string path = folder.path("state.safetensors");
  auto state = fixture.state(1, 2);
  fixture.extend(*state, 0, tokens(9));
  ASSERT_TRUE(state->save(0, path).ok());
  auto other = fixture.state(1, 3);
  fixture.extend(*other, 0, tokens(4));
  Status status = other->load(0, path);
  EXPECT_EQ(status.code(), HYB_MISMATCH);
  EXPECT_NE(status.message().find("layers.0.mixer.ring has shape [10], the "
                                  "state has [11]"),
            std::string::npos)
      << status.message();
  EXPECT_EQ(other->length(0), 4) << "changed by a refused file";
  // The default chunk is another one with more slots, or on a GPU.
  status = fixture.state(1, 2, /*chunk=*/4)->load(0, path);
  EXPECT_NE(status.message().find("the file is of a state with chunk 5, "
                                  "context 64, rollback depth 2, this one has "
                                  "chunk 4, context 64, rollback depth 2; "),
            std::string::npos)
      << status.message();

  // A loaded state has no tokens to roll back over.
  auto loaded = fixture.state(1, 2);
  ASSERT_TRUE(loaded->load(0, path).ok());
  EXPECT_EQ(loaded->rollback(*fixture.context, 0, 1).code(), HYB_OUT_OF_RANGE);
  fixture.extend(*loaded, 0, {1});
  EXPECT_TRUE(loaded->rollback(*fixture.context, 0, 1).ok());

  ASSERT_TRUE(fixture.model->saveWeights(path).ok());
  EXPECT_EQ(loaded->load(0, path).code(), HYB_MISMATCH);
}

TEST(State, MeasuresBeforeItCreates) {
  LoadedFixture fixture;
  hyb_state_options options;
  hyb_state_options_init(&options, sizeof(options));
  options.slots = 3;
  options.rollback_depth = 2;
  options.chunk = 11;
  auto bytes = State::measure(*fixture.model, options);
  ASSERT_TRUE(bytes.ok());
  // 3 x 8 floats, then 3 x (3 + 2 + 11) floats, each from a multiple of 256 on.
  EXPECT_EQ(*bytes, 256 + 256);
  options.slots = INT32_MAX;
  options.context = INT32_MAX;
  EXPECT_TRUE(State::measure(*fixture.model, options).ok());
  options.slots = 0;
  EXPECT_EQ(State::measure(*fixture.model, options).status().code(),
            HYB_INVALID_ARGUMENT);
  options.slots = 1;
  options.chunk = 100;
  options.context = 50;
  EXPECT_EQ(State::measure(*fixture.model, options).status().code(),
            HYB_INVALID_ARGUMENT);
}

// Copies share their checkpoints with the slot, which writes over its oldest
// one as it goes on.
TEST(State, CopiesKeepTheirCheckpoints) {
  LoadedFixture fixture;
  auto state = fixture.state(2, /*depth=*/3);
  std::vector<int32_t> ids = tokens(9);
  for (size_t i = 0; i < ids.size(); ++i)
    fixture.extend(*state, 0, part(ids, i, i + 1));
  auto snapshot = state->snapshot(0);
  ASSERT_TRUE(snapshot.ok());
  ASSERT_TRUE(state->fork(0, 1).ok());
  for (int32_t step = 0; step < 20; ++step)
    fixture.extend(*state, 0, {step % 8});
  auto fresh = fixture.state(2, /*depth=*/3);
  fixture.extend(*fresh, 0, part(ids, 0, 6));
  std::vector<float> expected = fixture.extend(*fresh, 0, {7});
  ASSERT_TRUE(state->restore(0, *snapshot).ok());
  for (int64_t slot : {0, 1}) {
    ASSERT_TRUE(state->rollback(*fixture.context, slot, 3).ok());
    EXPECT_EQ(fixture.extend(*state, slot, {7}), expected) << slot;
  }
}
