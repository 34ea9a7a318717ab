//===- RandomStackTest.cpp - compiled random models against the oracle ---===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// HYBRID_RANDOM_STACKS=first:count chooses the seeds, HYBRID_RANDOM_DTYPE the
// compute type; a failure names its seed, and HYBRID_RANDOM_STACKS=seed:1
// repeats it. The last line gives the largest errors and their seeds.
//
//===----------------------------------------------------------------------===//

#include "Harness.h"
#include "RandomStacks.h"

#include "cpu/CpuLevel.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Regex.h"
#include <atomic>
#include <cstdlib>
#include <gtest/gtest.h>
#include <mutex>
#include <random>
#include <thread>

using namespace hybrid;
using namespace hybrid::test;

namespace {

/// f32 against f64, relative to the largest value of the tensor, or to the
/// floor: a gradient may be zero, where f32 leaves rounding shared.
constexpr double kForward = 5e-5, kBackward = 5e-4, kFloor = 1e-2;

/// How often parameters move to see how much a gradient does.
constexpr int kDraws = 4;

/// Of a model in another type: the root mean square of the error relative to
/// that of the tensor. Rounding errors of all layers add up. A gradient that is
/// a small difference of large terms, such as that of the queries, has their
/// errors, so none counts as smaller than a share of the largest of the model.
struct Narrow {
  llvm::StringRef dtype;
  double forward, backward;
};
constexpr double kShareOfLargest = 0.03;
constexpr Narrow kNarrow[] = {{"bf16", 0.02, 0.1}, {"f16", 0.005, 0.03}};

template <typename Range> double rms(const Range &values) {
  double sum = 0;
  for (double value : values)
    sum += value * value;
  return std::sqrt(sum / std::max<size_t>(1, values.size()));
}

double rmsError(llvm::ArrayRef<float> found, llvm::ArrayRef<double> expected,
                double floor) {
  std::vector<double> difference;
  for (auto [x, y] : llvm::zip_equal(found, expected))
    difference.push_back(x - y);
  return rms(difference) / std::max({rms(expected), floor, 1e-30});
}

double maxError(llvm::ArrayRef<float> found, llvm::ArrayRef<double> expected) {
  double largest = 0;
  for (double value : expected)
    largest = std::max(largest, std::abs(value));
  double relative = distance(found, expected);
  return relative * std::max(largest, 1e-30) / std::max(largest, kFloor);
}

/// The largest error of its kind, over all seeds and threads.
class Worst {
public:
  void note(double error, uint64_t seed) {
    std::lock_guard<std::mutex> lock(mutex);
    if (error <= largest)
      return;
    largest = error;
    of = seed;
  }
  std::string text() const {
    return llvm::formatv("{0:e2} (seed {1})", largest, of).str();
  }

private:
  std::mutex mutex;
  double largest = -1;
  uint64_t of = 0;
};

/// What all seeds share.
struct Shared {
  /// Null: f32.
  const Narrow *narrow = nullptr;
  bool isWide = false;
  Worst forward, backward;
  /// Small models have many programs in common.
  cpu::ProgramCache programs;
};

/// Every seed has one level, so that compiling costs one, and any run of seeds
/// has them all.
std::string levelOf(uint64_t seed) {
  std::vector<std::string> levels;
  std::optional<hyb::rt::CpuLevel> host = hyb::rt::hostCpuLevel();
  for (hyb::rt::CpuLevel level : hyb::rt::kCpuLevels)
    if (host && level <= *host)
      levels.push_back(hyb::rt::cpuLevelName(level));
  return levels.empty() ? "x86-64" : levels[seed / 2 % levels.size()];
}

class StackCheck {
public:
  StackCheck(const cases::RandomStack &stack, CompiledModel &compiled,
             Shared &shared)
      : stack(stack), compiled(compiled), shared(shared),
        forwardBound(shared.narrow ? shared.narrow->forward : kForward),
        backwardBound(shared.narrow ? shared.narrow->backward : kBackward) {}

