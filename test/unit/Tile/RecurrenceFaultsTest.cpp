//===- RecurrenceFaultsTest.cpp - cases and golden values of the family --===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Public fault reports, by their case id, and the golden values of
// mixers.md 1.9.
//
//===----------------------------------------------------------------------===//

#include "RecurrenceHarness.h"
#include <cmath>

using namespace hybrid::tile;
using namespace hybrid::tile::test;

namespace {
/// Entry n of a tensor that is counted row-major.
double gen(double c, int64_t n) { return std::sin(0.7 * n + c); }
double softplus(double x) { return std::log1p(std::exp(x)); }
double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

void normalizeKeys(Call &call) {
  int64_t K = call.shape.keyDim;
  for (int64_t t = 0; t < call.tokens(); ++t) {
    double square = 1e-6;
    for (int64_t i = 0; i < K; ++i)
      square += call.key({t, 0, i}) * call.key({t, 0, i});
    for (int64_t i = 0; i < K; ++i)
      call.key({t, 0, i}) /= std::sqrt(square);
  }
}

/// Fixture GDN-5: T = 5, one head, K = 3, V = 2, scale 1.
Call gdn5(RecurrenceDecay decay = RecurrenceDecay::PerHead, int64_t slots = 0) {
  RecurrenceShape shape;
  shape.update = RecurrenceUpdate::Delta;
  shape.decay = decay;
  shape.keyDim = 3;
  shape.valueDim = 2;
  shape.hasState = slots > 0;
  Call call(shape, {{5}}, slots);
  for (int64_t t = 0; t < 5; ++t) {
    for (int64_t i = 0; i < 3; ++i) {
      call.query({t, 0, i}) = gen(0.1, 3 * t + i);
      call.key({t, 0, i}) = gen(0.2, 3 * t + i);
    }
    for (int64_t j = 0; j < 2; ++j) {
      call.value({t, 0, j}) = gen(0.3, 2 * t + j);
      call.dOutput({t, 0, j}) = gen(0.9, 2 * t + j);
    }
    call.decay({t, 0, 0}) = -softplus(gen(0.4, t));
    call.beta({t, 0}) = sigmoid(gen(0.5, t));
  }
  normalizeKeys(call);
  for (int64_t i = 0; i < 3 && slots; ++i)
    for (int64_t j = 0; j < 2; ++j) {
      call.state({0, 0, i, j}) = gen(0.8, 2 * i + j);
      call.dFinal({0, 0, i, j}) = gen(1.1, 2 * i + j);
    }
  return call;
}

double total(const HostBuffer &output, int64_t rows) {
  double sum = 0;
  for (double x : output.elements().take_front(rows * output.shape()[1] *
                                               output.shape()[2]))
    sum += x;
  return sum;
}

void expectRow(const HostBuffer &buffer, int64_t row,
               std::vector<double> expected, double tolerance = 1e-5) {
  for (auto [j, x] : llvm::enumerate(expected))
    EXPECT_NEAR(buffer({row, 0, int64_t(j)}), x, tolerance)
        << "row " << row << ", " << j;
}

void expectColumn(const HostBuffer &buffer, std::vector<double> expected,
                  double tolerance = 1e-5) {
  int64_t width = buffer.elements().size() / buffer.shape()[0];
  for (auto [t, x] : llvm::enumerate(expected))
    EXPECT_NEAR(buffer.elements()[t * width], x, tolerance) << "row " << t;
}

/// q = k = 1/8 in 64 channels and v = 1: every output is a scalar recurrence.
Call scalarCase(int64_t tokens, double beta,
                std::function<double(int64_t)> gate) {
  RecurrenceShape shape;
  shape.update = RecurrenceUpdate::Delta;
  shape.decay = gate ? RecurrenceDecay::PerHead : RecurrenceDecay::None;
  Call call(shape, {{tokens}});
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t i = 0; i < 64; ++i) {
      call.query({t, 0, i}) = call.key({t, 0, i}) = 0.125;
      call.value({t, 0, i}) = 1.0;
      call.dOutput({t, 0, i}) = 1.0;
    }
    call.beta({t, 0}) = beta;
    if (gate)
      call.decay({t, 0, 0}) = gate(t);
  }
  return call;
}
} // namespace

