//===- CudaDeviceTest.cpp - Models on the fake GPU -----------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeHarness.h"

#include "../TemporaryFolder.h"
#include "io/Json.h"

#include <thread>

using namespace hyb::rt;
using namespace hyb::test;

using CudaModel = FakeCuda;

namespace {

std::vector<int32_t> tokens(size_t count) {
  std::vector<int32_t> ids(count);
  for (size_t i = 0; i < count; ++i)
    ids[i] = static_cast<int32_t>(i * 5 % 8);
  return ids;
}

std::vector<std::vector<float>> decode(LoadedFixture &fixture, State &state,
                                       int steps) {
  std::vector<std::vector<float>> rows;
  for (int step = 0; step < steps; ++step)
    rows.push_back(fixture.extend(state, 0, {step % 8}));
  return rows;
}

} // namespace

TEST_F(CudaModel, GivesTheBitsOfTheProcessor) {
  LoadedFixture onGpu(2, /*poison=*/false), onProcessor(2, false, "cpu");
  EXPECT_STREQ(onGpu.model->device().name(), "cuda:0");
  EXPECT_EQ(onGpu.model->codeName(), "sm_90a");
  EXPECT_EQ(onGpu.parameters(), onProcessor.parameters());
  auto a = onGpu.state(), b = onProcessor.state();
  std::vector<int32_t> ids = tokens(23);
  EXPECT_EQ(onGpu.extend(*a, 1, ids, HYB_LOGITS_ALL),
            onProcessor.extend(*b, 1, ids, HYB_LOGITS_ALL));
}

// From the second call of a shape with the same buffers on.
TEST_F(CudaModel, RepeatedCallsBecomeGraphs) {
  LoadedFixture fixture(1, /*poison=*/false), plain(1, /*poison=*/true);
  auto state = fixture.state(), other = fixture.state(),
       reference = plain.state();
  EXPECT_EQ(decode(fixture, *state, 12), decode(plain, *reference, 12));
  EXPECT_EQ(gpu->graphLaunches, 11);
  // Another state has other buffers: a graph of them, not the old one.
  auto again = plain.state();
  EXPECT_EQ(decode(fixture, *other, 5), decode(plain, *again, 5));
  EXPECT_EQ(gpu->graphLaunches, 15);
  EXPECT_EQ(gpu->liveGraphs, 1);
}

TEST_F(CudaModel, GraphsAreFew) {
  LoadedFixture fixture(1, /*poison=*/false);
  for (size_t length = 1; length <= 30; ++length) {
    auto state = fixture.state(2, 0, 40);
    for (int round = 0; round < 3; ++round) {
      ASSERT_TRUE(state->reset(0).ok());
      fixture.extend(*state, 0, tokens(length));
    }
  }
  EXPECT_EQ(gpu->graphLaunches, 60);
  EXPECT_LE(gpu->liveGraphs, 8);
}

TEST_F(CudaModel, NoAllocationAfterTheFirstStep) {
  LoadedFixture fixture(1, /*poison=*/false);
  hyb_trainer_options options;
  hyb_trainer_options_init(&options, sizeof(options));
  auto trainer = Trainer::create(*fixture.context, options);
  ASSERT_TRUE(trainer.ok());
  auto state = fixture.state();
  std::vector<int32_t> ids = tokens(9);
  hyb_segment segment = {9, 0};
  hyb_batch batch = {};
  batch.ids = batch.labels = ids.data();
  batch.tokens = 9;
  batch.segments = &segment;
  batch.segment_count = 1;
  auto step = [&] {
    fixture.extend(*state, 0, {3});
    ASSERT_TRUE((*trainer)->accumulate(batch, nullptr, nullptr).ok());
    ASSERT_TRUE((*trainer)->update(1e-3f, nullptr).ok());
  };
  step();
  int64_t allocations = gpu->allocations, pinned = gpu->pinned;
  for (int i = 0; i < 10; ++i)
    step();
  EXPECT_EQ(gpu->allocations, allocations);
  EXPECT_EQ(gpu->pinned, pinned);
}

