//===- CudaDeviceTest.cpp - Models on the fake GPU -----------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeHarness.h"

#include "../TemporaryFolder.h"
#include "core/SharedTensor.h"
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

TEST_F(CudaModel, TakesMoreRowsAtOnceWhenTheSlotsAreFew) {
  LoadedFixture onGpu(1, /*poison=*/false), onProcessor(1, false, "cpu");
  auto chunkOf = [](LoadedFixture &fixture, int64_t slots, int64_t context) {
    hyb_state_options options;
    hyb_state_options_init(&options, sizeof(options));
    options.slots = slots;
    options.context = context;
    auto state = State::create(*fixture.model, options);
    return state.ok() ? (*state)->chunk() : -1;
  };
  EXPECT_EQ(chunkOf(onProcessor, 1, 100000), 512);
  EXPECT_EQ(chunkOf(onGpu, 1, 100000), 4096);
  EXPECT_EQ(chunkOf(onGpu, 4, 100000), 2048);
  EXPECT_EQ(chunkOf(onGpu, 64, 100000), 512);
  EXPECT_EQ(chunkOf(onGpu, 1, 1000), 1000);
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
  Sequence sequence(ids, ids);
  auto step = [&] {
    fixture.extend(*state, 0, {3});
    ASSERT_TRUE(
        (*trainer)->accumulate(sequence.batch(), nullptr, nullptr).ok());
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
      std::vector<int32_t> ids = {1, 2};
      Sequence sequence(ids, ids);
      const float *loss;
      for (int round = 0; round < 3; ++round)
        EXPECT_TRUE((*made)->loss(sequence.batch(), &loss).ok());
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
    Trace trace(fixture.model->device().description());
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

namespace {

hyb_dl_tensor idsTensor(void *data, int64_t *shape, hyb_dl_device device,
                        uint8_t bits) {
  hyb_dl_tensor tensor = {};
  tensor.data = data;
  tensor.device = device;
  tensor.rank = 1;
  tensor.type = {HYB_DL_INT, bits, 1};
  tensor.shape = shape;
  return tensor;
}

} // namespace

TEST_F(CudaModel, IdsOfOtherLibraries) {
  LoadedFixture fixture(1, /*poison=*/false);
  Device &device = fixture.model->device();
  std::vector<int64_t> wide = {3, 0, 7};
  std::vector<int32_t> narrow = {3, 0, 7};
  auto memory = device.allocate(24);
  ASSERT_TRUE(memory.ok());
  ASSERT_TRUE(device.write(memory->data(), wide.data(), 24).ok());
  int64_t shape[] = {3}, strides[] = {2};
  for (hyb_dl_tensor tensor :
       {idsTensor(wide.data(), shape, {HYB_DL_CPU, 0}, 64),
        idsTensor(narrow.data(), shape, {HYB_DL_CUDA_HOST, 0}, 32),
        idsTensor(memory->data(), shape, {HYB_DL_CUDA, 0}, 64)}) {
    auto ids = readIds(device, tensor);
    ASSERT_TRUE(ids.ok()) << ids.status().message();
    EXPECT_EQ(*ids, narrow);
  }
  wide[1] = int64_t(1) << 32; // must not become 0
  hyb_dl_tensor tensor = idsTensor(wide.data(), shape, {HYB_DL_CPU, 0}, 64);
  EXPECT_EQ((*readIds(device, tensor))[1], -1);
  tensor.device = {HYB_DL_CUDA, 1};
  expectRefused(readIds(device, tensor).status(), HYB_INVALID_ARGUMENT,
                "ids are on device 2:1, the model is on cuda:0");
  tensor = idsTensor(wide.data(), shape, {HYB_DL_CPU, 0}, 64);
  tensor.strides = strides;
  expectRefused(readIds(device, tensor).status(), HYB_INVALID_ARGUMENT,
                "give a contiguous vector of i32 or i64");
  tensor = idsTensor(wide.data(), shape, {HYB_DL_CPU, 0}, 16);
  expectRefused(readIds(device, tensor).status(), HYB_INVALID_ARGUMENT,
                "type code 0 of 16 bits");
}

// The memory of a tensor outlives everything else.
TEST_F(CudaModel, SharedTensorsKeepTheirMemory) {
  hyb_dl_managed *tensor = nullptr;
  {
    LoadedFixture fixture(1, /*poison=*/false);
    const ParameterInfo &info = fixture.model->parameterTable().parameters[1];
    tensor =
        shareTensor(fixture.model->device(), fixture.model->parameterMemory(),
                    info.offset * 4, info.shape);
    EXPECT_EQ(tensor->tensor.data, fixture.model->parameter(info));
  }
  EXPECT_EQ(tensor->tensor.device.type, HYB_DL_CUDA);
  EXPECT_EQ(tensor->tensor.rank, 2);
  EXPECT_EQ(tensor->tensor.shape[1], 3);
  EXPECT_EQ(gpu->liveAllocations, 1);
  tensor->deleter(tensor);
}

// Of one round, of several, and of segments that are empty.
TEST_F(CudaModel, LogitsStayOnTheDevice) {
  LoadedFixture fixture(1, /*poison=*/false);
  std::vector<int32_t> ids = tokens(14);
  std::vector<hyb_segment> segments = {{12, 1}, {0, 2}, {2, 0}};
  for (int64_t chunk : {5, 20})
    for (hyb_logits which : {HYB_LOGITS_LAST, HYB_LOGITS_ALL}) {
      auto a = fixture.state(3, 0, chunk), b = fixture.state(3, 0, chunk);
      hyb_batch batch = batchOf(ids, segments);
      const float *host = nullptr;
      DeviceMemory memory;
      ASSERT_TRUE(fixture.context->extend(*a, batch, which, &host).ok());
      size_t count = which == HYB_LOGITS_ALL ? 112 : 24;
      std::vector<float> expected(host, host + count), actual(count);
      ASSERT_TRUE(
          fixture.context->extendOnDevice(*b, batch, which, &memory).ok());
      ASSERT_TRUE(fixture.model->device()
                      .read(actual.data(), memory.data(), memory.bytes())
                      .ok());
      EXPECT_EQ(memory.bytes(), static_cast<int64_t>(4 * count));
      EXPECT_EQ(actual, expected);
    }
}

// What one call gave stays as it is while somebody has it; memory that nobody
// has any more is used again.
TEST_F(CudaModel, LogitsOnTheDeviceOutliveTheNextCall) {
  LoadedFixture fixture(1, /*poison=*/false);
  auto state = fixture.state();
  std::vector<int32_t> ids = tokens(2);
  auto step = [&](int32_t id, DeviceMemory *memory) {
    Sequence token(&ids[static_cast<size_t>(id)], nullptr, 1);
    ASSERT_TRUE(
        fixture.context
            ->extendOnDevice(*state, token.batch(), HYB_LOGITS_LAST, memory)
            .ok());
  };
  auto read = [&](const DeviceMemory &memory) {
    std::vector<float> values(static_cast<size_t>(memory.bytes()) / 4);
    EXPECT_TRUE(fixture.model->device()
                    .read(values.data(), memory.data(), memory.bytes())
                    .ok());
    return values;
  };
  DeviceMemory first, second;
  step(0, &first);
  std::vector<float> before = read(first);
  step(1, &second);
  EXPECT_NE(first.data(), second.data());
  EXPECT_EQ(read(first), before);
  EXPECT_NE(read(second), before);
  void *place = second.data();
  second = DeviceMemory();
  step(1, &second);
  EXPECT_EQ(second.data(), place);
}

TEST_F(CudaModel, SnapshotsStayOnTheirDevice) {
  LoadedFixture onGpu(1, false), again(1, false), onProcessor(1, false, "cpu");
  auto a = onGpu.state(), b = again.state(), c = onProcessor.state();
  onGpu.extend(*a, 0, tokens(4));
  auto snapshot = a->snapshot(0);
  ASSERT_TRUE(snapshot.ok());
  expectRefused(c->restore(0, *snapshot), HYB_MISMATCH,
                "snapshot lies on cuda:0, the state on cpu");
  // Another runtime on the same GPU may have it.
  ASSERT_TRUE(b->restore(1, *snapshot).ok());
  EXPECT_EQ(again.extend(*b, 1, {3}), onGpu.extend(*a, 0, {3}));
}

TEST_F(CudaModel, CountsItsMemory) {
  LoadedFixture fixture(1, /*poison=*/false);
  int64_t before = gpu->liveBytes;
  EXPECT_EQ(fixture.model->device().peakBytes(), before);
  {
    auto state = fixture.state(40);
  }
  EXPECT_GT(fixture.model->device().peakBytes(), before);
  EXPECT_EQ(gpu->liveBytes, before);
}
