//===- ApiTest.cpp -------------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What only the C border does: null arguments, struct sizes, ownership,
// callbacks. The functions behind it have tests of their own.
//
//===----------------------------------------------------------------------===//

#include "../TemporaryFolder.h"
#include "../fixture/Batches.h"
#include "../fixture/FixtureModel.h"
#include "hybrid/runtime.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>

using namespace hyb::test;

namespace {

class Api : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_EQ(hyb_runtime_create(nullptr, &runtime, &error), HYB_OK);
    std::string artefact = fixtureArtefact();
    ASSERT_EQ(hyb_model_open_memory(runtime, artefact.data(), artefact.size(),
                                    &model, &error),
              HYB_OK)
        << error.message;
    ASSERT_EQ(hyb_model_initialise(model, 5, &error), HYB_OK);
    ASSERT_EQ(hyb_context_create(model, nullptr, &context, &error), HYB_OK);
    ASSERT_EQ(hyb_state_create(model, nullptr, &state, &error), HYB_OK);
  }
  void TearDown() override {
    hyb_state_destroy(state);
    hyb_context_destroy(context);
    hyb_model_destroy(model);
    hyb_runtime_destroy(runtime);
  }

  hyb_error error = {};
  hyb_runtime *runtime = nullptr;
  hyb_model *model = nullptr;
  hyb_context *context = nullptr;
  hyb_state *state = nullptr;
};

} // namespace

TEST_F(Api, DestroysNothingQuietly) {
  hyb_runtime_destroy(nullptr);
  hyb_model_destroy(nullptr);
  hyb_context_destroy(nullptr);
  hyb_state_destroy(nullptr);
  hyb_snapshot_destroy(nullptr);
  hyb_trainer_destroy(nullptr);
  EXPECT_EQ(hyb_state_length(nullptr, 0), -1);
}

TEST_F(Api, NamesTheArgumentThatIsNull) {
  EXPECT_EQ(hyb_model_open(runtime, nullptr, &model, &error),
            HYB_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "argument 'path' is NULL");
  EXPECT_EQ(error.status, HYB_INVALID_ARGUMENT);
  EXPECT_EQ(
      hyb_extend(context, nullptr, nullptr, HYB_LOGITS_LAST, nullptr, nullptr),
      HYB_INVALID_ARGUMENT);
}

TEST_F(Api, ReportsInfoAndParameters) {
  hyb_model_info info;
  ASSERT_EQ(hyb_model_get_info(model, &info, sizeof(info), &error), HYB_OK);
  EXPECT_STREQ(info.name, "fixture");
  EXPECT_EQ(info.vocabulary, 8);
  EXPECT_EQ(info.parameters, 70);
  ASSERT_EQ(info.parameter_tensors, 2);
  hyb_parameter parameter;
  ASSERT_EQ(
      hyb_model_get_parameter(model, 1, &parameter, sizeof(parameter), &error),
      HYB_OK);
  EXPECT_STREQ(parameter.path, "unused");
  EXPECT_EQ(parameter.rank, 2);
  EXPECT_EQ(parameter.shape[1], 3);
  EXPECT_EQ(parameter.data[0], 2.5f);
  EXPECT_EQ(parameter.weight_decay, 0);
  EXPECT_EQ(
      hyb_model_get_parameter(model, 2, &parameter, sizeof(parameter), &error),
      HYB_OUT_OF_RANGE);
}

TEST_F(Api, RefusesStatesOfOtherModels) {
  std::string artefact = fixtureArtefact();
  hyb_model *other = nullptr;
  hyb_context *otherContext = nullptr;
  ASSERT_EQ(hyb_model_open_memory(runtime, artefact.data(), artefact.size(),
                                  &other, &error),
            HYB_OK);
  ASSERT_EQ(hyb_context_create(other, nullptr, &otherContext, &error), HYB_OK);
  int32_t id = 1;
  Sequence token(&id, nullptr, 1);
  const float *logits = nullptr;
  EXPECT_EQ(hyb_extend(otherContext, state, &token.batch(), HYB_LOGITS_LAST,
                       &logits, &error),
            HYB_MISMATCH);
  EXPECT_NE(std::string(error.message).find("create both from one model"),
            std::string::npos)
      << error.message;
  EXPECT_EQ(hyb_state_rollback(otherContext, state, 0, 0, &error),
            HYB_MISMATCH);
  EXPECT_EQ(hyb_generate(otherContext, state, 0, &id, 1, nullptr, nullptr,
                         nullptr, &error),
            HYB_MISMATCH);
  EXPECT_EQ(hyb_state_length(state, 0), 0);
  hyb_context_destroy(otherContext);
  hyb_model_destroy(other);
}

// Options that nobody filled in.
TEST_F(Api, SurvivesOptionsOfAnySize) {
  hyb_state_options_init(nullptr, sizeof(hyb_state_options));
  hyb_state_options options;
  std::memset(&options, 0xaa, sizeof(options));
  hyb_state *made = nullptr;
  for (size_t size : {size_t(0), size_t(4097), size_t(-1)}) {
    options.size = size;
    EXPECT_EQ(hyb_state_create(model, &options, &made, &error),
              HYB_INVALID_ARGUMENT);
    EXPECT_NE(std::string(error.message).find("fill it with its init function"),
              std::string::npos)
        << error.message;
  }
}

