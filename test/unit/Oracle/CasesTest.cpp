//===- CasesTest.cpp - the oracle gives the published values -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Harness.h"

#include <gtest/gtest.h>

using namespace hybrid;
using namespace hybrid::cases;
using namespace hybrid::oracle;

namespace {
class CasesTest : public testing::TestWithParam<Case> {};
} // namespace

static void expectValues(const Case &known, llvm::ArrayRef<Tensor> results) {
  for (const Expected &expected : known.expected) {
    ASSERT_LT(expected.result, results.size());
    llvm::ArrayRef<double> data = results[expected.result].data;
    ASSERT_LE(expected.first + expected.values.size(), data.size());
    expectNear(expected.of(data), expected.values, expected.tolerance,
               known.name + ", result " + std::to_string(expected.result));
  }
}

TEST_P(CasesTest, Matches) {
  const Case &known = GetParam();
  Program program(known.text);
  std::vector<Tensor> whole = program.evaluate(known.arguments, known.call);
  expectValues(known, whole);
  for (const std::vector<int64_t> &lengths : known.splits) {
    SCOPED_TRACE("calls of " + testing::PrintToString(lengths) + " tokens");
    std::vector<Tensor> parts = evaluateInPieces(
        known, program.main(), lengths,
        [&](llvm::ArrayRef<Tensor> arguments, const Call &call) {
          return program.evaluate(arguments, call);
        });
    ASSERT_EQ(parts.size(), whole.size());
    for (auto [i, part] : llvm::enumerate(parts))
      expectNear(part.data, whole[i].data, 1e-13,
                 "result " + std::to_string(i));
  }
}

static std::string nameOf(const testing::TestParamInfo<Case> &info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Golden, CasesTest, testing::ValuesIn(goldenCases()),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(Recurrence, CasesTest,
                         testing::ValuesIn(recurrenceFaults()), nameOf);
INSTANTIATE_TEST_SUITE_P(Attention, CasesTest,
                         testing::ValuesIn(attentionFaults()), nameOf);
INSTANTIATE_TEST_SUITE_P(Loss, CasesTest, testing::ValuesIn(lossFaults()),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(Gradient, CasesTest,
                         testing::ValuesIn(gradientFaults()), nameOf);
INSTANTIATE_TEST_SUITE_P(Position, CasesTest,
                         testing::ValuesIn(positionFaults()), nameOf);
INSTANTIATE_TEST_SUITE_P(State, CasesTest, testing::ValuesIn(stateFaults()),
                         nameOf);

//===----------------------------------------------------------------------===//
// Faults whose right answer is an error
//===----------------------------------------------------------------------===//

TEST(Faults, ATT_02_ATT_03_negative_window) {
  AttentionShape shape;
  shape.windows = {-4};
  EXPECT_NE(parseError(shape.text())
                .find("windows of head 0 is -4 but must be positive"),
            std::string::npos);
}

TEST(Faults, ATT_13_heads_not_divisible) {
  AttentionShape shape;
  shape.heads = 6;
  shape.kvHeads = 4;
  shape.windows.assign(6, 0);
  shape.sinks.assign(6, 0);
  EXPECT_NE(parseError(shape.text())
                .find("6 query heads cannot share 4 key and value heads"),
            std::string::npos);
}

TEST(Faults, TRN_04_label_out_of_range) {
  for (double label : {3.0, -1.0, -101.0}) {
    Case fault = lossFaults()[1];
    fault.arguments[1].data[2] = label;
    Program program(fault.text);
    std::string error = program.evaluateError(fault.arguments, fault.call);
    EXPECT_NE(error.find("label " + std::to_string(int(label)) + " at token 2"),
              std::string::npos)
        << error;
  }
}

TEST(Faults, VAR_01_decreasing_boundaries) {
  Case fault = recurrenceFaults()[1];
  ASSERT_EQ(fault.name, "LIN_09");
  Program program(fault.text);
  Call call = fault.call;
  call.segments = {{0, 5, 0, 0}, {5, 4, 0, 0}};
  EXPECT_NE(program.evaluateError(fault.arguments, call)
                .find("ends at 4, before its begin 5"),
            std::string::npos);
  call.segments = {{0, 4, 0, 0}};
  EXPECT_NE(program.evaluateError(fault.arguments, call)
                .find("argument 0 has the shape [5, 1, 8] but this call needs "
                      "[4, 1, 8]"),
            std::string::npos);
}
