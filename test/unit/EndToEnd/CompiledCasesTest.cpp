//===- CompiledCasesTest.cpp - published values and faults, compiled -----===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompiledFunction.h"

using namespace hybrid;
using namespace hybrid::cases;
using namespace hybrid::test;

namespace {
class CompiledCases : public testing::TestWithParam<Case> {};

/// What f32 adds to the tolerance of a case, relative.
constexpr double kRounding = 2e-6;

void expectNear(llvm::ArrayRef<double> found, const Expected &expected,
                const std::string &what) {
  for (auto [i, want] : llvm::enumerate(expected.values)) {
    double got = found[i];
    if (std::isnan(want))
      EXPECT_TRUE(std::isnan(got)) << what << ", element " << i;
    else if (expected.tolerance == 0)
      EXPECT_EQ(got, want) << what << ", element " << i;
    else
      EXPECT_NEAR(got, want, expected.tolerance + kRounding * std::abs(want))
          << what << ", element " << i;
  }
}
} // namespace

static void expectValues(const Case &known, llvm::ArrayRef<Tensor> results) {
  for (const Expected &expected : known.expected) {
    ASSERT_LT(expected.result, results.size());
    llvm::ArrayRef<double> data = results[expected.result].data;
    ASSERT_LE(expected.first + expected.values.size(), data.size());
    expectNear(expected.of(data), expected,
               known.name + ", result " + std::to_string(expected.result));
  }
}

/// Any split gives what one call gives in the oracle.
static void expectSplits(const Case &known, CompiledFunction &function) {
  std::vector<Tensor> whole = function.oracle(known.arguments, known.call);
  for (const std::vector<int64_t> &lengths : known.splits) {
    SCOPED_TRACE("calls of " + testing::PrintToString(lengths) + " tokens");
    std::vector<Tensor> parts = evaluateInPieces(
        known, function.main(), lengths,
        [&](llvm::ArrayRef<Tensor> arguments, const Call &call) {
          return function.evaluate(arguments, call);
        });
    ASSERT_EQ(parts.size(), whole.size());
    for (auto [i, part] : llvm::enumerate(parts))
      expectNear(part.data, {unsigned(i), 0, whole[i].data, 1e-5},
                 "result " + std::to_string(i));
  }
}

TEST_P(CompiledCases, Matches) {
  const Case &known = GetParam();
  for (cpu::Level level : cpu::levelsHere()) {
    SCOPED_TRACE(cpu::traitsOf(level).name.str());
    CompiledFunction function(known.text, level);
    expectValues(known, function.evaluate(known.arguments, known.call));
    if (!known.splits.empty())
      expectSplits(known, function);
  }
}

static std::string nameOf(const testing::TestParamInfo<Case> &info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Golden, CompiledCases,
                         testing::ValuesIn(goldenCases()), nameOf);
INSTANTIATE_TEST_SUITE_P(Recurrence, CompiledCases,
                         testing::ValuesIn(recurrenceFaults()), nameOf);
INSTANTIATE_TEST_SUITE_P(Attention, CompiledCases,
                         testing::ValuesIn(attentionFaults()), nameOf);
INSTANTIATE_TEST_SUITE_P(Loss, CompiledCases, testing::ValuesIn(lossFaults()),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(Gradient, CompiledCases,
                         testing::ValuesIn(gradientFaults()), nameOf);
INSTANTIATE_TEST_SUITE_P(Position, CompiledCases,
                         testing::ValuesIn(positionFaults()), nameOf);
INSTANTIATE_TEST_SUITE_P(State, CompiledCases, testing::ValuesIn(stateFaults()),
                         nameOf);
