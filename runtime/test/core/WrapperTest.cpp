//===- WrapperTest.cpp ---------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../TemporaryFolder.h"
#include "../fixture/FixtureModel.h"
#include "hybrid/runtime.hpp"

#include <gtest/gtest.h>

using hyb::test::TemporaryFolder;

namespace {

class Wrapper : public testing::Test {
protected:
  TemporaryFolder folder;
  std::string path = folder.write("a.hbx", hyb::test::fixtureArtefact());
  hyb::Runtime runtime{2};
  hyb::Model model{runtime, path};
};

} // namespace

TEST_F(Wrapper, RunsAndTrains) {
  model.initialise(3);
  EXPECT_STREQ(model.info().name, "fixture");
  hyb::Context context(model);
  hyb::State state(model, {2, 32, 0, 2});
  hyb::Batch batch;
  batch.add({1, 2, 3}, 1);
  batch.add({4}, 0);
  const float *logits = context.extend(state, batch);
  std::vector<float> first(logits, logits + 16);
  EXPECT_EQ(state.length(1), 3);
  hyb::Snapshot snapshot = state.snapshot(1);
  hyb::Batch more;
  more.add({5}, 1);
  context.extend(state, more);
  context.rollback(state, 1, 1);
  state.fork(1, 0);
  state.restore(0, snapshot);
  EXPECT_EQ(state.length(0), 3);
  state.save(0, folder.path("s"));
  state.load(1, folder.path("s"));
  state.reset(0);
  EXPECT_EQ(state.length(0), 0);

  hyb::Trainer trainer(context);
  hyb::Batch labelled;
  labelled.add({1, 2});
  labelled.labels = {2, -100};
  EXPECT_EQ(trainer.accumulate(labelled).second, 1);
  EXPECT_EQ(trainer.update(0.1f).step, 1);
  EXPECT_GE(context.loss(labelled)[0], 0);
  trainer.save(folder.path("t"));
  trainer.load(folder.path("t"));
  model.saveWeights(folder.path("w"));
  model.loadWeights(folder.path("w"));
  EXPECT_EQ(model.parameter(0).rank, 2);
}

TEST_F(Wrapper, FailuresAreExceptions) {
  try {
    model.loadWeights(folder.path("none"));
    FAIL() << "no exception";
  } catch (const hyb::Error &error) {
    EXPECT_EQ(error.status(), HYB_IO);
    EXPECT_NE(std::string(error.what()).find("cannot open"), std::string::npos);
  }
}

TEST_F(Wrapper, CallbacksStopAndThrow) {
  model.initialise(3);
  hyb::Context context(model);
  hyb::State state(model);
  int tokens = 0;
  EXPECT_FALSE(context.generate(state, 0, "\1\2", {},
                                [&](int32_t) { return ++tokens < 3; }));
  EXPECT_EQ(tokens, 3);
  EXPECT_THROW(
      context.generate(state, 0, "\1", {}, [](int32_t) -> bool { throw 7; }),
      int);
  EXPECT_THROW(context.generate(state, 0, "", {}, [](int32_t) { return true; }),
               hyb::Error);
}
