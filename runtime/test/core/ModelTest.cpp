//===- ModelTest.cpp -----------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/Model.h"

#include "../TemporaryFolder.h"
#include "../fixture/LoadedFixture.h"
#include "io/Safetensors.h"

#include <cmath>

using namespace hyb::rt;
using namespace hyb::test;

namespace {

/// The message of opening an artefact with one section replaced.
Status openWith(const std::string &kind, const std::string &content,
                const char *level = nullptr) {
  hyb_runtime_options options;
  hyb_runtime_options_init(&options, sizeof(options));
  options.threads = 1;
  options.cpu_level = level;
  auto runtime = Runtime::create(options);
  if (!runtime.ok())
    return runtime.status();
  std::vector<SectionToBuild> sections = fixtureSections();
  for (SectionToBuild &section : sections)
    if (section.kind == kind)
      section.content = content;
  std::string file = buildHbx(sections);
  return Model::open(
             **runtime,
             Bytes{reinterpret_cast<const uint8_t *>(file.data()), file.size()})
      .status();
}

std::string replaced(std::string text, const std::string &from,
                     const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

void expectRefused(const Status &status, const std::string &reason) {
  EXPECT_FALSE(status.ok()) << "accepted; expected: " << reason;
  EXPECT_NE(status.message().find(reason), std::string::npos)
      << status.message();
}

} // namespace

TEST(Model, LossIsWhatTheDefinitionSays) {
  LoadedFixture fixture;
  std::vector<int32_t> ids = {3, 0, 7, 3, 2}, labels = {1, -100, 0, 7, 2};
  std::vector<float> weights = {1, 1, 0.5f, 1, 2};
  std::vector<hyb_segment> segments = {{2, 0}, {0, 0}, {3, 0}};
  hyb_batch batch = batchOf(ids, segments);
  batch.labels = labels.data();
  batch.weights = weights.data();
  const float *loss;
  Status status = fixture.context->loss(batch, &loss);
  ASSERT_TRUE(status.ok()) << status.message();
  for (size_t t = 0; t < ids.size(); ++t) {
    float expected = 0;
    for (int j = 0; j < 8; ++j) {
      float d = fixture.row(ids[t])[j] - (j == labels[t] ? 1.0f : 0.0f);
      expected += 0.5f * d * d * weights[t];
    }
    if (labels[t] == -100)
      expected = 0;
    EXPECT_NEAR(loss[t], expected, 1e-5) << t;
  }
}

TEST(Model, ResultsAreEqualForAnyNumberOfThreadsAndEveryLevel) {
  std::vector<float> expected;
  for (int threads : {1, 2, 3}) {
    LoadedFixture fixture(threads);
    auto state = fixture.state();
    std::vector<int32_t> ids(23);
    for (size_t i = 0; i < ids.size(); ++i)
      ids[i] = static_cast<int32_t>(i * 5 % 8);
    std::vector<float> logits = fixture.extend(*state, 1, ids, HYB_LOGITS_ALL);
    if (expected.empty())
      expected = logits;
    EXPECT_EQ(logits, expected) << threads << " threads";
  }
  EXPECT_TRUE(openWith("none", "", "x86-64").ok());
}

TEST(Model, ForcedLevels) {
  expectRefused(openWith("none", "", "x86-64-v9"),
                "processor level 'x86-64-v9' is unknown");
  if (hostCpuLevel() == CpuLevel::X86_64_v4)
    expectRefused(openWith("none", "", "x86-64-v4"),
                  "artefact holds code for x86-64, x86-64-v3");
  expectRefused(openWith("code", "nothing"), "code of the artefact is refused");
}

TEST(Model, RefusesContradictoryTables) {
  std::string parameters = kFixtureParameters;
  expectRefused(openWith("params", replaced(parameters, "\"offset\": 64",
                                            "\"offset\": 72")),
                "unused: offset 72 is inside the parameter before it, not a "
                "multiple of 16");
  expectRefused(openWith("params", replaced(parameters, "\"elements\": 80",
                                            "\"elements\": 66")),
                "ends after the 66 elements");
  expectRefused(openWith("params", replaced(parameters, "\"elements\": 80",
                                            "\"elements\": 1e18")),
                "'elements' is number");
  expectRefused(openWith("params", replaced(parameters, "\"decay\": true",
                                            "\"decay\": false")),
                "table: ends at 64, which is on the wrong side");
  expectRefused(openWith("params", replaced(parameters, "normal", "cauchy")),
                "unknown init 'cauchy'");
  expectRefused(
      openWith("params", replaced(parameters, "\"unused\"", "\"table\"")),
      "table occurs twice");
  expectRefused(openWith("params", replaced(parameters, "[2, 3]", "[2, 0]")),
                "not positive");
  expectRefused(openWith("meta", "{\"model\": \"x\"}"), "meta: has no 'spec'");
  expectRefused(openWith("meta", "[]"), "meta: not a JSON object");
  expectRefused(
      openWith("states", replaced(kFixtureStates, "recurrent", "magic")),
      "unknown kind 'magic'");
}

TEST(Model, RefusesBadPlans) {
  std::string plan = fixturePlan();
  expectRefused(openWith("plan", replaced(plan, "\"symbol\": \"adamw\"",
                                          "\"symbol\": \"none\"")),
                "has no kernel 'none'");
  expectRefused(
      openWith("plan", replaced(plan, "\"kernel\": 0", "\"kernel\": 6")),
      "'kernel' is 6, of 6");
  expectRefused(
      openWith("plan", replaced(plan, "\"buffer\": 0", "\"buffer\": -1")),
      "'buffer' is -1");
  expectRefused(openWith("plan", replaced(plan, "\"parallel\": [true]",
                                          "\"parallel\": []")),
                "'grid' has 1 dimensions and 'parallel' 0");
  expectRefused(openWith("plan", replaced(plan, "\"kind\": \"arena\"",
                                          "\"kind\": \"heap\"")),
                "unknown kind 'heap'");
  expectRefused(openWith("plan", replaced(plan, "\"last\": 2", "\"last\": 3")),
                "'last' is 3, of 3");
  expectRefused(openWith("plan", replaced(plan, "\"f32\"", "\"f64\"")),
                "type 'f64' is not one of f32, i32, bf16 and f16");
}

// Weights in narrower types are widened, which is exact.
TEST(Model, CFG_11_WeightsInBf16AndF16AreLoaded) {
  LoadedFixture fixture;
  TemporaryFolder folder;
  std::string path = folder.path("w.safetensors");
  // 1.5, -0.0078125, infinity, and the smallest denormal number of f16.
  uint16_t brain[64] = {0x3fc0, 0xbc00, 0x7f80};
  uint16_t half[6] = {0x3e00, 0xa000, 0x7c00, 0x0001};
  ASSERT_TRUE(writeSafetensors(path,
                               {{"table", DType::BF16, {8, 8}, brain},
                                {"unused", DType::F16, {2, 3}, half}},
                               {})
                  .ok());
  ASSERT_TRUE(fixture.model->loadWeights(path).ok());
  std::vector<float> values = fixture.parameters();
  EXPECT_EQ(std::vector<float>(values.begin(), values.begin() + 4),
            (std::vector<float>{1.5f, -0.0078125f, HUGE_VALF, 0}));
  EXPECT_EQ(std::vector<float>(values.begin() + 64, values.begin() + 69),
            (std::vector<float>{1.5f, -0.0078125f, HUGE_VALF, 0x1p-24f, 0}));
}

// What depends on capacities is found when a plan is instantiated.
TEST(Model, ViewsOutsideTheirBufferAreErrors) {
  hyb_runtime_options options;
  hyb_runtime_options_init(&options, sizeof(options));
  auto runtime = Runtime::create(options);
  std::vector<SectionToBuild> sections = fixtureSections();
  // The gather reads rows beyond the table.
  sections[3].content =
      replaced(sections[3].content, "\"sizes\": [8, 8]", "\"sizes\": [9, 8]");
  // The first match is the parameter's own size, checked against its table.
  std::string file = buildHbx(sections);
  auto model = Model::open(
      **runtime,
      Bytes{reinterpret_cast<const uint8_t *>(file.data()), file.size()});
  ASSERT_TRUE(model.ok()) << model.status().message();
  hyb_context_options room;
  hyb_context_options_init(&room, sizeof(room));
  auto context = Context::create(**model, room);
  ASSERT_TRUE(context.ok()) << context.status().message();
  std::vector<int32_t> ids = {1}, labels = {1};
  std::vector<hyb_segment> segments = {{1, 0}};
  hyb_batch batch = batchOf(ids, segments);
  batch.labels = labels.data();
  const float *loss;
  Status status = (*context)->loss(batch, &loss);
  bool backward = false;
  if (status.ok()) {
    backward = true;
    status =
        (*context)->backward(batch, (*model)->parameters(), CallSeed(), &loss);
  }
  EXPECT_EQ(status.code(), HYB_INVALID_FILE) << backward;
  EXPECT_NE(status.message().find("72 elements, the param has 64"),
            std::string::npos)
      << status.message();
}

TEST(Model, RefusesBadBatches) {
  LoadedFixture fixture;
  auto state = fixture.state();
  auto refusal = [&](const std::vector<int32_t> &ids,
                     const std::vector<hyb_segment> &segments) {
    const float *logits;
    return fixture.context->extend(*state, batchOf(ids, segments),
                                   HYB_LOGITS_LAST, &logits);
  };
  expectRefused(refusal({1, 8}, {{2, 0}}),
                "token 1 has id 8, the vocabulary has 8 ids");
  expectRefused(refusal({-1}, {{1, 0}}), "token 0 has id -1");
  expectRefused(refusal({1, 2}, {{1, 0}}),
                "segment lengths sum to 1, the batch has 2 tokens");
  expectRefused(refusal({1}, {{2, 0}}), "segment 0 has length 2");
  expectRefused(refusal({1}, {{1, 2}}), "slot 2 does not exist");
  expectRefused(refusal({1, 1}, {{1, 0}, {1, 0}}), "a second time");
  EXPECT_EQ(refusal(std::vector<int32_t>(65, 1), {{65, 0}}).code(),
            HYB_OUT_OF_RANGE);
  EXPECT_EQ(state->length(0), 0) << "a refused call changed the state";

  // flagos-ai/FlagGems#73 (TRN-04): labels outside, and -101, are errors.
  std::vector<int32_t> ids = {1};
  std::vector<hyb_segment> segments = {{1, 0}};
  for (int32_t label : {8, -1, -101}) {
    hyb_batch batch = batchOf(ids, segments);
    batch.labels = &label;
    const float *loss;
    expectRefused(fixture.context->loss(batch, &loss),
                  "token 0 has label " + std::to_string(label));
  }
}

TEST(Model, CFG_11_WeightsAreSavedAndLoaded) {
  LoadedFixture a, b;
  TemporaryFolder folder;
  std::string path = folder.path("w.safetensors");
  a.setParameter(3, 42);
  ASSERT_TRUE(a.model->saveWeights(path).ok());
  ASSERT_TRUE(b.model->loadWeights(path).ok());
  EXPECT_EQ(a.parameters(), b.parameters());

  float values[64] = {};
  auto write = [&](const std::vector<TensorToWrite> &tensors) {
    ASSERT_TRUE(writeSafetensors(path, tensors, {}).ok());
  };
  b.setParameter(0, 7);
  write({{"table", DType::F32, {8, 8}, values}});
  expectRefused(b.model->loadWeights(path), "unused is missing");
  write({{"table", DType::F32, {4, 16}, values},
         {"unused", DType::F32, {2, 3}, values}});
  expectRefused(b.model->loadWeights(path),
                "table has shape [4, 16], the spec has [8, 8]");
  write({{"table", DType::F64, {4, 8}, values},
         {"unused", DType::F32, {2, 3}, values}});
  expectRefused(b.model->loadWeights(path),
                "table has dtype F64, expected F32, BF16 or F16");
  write({{"table", DType::F32, {8, 8}, values},
         {"unused", DType::F32, {2, 3}, values},
         {"more", DType::F32, {1}, values}});
  expectRefused(b.model->loadWeights(path), "more is not a parameter");
  EXPECT_EQ(b.parameters()[0], 7) << "changed by a refused file";

  b.setParameter(70, NAN); // padding of `unused`
  EXPECT_TRUE(b.model->checkFinite().ok());
  b.setParameter(65, INFINITY);
  expectRefused(b.model->checkFinite(), "unused holds inf at element 1");
}