TEST_F(CudaModel, TheCallersContextAndStream) {
  void *context = nullptr, *stream = nullptr;
  ASSERT_EQ(symbol<int(void **, int)>("cuDevicePrimaryCtxRetain")(&context, 0),
            0);
  ASSERT_EQ(symbol<int(void *)>("cuCtxPushCurrent_v2")(context), 0);
  ASSERT_EQ(symbol<int(void **, unsigned)>("cuStreamCreate")(&stream, 1), 0);
  {
    auto runtime = runtimeFor("cuda:0", /*currentContext=*/true);
    ASSERT_TRUE(runtime.ok()) << runtime.status().message();
    auto model = open(**runtime, fixtureGpuSections(/*fake=*/true));
    ASSERT_TRUE(model.ok()) << model.status().message();
    EXPECT_EQ(gpu->liveContexts, 1) << "a context of its own";
    for (void *wanted : {stream, static_cast<void *>(nullptr)}) {
      int64_t streams = gpu->liveStreams;
      hyb_context_options room;
      hyb_context_options_init(&room, sizeof(room));
      room.use_stream = 1;
      room.stream = wanted;
      auto made = Context::create(**model, room);
      ASSERT_TRUE(made.ok());
      EXPECT_EQ(gpu->liveStreams, streams);
      hyb_segment segment = {2, 0};
      std::vector<int32_t> ids = {1, 2};
      hyb_batch batch = {};
      batch.ids = batch.labels = ids.data();
      batch.tokens = 2;
      batch.segments = &segment;
      batch.segment_count = 1;
      const float *loss;
      for (int round = 0; round < 3; ++round)
        EXPECT_TRUE((*made)->loss(batch, &loss).ok());
    }
  }
  EXPECT_EQ(gpu->liveStreams, 1) << "the caller's stream was destroyed";
  symbol<int(void *)>("cuStreamDestroy_v2")(stream);
  symbol<int(void **)>("cuCtxPopCurrent_v2")(&context);
  symbol<int(int)>("cuDevicePrimaryCtxRelease_v2")(0);
}

TEST_F(CudaModel, SeveralRuntimesAtOnce) {
  std::vector<std::vector<std::vector<float>>> results(3);
  std::vector<std::thread> threads;
  for (auto &result : results)
    threads.emplace_back([&result] {
      LoadedFixture fixture(1, /*poison=*/false);
      auto state = fixture.state();
      result = decode(fixture, *state, 20);
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
  EXPECT_EQ(results[0].size(), 20u);
}

TEST_F(CudaModel, TheCApi) {
  hyb_error error;
  hyb_runtime_options options;
  hyb_runtime_options_init(&options, sizeof(options));
  options.device = "cuda:0";
  hyb_runtime *runtime = nullptr;
  ASSERT_EQ(hyb_runtime_create(&options, &runtime, &error), HYB_OK)
      << error.message;
  std::string file = buildHbx(fixtureGpuSections(/*fake=*/true));
  hyb_model *model = nullptr;
  ASSERT_EQ(
      hyb_model_open_memory(runtime, file.data(), file.size(), &model, &error),
      HYB_OK)
      << error.message;
  hyb_model_info info;
  hyb_model_get_info(model, &info, sizeof(info), &error);
  EXPECT_STREQ(info.device, "cuda:0");
  EXPECT_STREQ(info.cpu_level, "sm_90a");
  hyb_parameter parameter;
  hyb_model_get_parameter(model, 1, &parameter, sizeof(parameter), &error);
  EXPECT_EQ(parameter.data, nullptr);
  std::vector<float> values = {1, 2, 3, 4, 5, 6}, back(6);
  EXPECT_EQ(hyb_model_write_parameter(model, 1, values.data(), 6, &error),
            HYB_OK);
  EXPECT_EQ(hyb_model_read_parameter(model, 1, back.data(), 6, &error), HYB_OK);
  EXPECT_EQ(back, values);
  EXPECT_EQ(hyb_model_read_parameter(model, 1, back.data(), 5, &error),
            HYB_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message,
               "unused has 6 elements, the buffer has 5; give all of it");
  EXPECT_EQ(hyb_model_read_parameter(model, 2, back.data(), 6, &error),
            HYB_OUT_OF_RANGE);
  hyb_model_destroy(model);
  hyb_runtime_destroy(runtime);
}

TEST_F(CudaModel, TracesNameLayerAndOp) {
  for (const char *device : {"cuda:0", "cpu"}) {
    LoadedFixture fixture(1, /*poison=*/false, device);
    Trace trace(fixture.model->planTables().plan,
                fixture.model->device().description());
    fixture.context->traceTo(&trace);
    auto state = fixture.state();
    decode(fixture, *state, 3);
    fixture.context->traceTo(nullptr);
    decode(fixture, *state, 3);
    TemporaryFolder folder;
    ASSERT_TRUE(trace.save(folder.path("t.json")).ok());
    std::string text = folder.read("t.json");
    auto root = parseJsonObject(
        Bytes{reinterpret_cast<const uint8_t *>(text.data()), text.size()},
        "trace");
    ASSERT_TRUE(root.ok());
    int launches = 0, calls = 0;
    for (const Json &event : (*root)["traceEvents"]) {
      if (event["ph"] != "X")
        continue;
      EXPECT_GE(event["ts"].get<double>(), 0);
      EXPECT_GE(event["dur"].get<double>(), 0);
      if (event["tid"] == 1) {
        ++calls;
        EXPECT_EQ(event["name"], "extend");
        continue;
      }
      ++launches;
      EXPECT_EQ(event["name"], "layer 0 mixer");
      EXPECT_EQ(event["args"]["kernel"], "extend_last");
    }
    EXPECT_EQ(calls, 3);
    EXPECT_EQ(launches, 3);
  }
  // While tracing, launches are measured one by one.
  EXPECT_GT(gpu->launches, 0);
}
