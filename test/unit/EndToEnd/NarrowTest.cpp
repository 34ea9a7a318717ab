//===- NarrowTest.cpp - models that compute in bf16 and f16 -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Harness.h"

#include "train/Trainer.h"

#include <cmath>
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
