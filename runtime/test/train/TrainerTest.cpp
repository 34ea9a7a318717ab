//===- TrainerTest.cpp ---------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "train/Trainer.h"

#include "../TemporaryFolder.h"
#include "../fixture/LoadedFixture.h"
#include "train/Initialise.h"

#include <cmath>
#include <set>

using namespace hyb::rt;
using namespace hyb::test;

namespace {

struct Training {
  explicit Training(float decay = 0.1f) {
    hyb_trainer_options options;
    hyb_trainer_options_init(&options, sizeof(options));
    options.weight_decay = decay;
    auto made = Trainer::create(*fixture.context, options);
    EXPECT_TRUE(made.ok()) << made.status().message();
    trainer = std::move(*made);
  }

  /// One micro-batch of one segment.
  double accumulate(const std::vector<int32_t> &ids,
                    const std::vector<int32_t> &labels, double *weight) {
    Sequence sequence(ids, labels);
    double loss = 0;
    Status status = trainer->accumulate(sequence.batch(), &loss, weight);
    EXPECT_TRUE(status.ok()) << status.message();
    return loss;
  }

  hyb_update update(float learningRate = 0.1f) {
    hyb_update result = {};
    Status status = trainer->update(learningRate, &result);
    EXPECT_TRUE(status.ok()) << status.message();
    return result;
  }

  std::vector<float> parameters() const { return fixture.parameters(); }

  LoadedFixture fixture;
  std::unique_ptr<Trainer> trainer;
};

} // namespace

TEST(Trainer, ReducesTheLoss) {
  Training training(0);
  std::vector<int32_t> ids = {0, 1, 2, 3}, labels = {1, 2, 3, 4};
  double weight, first = training.accumulate(ids, labels, &weight),
                 last = first;
  EXPECT_EQ(weight, 4);
  training.update();
  for (int step = 0; step < 200; ++step) {
    last = training.accumulate(ids, labels, &weight);
    training.update();
  }
  EXPECT_LT(last, first / 100);
  EXPECT_EQ(training.trainer->step(), 201);
}

// The gradient is that of the mean over tokens, however they are cut up.
TEST(Trainer, MicroBatchesAreOneBatch) {
  Training whole, pieces;
  std::vector<int32_t> ids = {0, 1, 2, 3, 1}, labels = {1, -100, 3, 4, 0};
  double weight;
  whole.accumulate(ids, labels, &weight);
  EXPECT_EQ(weight, 4);
  pieces.accumulate({0, 1}, {1, -100}, &weight);
  EXPECT_EQ(weight, 1);
  pieces.accumulate({2, 3, 1}, {3, 4, 0}, &weight);
  hyb_update a = whole.update(), b = pieces.update();
  EXPECT_EQ(a.weight, b.weight);
  EXPECT_NEAR(a.gradient_norm, b.gradient_norm, 1e-6);
  std::vector<float> x = whole.parameters(), y = pieces.parameters();
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_NEAR(x[i], y[i], 1e-6);
}

// pytorch/pytorch#116349: all labels ignored.
TEST(Trainer, TRN_03) {
  Training training;
  std::vector<float> before = training.parameters();
  std::vector<int32_t> ids = {1, 2, 3, 4, 5}, none(5, -100);
  double weight = -1;
  EXPECT_EQ(training.accumulate(ids, none, &weight), 0);
  EXPECT_EQ(weight, 0);
  hyb_update update = training.update();
  EXPECT_EQ(update.skipped, 1);
  EXPECT_EQ(update.step, 0);
  EXPECT_EQ(training.parameters(), before);

  // As one of two micro-batches it changes nothing.
  Training alone;
  training.accumulate(ids, none, &weight);
  training.accumulate(ids, {1, 1, 1, 1, 1}, &weight);
  alone.accumulate(ids, {1, 1, 1, 1, 1}, &weight);
  EXPECT_EQ(training.update().skipped, 0);
  alone.update();
  EXPECT_EQ(training.parameters(), alone.parameters());
}

TEST(Trainer, SkipsAStepThatIsNotFinite) {
  Training training;
  double weight;
  training.accumulate({1}, {2}, &weight);
  training.update();
  std::vector<float> before = training.parameters();
  training.fixture.setParameter(8, INFINITY);
  training.accumulate({1}, {2}, &weight);
  hyb_update update = training.update();
  EXPECT_EQ(update.skipped, 1);
  EXPECT_FALSE(std::isfinite(update.gradient_norm));
  EXPECT_EQ(update.step, 1);
  training.fixture.setParameter(8, before[8]);
  EXPECT_EQ(training.parameters(), before);
  // The bad gradient is gone.
  training.accumulate({1}, {2}, &weight);
  EXPECT_EQ(training.update().skipped, 0);
}