//===----------------------------------------------------------------------===//
// Strong gates
//===----------------------------------------------------------------------===//

TEST(RecurrenceFaults, LIN04_GateBoundDoesNotDecideWhatIsFinite) {
  for (double bound : {-5.0, -1.0}) {
    RecurrenceShape shape;
    shape.decay = RecurrenceDecay::PerChannel;
    shape.keyDim = shape.valueDim = 32;
    Call call(shape, {{256}});
    fill(call);
    for (double &g : call.decay.elements().take_front(256 * 32))
      g = bound;
    expectOutputs(call, 1e-5, Arithmetic::f32);
    expectGradients(call, 1e-5, Arithmetic::f32);
  }
}

TEST(RecurrenceFaults, LIN05_AlternatingStrongGates) {
  auto gate = [](int64_t t) { return t % 2 == 0 ? -30.0 : 0.0; };
  for (BuildProgram build : {buildRecurrenceForward, buildRecurrenceStep}) {
    Call call = scalarCase(64, 0.5, gate);
    HostBuffer output = run(build, call, Arithmetic::f32);
    for (int64_t t = 0; t < 64; ++t)
      EXPECT_NEAR(output({t, 0, 0}), t % 2 == 0 ? 0.5 : 0.75, 1e-6);
  }
  // T and N of the WY form are what the backward keeps: finite as well.
  expectGradients(scalarCase(64, 0.5, gate), 1e-5, Arithmetic::f32);
}

TEST(RecurrenceFaults, LIN06_NormalisedKeysStayFinite) {
  RecurrenceShape shape;
  shape.update = RecurrenceUpdate::Delta;
  Call call(shape, {{64}});
  fill(call, {GateKind::Zero, 0.5, 1});
  for (int64_t n = 0; n < 64 * 64; ++n) {
    call.key.elements()[n] = gen(0.2, n);
    call.value.elements()[n] = 1.0;
  }
  normalizeKeys(call);
  expectOutputs(call, 1e-5, Arithmetic::f32);
}

//===----------------------------------------------------------------------===//
// Gated and ungated, order of decay and error
//===----------------------------------------------------------------------===//

TEST(RecurrenceFaults, LIN08_GateHeldAtZeroIsTheUngatedRule) {
  Call gated = gdn5(), plain = gdn5(RecurrenceDecay::None);
  for (int64_t t = 0; t < 5; ++t)
    gated.decay({t, 0, 0}) = 0.0;
  for (Call *call : {&gated, &plain}) {
    HostBuffer output = run(buildRecurrenceForward, *call);
    expectRow(output, 4, {0.078574, 0.403664});
    EXPECT_NEAR(total(output, 5), 0.055252, 1e-5);
  }

  Call strong = scalarCase(130, 1.9, [](int64_t) { return 0.0; });
  Call ungated = scalarCase(130, 1.9, nullptr);
  HostBuffer one = run(buildRecurrenceForward, strong, Arithmetic::f32);
  HostBuffer two = run(buildRecurrenceForward, ungated, Arithmetic::f32);
  for (int64_t t = 0; t < 130; ++t) {
    EXPECT_NEAR(one({t, 0, 0}), 1.0 - std::pow(-0.9, t + 1), 1e-5);
    EXPECT_NEAR(one({t, 0, 0}), two({t, 0, 0}), 1e-6);
  }
}

