//===- TrainingRunTest.cpp -----------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "train/TrainingRun.h"

#include "../TemporaryFolder.h"
#include "../fixture/LoadedFixture.h"
#include "train/Evaluate.h"

#include <cmath>
#include <sys/wait.h>
#include <unistd.h>

using namespace hyb::rt;
using namespace hyb::test;

namespace {

/// Ten samples of four tokens, some rows without a label.
std::string writeSamples(const TemporaryFolder &folder, uint64_t samples) {
  std::vector<int32_t> ids, labels;
  for (uint64_t i = 0; i < samples * 4; ++i) {
    ids.push_back(static_cast<int32_t>(i * i % 8));
    labels.push_back(i % 5 == 0 ? -100 : static_cast<int32_t>(i * 3 % 8));
  }
  std::string path = folder.path("data.safetensors");
  EXPECT_TRUE(
      writeSafetensors(path,
                       {{"ids", DType::I32, {samples, 4}, ids.data()},
                        {"labels", DType::I32, {samples, 4}, labels.data()}},
                       {})
          .ok());
  return path;
}

struct TestRun {
  TestRun(const TemporaryFolder &folder, const std::string &data,
          const std::string &name, int64_t steps,
          SampleOrder::Rest rest = SampleOrder::Rest::Drop, int64_t batch = 2)
      : fixture(1) {
    auto opened = TokenData::open(data, 8);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    samples = std::move(*opened);
    options.folder = folder.path(name);
    options.batch = batch;
    options.seed = 11;
    options.rest = rest;
    options.schedule.kind = ScheduleKind::Constant;
    options.schedule.peak = 0.05;
    options.schedule.totalSteps = steps;
    hyb_trainer_options_init(&options.optimiser, sizeof(options.optimiser));
  }

  Status open() {
    auto made = TrainingRun::open(*fixture.context, *samples, options);
    if (!made.ok())
      return made.status();
    run = std::move(*made);
    return Status();
  }

  /// Steps until `last`; the losses.
  std::vector<double> stepTo(int64_t last) {
    std::vector<double> losses;
    while (run->step() < last) {
      auto report = run->takeStep();
      EXPECT_TRUE(report.ok()) << report.status().message();
      EXPECT_TRUE(run->logStep(*report, 1).ok());
      losses.push_back(report->loss);
    }
    return losses;
  }

  std::vector<float> parameters() const { return fixture.parameters(); }

  LoadedFixture fixture;
  std::unique_ptr<Dataset> samples;
  TrainingOptions options;
  std::unique_ptr<TrainingRun> run;
};

} // namespace

// huggingface/accelerate#4071: save after step 7 (epoch 2, batch 2), resume.
TEST(TrainingRun, TRN_07) {
  TemporaryFolder folder;
  std::string data = writeSamples(folder, 10);
  TestRun unbroken(folder, data, "unbroken", 20);
  ASSERT_TRUE(unbroken.open().ok());
  std::vector<double> expected = unbroken.stepTo(20);
  {
    TestRun first(folder, data, "run", 20);
    ASSERT_TRUE(first.open().ok());
    first.stepTo(7);
    ASSERT_TRUE(first.run->save().ok());
    first.stepTo(9); // lost: it was killed before the next checkpoint
  }
  TestRun second(folder, data, "run", 20);
  ASSERT_TRUE(second.open().ok());
  EXPECT_TRUE(second.run->resumed());
  EXPECT_EQ(second.run->step(), 7);
  std::vector<double> losses = second.stepTo(20);
  EXPECT_EQ(losses, std::vector<double>(expected.begin() + 7, expected.end()));
  EXPECT_EQ(second.parameters(), unbroken.parameters());

  // The log has every step once.
  std::string log = folder.read("run/log.jsonl");
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 20);
}

// verl-project/verl#7401: resuming at an exact end of an epoch.
TEST(TrainingRun, TRN_09) {
  TemporaryFolder folder;
  std::string data = writeSamples(folder, 8);
  {
    TestRun first(folder, data, "run", 4);
    ASSERT_TRUE(first.open().ok());
    EXPECT_EQ(first.run->stepsPerEpoch(), 4);
    first.stepTo(4);
    ASSERT_TRUE(first.run->save().ok());
  }
  TestRun second(folder, data, "run", 8);
  ASSERT_TRUE(second.open().ok());
  EXPECT_EQ(second.stepTo(second.run->totalSteps()).size(), 4u);
  EXPECT_EQ(second.run->step(), 8);
}

TEST(TrainingRun, RefusesOtherSettings) {
  TemporaryFolder folder;
  std::string data = writeSamples(folder, 10);
  {
    TestRun first(folder, data, "run", 20);
    ASSERT_TRUE(first.open().ok());
    first.stepTo(3);
    ASSERT_TRUE(first.run->save().ok());
  }
  TestRun other(folder, data, "run", 20);
  other.options.schedule.peak = 0.06;
  Status status = other.open();
  EXPECT_EQ(status.code(), HYB_MISMATCH);
  EXPECT_NE(status.message().find("learning rate"), std::string::npos)
      << status.message();

  std::string path = "run/checkpoint.safetensors";
  std::string checkpoint = folder.read(path);
  folder.write(path, checkpoint.substr(0, checkpoint.size() - 1));
  TestRun damaged(folder, data, "run", 20);
  EXPECT_EQ(damaged.open().code(), HYB_INVALID_FILE);
}

