//===- NarrowTest.cpp - models that compute in bf16 and f16 -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Harness.h"

#include "train/Trainer.h"

#include <cmath>
#include <cstdio>
#include <gtest/gtest.h>

using namespace hybrid;
using namespace hybrid::test;

namespace {

constexpr const char *kSpec = R"mlir(
hybrid.model @m vocab(64) width(32) layers(2) dtype(bf16) {
  hybrid.mix ratio(1 : 1) {
    hybrid.gdn heads(2) head_dim(16)
    hybrid.softmax heads(2) head_dim(16) position(rope, base = 10000)
  }
  hybrid.mlp swiglu(48)
})mlir";

double mean(llvm::ArrayRef<float> values) {
  double sum = 0;
  for (float value : values)
    sum += value;
  return sum / values.size();
}

} // namespace

// Entries read copies of the parameters; every way to change a parameter
// changes what they read.
TEST(Narrow, ChangedParametersAreRead) {
  CompiledModel compiled(kSpec);
  ASSERT_TRUE(compiled.ok()) << compiled.report;
  CompiledModel::Batch batch = compiled.randomBatch({20}, 1);
  std::vector<float> before = compiled.loss(batch);
  const hyb::rt::ParameterInfo *head =
      compiled.model->parameterTable().find("head.weight");
  ASSERT_TRUE(head);

  // Without a head all tokens are alike.
  std::vector<float> old(head->elements), zeros(head->elements, 0.0f);
  ASSERT_TRUE(compiled.model->readParameter(*head, old.data()).ok());
  ASSERT_TRUE(compiled.model->writeParameter(*head, zeros.data()).ok());
  std::vector<float> uniform = compiled.loss(batch);
  for (auto [loss, label, weight] :
       llvm::zip_equal(uniform, batch.labels, batch.weights))
    EXPECT_NEAR(loss, label == -100 ? 0 : weight * std::log(64.0), 1e-4);
  ASSERT_TRUE(compiled.model->writeParameter(*head, old.data()).ok());
  EXPECT_EQ(compiled.loss(batch), before);

  // Shared with another library, at any time.
  compiled.model->parametersAreShared();
  float *values = compiled.model->parameter(*head);
  std::fill_n(values, head->elements, 0.0f);
  EXPECT_EQ(compiled.loss(batch), uniform);
  std::copy(old.begin(), old.end(), values);
  EXPECT_EQ(compiled.loss(batch), before);
}

// Steps smaller than the spacing of bf16 add up in the f32 parameters.
TEST(Narrow, TrainsItsF32Parameters) {
  CompiledModel compiled(kSpec);
  ASSERT_TRUE(compiled.ok()) << compiled.report;
  CompiledModel::Batch batch = compiled.randomBatch({40, 7}, 2);
  hyb_trainer_options options;
  hyb_trainer_options_init(&options, sizeof(options));
  auto trainer = hyb::rt::Trainer::create(*compiled.context, options);
  ASSERT_TRUE(trainer.ok()) << trainer.status().message();
  double first = mean(compiled.loss(batch));
  for (int step = 0; step < 30; ++step) {
    ASSERT_TRUE((*trainer)->accumulate(batch.view(), nullptr, nullptr).ok());
    hyb_update update;
    ASSERT_TRUE((*trainer)->update(2e-3f, &update).ok());
    EXPECT_EQ(update.skipped, 0);
  }
  EXPECT_LT(mean(compiled.loss(batch)), 0.5 * first);
}

namespace {

/// The model of `spec` opened again by a runtime of its own.
struct Opened {
  explicit Opened(const CompiledModel &compiled) {
    hyb_runtime_options options;
    hyb_runtime_options_init(&options, sizeof(options));
    options.threads = 1;
    auto made = hyb::rt::Runtime::create(options);
    EXPECT_TRUE(made.ok()) << made.status().message();
    runtime = std::move(*made);
    auto opened = hyb::rt::Model::open(
        *runtime, hyb::rt::Bytes{reinterpret_cast<const uint8_t *>(
                                     compiled.artefact.data()),
                                 compiled.artefact.size()});
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    model = std::move(*opened);
    hyb_context_options room;
    hyb_context_options_init(&room, sizeof(room));
    auto created = hyb::rt::Context::create(*model, room);
    EXPECT_TRUE(created.ok()) << created.status().message();
    context = std::move(*created);
  }

  std::vector<float> loss(const CompiledModel::Batch &batch) {
    const float *losses = nullptr;
    EXPECT_TRUE(context->loss(batch.view(), &losses).ok());
    return std::vector<float>(losses, losses + batch.ids.size());
  }

  std::unique_ptr<hyb::rt::Runtime> runtime;
  std::unique_ptr<hyb::rt::Model> model;
  std::unique_ptr<hyb::rt::Context> context;
};

class Inference : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    std::string spec = kSpec;
    spec.replace(spec.find("bf16"), 4, GetParam());
    compiled = std::make_unique<CompiledModel>(spec);
    ASSERT_TRUE(compiled->ok()) << compiled->report;
    path = testing::TempDir() + "inference-" + GetParam() + ".safetensors";
    ASSERT_TRUE(compiled->model->saveWeights(path).ok());
    batch = compiled->randomBatch({20, 70}, 1);
    expected = compiled->loss(batch);
  }
  void TearDown() override { std::remove(path.c_str()); }

  std::vector<float> all(const hyb::rt::Model &model) {
    std::vector<float> values(model.parameterTable().elements, 0.0f);
    for (const auto &info : model.parameterTable().parameters)
      EXPECT_TRUE(model.readParameter(info, values.data() + info.offset).ok());
    return values;
  }

  std::unique_ptr<CompiledModel> compiled;
  CompiledModel::Batch batch;
  std::string path;
  std::vector<float> expected;
};

} // namespace

