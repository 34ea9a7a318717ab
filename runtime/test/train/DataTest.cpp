//===- DataTest.cpp ------------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "train/Data.h"

#include "../TemporaryFolder.h"
#include "train/TrainingRun.h"

#include <gtest/gtest.h>
#include <set>

using namespace hyb::rt;
using hyb::test::TemporaryFolder;

TEST(Data, TextWindowsPredictTheNextByte) {
  TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 103; ++i)
    text += static_cast<char>(i);
  std::string path = folder.write("t", text);
  auto data = openDataset(path, 10, 1, 256);
  ASSERT_TRUE(data.ok()) << data.status().message();
  ASSERT_EQ((*data)->samples(), 9);
  std::set<int32_t> phases;
  for (int64_t epoch = 0; epoch < 60; ++epoch)
    for (int64_t sample = 0; sample < 9; ++sample) {
      int32_t ids[10], labels[10];
      (*data)->read(epoch, sample, ids, labels);
      phases.insert(ids[0] % 10);
      for (int i = 0; i < 10; ++i) {
        ASSERT_EQ(labels[i], ids[i] + 1);
        ASSERT_EQ(ids[i], ids[0] + i);
        ASSERT_LT(labels[i], 103);
      }
    }
  EXPECT_EQ(phases.size(), 10u) << "windows should begin anywhere";
}

TEST(Data, RefusesWhatIsTooShortOrNotBytes) {
  TemporaryFolder folder;
  std::string path = folder.write("t", "0123456789");
  EXPECT_TRUE(openDataset(path, 9, 0, 256).ok());
  auto shorter = openDataset(path, 10, 0, 256);
  ASSERT_FALSE(shorter.ok());
  EXPECT_EQ(shorter.status().message(),
            path + ": 10 bytes are too few for sequences of 10; give a longer "
                   "text or a smaller length");
  EXPECT_EQ(openDataset(path, 4, 0, 100).status().code(), HYB_MISMATCH);
  EXPECT_EQ(openDataset(folder.path("none"), 4, 0, 256).status().code(),
            HYB_IO);
}

TEST(Data, TokenFilesAreChecked) {
  TemporaryFolder folder;
  std::string path = folder.path("t.safetensors");
  std::vector<int32_t> ids = {1, 2, 3, 4, 5, 6},
                       labels = {-100, 3, 4, -100, 6, 7};
  auto write = [&](std::vector<uint64_t> shape, DType type = DType::I32) {
    ASSERT_TRUE(
        writeSafetensors(path,
                         {{"ids", type, shape, ids.data()},
                          {"labels", DType::I32, {2, 3}, labels.data()}},
                         {})
            .ok());
  };
  auto refusal = [&] {
    auto data = openDataset(path, 0, 0, 8);
    return data.ok() ? "accepted" : data.status().message();
  };
  write({2, 3});
  auto data = openDataset(path, 0, 0, 8);
  ASSERT_TRUE(data.ok()) << data.status().message();
  EXPECT_EQ((*data)->samples(), 2);
  EXPECT_EQ((*data)->length(), 3);
  int32_t a[3], b[3];
  (*data)->read(7, 1, a, b);
  EXPECT_EQ(a[2], 6);
  EXPECT_EQ(b[0], -100);

  write({3, 2});
  EXPECT_NE(refusal().find("'labels' is I32 [2, 3]"), std::string::npos);
  write({6});
  EXPECT_NE(refusal().find("'ids' is I32 [6]"), std::string::npos);
  write({2, 3}, DType::F32);
  EXPECT_NE(refusal().find("'ids' is F32 [2, 3]"), std::string::npos);
  ids[4] = 8;
  write({2, 3});
  EXPECT_NE(refusal().find("'ids' holds 8 in sample 1 at 1"),
            std::string::npos);
  ids[4] = -100;
  write({2, 3});
  EXPECT_NE(refusal().find("'ids' holds -100"), std::string::npos);
}

// verl-project/verl#7401, second part: the rest of an epoch, kept or dropped.
TEST(Data, TRN_09_StepsOfAnEpoch) {
  SampleOrder keep(9, 2, 0, SampleOrder::Rest::Keep);
  SampleOrder drop(9, 2, 0, SampleOrder::Rest::Drop);
  EXPECT_EQ(keep.stepsPerEpoch(), 5);
  EXPECT_EQ(drop.stepsPerEpoch(), 4);
  std::multiset<int64_t> seen;
  for (int64_t step = 0; step < 5; ++step)
    for (int64_t sample : keep.batchOf(step))
      seen.insert(sample);
  EXPECT_EQ(seen.size(), 9u);
  EXPECT_EQ(std::set<int64_t>(seen.begin(), seen.end()).size(), 9u);
  EXPECT_EQ(keep.batchOf(4).size(), 1u);
  EXPECT_EQ(keep.epochOf(5), 1);
  // Fewer samples than a batch: they are the batch.
  SampleOrder few(3, 8, 0, SampleOrder::Rest::Drop);
  EXPECT_EQ(few.stepsPerEpoch(), 1);
  EXPECT_EQ(few.batchOf(5).size(), 3u);
}

// huggingface/accelerate#4071: the order after a jump into epoch 2.
TEST(Data, TRN_07_OrderIsAFunctionOfTheStep) {
  SampleOrder unbroken(10, 2, 3, SampleOrder::Rest::Drop);
  std::vector<std::vector<int64_t>> batches;
  for (int64_t step = 0; step < 20; ++step)
    batches.push_back(unbroken.batchOf(step));
  SampleOrder resumed(10, 2, 3, SampleOrder::Rest::Drop);
  for (int64_t step = 7; step < 20; ++step)
    EXPECT_EQ(resumed.batchOf(step), batches[static_cast<size_t>(step)]);
  auto epoch = [&](size_t first) {
    std::vector<int64_t> order;
    for (size_t step = first; step < first + 5; ++step)
      order.insert(order.end(), batches[step].begin(), batches[step].end());
    return order;
  };
  EXPECT_NE(epoch(0), epoch(5)) << "epochs should differ in order";
}

TEST(TrainingRun, DifferingLines) {
  EXPECT_TRUE(differingLines("a\nb\n", "a\nb\n").empty());
  EXPECT_EQ(differingLines("a\nb\nc\n", "a\nx\nc\nd"),
            (std::vector<std::string>{"- b", "+ x", "+ d"}));
  EXPECT_EQ(differingLines("", "a"), (std::vector<std::string>{"+ a"}));
}