// ServiceNow/Fast-LLM#545: decay is for those parameters that are marked.
TEST(Trainer, TRN_06) {
  Training training(0.1f);
  std::vector<float> before = training.parameters();
  // A label weight of 1 and a gradient of exactly 0 for every row but row 1,
  // which is put on its label.
  for (size_t j = 0; j < 8; ++j)
    training.fixture.setParameter(8 + j, j == 2 ? 1 : 0);
  before = training.parameters();
  double weight;
  training.accumulate({1}, {2}, &weight);
  EXPECT_EQ(training.update(/*learningRate=*/1).gradient_norm, 0);
  std::vector<float> after = training.parameters();
  for (size_t i = 0; i < 64; ++i)
    EXPECT_FLOAT_EQ(after[i], before[i] * 0.9f) << i;
  for (size_t i = 64; i < 80; ++i)
    EXPECT_EQ(after[i], before[i]) << i;
}

TEST(Trainer, ResumesBitForBit) {
  TemporaryFolder folder;
  std::string path = folder.path("checkpoint.safetensors");
  auto step = [](Training &training, int index) {
    double weight;
    training.accumulate({index % 8, (index + 3) % 8},
                        {(index + 1) % 8, index * 3 % 8}, &weight);
    training.update(0.05f);
  };
  Training unbroken, first, second;
  for (int i = 0; i < 20; ++i)
    step(unbroken, i);
  for (int i = 0; i < 7; ++i)
    step(first, i);
  ASSERT_TRUE(first.trainer->save(path, {{"note", "x"}}).ok());
  auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->view.metadata().at("note"), "x");
  ASSERT_TRUE(second.trainer->load(file->view).ok());
  EXPECT_EQ(second.trainer->step(), 7);
  for (int i = 7; i < 20; ++i)
    step(second, i);
  EXPECT_EQ(second.parameters(), unbroken.parameters());

  // A checkpoint is weights as well; weights are no checkpoint.
  ASSERT_TRUE(first.fixture.model->loadWeights(path).ok());
  ASSERT_TRUE(first.fixture.model->saveWeights(path).ok());
  auto weights = SafetensorsFile::open(path);
  ASSERT_TRUE(weights.ok());
  EXPECT_EQ(second.trainer->load(weights->view).code(), HYB_MISMATCH);
}

// A checkpoint has no gradients, also not those of a batch without labels.
TEST(Trainer, SavesOnlyBetweenSteps) {
  TemporaryFolder folder;
  std::string path = folder.path("checkpoint.safetensors");
  Training training;
  double weight;
  for (int32_t label : {2, -100}) {
    training.accumulate({1}, {label}, &weight);
    Status refused = training.trainer->save(path, {});
    EXPECT_EQ(refused.code(), HYB_INVALID_ARGUMENT);
    EXPECT_EQ(refused.message(), "gradients are accumulated and a checkpoint "
                                 "holds none; call update first");
    EXPECT_FALSE(SafetensorsFile::open(path).ok());
    training.update();
  }
  EXPECT_TRUE(training.trainer->save(path, {}).ok());
}

TEST(Trainer, RefusesBadOptions) {
  LoadedFixture fixture;
  hyb_trainer_options options;
  hyb_trainer_options_init(&options, sizeof(options));
  options.beta2 = 1;
  EXPECT_EQ(Trainer::create(*fixture.context, options).status().code(),
            HYB_INVALID_ARGUMENT);
  Training training;
  EXPECT_EQ(training.trainer->update(NAN, nullptr).code(),
            HYB_INVALID_ARGUMENT);
}

// A skipped update counts for the keys, also over a checkpoint: the batch after
// it leaves out other elements.
TEST(Trainer, SkippedUpdatesAreInTheCheckpoint) {
  TemporaryFolder folder;
  std::string path = folder.path("c.safetensors");
  Training training, other;
  double weight;
  training.accumulate({1}, {2}, &weight);
  training.update();
  training.accumulate({1}, {-100}, &weight);
  EXPECT_EQ(training.update().skipped, 1);
  EXPECT_EQ(training.trainer->step(), 1);
  EXPECT_EQ(training.trainer->nextSeed().call, 2u << 24);
  ASSERT_TRUE(training.trainer->save(path, {}).ok());
  auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(other.trainer->load(file->view).ok());
  EXPECT_EQ(other.trainer->step(), 1);
  EXPECT_EQ(other.trainer->nextSeed().call, 2u << 24);
  other.accumulate({1}, {2}, &weight);
  EXPECT_EQ(other.trainer->nextSeed().call, (2u << 24) + 1);
}