  void lossAndGradients() {
    CompiledModel::Batch batch =
        compiled.randomBatch(stack.lengths, stack.seed);
    std::vector<double> expected = compiled.oracleLoss(batch);
    expectForward(compiled.loss(batch), expected, "loss");
    std::vector<float> losses;
    auto gradients = compiled.backward(batch, losses);
    std::vector<double> trained;
    auto oracle = compiled.oracleBackward(batch, &trained);
    expectForward(losses, trained, "loss of backward");
    EXPECT_EQ(gradients.size(), oracle.size());
    double largest = 0;
    for (const auto &[path, gradient] : oracle)
      largest = std::max(largest, rms(gradient));
    for (const auto &[path, gradient] : gradients) {
      double found = error(gradient, oracle[path], kShareOfLargest * largest);
      shared.backward.note(found, stack.seed);
      double bound = backwardBound;
      if (!shared.narrow && found >= bound)
        bound = std::max(bound, change(batch, oracle, path));
      EXPECT_LT(found, bound) << path << " of size " << rms(oracle[path])
                              << ", the largest is " << largest;
    }
  }

  /// The longest sequence, whole and in pieces.
  void splits() {
    int64_t tokens = *llvm::max_element(stack.lengths);
    std::vector<int32_t> ids =
        compiled.randomBatch({tokens}, stack.seed + 1).ids;
    std::vector<double> expected = compiled.oracleLogits(ids);
    auto expectPieces = [&](std::vector<int64_t> pieces, const char *what) {
      expectForward(compiled.logits(ids, pieces), expected,
                    llvm::formatv("logits of {0} tokens {1}", tokens, what));
    };
    expectPieces({tokens}, "at once");
    if (!stack.splits)
      return;
    int64_t half = tokens / 2;
    expectPieces({half, 0, tokens - half}, "in two halves");
    expectPieces(std::vector<int64_t>(tokens, 1), "one by one");
  }

private:
  /// How far the exact gradient of `path` moves when every parameter moves to
  /// one of its two neighbours in f32. Some stacks are that sensitive: a
  /// normalised output of one token is the sign of its q times k.
  double change(const CompiledModel::Batch &batch,
                std::map<std::string, std::vector<double>> &oracle,
                const std::string &path) {
    if (moved.empty())
      moveParameters(batch);
    double largest = 0;
    for (auto &draw : moved) {
      std::vector<float> rounded(draw[path].begin(), draw[path].end());
      largest = std::max(largest, error(rounded, oracle[path]));
    }
    return largest;
  }

  void moveParameters(const CompiledModel::Batch &batch) {
    std::mt19937 random(stack.seed);
    llvm::MutableArrayRef<float> parameters(
        compiled.model->parameters(),
        compiled.model->parameterTable().elements);
    const std::vector<float> original(parameters.begin(), parameters.end());
    for (int draw = 0; draw < kDraws; ++draw) {
      for (auto [value, from] : llvm::zip(parameters, original))
        value = std::nextafter(from, random() % 2 ? 1e30f : -1e30f);
      moved.push_back(compiled.oracleBackward(batch));
    }
    llvm::copy(original, parameters.begin());
  }

  double error(llvm::ArrayRef<float> found, llvm::ArrayRef<double> expected,
               double floor = 0) {
    return shared.narrow ? rmsError(found, expected, floor)
                         : maxError(found, expected);
  }
  void expectForward(llvm::ArrayRef<float> found,
                     llvm::ArrayRef<double> expected, std::string what) {
    double distance = error(found, expected);
    EXPECT_LT(distance, forwardBound) << what;
    shared.forward.note(distance, stack.seed);
  }

  const cases::RandomStack &stack;
  CompiledModel &compiled;
  Shared &shared;
  /// Gradients with moved parameters, when somebody asked.
  std::vector<std::map<std::string, std::vector<double>>> moved;
  double forwardBound, backwardBound;
};

void checkStack(uint64_t seed, Shared &shared) {
  cases::RandomStack stack =
      cases::drawDropout(shared.isWide ? cases::makeWideStack(seed)
                                       : cases::makeRandomStack(seed));
  if (shared.narrow)
    stack.spec = cases::inType(std::move(stack.spec), shared.narrow->dtype);
  std::string level = levelOf(seed);
  SCOPED_TRACE("HYBRID_RANDOM_STACKS=" + std::to_string(seed) + ":1, " + level +
               "\n" + stack.spec);
  // The stacks themselves share the processors.
  CompiledModel compiled(stack.spec, level, /*threads=*/1, &shared.programs);
  ASSERT_TRUE(compiled.ok()) << compiled.report;
  StackCheck check(stack, compiled, shared);
  check.lossAndGradients();
  check.splits();
}

/// The numbers in `text` that stand in brackets after `name`.
std::vector<int64_t> numbersOf(llvm::StringRef text, const char *name) {
  std::vector<int64_t> numbers;
  llvm::Regex pattern(std::string(" ") + name + "\\(([0-9]+)\\)");
  llvm::SmallVector<llvm::StringRef> match;
  while (pattern.match(text, &match)) {
    numbers.push_back(0);
    match[1].getAsInteger(10, numbers.back());
    text = text.substr(match[0].end() - text.begin());
  }
  return numbers;
}

} // namespace

