//===- RecurrenceTest.cpp - chunked programs against the definition -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RecurrenceHarness.h"
#include <gtest/gtest.h>

using namespace hybrid::tile;
using namespace hybrid::tile::test;

static constexpr double kExact = 1e-9;  // relative, f64
static constexpr double kSingle = 1e-5; // relative, f32

static RecurrenceShape shapeOf(RecurrenceUpdate update, RecurrenceDecay decay) {
  RecurrenceShape shape;
  shape.update = update;
  shape.decay = decay;
  shape.keyDim = 16;
  shape.valueDim = 8;
  shape.scale = 0.25;
  return shape;
}

static void expectOutputs(Call call, double tolerance, Arithmetic arithmetic) {
  SCOPED_TRACE(print(call));
  HostBuffer finalState = call.state;
  HostBuffer expected = define(call, call.shape.hasState ? &finalState : nullptr);
  HostBuffer output = run(buildRecurrenceForward, call, arithmetic);
  EXPECT_LE(difference(output, expected, call), tolerance);
  if (call.shape.hasState)
    EXPECT_LE(difference(call.state, finalState), tolerance);
}

static void expectGradients(const Call &call, double tolerance, Arithmetic arithmetic) {
  SCOPED_TRACE(print(call));
  Gradients expected = defineGradients(call);
  Gradients got = runBackward(call, arithmetic);
  EXPECT_LE(difference(got.query, expected.query, call), tolerance) << "dq";
  EXPECT_LE(difference(got.key, expected.key, call), tolerance) << "dk";
  EXPECT_LE(difference(got.value, expected.value, call), tolerance) << "dv";
  if (call.shape.hasDecay())
    EXPECT_LE(difference(got.decay, expected.decay, call), tolerance) << "ddecay";
  if (call.shape.isDelta())
    EXPECT_LE(difference(got.beta, expected.beta, call), tolerance) << "dbeta";
  if (call.shape.hasState)
    EXPECT_LE(difference(got.initial, expected.initial), tolerance) << "dinitial";
}

//===----------------------------------------------------------------------===//
// Every update and decay
//===----------------------------------------------------------------------===//

class Recurrence
    : public testing::TestWithParam<std::tuple<RecurrenceUpdate, RecurrenceDecay>> {
protected:
  RecurrenceShape shape() const {
    return shapeOf(std::get<0>(GetParam()), std::get<1>(GetParam()));
  }
};

INSTANTIATE_TEST_SUITE_P(
    All, Recurrence,
    testing::Combine(testing::Values(RecurrenceUpdate::Additive, RecurrenceUpdate::Delta),
                     testing::Values(RecurrenceDecay::None, RecurrenceDecay::PerHead,
                                     RecurrenceDecay::PerChannel)));

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
  grouped.heads = 6;
  grouped.kvHeads = 2;
  Call call(grouped, {{20}, {70}});
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

TEST_P(Recurrence, Float) {
  Call call(shape(), {{200}, {65}});
  fill(call);
  expectOutputs(call, kSingle, Arithmetic::f32);
  expectGradients(call, kSingle, Arithmetic::f32);
}

TEST_P(Recurrence, BetaAtItsEnds) {
  if (!shape().isDelta())
    return;
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
    return;
  for (GateKind gates : {GateKind::Alternating, GateKind::Mixed, GateKind::Strong}) {
    Call call(shape(), {{130}, {65}});
    fill(call, {gates, {}, 1});
    expectOutputs(call, kExact, Arithmetic::f64);
    expectGradients(call, kExact, Arithmetic::f64);
    expectOutputs(call, kSingle, Arithmetic::f32);
    expectGradients(call, kSingle, Arithmetic::f32);
  }
}