TEST(CallSeed, KeysFollowFromRunCallAndPlace) {
  CallSeed seed = {1, 2};
  EXPECT_EQ(seed.keyOf("layers.0.mlp.dropout"),
            (CallSeed{1, 2}.keyOf("layers.0.mlp.dropout")));
  std::set<uint32_t> keys;
  for (uint64_t run : {0, 1})
    for (uint64_t call : {0, 1, 1 << 24})
      for (const char *path : {"embed.dropout", "layers.0.mlp.dropout"})
        keys.insert(CallSeed{run, call}.keyOf(path));
  EXPECT_EQ(keys.size(), 12u);
}

TEST(Initialise, DependsOnSeedPathAndElement) {
  ParameterTable table;
  auto parameter = [](const char *path, int64_t offset, InitKind kind,
                      std::vector<double> values) {
    ParameterInfo info;
    info.path = path;
    info.offset = offset;
    info.elements = 4096;
    info.init = kind;
    std::copy(values.begin(), values.end(), info.values);
    return info;
  };
  table.parameters = {parameter("a", 0, InitKind::Normal, {2}),
                      parameter("b", 4096, InitKind::LogUniform, {0, 16}),
                      parameter("c", 8192, InitKind::InverseSoftplusLogUniform,
                                {1e-3, 0.1, 1e-4}),
                      parameter("d", 12288, InitKind::Constant, {2.5})};
  std::vector<float> values(16384), again(16384);
  initialiseParameters(table, 1, values.data());
  initialiseParameters(table, 1, again.data());
  EXPECT_EQ(values, again);

  double mean = 0, squares = 0;
  for (size_t i = 0; i < 4096; ++i) {
    mean += static_cast<double>(values[i]) / 4096;
    squares += static_cast<double>(values[i]) * values[i] / 4096;
    // A ~ U(0, 16) stored as its logarithm.
    EXPECT_TRUE(std::isfinite(values[4096 + i]));
    EXPECT_LE(values[4096 + i], std::log(16.0f));
    // softplus gives back dt in [1e-3, 0.1].
    double dt = std::log1p(std::exp(static_cast<double>(values[8192 + i])));
    EXPECT_GE(dt, 0.99e-3);
    EXPECT_LE(dt, 0.101);
    EXPECT_EQ(values[12288 + i], 2.5f);
  }
  EXPECT_NEAR(mean, 0, 0.1);
  EXPECT_NEAR(squares, 4, 0.3);

  // Another place in the flat buffer and other parameters change nothing.
  ParameterTable alone;
  alone.parameters = {parameter("b", 0, InitKind::LogUniform, {0, 16})};
  std::vector<float> b(4096);
  initialiseParameters(alone, 1, b.data());
  EXPECT_TRUE(std::equal(b.begin(), b.end(), values.begin() + 4096));
  initialiseParameters(alone, 2, b.data());
  EXPECT_FALSE(std::equal(b.begin(), b.end(), values.begin() + 4096));
}

TEST(Initialise, ThreadsShareTheWorkAndChangeNothing) {
  ParameterTable table;
  for (int64_t elements : {200001, 0, 3}) {
    ParameterInfo info;
    info.path = "p" + std::to_string(elements);
    info.offset = table.elements;
    info.elements = elements;
    info.init = InitKind::Normal;
    info.values[0] = 1;
    table.elements += elements;
    table.parameters.push_back(info);
  }
  std::vector<float> alone(static_cast<size_t>(table.elements), NAN),
      shared = alone;
  initialiseParameters(table, 1, alone.data());
  auto threads = ThreadPool::create(3);
  ASSERT_TRUE(threads.ok()) << threads.status().message();
  initialiseParameters(table, 1, shared.data(), threads->get());
  EXPECT_EQ(alone, shared);
}

// Padding included, wherever a range begins and ends.
TEST(Initialise, RangesAreTheWhole) {
  ParameterTable table;
  // Not in the order of their places.
  for (auto [offset, elements] : {std::pair{32, 40000}, {0, 21}, {40048, 5}}) {
    ParameterInfo info;
    info.path = "p" + std::to_string(elements);
    info.offset = offset;
    info.elements = elements;
    info.init = elements == 5 ? InitKind::Ones : InitKind::Normal;
    info.values[0] = 1;
    table.parameters.push_back(info);
  }
  table.elements = 40064;
  std::vector<float> whole(static_cast<size_t>(table.elements), 0.0f);
  initialiseParameters(table, 1, whole.data());
  for (int64_t length : {40064, 20000, 17, 16}) {
    std::vector<float> pieces(whole.size(), NAN);
    for (int64_t first = 0; first < table.elements; first += length)
      initialiseRange(table, 1, first, std::min(length, table.elements - first),
                      pieces.data() + first, nullptr);
    EXPECT_EQ(pieces, whole) << length;
  }
}
