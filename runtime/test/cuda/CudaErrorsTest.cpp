//===- CudaErrorsTest.cpp - What goes wrong with a GPU -------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeHarness.h"

using namespace hyb::rt;
using namespace hyb::test;

using CudaErrors = FakeCuda;

//===----------------------------------------------------------------------===//
// Before there is a device
//===----------------------------------------------------------------------===//

TEST_F(CudaErrors, NoDriver) {
  ::setenv("HYBRID_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
  expectRefused(runtimeFor("cuda:0").status(), HYB_UNSUPPORTED,
                "no NVIDIA driver: /nowhere/libcuda.so.1");
  auto runtime = runtimeFor("auto");
  ASSERT_TRUE(runtime.ok());
  auto model = open(**runtime, fixtureGpuSections(/*fake=*/true));
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_STREQ((*model)->device().name(), "cpu");
}

TEST_F(CudaErrors, ALibraryThatIsNoDriver) {
  ::setenv("HYBRID_CUDA_DRIVER", "libm.so.6", 1);
  expectRefused(runtimeFor("cuda:0").status(), HYB_UNSUPPORTED,
                "libm.so.6 has no cuInit");
}

TEST_F(CudaErrors, NoGpu) {
  gpu->devices = 0;
  expectRefused(runtimeFor("cuda:0").status(), HYB_UNSUPPORTED,
                "the NVIDIA driver sees no GPU; use --device=cpu");
}

TEST_F(CudaErrors, OldDriver) {
  gpu->version = 11040;
  expectRefused(runtimeFor("cuda:0").status(), HYB_UNSUPPORTED,
                "supports CUDA 11.4, 12.0 is needed");
}

TEST_F(CudaErrors, NamesOfDevices) {
  gpu->devices = 2;
  EXPECT_TRUE(runtimeFor("cuda:1").ok());
  EXPECT_TRUE(runtimeFor("cuda").ok());
  expectRefused(runtimeFor("cuda:2").status(), HYB_UNSUPPORTED,
                "cuda:2 does not exist, the driver sees 2 GPUs");
  for (const char *name : {"gpu", "cuda:", "cuda:-1", "cuda:1x", "cuda:99999",
                           "", "CPU", "cuda:0 "})
    expectRefused(runtimeFor(name).status(), HYB_INVALID_ARGUMENT,
                  "give auto, cpu or cuda:N");
}

TEST_F(CudaErrors, NoContextIsCurrent) {
  expectRefused(runtimeFor("cuda:0", /*currentContext=*/true).status(),
                HYB_INVALID_ARGUMENT, "no CUDA context is current");
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

// Code for "sm_90a" runs on nothing else, newer GPUs included: that is said
// before a driver could refuse it.
TEST_F(CudaErrors, GEN_04_NoCodeForThisGpu) {
  gpu->capability = 75;
  auto runtime = runtimeFor("cuda:0");
  ASSERT_TRUE(runtime.ok());
  std::vector<SectionToBuild> sections = fixtureGpuSections(/*fake=*/true);
  expectRefused(open(**runtime, sections).status(), HYB_UNSUPPORTED,
                "artefact holds cubin sm_90a, cuda:0 (Fake GPU) has compute "
                "capability 7.5; compile the spec with --target=cuda:sm_75");
  expectRefused(open(**runtime, fixtureSections()).status(), HYB_UNSUPPORTED,
                "artefact holds no GPU code");
  gpu->capability = 100;
  auto newer = runtimeFor("cuda:0");
  ASSERT_TRUE(newer.ok());
  sections.push_back({"ptx", kFakeChip, fixtureFakeCode()});
  expectRefused(
      open(**newer, sections).status(), HYB_UNSUPPORTED,
      "artefact holds cubin sm_90a, ptx sm_90a, cuda:0 (Fake GPU) has "
      "compute capability 10.0; compile the spec with "
      "--target=cuda:sm_100a");
  EXPECT_EQ(gpu->liveModules, 0);
  sections.pop_back();
  gpu->capability = 75;
  // "auto" takes the processor, unless that has no code either.
  auto automatic = runtimeFor("auto");
  ASSERT_TRUE(automatic.ok());
  EXPECT_TRUE(open(**automatic, sections).ok());
  sections.erase(sections.begin() + 3, sections.begin() + 6);
  expectRefused(open(**automatic, sections).status(), HYB_UNSUPPORTED,
                "compute capability 7.5");
}

TEST_F(CudaErrors, GEN_16_TheDriversLogIsTold) {
  auto runtime = runtimeFor("cuda:0");
  std::vector<SectionToBuild> sections = withSection("cubin", kFakeChip,
                                                     "\x7f"
                                                     "ELF of another kind");
  expectRefused(open(**runtime, sections).status(), HYB_DEVICE,
                "cannot load cubin sm_90a: CUDA_ERROR_NO_BINARY_FOR_GPU");
  sections.push_back({"ptx", kFakeChip, "no PTX"});
  Status both = open(**runtime, sections).status();
  expectRefused(both, HYB_DEVICE, "cannot load cubin sm_90a");
  expectRefused(both, HYB_DEVICE, "cannot load PTX sm_90a");
  expectRefused(both, HYB_DEVICE,
                "its log: ptxas application ptx input, line 12; fatal: what "
                "the fake has to say");
}

TEST_F(CudaErrors, GEN_03_PtxOfANewerToolkit) {
  auto text = [](const std::string &version) {
    return ".version " + version + "\n.target sm_90a\nnot a fake image";
  };
  gpu->version = 12040;
  auto runtime = runtimeFor("cuda:0");
  ASSERT_TRUE(runtime.ok());
  auto openWith = [&](const std::string &code) {
    std::vector<SectionToBuild> sections = withSection("cubin", kFakeChip,
                                                       "\x7f"
                                                       "ELF of another kind");
    sections.push_back({"ptx", kFakeChip, code});
    return open(**runtime, sections).status();
  };
  expectRefused(openWith(text("99.0")), HYB_DEVICE,
                "PTX ISA 99.0 needs a newer driver; this driver (CUDA 12.4) "
                "accepts up to 8.4");
  // The newest that it takes loads, or is refused for another reason.
  EXPECT_EQ(openWith(text("8.4")).message().find("newer driver"),
            std::string::npos);
  EXPECT_TRUE(openWith(fixtureFakeCode()).ok());
}

// PTX serves where the machine code is refused.
TEST_F(CudaErrors, PtxIsTheSecondChoice) {
  auto runtime = runtimeFor("cuda:0");
  std::vector<SectionToBuild> sections = withSection("cubin", kFakeChip,
                                                     "\x7f"
                                                     "ELF of another kind");
  sections.push_back({"ptx", kFakeChip, fixtureFakeCode()});
  auto model = open(**runtime, sections);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ((*model)->codeName(), "sm_90a from PTX");
}

TEST_F(CudaErrors, KernelsThatDoNotFit) {
  auto runtime = runtimeFor("cuda:0");
  std::string plan = fixturePlan(/*gpu=*/true);
  auto openWith = [&](const std::string &from, const std::string &to) {
    return open(**runtime,
                withSection("plan", kFakeChip, replaced(plan, from, to)))
        .status();
  };
  EXPECT_TRUE(openWith("\"shared\": 64", "\"shared\": 200000").ok());
  expectRefused(openWith("\"shared\": 64", "\"shared\": 300000"),
                HYB_UNSUPPORTED,
                "kernel gather_rows (gather_rows) needs 300000 bytes of shared "
                "memory, a block can have 232448");
  for (const char *threads : {"0", "1025"})
    expectRefused(
        openWith("\"threads\": 32", std::string("\"threads\": ") + threads),
        HYB_UNSUPPORTED, std::string("wants ") + threads + " threads");
  expectRefused(openWith("\"threads\": 32", "\"threads\": -1"),
                HYB_INVALID_FILE, "'threads' is -1");
  expectRefused(openWith("\"symbol\": \"adamw\"", "\"symbol\": \"sgd\""),
                HYB_INVALID_FILE, "code for sm_90a has no kernel 'sgd'");
}

TEST_F(CudaErrors, SIZ_04_MoreBlocksThanAGridHas) {
  auto runtime = runtimeFor("cuda:0");
  auto model =
      open(**runtime,
           withSection("plan", kFakeChip,
                       replaced(fixturePlan(/*gpu=*/true),
                                R"("grid": [["ceildiv", "tokens", 4]])",
                                R"("grid": [["mul", "tokens", 1073741824]])")));
  ASSERT_TRUE(model.ok()) << model.status().message();
  hyb_context_options room;
  hyb_context_options_init(&room, sizeof(room));
  auto context = Context::create(**model, room);
  ASSERT_TRUE(context.ok());
  std::vector<int32_t> ids = {1, 2};
  Sequence sequence(ids, ids);
  const float *loss;
  expectRefused((*context)->loss(sequence.batch(), &loss), HYB_OUT_OF_RANGE,
                "layer 0 gather of loss (kernel gather_rows, 2147483648 blocks "
                "of 32 threads");
  EXPECT_EQ(gpu->launches, 0);
}

//===----------------------------------------------------------------------===//
// While it works
//===----------------------------------------------------------------------===//

namespace {

/// Everything a program does, until something fails.
Status useEverything(bool poison) {
  hyb_runtime_options options;
  hyb_runtime_options_init(&options, sizeof(options));
  options.threads = 1;
  options.device = "cuda:0";
  HYB_ASSIGN(auto runtime, Runtime::create(options));
  std::string file = buildHbx(fixtureGpuSections(/*fake=*/true));
  HYB_ASSIGN(auto model,
             Model::open(*runtime,
                         Bytes{reinterpret_cast<const uint8_t *>(file.data()),
                               file.size()}));
  HYB_TRY(model->initialise(5));
  hyb_context_options room;
  hyb_context_options_init(&room, sizeof(room));
  room.poison = poison;
  HYB_ASSIGN(auto context, Context::create(*model, room));
  hyb_state_options wanted;
  hyb_state_options_init(&wanted, sizeof(wanted));
  HYB_ASSIGN(auto state, State::create(*model, wanted));
  hyb_trainer_options optimiser;
  hyb_trainer_options_init(&optimiser, sizeof(optimiser));
  HYB_ASSIGN(auto trainer, Trainer::create(*context, optimiser));
  std::vector<int32_t> ids = {1, 2, 3};
  Sequence sequence(ids, ids);
  const hyb_batch &batch = sequence.batch();
  for (int round = 0; round < 4; ++round) {
    const float *logits;
    HYB_TRY(context->extend(*state, batch, HYB_LOGITS_LAST, &logits));
    HYB_TRY(trainer->accumulate(batch, nullptr, nullptr));
    HYB_TRY(trainer->update(1e-3f, nullptr));
  }
  return Status();
}

} // namespace

// Each allocation fails once; what was made before is given back.
TEST_F(CudaErrors, OutOfMemoryAnywhere) {
  for (auto [counter, text] :
       {std::pair{&FakeControl::failAllocation, "bytes are needed"},
        {&FakeControl::failPinned, "bytes of the host"}}) {
    int64_t place = 1;
    for (;; ++place) {
      gpu->*counter = place;
      Status status = useEverything(/*poison=*/false);
      if (gpu->*counter > 0) { // there was no such allocation
        EXPECT_TRUE(status.ok()) << status.message();
        break;
      }
      expectRefused(status, HYB_OUT_OF_MEMORY, text);
      EXPECT_EQ(gpu->liveBytes, 0);
      EXPECT_EQ(gpu->livePinned, 0);
    }
    gpu->*counter = 0;
    EXPECT_GT(place, 5);
  }
}

TEST_F(CudaErrors, TooLittleMemorySaysHowMuchIsNeeded) {
  gpu->memory = 100;
  expectRefused(useEverything(false), HYB_OUT_OF_MEMORY,
                "cuda:0: 320 more bytes are needed, 100 of its 100 are free");
  EXPECT_EQ(gpu->launches, 0);
}

TEST_F(CudaErrors, ALaunchThatIsRefused) {
  for (int64_t place = 1; place <= 12; ++place) {
    gpu->failLaunch = place;
    Status status = useEverything(/*poison=*/false);
    expectRefused(status, HYB_DEVICE, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES");
    if (place == 1)
      expectRefused(status, HYB_DEVICE,
                    "cuda:0: cannot run layer 0 mixer of extend (kernel "
                    "extend_last, 1 blocks of 32 threads, 64 bytes of shared "
                    "memory, 32 registers)");
  }
}

TEST_F(CudaErrors, ALostDevice) {
  gpu->loseDevice = 3;
  Status status = useEverything(/*poison=*/false);
  expectRefused(status, HYB_DEVICE, "cannot finish backward");
  expectRefused(status, HYB_DEVICE, "start the process again");
  // Nothing works from then on, and says so.
  expectRefused(useEverything(false), HYB_DEVICE, "CUDA_ERROR_ILLEGAL_ADDRESS");
  symbol<void()>("hyb_fake_restart")();
  // With poison the kernel is named.
  gpu->loseDevice = 3;
  expectRefused(useEverything(/*poison=*/true), HYB_DEVICE,
                "cannot run layer 0 loss of backward (kernel squared_loss, 3 "
                "blocks of 32 threads");
  symbol<void()>("hyb_fake_restart")();
}