TEST(RecurrenceFaults, LIN09_DecayComesBeforeTheError) {
  for (BuildProgram build : {buildRecurrenceForward, buildRecurrenceStep})
    for (bool hasState : {false, true}) {
      Call call = gdn5(RecurrenceDecay::PerHead, hasState ? 1 : 0);
      for (double &x : call.state.elements())
        x = 0.0;
      HostBuffer output = run(build, call);
      expectRow(output, 4, {-0.155340, 0.164750});
      EXPECT_NEAR(total(output, 5), -0.056920, 1e-5);
      if (hasState) {
        EXPECT_NEAR(call.state({0, 0, 0, 0}), -0.207366, 1e-5);
        EXPECT_NEAR(call.state({0, 0, 0, 1}), 0.081415, 1e-5);
      }
    }
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

TEST(RecurrenceFaults, LIN11_GradientsWithoutAGate) {
  Call absent = gdn5(RecurrenceDecay::None), zero = gdn5();
  for (int64_t t = 0; t < 5; ++t)
    zero.decay({t, 0, 0}) = 0.0;
  for (const Call *call : {&absent, &zero}) {
    Gradients got = runBackward(*call);
    expectRow(got.key, 0, {0.235505, 0.580378, 0.652291}, 1e-4);
    expectRow(got.key, 4, {-0.328170, 0.014652, 0.350582}, 1e-4);
    expectColumn(got.beta, {1.452914, 1.691005, -0.358575, 1.516038, -0.427853},
                 1e-4);
  }
}

TEST(RecurrenceFaults, LIN13_GateGradientThroughTheFinalState) {
  Call a = gdn5(RecurrenceDecay::PerHead, 1);
  Gradients lossA = runBackward(a);
  expectColumn(lossA.decay,
               {-0.088727, 0.059358, 0.079759, 0.036573, 0.026154});
  EXPECT_NEAR(lossA.initial({0, 0, 0, 0}), 0.019274, 1e-5);
  EXPECT_NEAR(lossA.initial({0, 0, 0, 1}), 0.001402, 1e-5);

  Call b = a;
  b.shape.hasFinalCotangent = true;
  Gradients lossB = runBackward(b);
  expectColumn(lossB.decay,
               {-0.086147, 0.059729, 0.112165, 0.087271, 0.179964});
  EXPECT_NEAR(lossB.initial({0, 0, 0, 0}), 0.018843, 1e-5);
  EXPECT_NEAR(lossB.initial({0, 0, 0, 1}), 0.001964, 1e-5);
}

TEST(RecurrenceFaults, LIN17_GradientOfTheInitialState) {
  for (RecurrenceUpdate update :
       {RecurrenceUpdate::Additive, RecurrenceUpdate::Delta}) {
    RecurrenceShape shape = smallShape(update, RecurrenceDecay::PerHead);
    shape.hasState = true;
    shape.heads = shape.kvHeads = 2;
    Call call(shape, {{512}}, 1);
    fill(call);
    for (double &g : call.decay.elements().take_front(512 * 2))
      g = -0.01;
    expectGradients(call, 1e-5, Arithmetic::f32);
  }
}

//===----------------------------------------------------------------------===//
// Tails and segments
//===----------------------------------------------------------------------===//

// The harness holds NaN past the last row; here the bits with zeros there.
TEST(RecurrenceFaults, LIN15_RowsPastTheEndDoNotLeak) {
  for (RecurrenceUpdate update :
       {RecurrenceUpdate::Additive, RecurrenceUpdate::Delta})
    for (RecurrenceDecay decay :
         {RecurrenceDecay::PerHead, RecurrenceDecay::PerChannel}) {
      Call poisoned(smallShape(update, decay), {{65}});
      fill(poisoned);
      auto withTail = [&](double x) {
        Call call = poisoned;
        for (HostBuffer *b : {&call.query, &call.key, &call.value, &call.decay,
                              &call.beta, &call.dOutput})
          for (double &y : b->elements())
            y = std::isnan(y) ? x : y;
        return call;
      };
      Call zeros = withTail(0.0), infinite = withTail(INFINITY);
      HostBuffer expected = run(buildRecurrenceForward, zeros, Arithmetic::f32);
      Gradients gradients = runBackward(zeros, Arithmetic::f32);
      for (Call *call : {&poisoned, &infinite}) {
        EXPECT_EQ(
            difference(run(buildRecurrenceForward, *call, Arithmetic::f32),
                       expected, zeros),
            0.0);
        Gradients got = runBackward(*call, Arithmetic::f32);
        EXPECT_EQ(difference(got.key, gradients.key, zeros), 0.0);
        EXPECT_EQ(difference(got.decay, gradients.decay, zeros), 0.0);
      }
    }
}

// VAR-01, VAR-02: an empty segment is legal, and no state crosses a boundary.
TEST(RecurrenceFaults, VAR01_EmptySegmentKeepsItsState) {
  Call one = gdn5(RecurrenceDecay::PerHead, 3);
  Call call = one;
  call.pieces = {{3, 0}, {0, 2}, {2, 1}};
  for (int64_t slot : {1, 2})
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t j = 0; j < 2; ++j)
        call.state({slot, 0, i, j}) = 10 * slot + i + j;
  expectOutputs(call);
  HostBuffer before = call.state;
  run(buildRecurrenceForward, call);
  for (int64_t i = 0; i < 3; ++i)
    EXPECT_EQ(call.state({2, 0, i, 0}), before({2, 0, i, 0}));
}

