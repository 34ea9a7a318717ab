//===- LaunchRunnerTest.cpp ----------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "cpu/LaunchRunner.h"

#include <chrono>
#include <gtest/gtest.h>

using namespace hyb::rt;

namespace {

/// out[task] = in[task] * 3 + task, through scratch that others would spoil.
void affine(const KernelView *views, const int64_t *grid, int64_t task,
            void *scratch) {
  auto *in = static_cast<int64_t *>(views[0].base);
  auto *out = static_cast<int64_t *>(views[1].base);
  auto *copy = static_cast<volatile int64_t *>(scratch);
  for (int i = 0; i < 8; ++i)
    copy[i] = in[task] * 3;
  out[task] = copy[7] + task;
  (void)grid;
}

void nothing(const KernelView *, const int64_t *, int64_t, void *) {}

struct Chain {
  explicit Chain(int64_t tasks, size_t length)
      : buffers{std::vector<int64_t>(static_cast<size_t>(tasks), 1),
                std::vector<int64_t>(static_cast<size_t>(tasks))} {
    for (int way = 0; way < 2; ++way) {
      views[way][0].base = buffers[way].data();
      views[way][1].base = buffers[1 - way].data();
    }
    for (size_t i = 0; i < length; ++i)
      launches.push_back({handleOf(affine), views[i % 2], nullptr, tasks});
  }
  std::vector<int64_t> buffers[2];
  KernelView views[2][2] = {};
  std::vector<Launch> launches;
};

} // namespace

TEST(ThreadPool, RunsNobodyTwiceAndReturnsWhenAllHave) {
  for (int threads : {1, 2, 5}) {
    auto pool = ThreadPool::create(threads);
    ASSERT_TRUE(pool.ok());
    EXPECT_EQ((*pool)->size(), threads);
    for (int round = 0; round < 1000; ++round) {
      std::vector<std::atomic<int>> began(static_cast<size_t>(threads)),
          ended(static_cast<size_t>(threads));
      (*pool)->run([&](int thread) {
        ++began[static_cast<size_t>(thread)];
        ++ended[static_cast<size_t>(thread)];
      });
      EXPECT_EQ(began[0], 1);
      for (size_t i = 0; i < began.size(); ++i) {
        ASSERT_LE(began[i], 1);
        ASSERT_EQ(began[i], ended[i]);
      }
    }
  }
}

// The caller waits in its job, so every worker has time to arrive.
TEST(ThreadPool, AllThreadsTakePart) {
  auto pool = ThreadPool::create(4);
  ASSERT_TRUE(pool.ok());
  std::atomic<int> arrived{0};
  (*pool)->run([&](int) {
    ++arrived;
    while (arrived < 4)
      std::this_thread::yield();
  });
  EXPECT_EQ(arrived, 4);
}

TEST(ThreadPool, RefusesImpossibleSizes) {
  EXPECT_FALSE(ThreadPool::create(-1).ok());
  EXPECT_FALSE(ThreadPool::create(100000).ok());
  EXPECT_GE((*ThreadPool::create(0))->size(), 1);
}

TEST(ThreadPool, CallersTakeTurns) {
  auto pool = ThreadPool::create(2);
  ASSERT_TRUE(pool.ok());
  std::atomic<int> inside{0}, most{0};
  auto caller = [&] {
    for (int i = 0; i < 50; ++i)
      (*pool)->run([&](int) {
        int now = ++inside;
        if (now > most)
          most = now;
        --inside;
      });
  };
  std::thread other(caller);
  caller();
  other.join();
  EXPECT_LE(most, 2);
}

// Each launch reads what the one before wrote: a missing meeting shows.
TEST(LaunchRunner, LaunchesAreInOrderForAnyNumberOfThreads) {
  std::vector<int64_t> expected;
  for (int threads : {1, 2, 3, 4}) {
    auto pool = ThreadPool::create(threads);
    ASSERT_TRUE(pool.ok());
    LaunchRunner runner(**pool);
    std::vector<int64_t> results;
    for (int64_t tasks : {1, 2, 3, 17, 64}) {
      Chain chain(tasks, 31);
      ASSERT_TRUE(runner.reserve(chain.launches.size(), 64).ok());
      runner.run(chain.launches.data(), chain.launches.size());
      results.insert(results.end(), chain.buffers[1].begin(),
                     chain.buffers[1].end());
    }
    if (expected.empty())
      expected = results;
    EXPECT_EQ(results, expected) << threads << " threads";
  }
}

TEST(LaunchRunner, TimesLaunches) {
  auto pool = ThreadPool::create(2);
  LaunchRunner runner(**pool);
  Chain chain(4, 10);
  ASSERT_TRUE(runner.reserve(10, 64).ok());
  std::vector<int64_t> nanoseconds(10);
  runner.run(chain.launches.data(), 10, nanoseconds.data());
  for (int64_t time : nanoseconds)
    EXPECT_GT(time, 0);
}

// Prints what a launch costs; the bound only catches a broken meeting.
TEST(LaunchRunner, OverheadOfALaunch) {
  auto pool = ThreadPool::create(2);
  LaunchRunner runner(**pool);
  constexpr size_t kCount = 1000;
  std::vector<Launch> launches(kCount,
                               Launch{handleOf(nothing), nullptr, nullptr, 2});
  ASSERT_TRUE(runner.reserve(kCount, 64).ok());
  double best = 1e9;
  for (int round = 0; round < 20; ++round) {
    auto begin = std::chrono::steady_clock::now();
    runner.run(launches.data(), kCount);
    std::chrono::duration<double, std::micro> time =
        std::chrono::steady_clock::now() - begin;
    best = std::min(best, time.count() / kCount);
  }
  RecordProperty("microseconds_per_launch", std::to_string(best));
  std::printf("%.3f microseconds per launch on 2 threads\n", best);
  EXPECT_LT(best, 1000);
}