// Weights go straight into the narrow copies, rounded as compiled code does it.
TEST_P(Inference, HoldsNoMasters) {
  Opened opened(*compiled);
  EXPECT_FALSE(opened.model->holdsMasters());
  ASSERT_TRUE(opened.model->loadWeights(path).ok());
  EXPECT_EQ(opened.loss(batch), expected);
  EXPECT_FALSE(opened.model->holdsMasters());
  // Two bytes of each parameter, and the few that are read in f32.
  EXPECT_LT(opened.model->parameterBytes(), 3 * all(*opened.model).size());
  // What is read and saved is what was loaded, not what is held.
  EXPECT_EQ(all(*opened.model), all(*compiled->model));
  std::string again = path + ".again";
  ASSERT_TRUE(opened.model->saveWeights(again).ok());
  Opened other(*compiled);
  ASSERT_TRUE(other.model->loadWeights(again).ok());
  std::remove(again.c_str());
  EXPECT_EQ(all(*other.model), all(*compiled->model));
  EXPECT_FALSE(opened.model->holdsMasters());
}

// So do weights that are drawn; the optimiser finds every bit of them.
TEST_P(Inference, DrawsNoMasters) {
  Opened opened(*compiled), loaded(*compiled);
  ASSERT_TRUE(loaded.model->loadWeights(path).ok());
  for (hyb::rt::Model *model :
       {opened.model.get(), loaded.model.get(), compiled->model.get()})
    ASSERT_TRUE(model->initialise(7).ok());
  EXPECT_FALSE(opened.model->holdsMasters());
  EXPECT_LT(opened.model->parameterBytes(), 3 * all(*opened.model).size());
  EXPECT_TRUE(compiled->model->holdsMasters());
  for (Opened *other : {&opened, &loaded}) {
    EXPECT_EQ(other->loss(batch), compiled->loss(batch));
    EXPECT_EQ(all(*other->model), all(*compiled->model));
  }
  EXPECT_NE(opened.loss(batch), expected);
  ASSERT_TRUE(opened.model->needMasters().ok());
  EXPECT_EQ(all(*opened.model), all(*compiled->model));
  EXPECT_EQ(opened.loss(batch), compiled->loss(batch));
  // What was drawn is gone when a file is loaded.
  ASSERT_TRUE(loaded.model->loadWeights(path).ok());
  EXPECT_EQ(loaded.loss(batch), expected);
  ASSERT_TRUE(loaded.model->needMasters().ok());
  EXPECT_EQ(loaded.loss(batch), expected);
}

// The optimiser finds every bit of the weights, and trains on.
TEST_P(Inference, AnOptimiserMakesMasters) {
  Opened opened(*compiled);
  ASSERT_TRUE(opened.model->loadWeights(path).ok());
  EXPECT_EQ(opened.loss(batch), expected);
  // The file may be gone by then.
  std::remove(path.c_str());
  hyb_trainer_options options;
  hyb_trainer_options_init(&options, sizeof(options));
  std::vector<std::vector<float>> after;
  for (hyb::rt::Context *context :
       {opened.context.get(), compiled->context.get()}) {
    auto trainer = hyb::rt::Trainer::create(*context, options);
    ASSERT_TRUE(trainer.ok()) << trainer.status().message();
    ASSERT_TRUE((*trainer)->accumulate(batch.view(), nullptr, nullptr).ok());
    hyb_update update;
    ASSERT_TRUE((*trainer)->update(1e-3f, &update).ok());
    EXPECT_EQ(update.skipped, 0);
    after.push_back(all(context->model()));
  }
  EXPECT_TRUE(opened.model->holdsMasters());
  EXPECT_EQ(after[0], after[1]);
  EXPECT_EQ(opened.loss(batch), compiled->loss(batch));
  EXPECT_NE(opened.loss(batch), expected);
}

// A change of one parameter leaves the others, and is read.
TEST_P(Inference, AChangeMakesMasters) {
  Opened opened(*compiled);
  ASSERT_TRUE(opened.model->loadWeights(path).ok());
  const hyb::rt::ParameterInfo *head =
      opened.model->parameterTable().find("head.weight");
  ASSERT_TRUE(head);
  std::vector<float> values(head->elements, 0.0f);
  ASSERT_TRUE(opened.model->writeParameter(*head, values.data()).ok());
  ASSERT_TRUE(compiled->model->writeParameter(*head, values.data()).ok());
  EXPECT_TRUE(opened.model->holdsMasters());
  EXPECT_EQ(all(*opened.model), all(*compiled->model));
  EXPECT_EQ(opened.loss(batch), compiled->loss(batch));
}

INSTANTIATE_TEST_SUITE_P(Types, Inference, testing::Values("bf16", "f16"));
