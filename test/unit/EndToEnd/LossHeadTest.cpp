//===- LossHeadTest.cpp - logits in pieces of rows -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Harness.h"

#include "hybrid/Plan/MemoryPlan.h"
#include <gtest/gtest.h>

using namespace hybrid;
using namespace hybrid::test;

namespace {

/// A vocabulary so large that pieces have 256 rows.
std::string specOf(llvm::StringRef attributes) {
  return ("hybrid.model @m vocab(16400) width(8) layers(1) " + attributes +
          " {\n  hybrid.softmax heads(1) head_dim(8) position(nope)\n}")
      .str();
}

const PlanEntry *findEntry(const Plan &plan, llvm::StringRef name) {
  for (const PlanEntry &entry : plan.entries)
    if (entry.name == name)
      return &entry;
  return nullptr;
}

class LossHead : public testing::TestWithParam<const char *> {};

/// The largest difference of any gradient, relative to its tensor.
template <typename Gradients>
double distanceOf(const std::map<std::string, std::vector<float>> &found,
                  const Gradients &expected) {
  double largest = 0;
  for (const auto &[path, values] : expected)
    largest = std::max(
        largest, distance(found.at(path),
                          std::vector<double>(values.begin(), values.end())));
  return largest;
}

} // namespace

// Rows end inside a piece, and pieces inside sequences.
TEST_P(LossHead, InPiecesIsTheWhole) {
  std::string spec = specOf(GetParam());
  bool isNarrow = spec.find("bf16") != std::string::npos;
  CompiledModel compiled(spec);
  ASSERT_TRUE(compiled.ok()) << compiled.report;
  for (llvm::StringRef name : {"loss", "backward"}) {
    const PlanEntry *entry = findEntry(compiled.plan, name);
    ASSERT_TRUE(entry);
    ASSERT_EQ(entry->pieces.size(), 1u) << name.str();
    EXPECT_EQ(entry->pieces[0].rows, 256) << name.str();
  }
  CompiledModel::Batch batch = compiled.randomBatch({200, 0, 330, 1}, 3);
  std::vector<float> losses;
  auto gradients = compiled.backward(batch, losses);
  EXPECT_LT(distance(compiled.loss(batch), compiled.oracleLoss(batch)),
            isNarrow ? 3e-2 : 5e-5);
  EXPECT_LT(distance(losses, compiled.oracleLoss(batch)),
            isNarrow ? 3e-2 : 5e-5);
  EXPECT_LT(distanceOf(gradients, compiled.oracleBackward(batch)),
            isNarrow ? 0.1 : 5e-4);
}

INSTANTIATE_TEST_SUITE_P(All, LossHead,
                         testing::Values("tied", "", "dtype(bf16) tied"),
                         [](const auto &info) {
                           return std::string(std::array{"Tied", "Untied",
                                                         "Narrow"}[info.index]);
                         });

// What belongs to a row does not depend on the rows beside it, and sums only in
// the order of their additions; nothing depends on the threads.
TEST(LossHeadBits, DependOnNothingElse) {
  std::string spec = specOf("");
  CompiledModel two(spec, "x86-64-v3", /*threads=*/2),
      one(spec, "x86-64-v3", /*threads=*/1);
  ASSERT_TRUE(two.ok() && one.ok()) << two.report << one.report;
  CompiledModel::Batch batch = two.randomBatch({300, 220}, 5),
                       again = one.randomBatch({300, 220}, 5);
  std::vector<float> losses, alone;
  auto gradients = two.backward(batch, losses);
  EXPECT_EQ(gradients, one.backward(again, alone));
  EXPECT_EQ(losses, alone);
  EXPECT_EQ(two.loss(batch), losses);

  auto part = [&](int64_t begin, int64_t length) {
    CompiledModel::Batch result;
    result.lengths = {length};
    result.segments = {{length, 0}};
    auto cut = [&](auto &to, const auto &from) {
      to.assign(from.begin() + begin, from.begin() + begin + length);
    };
    cut(result.ids, batch.ids);
    cut(result.labels, batch.labels);
    cut(result.weights, batch.weights);
    return result;
  };
  std::vector<float> first, second;
  auto sum = two.backward(part(0, 300), first);
  for (auto &[path, values] : two.backward(part(300, 220), second))
    for (size_t i = 0; i < values.size(); ++i)
      sum[path][i] += values[i];
  first.insert(first.end(), second.begin(), second.end());
  EXPECT_LT(distance(first, std::vector<double>(losses.begin(), losses.end())),
            1e-6);
  EXPECT_LT(distanceOf(sum, gradients), 1e-5);
}

TEST(LossHeadMemory, DoesNotGrowWithTheRows) {
  CompiledModel compiled(specOf(""));
  ASSERT_TRUE(compiled.ok()) << compiled.report;
  constexpr int64_t logitsOfPiece = 256 * 16400 * 4;
  auto arenaOf = [&](llvm::StringRef name, int64_t tokens) -> uint64_t {
    auto memory = planMemory(compiled.plan, *findEntry(compiled.plan, name),
                             {tokens, 1, tokens, 0, 0, 0});
    EXPECT_TRUE(bool(memory));
    // The gradient of f32 logits overwrites them.
    unsigned wide = 0;
    for (const EntryMemory::Buffer &buffer : memory->buffers)
      wide += buffer.bytes >= logitsOfPiece;
    EXPECT_EQ(wide, tokens >= 256 ? 1u : 0u) << name.str() << " " << tokens;
    return memory->arena;
  };
  for (llvm::StringRef name : {"loss", "backward"}) {
    EXPECT_LT(arenaOf(name, 255), logitsOfPiece + 100000);
    EXPECT_LT(arenaOf(name, 1024), logitsOfPiece + 1000000);
  }
  // Every piece is launches of its own.
  auto launchesOf = [&](int64_t tokens) {
    return planMemory(compiled.plan, *findEntry(compiled.plan, "backward"),
                      {tokens, 1, tokens, 0, 0, 0})
        ->launches;
  };
  EXPECT_EQ(launchesOf(257) - launchesOf(256), 5u);
  EXPECT_EQ(launchesOf(1024) - launchesOf(512), 10u);
}