// Half of the stacks must reach every border that a sequence can cross: no
// schedule has chunks or tiles of more than 64 tokens.
TEST(RandomStacks, HalfAreLong) {
  unsigned windows = 0, strides = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    cases::RandomStack stack = cases::makeRandomStack(seed);
    int64_t longest = *llvm::max_element(stack.lengths);
    if (seed % 2 == 0)
      continue;
    EXPECT_GT(longest, 2 * 64) << "seed " << seed;
    for (int64_t window : numbersOf(stack.spec, "window")) {
      EXPECT_GT(longest, window) << "seed " << seed;
      ++windows;
    }
    for (int64_t stride : numbersOf(stack.spec, "stride")) {
      EXPECT_GT(longest, stride) << "seed " << seed;
      ++strides;
    }
  }
  EXPECT_GT(windows, 500u);
  EXPECT_GT(strides, 100u);
}

/// Checks the chosen seeds, or `count` from 0 on.
static void checkStacks(const Narrow *narrow, uint64_t count,
                        bool isWide = false) {
  uint64_t first = 0;
  if (const char *chosen = std::getenv("HYBRID_RANDOM_STACKS")) {
    auto [firstText, countText] = llvm::StringRef(chosen).split(':');
    ASSERT_FALSE(firstText.getAsInteger(10, first) ||
                 countText.getAsInteger(10, count))
        << "HYBRID_RANDOM_STACKS is '" << chosen << "'; write first:count";
  }
  Shared shared;
  shared.narrow = narrow;
  shared.isWide = isWide;
  std::atomic<uint64_t> next = first;
  auto work = [&] {
    for (uint64_t seed; (seed = next++) < first + count;)
      checkStack(seed, shared);
  };
  std::vector<std::thread> workers;
  uint64_t threads = std::max(1u, std::thread::hardware_concurrency());
  for (uint64_t i = 0; i < std::min(threads, count); ++i)
    workers.emplace_back(work);
  for (std::thread &worker : workers)
    worker.join();
  llvm::outs() << count << " random stacks: largest error forward "
               << shared.forward.text() << ", gradients "
               << shared.backward.text() << "\n";
}

TEST(RandomStacks, MatchTheOracle) {
  const char *chosen = std::getenv("HYBRID_RANDOM_DTYPE");
  const Narrow *narrow = chosen ? llvm::find_if(kNarrow,
                                                [&](const Narrow &known) {
                                                  return known.dtype == chosen;
                                                })
                                : nullptr;
  ASSERT_NE(narrow, std::end(kNarrow))
      << "HYBRID_RANDOM_DTYPE is '" << chosen << "'; write bf16 or f16";
  checkStacks(narrow, 100);
}

// A few at each level; more with HYBRID_RANDOM_DTYPE.
TEST(RandomStacks, MatchTheOracleInNarrowTypes) {
  for (const Narrow &narrow : kNarrow)
    checkStacks(&narrow, 6);
}

// What a GPU has kernels of its own for, in the type that it has them for; the
// bounds of the narrow sizes hold.
TEST(RandomStacks, WideOnesMatchTheOracleInBf16) {
  checkStacks(&kNarrow[0], 4, /*isWide=*/true);
}

TEST(RandomStacks, SomeHaveDropout) {
  unsigned count = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    std::string plain = cases::makeRandomStack(seed).spec;
    std::string drawn = cases::drawDropout(cases::makeRandomStack(seed)).spec;
    count += drawn != plain;
    EXPECT_EQ(drawn.find(" dropout(") != std::string::npos, drawn != plain);
  }
  EXPECT_GT(count, 25u);
  EXPECT_LT(count, 55u);
}
