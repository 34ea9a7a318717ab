//===- FakeHarness.h - Tests on the fake GPU --------------------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_TEST_CUDA_FAKEHARNESS_H
#define HYBRID_RUNTIME_TEST_CUDA_FAKEHARNESS_H

#include "../fixture/LoadedFixture.h"
#include "FakeControl.h"
#include "train/Trainer.h"

#include <dlfcn.h>

namespace hyb::test {

/// Every test begins with a healthy GPU and ends with nothing left on it, no
/// context on the thread, and no complaint.
class FakeCuda : public testing::Test {
protected:
  void SetUp() override {
    ::setenv("HYBRID_TEST_DEVICE", "fake", 1);
    ::setenv("HYBRID_CUDA_DRIVER", HYBRID_FAKE_CUDA_LIBRARY, 1);
    library = ::dlopen(HYBRID_FAKE_CUDA_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    ASSERT_TRUE(library) << ::dlerror();
    gpu = symbol<FakeControl *()>("hyb_fake_control")();
    symbol<void()>("hyb_fake_restart")();
    *gpu = FakeControl();
  }
  void TearDown() override {
    EXPECT_EQ(gpu->complaints, expectedComplaints) << gpu->complaint;
    for (auto [what, count] : {std::pair{"allocations", gpu->liveAllocations},
                               {"bytes", gpu->liveBytes},
                               {"pinned blocks", gpu->livePinned},
                               {"streams", gpu->liveStreams},
                               {"events", gpu->liveEvents},
                               {"modules", gpu->liveModules},
                               {"graphs", gpu->liveGraphs},
                               {"contexts", gpu->liveContexts},
                               {"contexts on the thread", gpu->contextDepth}})
      EXPECT_EQ(count, 0) << what << " are left";
    ::dlclose(library);
  }

  template <typename Type> Type *symbol(const char *name) const {
    return reinterpret_cast<Type *>(::dlsym(library, name));
  }

  /// A runtime for a device, or why there is none.
  static rt::Result<std::unique_ptr<rt::Runtime>>
  runtimeFor(const std::string &device, bool currentContext = false) {
    hyb_runtime_options options;
    hyb_runtime_options_init(&options, sizeof(options));
    options.threads = 1;
    options.device = device.c_str();
    options.use_current_context = currentContext;
    return rt::Runtime::create(options);
  }
  static rt::Result<std::unique_ptr<rt::Model>>
  open(rt::Runtime &runtime, const std::vector<SectionToBuild> &sections) {
    std::string file = buildHbx(sections);
    return rt::Model::open(
        runtime,
        rt::Bytes{reinterpret_cast<const uint8_t *>(file.data()), file.size()});
  }
  /// The sections for the fake GPU with one replaced.
  static std::vector<SectionToBuild> withSection(const std::string &kind,
                                                 const std::string &name,
                                                 const std::string &content) {
    std::vector<SectionToBuild> sections = fixtureGpuSections(/*fake=*/true);
    for (SectionToBuild &section : sections)
      if (section.kind == kind && section.name == name)
        section.content = content;
    return sections;
  }
  static std::string replaced(std::string text, const std::string &from,
                              const std::string &to) {
    for (size_t at = text.find(from); at != std::string::npos;
         at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
    return text;
  }
  static void expectRefused(const rt::Status &status, hyb_status code,
                            const std::string &text) {
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_NE(status.message().find(text), std::string::npos)
        << status.message();
  }

  void *library = nullptr;
  FakeControl *gpu = nullptr;
  int64_t expectedComplaints = 0;
};

} // namespace hyb::test

#endif // HYBRID_RUNTIME_TEST_CUDA_FAKEHARNESS_H