TEST(RecurrenceFaults, LIN31_KeyHeadsAreSharedBlockwise) {
  RecurrenceShape shape =
      smallShape(RecurrenceUpdate::Delta, RecurrenceDecay::None);
  shape.heads = 4;
  shape.kvHeads = 2;
  shape.keyDim = shape.valueDim = 8;
  shape.scale = 1.0;
  shape.hasState = true;
  Call call(shape, {{1}}, 1);
  for (double &x : call.query.elements().take_front(32))
    x = 0.0;
  for (int64_t g = 0; g < 2; ++g)
    for (int64_t i = 0; i < 8; ++i) {
      call.key({0, g, i}) = i == g;
      call.value({0, g, i}) = g + 1;
    }
  for (int64_t h = 0; h < 4; ++h)
    call.beta({0, h}) = 1.0;
  run(buildRecurrenceForward, call);
  for (int64_t h = 0; h < 4; ++h)
    for (int64_t i = 0; i < 8; ++i)
      EXPECT_EQ(call.state({0, h, i, 0}), i == h / 2 ? h / 2 + 1 : 0)
          << h << " " << i;
}

//===----------------------------------------------------------------------===//
// Golden values
//===----------------------------------------------------------------------===//

namespace {
struct Golden {
  const char *name;
  RecurrenceUpdate update;
  RecurrenceDecay decay;
  bool normalized;
  std::function<double(double x0, double x)> gate;
  double o2[2], o4[2], state[4];
};
} // namespace