TEST_F(Api, StructsOfOtherHeaders) {
  // An older header: a prefix of the fields; the rest has defaults.
  struct {
    size_t size;
    int32_t threads;
  } older = {sizeof(older), 3};
  hyb_runtime *other = nullptr;
  ASSERT_EQ(
      hyb_runtime_create(reinterpret_cast<const hyb_runtime_options *>(&older),
                         &other, &error),
      HYB_OK);
  EXPECT_EQ(hyb_runtime_threads(other), 3);
  hyb_runtime_destroy(other);

  // A newer one: fields we do not know must be zero.
  struct {
    hyb_runtime_options known;
    int64_t unknown;
  } newer;
  hyb_runtime_options_init(&newer.known, sizeof(newer));
  EXPECT_EQ(newer.unknown, 0);
  newer.known.size = sizeof(newer);
  ASSERT_EQ(hyb_runtime_create(&newer.known, &other, &error), HYB_OK);
  hyb_runtime_destroy(other);
  newer.unknown = 1;
  EXPECT_EQ(hyb_runtime_create(&newer.known, &other, &error), HYB_UNSUPPORTED);

  hyb_runtime_options zero = {};
  EXPECT_EQ(hyb_runtime_create(&zero, &other, &error), HYB_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error.message).find("init function"),
            std::string::npos);
}

TEST_F(Api, GenerateStreamsAndCancels) {
  std::vector<int32_t> tokens;
  auto collect = [](void *user, int32_t token) {
    auto *list = static_cast<std::vector<int32_t> *>(user);
    list->push_back(token);
    return list->size() == 5 ? 1 : 0;
  };
  int32_t prompt[] = {1, 2, 3};
  EXPECT_EQ(hyb_generate(context, state, 0, prompt, 3, nullptr, collect,
                         &tokens, &error),
            HYB_CANCELLED);
  EXPECT_EQ(tokens.size(), 5u);
  // The state holds the prompt and the tokens that were fed back.
  EXPECT_EQ(hyb_state_length(state, 0), 3 + 4);

  // Without cancelling, the context ends it: 64 tokens of room.
  ASSERT_EQ(hyb_state_reset(state, 0, &error), HYB_OK);
  std::vector<int32_t> all;
  hyb_sampling sampling;
  hyb_sampling_init(&sampling, sizeof(sampling));
  sampling.max_tokens = 1000;
  sampling.temperature = 1;
  auto append = [](void *user, int32_t token) {
    static_cast<std::vector<int32_t> *>(user)->push_back(token);
    return 0;
  };
  ASSERT_EQ(hyb_generate(context, state, 0, prompt, 3, &sampling, append, &all,
                         &error),
            HYB_OK)
      << error.message;
  EXPECT_EQ(hyb_state_length(state, 0), 64);
  EXPECT_EQ(all.size(), 62u);

  // The same seed draws the same tokens; a stop token ends it.
  ASSERT_EQ(hyb_state_reset(state, 0, &error), HYB_OK);
  std::vector<int32_t> again;
  sampling.stop_token = all[10];
  ASSERT_EQ(hyb_generate(context, state, 0, prompt, 3, &sampling, append,
                         &again, &error),
            HYB_OK);
  size_t stop = static_cast<size_t>(std::find(all.begin(), all.end(), all[10]) -
                                    all.begin());
  EXPECT_EQ(again,
            std::vector<int32_t>(
                all.begin(), all.begin() + static_cast<ptrdiff_t>(stop) + 1));
  EXPECT_EQ(
      hyb_generate(context, state, 0, prompt, 0, nullptr, append, &all, &error),
      HYB_INVALID_ARGUMENT);
}

TEST_F(Api, OpensFilesAndNamesThem) {
  TemporaryFolder folder;
  std::string path = folder.write("a.hbx", fixtureArtefact().substr(0, 1000));
  hyb_model *other = nullptr;
  EXPECT_EQ(hyb_model_open(runtime, path.c_str(), &other, &error),
            HYB_INVALID_FILE);
  EXPECT_EQ(std::string(error.message).find(path + ": artefact is cut"), 0u)
      << error.message;
  EXPECT_EQ(other, nullptr);
  EXPECT_EQ(hyb_model_open(runtime, folder.path("no").c_str(), &other, &error),
            HYB_IO);
}

TEST_F(Api, TrainsThroughC) {
  hyb_trainer *trainer = nullptr;
  ASSERT_EQ(hyb_trainer_create(context, nullptr, &trainer, &error), HYB_OK);
  int32_t ids[] = {1, 2}, labels[] = {2, 3};
  Sequence sequence(ids, labels, 2);
  double loss, weight;
  ASSERT_EQ(hyb_trainer_accumulate(trainer, &sequence.batch(), &loss, &weight,
                                   &error),
            HYB_OK);
  hyb_update update;
  ASSERT_EQ(hyb_trainer_update(trainer, 0.01f, &update, &error), HYB_OK);
  EXPECT_EQ(update.step, 1);
  EXPECT_EQ(update.weight, 2);
  TemporaryFolder folder;
  std::string path = folder.path("c.safetensors");
  ASSERT_EQ(hyb_trainer_save(trainer, path.c_str(), &error), HYB_OK);
  ASSERT_EQ(hyb_trainer_load(trainer, path.c_str(), &error), HYB_OK);
  hyb_trainer_destroy(trainer);
}
