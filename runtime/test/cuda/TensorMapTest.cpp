//===- TensorMapTest.cpp - Kernels that take tensor maps ------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeHarness.h"

using namespace hyb::rt;
using namespace hyb::test;

namespace {

/// The fixture, whose kernel `extend_last` takes tensor maps. The fake GPU has
/// them checked and runs the kernel without.
class TensorMaps : public FakeCuda {
protected:
  static std::string planWith(const std::string &maps,
                              const std::string &kernel = "extend_last",
                              bool onGpu = true) {
    std::string row = "\"symbol\": \"" + kernel + "\", ";
    return replaced(fixturePlan(onGpu), row, row + "\"maps\": " + maps + ", ");
  }
  std::vector<SectionToBuild> sections(const std::string &plan, int count) {
    std::vector<SectionToBuild> made = withSection("plan", kFakeChip, plan);
    for (SectionToBuild &section : made)
      if (section.kind == "cubin")
        section.content = replaced(section.content, "extend_last 6 64 0",
                                   "extend_last 6 64 " + std::to_string(count));
    return made;
  }
  /// Some steps of a state, the later ones through a graph.
  Status decode(const std::string &plan, int count, int64_t chunk = 5) {
    HYB_ASSIGN(std::unique_ptr<Runtime> runtime, runtimeFor("cuda:0"));
    HYB_ASSIGN(std::unique_ptr<Model> model,
               open(*runtime, sections(plan, count)));
    HYB_TRY(model->initialise(5));
    hyb_context_options room;
    hyb_context_options_init(&room, sizeof(room));
    HYB_ASSIGN(std::unique_ptr<Context> context, Context::create(*model, room));
    hyb_state_options options;
    hyb_state_options_init(&options, sizeof(options));
    options.slots = 2;
    options.chunk = chunk;
    HYB_ASSIGN(std::unique_ptr<State> state, State::create(*model, options));
    for (int32_t id = 0; id < 4; ++id) {
      Sequence token(&id, nullptr, 1);
      const float *logits = nullptr;
      HYB_TRY(context->extend(*state, token.batch(), HYB_LOGITS_LAST, &logits));
    }
    return Status();
  }
  void expectBad(const std::string &maps, const std::string &text) {
    expectRefused(decode(planWith(maps), 1), HYB_INVALID_FILE, text);
  }
};

constexpr const char *kGood =
    R"([{"view": 0, "type": "bf16", "box": [8, 64]}])";

} // namespace

TEST_F(TensorMaps, AreEncodedOnceForASetOfAddresses) {
  Status status = decode(planWith(kGood), 1);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(gpu->tensorMaps, 1);
  EXPECT_EQ(gpu->graphLaunches, 3);
}

TEST_F(TensorMaps, SeveralFollowTheStructure) {
  // The second is of the state's sums, which are [slots, 8].
  Status status =
      decode(planWith(R"([{"view": 0, "type": "bf16", "box": [8, 64]},
                          {"view": 3, "type": "f16", "box": [1, 64]}])"),
             2);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(gpu->tensorMaps, 2);
}

TEST_F(TensorMaps, StridesOfTheViewAreToldWhereTheyDoNotFit) {
  // The ring's rows have 3 elements and a chunk.
  std::string plan =
      planWith(R"([{"view": 4, "type": "bf16", "box": [1, 64]}])");
  EXPECT_TRUE(decode(plan, 1, /*chunk=*/5).ok());
  Status status = decode(plan, 1, /*chunk=*/4);
  expectRefused(
      status, HYB_DEVICE,
      "cannot make a tensor map of view 4 for layer 0 mixer of extend");
  expectRefused(status, HYB_DEVICE, "must be multiples of 16 bytes");
}

TEST_F(TensorMaps, BadPlansAreRefused) {
  expectBad("3", "'maps'");
  expectBad("[3]", "plan kernel 3 map 0");
  expectBad(R"([{"type": "bf16", "box": [8, 64]}])", "'view'");
  expectBad(R"([{"view": -1, "type": "bf16", "box": [8, 64]}])",
            "'view' is -1, of 65535");
  expectBad(R"([{"view": 0, "type": "f32", "box": [8, 64]}])",
            "type 'f32' is not bf16 or f16");
  expectBad(R"([{"view": 0, "type": "bf16", "box": [0, 64]}])",
            "'box' holds a value that is no number from 1 to 256");
  expectBad(R"([{"view": 0, "type": "bf16", "box": [1e30, 64]}])",
            "'box' holds a value that is no number from 1 to 256");
  expectBad(R"([{"view": 0, "type": "bf16", "box": [8, 32]}])",
            "'box' has 2 sizes, expected 1 to 4, the last 64");
  expectBad(R"([{"view": 0, "type": "bf16", "box": []}])", "'box' has 0 sizes");
  expectBad(R"([{"view": 0, "type": "bf16", "box": [1, 1, 1, 1, 64]}])",
            "'box' has 5 sizes");
  std::string many = "[";
  for (int n = 0; n < 17; ++n)
    many += std::string(n ? ", " : "") +
            R"({"view": 0, "type": "bf16", "box": [8, 64]})";
  expectBad(many + "]",
            "17 tensor maps; a kernel of an accelerator has at most "
            "16, others none");
  // What only a launch shows.
  expectBad(R"([{"view": 9, "type": "bf16", "box": [8, 64]}])",
            "a tensor map of 2 dimensions for view 9, which has 0, of 6 views");
  expectBad(R"([{"view": 0, "type": "bf16", "box": [1, 8, 64]}])",
            "a tensor map of 3 dimensions for view 0, which has 2, of 6 views");
}

TEST_F(TensorMaps, KernelsOfTheProcessorHaveNone) {
  auto runtime = runtimeFor("cpu");
  ASSERT_TRUE(runtime.ok());
  std::vector<SectionToBuild> made = fixtureSections();
  for (SectionToBuild &section : made)
    if (section.kind == "plan")
      section.content = planWith(kGood, "extend_last", /*onGpu=*/false);
  expectRefused(open(**runtime, made).status(), HYB_INVALID_FILE,
                "1 tensor maps; a kernel of an accelerator");
}