TEST(RecurrenceGolden, Mixers) {
  auto F = [](double a, int64_t t, int64_t i) {
    return std::sin(a + 1.3 * t + 0.7 * i);
  };
  using U = RecurrenceUpdate;
  using D = RecurrenceDecay;
  const Golden table[] = {
      {"linear attention",
       U::Additive,
       D::None,
       false,
       nullptr,
       {0.0368520, -0.1180187},
       {-1.5262399, -0.5092532},
       {1.7357438, 0.2440443, 2.5547117, 1.8505865}},
      {"RetNet head 0",
       U::Additive,
       D::PerHead,
       false,
       [](double, double) { return std::log(1 - 1.0 / 32); },
       {0.0325421, -0.1170207},
       {-1.4059994, -0.4594294},
       {1.5933124, 0.1996883, 2.3703819, 1.7305314}},
      {"GLA",
       U::Additive,
       D::PerChannel,
       false,
       [](double, double x) { return -softplus(-x) / 16; },
       {0.0265898, -0.1149940},
       {-1.3719044, -0.4454401},
       {1.5470078, 0.1827742, 2.3357386, 1.7101072}},
      {"DeltaNet",
       U::Delta,
       D::None,
       true,
       nullptr,
       {-0.0125300, -0.1092750},
       {-0.3552001, 0.0065040},
       {0.3036419, -0.2554993, 0.6738821, 0.7321306}},
      {"GDN",
       U::Delta,
       D::PerHead,
       true,
       [](double x0, double) { return -2 * softplus(x0 - 1); },
       {-0.0214814, -0.0949499},
       {-0.0730795, 0.0140690},
       {-0.0360798, -0.2349864, 0.4321919, 0.6374161}},
      {"KDA",
       U::Delta,
       D::PerChannel,
       true,
       [](double, double x) { return -2 * softplus(x - 1); },
       {-0.0202594, -0.0956905},
       {-0.0764028, 0.0127955},
       {-0.0310119, -0.2319848, 0.4318635, 0.6341341}},
  };
  for (const Golden &row : table) {
    SCOPED_TRACE(row.name);
    RecurrenceShape shape;
    shape.update = row.update;
    shape.decay = row.decay;
    shape.keyDim = shape.valueDim = 2;
    shape.scale = std::sqrt(0.5);
    shape.hasState = true;
    Call call(shape, {{5}}, 1);
    auto unit = [&](double a, int64_t t, int64_t i) {
      double square = 1e-6 + F(a, t, 0) * F(a, t, 0) + F(a, t, 1) * F(a, t, 1);
      return row.normalized ? F(a, t, i) / std::sqrt(square) : F(a, t, i);
    };
    for (int64_t t = 0; t < 5; ++t) {
      for (int64_t i = 0; i < 2; ++i) {
        call.query({t, 0, i}) = unit(0.1, t, i);
        call.key({t, 0, i}) = unit(0.9, t, i);
        call.value({t, 0, i}) = F(1.7, t, i);
        if (i < shape.decayDim() && row.gate)
          call.decay({t, 0, i}) = row.gate(F(2.5, t, 0), F(2.5, t, i));
      }
      call.beta({t, 0}) = sigmoid(F(3.3, t, 0));
    }
    for (BuildProgram build : {buildRecurrenceForward, buildRecurrenceStep}) {
      Call fresh = call;
      HostBuffer output = run(build, fresh);
      expectRow(output, 2, {row.o2[0], row.o2[1]}, 1e-6);
      expectRow(output, 4, {row.o4[0], row.o4[1]}, 1e-6);
      for (int64_t n = 0; n < 4; ++n)
        EXPECT_NEAR(fresh.state({0, 0, n / 2, n % 2}), row.state[n], 1e-6);
    }
  }
}

//===----------------------------------------------------------------------===//
// Refused shapes
//===----------------------------------------------------------------------===//

TEST(RecurrenceShapes, WhatIsRefusedIsNamed) {
  mlir::MLIRContext context;
  std::string message;
  mlir::ScopedDiagnosticHandler handler(
      &context, [&](mlir::Diagnostic &d) { message = d.str(); });
  auto refused = [&](std::function<void(RecurrenceShape &)> change,
                     bool adjoint = false) {
    RecurrenceShape shape;
    change(shape);
    auto emit = [&] {
      return mlir::emitError(mlir::UnknownLoc::get(&context));
    };
    message.clear();
    EXPECT_TRUE(
        failed(adjoint ? shape.verifyAdjoint(emit) : shape.verify(emit)));
    return message;
  };
  EXPECT_EQ(refused([](auto &s) { s.heads = 4, s.kvHeads = 3; }),
            "recurrence has 4 heads over 3 key/value heads; the second must "
            "divide the first");
  EXPECT_EQ(refused([](auto &s) { s.keyDim = 12; }),
            "recurrence has key dim 12; it must be a multiple of 8 from 8 to "
            "512");
  EXPECT_EQ(refused([](auto &s) { s.valueDim = 520; }),
            "recurrence has value dim 520; it must be a multiple of 8 from 8 "
            "to 512");
  EXPECT_EQ(refused([](auto &s) { s.valueTile = 48; }),
            "recurrence has value tile 48, which does not divide value dim 64");
  EXPECT_EQ(refused([](auto &s) { s.window = 64; }),
            "recurrence has window 64 and stride 0; give both, or 0 for both");
  EXPECT_EQ(refused([](auto &s) { s.window = 64, s.stride = 24; }),
            "recurrence has stride 24, which does not divide window 64");
  EXPECT_EQ(
      refused([](auto &s) { s.window = 64, s.stride = 16, s.hasState = true; },
              /*adjoint=*/true),
      "recurrence with window 64 has no adjoint for its initial state; "
      "differentiate it without states");
}
