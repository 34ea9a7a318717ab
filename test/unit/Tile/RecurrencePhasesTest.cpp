//===- RecurrencePhasesTest.cpp - all chunks at once -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RecurrenceHarness.h"
#include <gtest/gtest.h>

using namespace hybrid::tile;
using namespace hybrid::tile::test;

class RecurrencePhases : public EveryRecurrence {
protected:
  static void expectBoth(Call call, double tolerance = kExact,
                         Arithmetic arithmetic = Arithmetic::f64) {
    SCOPED_TRACE(print(call));
    expectGradients(call, tolerance, arithmetic, runPhasesBackward);
    HostBuffer finalState = call.state;
    HostBuffer expected =
        define(call, call.shape.hasState ? &finalState : nullptr);
    EXPECT_LE(difference(runPhases(call, arithmetic), expected, call),
              tolerance);
  }
};
INSTANTIATE_TEST_SUITE_P(All, RecurrencePhases, everyRecurrence());

TEST_P(RecurrencePhases, LengthsAroundAChunk) {
  for (int64_t length : {0, 1, 15, 16, 17, 63, 64, 65, 130, 200}) {
    Call call(shape(), {{length}});
    fill(call, {GateKind::Ordinary, {}, unsigned(length)});
    expectBoth(call);
  }
}

TEST_P(RecurrencePhases, PairsByHalves) {
  RecurrenceShape halves = shape();
  if (halves.decay != RecurrenceDecay::PerChannel)
    GTEST_SKIP() << "no decay per channel";
  halves.byHalves = true;
  for (int64_t chunk : {16, 64})
    for (int64_t length : {0, 1, 15, 64, 65, 130}) {
      halves.chunk = chunk;
      Call call(halves, {{length}, {3}});
      fill(call, {GateKind::Ordinary, {}, unsigned(length)});
      expectOutputs(call);
      expectGradients(call);
      expectBoth(call);
    }
  for (GateKind gates : {GateKind::Alternating, GateKind::Mixed,
                         GateKind::Strong, GateKind::Zero}) {
    Call call(halves, {{130}});
    fill(call, {gates, {}, 3});
    expectBoth(call, kSingle, Arithmetic::f32);
  }
}

TEST_P(RecurrencePhases, PackedSegmentsAndBlocksOfValueColumns) {
  RecurrenceShape blocks = shape();
  blocks.heads = blocks.kvHeads = 2;
  blocks.valueDim = 24;
  blocks.valueTile = 8;
  Call call(blocks, {{3}, {0}, {65}, {1}, {0}, {64}, {20}});
  fill(call);
  expectBoth(call);
}

TEST_P(RecurrencePhases, StatesAndGroupsOfHeadsForward) {
  RecurrenceShape withState = shape();
  withState.hasState = true;
  withState.heads = 4;
  withState.kvHeads = 2;
  Call call(withState, {{70, 2}, {0, 0}, {33, 1}}, 3);
  fill(call);
  HostBuffer finalState = call.state;
  HostBuffer expected = define(call, &finalState);
  EXPECT_LE(difference(runPhases(call), expected, call), kExact);
  EXPECT_LE(difference(call.state, finalState), kExact);
}

TEST_P(RecurrencePhases, GatesOfEveryStrengthInSinglePrecision) {
  for (GateKind gates : {GateKind::Alternating, GateKind::Mixed,
                         GateKind::Strong, GateKind::Zero}) {
    Call call(shape(), {{130}});
    fill(call, {gates, {}, 3});
    expectBoth(call, kSingle, Arithmetic::f32);
  }
}
