//===- OverlapTest.cpp - Kernels that begin early -------------------------===//
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

/// The fixture, of whose loss one kernel may begin early.
class Overlap : public FakeCuda {
protected:
  static std::string planWith(const std::string &flag,
                              const std::string &key = "overlaps") {
    std::string row = "\"symbol\": \"squared_loss\", ";
    return replaced(fixturePlan(/*gpu=*/true), row,
                    row + "\"" + key + "\": " + flag + ", ");
  }
  /// The losses of some calls, the later ones through a graph.
  Status losses(const std::string &plan, std::vector<float> &values) {
    HYB_ASSIGN(std::unique_ptr<Runtime> runtime, runtimeFor("cuda:0"));
    HYB_ASSIGN(std::unique_ptr<Model> model,
               open(*runtime, withSection("plan", kFakeChip, plan)));
    HYB_TRY(model->initialise(5));
    hyb_context_options room;
    hyb_context_options_init(&room, sizeof(room));
    HYB_ASSIGN(std::unique_ptr<Context> context, Context::create(*model, room));
    std::vector<int32_t> ids = {1, 2, 5};
    Sequence sequence(ids, ids);
    for (int call = 0; call < 3; ++call) {
      const float *loss = nullptr;
      HYB_TRY(context->loss(sequence.batch(), &loss));
      values.insert(values.end(), loss, loss + 3);
    }
    return Status();
  }
};

} // namespace

TEST_F(Overlap, IsAnEdgeOfItsOwn) {
  std::vector<float> early, late;
  Status status = losses(planWith("true"), early);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(gpu->earlyEdges, 1);
  // It would wait for an empty processor if that had to be divided anew.
  EXPECT_EQ(gpu->carvedOut, 1);
  EXPECT_TRUE(losses(planWith("false"), late).ok());
  EXPECT_EQ(gpu->earlyEdges, 1);
  EXPECT_EQ(gpu->carvedOut, 1);
  EXPECT_EQ(gpu->graphLaunches, 4);
  EXPECT_EQ(early, late);
}

TEST_F(Overlap, DriversThatRefuseItGetAnOrdinaryChain) {
  gpu->earlyEdges = -1;
  std::vector<float> values;
  Status status = losses(planWith("true"), values);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(gpu->graphLaunches, 2);
  EXPECT_EQ(gpu->earlyEdges, -1);
}

TEST_F(Overlap, BadPlansAreRefused) {
  std::vector<float> values;
  expectRefused(losses(planWith("3"), values), HYB_INVALID_FILE,
                "'overlaps' is number, expected a truth value");
}

// The fixture's kernel takes one task per block, whatever the plan says of it,
// so what is counted is blocks: three tasks, a GPU of two processors, three
// calls.
TEST_F(Overlap, APersistentKernelHasABlockPerProcessor) {
  std::vector<float> values;
  EXPECT_TRUE(losses(planWith("false", "persistent"), values).ok());
  int64_t all = gpu->blocks;
  Status status = losses(planWith("true", "persistent"), values);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(gpu->blocks - all, all - 3);
  expectRefused(losses(planWith("3", "persistent"), values), HYB_INVALID_FILE,
                "'persistent' is number, expected a truth value");
}
