//===- RecurrenceTest.cpp - chunked programs against the definition ------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RecurrenceHarness.h"
#include <gtest/gtest.h>

using namespace hybrid::tile;
using namespace hybrid::tile::test;

class Recurrence : public EveryRecurrence {};
INSTANTIATE_TEST_SUITE_P(All, Recurrence, everyRecurrence());

TEST_P(Recurrence, LengthsAroundAChunk) {
  for (int64_t length : {0, 1, 15, 16, 17, 63, 64, 65, 130, 200}) {
    Call call(shape(), {{length}});
    fill(call, {GateKind::Ordinary, {}, unsigned(length)});
    expectOutputs(call, kExact, Arithmetic::f64);
    expectGradients(call, kExact, Arithmetic::f64);
  }
}

TEST_P(Recurrence, PackedSegments) {
  Call call(shape(), {{3}, {0}, {65}, {1}, {0}, {64}, {20}});
  fill(call);
  expectOutputs(call, kExact, Arithmetic::f64);
  expectGradients(call, kExact, Arithmetic::f64);
}

TEST_P(Recurrence, StatesAndTheirGradients) {
  RecurrenceShape withState = shape();
  withState.hasState = withState.hasFinalCotangent = true;
  withState.heads = 2;
  withState.kvHeads = 2;
  Call call(withState, {{70, 2}, {0, 0}, {33, 1}}, 3);
  fill(call);
  expectOutputs(call, kExact, Arithmetic::f64);
  expectGradients(call, kExact, Arithmetic::f64);
}

TEST_P(Recurrence, GroupedHeadsSumTheirGradients) {
  RecurrenceShape grouped = shape();
  grouped.heads = 4;
  grouped.kvHeads = 2;
  Call call(grouped, {{5}, {66}});
  fill(call);
  expectOutputs(call, kExact, Arithmetic::f64);
  expectGradients(call, kExact, Arithmetic::f64);
}

TEST_P(Recurrence, WideValues) {
  RecurrenceShape wide = shape();
  wide.keyDim = 8;
  wide.valueDim = 40;
  Call call(wide, {{70}});
  fill(call);
  expectOutputs(call, kExact, Arithmetic::f64);
  expectGradients(call, kExact, Arithmetic::f64);
}

TEST_P(Recurrence, BlocksOfValueColumns) {
  RecurrenceShape blocks = shape();
  blocks.valueDim = 24;
  blocks.valueTile = 8;
  blocks.heads = 4;
  blocks.kvHeads = 2;
  Call call(blocks, {{70}, {0}, {17}});
  fill(call);
  expectOutputs(call, kExact, Arithmetic::f64);
  expectGradients(call, kExact, Arithmetic::f64);
}

TEST_P(Recurrence, BlocksOfValueColumnsWithStates) {
  RecurrenceShape blocks = shape();
  blocks.hasState = blocks.hasFinalCotangent = true;
  blocks.valueDim = 16;
  blocks.valueTile = 8;
  Call call(blocks, {{70, 2}, {0, 0}, {33, 1}}, 3);
  fill(call);
  expectOutputs(call, kExact, Arithmetic::f64);
  expectGradients(call, kExact, Arithmetic::f64);
}

TEST_P(Recurrence, Float) {
  Call call(shape(), {{200}, {65}});
  fill(call);
  expectOutputs(call, kSingle, Arithmetic::f32);
  expectGradients(call, kSingle, Arithmetic::f32);
}

TEST_P(Recurrence, WithoutBeta) {
  if (!shape().isDelta())
    GTEST_SKIP() << "additive";
  RecurrenceShape whole = shape();
  whole.beta = false;
  Call call(whole, {{70}});
  fill(call);
  expectOutputs(call);
  expectOutputs(call, kExact, Arithmetic::f64, buildRecurrenceStep);
  expectGradients(call);
}

TEST_P(Recurrence, BetaAtItsEnds) {
  if (!shape().isDelta())
    GTEST_SKIP() << "additive";
  for (double beta : {0.0, 1.0, 1.9}) {
    Call call(shape(), {{130}});
    fill(call, {GateKind::Ordinary, beta, 1});
    expectOutputs(call, kExact, Arithmetic::f64);
    expectGradients(call, kExact, Arithmetic::f64);
  }
}

// LIN-04, LIN-05: what is finite does not depend on how strong gates are.
TEST_P(Recurrence, StrongGates) {
  if (!shape().hasDecay())
    GTEST_SKIP() << "no gates";
  for (GateKind gates :
       {GateKind::Alternating, GateKind::Mixed, GateKind::Strong}) {
    Call call(shape(), {{97}});
    fill(call, {gates, {}, 1});
    expectOutputs(call, kExact, Arithmetic::f64);
    expectGradients(call, kExact, Arithmetic::f64);
    expectOutputs(call, kSingle, Arithmetic::f32);
    expectGradients(call, kSingle, Arithmetic::f32);
  }
}