// Killed at random moments: the folder always opens, and the end is the same.
TEST(TrainingRun, RefusesASecondRunInTheFolder) {
  TemporaryFolder folder;
  std::string data = writeSamples(folder, 10);
  TestRun first(folder, data, "run", 4), second(folder, data, "run", 4);
  ASSERT_TRUE(first.open().ok());
  Status status = second.open();
  EXPECT_EQ(status.code(), HYB_IO);
  EXPECT_NE(status.message().find("another training run is working in folder"),
            std::string::npos)
      << status.message();
  first.run.reset();
  EXPECT_TRUE(second.open().ok());
}

TEST(TrainingRun, LeavesNoFolderThatWasMadeInVain) {
  TemporaryFolder folder;
  std::string data = writeSamples(folder, 10);
  TestRun run(folder, data, "run", 4);
  run.options.initFrom = folder.path("none");
  EXPECT_FALSE(run.open().ok());
  EXPECT_NE(::access(run.options.folder.c_str(), F_OK), 0);
}

TEST(TrainingRun, SurvivesKills) {
  TemporaryFolder folder;
  std::string data = writeSamples(folder, 10);
  constexpr int64_t kSteps = 400;
  TestRun unbroken(folder, data, "unbroken", kSteps);
  ASSERT_TRUE(unbroken.open().ok());
  unbroken.stepTo(kSteps);

  int kills = 0;
  for (int attempt = 0; attempt < 200; ++attempt) {
    pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      TestRun run(folder, data, "run", kSteps);
      if (!run.open().ok())
        ::_exit(3);
      while (run.run->step() < kSteps) {
        auto report = run.run->takeStep();
        if (!report.ok() || !run.run->logStep(*report, 1).ok() ||
            !run.run->save().ok())
          ::_exit(4);
      }
      ::_exit(0);
    }
    ::usleep(static_cast<useconds_t>(2000 + 1700 * (attempt % 13)));
    ::kill(child, SIGKILL);
    int status;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    if (WIFEXITED(status)) {
      ASSERT_EQ(WEXITSTATUS(status), 0);
      break;
    }
    ++kills;
  }
  EXPECT_GT(kills, 0);
  TestRun last(folder, data, "run", kSteps);
  Status status = last.open();
  ASSERT_TRUE(status.ok()) << status.message();
  last.stepTo(kSteps);
  EXPECT_EQ(last.parameters(), unbroken.parameters()) << kills << " kills";
}

TEST(TrainingRun, StartsFromOtherWeights) {
  TemporaryFolder folder;
  std::string data = writeSamples(folder, 10);
  TestRun first(folder, data, "first", 5);
  ASSERT_TRUE(first.open().ok());
  first.stepTo(5);
  ASSERT_TRUE(first.run->save().ok());
  TestRun second(folder, data, "second", 5);
  second.options.initFrom = folder.path("first");
  ASSERT_TRUE(second.open().ok());
  EXPECT_EQ(second.run->step(), 0);
  EXPECT_EQ(second.parameters(), first.parameters());
  auto spec = recordedSpec(folder.path("first"));
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(*spec, "by hand");
}

// NVIDIA/FasterTransformer#274 (PPL-03) in this model's terms: row i is scored
// with the label of row i, so a table that favours the next token scores it.
TEST(Evaluate, PPL_03) {
  LoadedFixture fixture;
  std::vector<float> table(64);
  table[0 * 8 + 1] = 1; // after 0 comes 1
  table[1 * 8 + 0] = 1; // after 1 comes 0
  fixture.setParameters(table);
  TemporaryFolder folder;
  std::vector<int32_t> ids = {0, 1, 0}, labels = {1, 0, 1};
  std::string path = folder.path("d.safetensors");
  ASSERT_TRUE(writeSafetensors(path,
                               {{"ids", DType::I32, {1, 3}, ids.data()},
                                {"labels", DType::I32, {1, 3}, labels.data()}},
                               {})
                  .ok());
  auto data = TokenData::open(path, 8);
  ASSERT_TRUE(data.ok());
  auto evaluation = evaluateSamples(*fixture.context, **data, 4, false);
  ASSERT_TRUE(evaluation.ok());
  EXPECT_EQ(evaluation->rows, 3);
  EXPECT_EQ(evaluation->nats, 0);
}

// A span counts only when all of its rows are right.
TEST(Evaluate, ExactMatchOfSpans) {
  LoadedFixture fixture;
  // logits = row of the id + sum / 1024 + the id 3 tokens ago in column 0.
  std::vector<float> table(64);
  for (size_t id = 0; id < 8; ++id)
    table[id * 8 + (id + 1) % 8] = 100;
  fixture.setParameters(table);
  TemporaryFolder folder;
  std::vector<int32_t> ids = {1, 2, 3, 4, 5, 6, 7, 0},
                       labels = {2, 3, -100, 5, 0, -100, -100, 1};
  std::string path = folder.path("d.safetensors");
  ASSERT_TRUE(writeSafetensors(path,
                               {{"ids", DType::I32, {1, 8}, ids.data()},
                                {"labels", DType::I32, {1, 8}, labels.data()}},
                               {})
                  .ok());
  auto data = TokenData::open(path, 8);
  auto evaluation = evaluateSamples(*fixture.context, **data, 3, true);
  ASSERT_TRUE(evaluation.ok()) << evaluation.status().message();
  EXPECT_EQ(evaluation->spans, 3);
  EXPECT_EQ(evaluation->exactSpans, 2);
  EXPECT_EQ(evaluation->rowsAt[4], 1);
  EXPECT_EQ(evaluation->rowsAt[2], 0);
}
