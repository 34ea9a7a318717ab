//===- PositionTest.cpp - rotary angles and log-n factors -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Harness.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace hybrid;
using namespace hybrid::cases;
using namespace hybrid::oracle;

static std::string rotaryText(int64_t dim, const std::string &attributes) {
  std::string type = llvm::formatv("tensor<?x1x{0}xf32>", dim);
  return llvm::formatv(
      "func.func @main(%x: {0}, %segments: !hybrid.segments) -> {0} {{\n"
      "  %y = hybrid.rotary %x, %segments {1} : {0}\n  return %y : {0}\n}\n",
      type, attributes);
}

/// The angles of one row at `position`, from (cos, sin) of the rotated unit
/// vectors; only angles below pi can be told apart.
static std::vector<double> anglesAt(int64_t position, int64_t dim,
                                    const std::string &attributes) {
  Tensor x({1, 1, dim});
  std::fill_n(x.data.begin(), dim / 2, 1.0);
  Call call;
  call.segments = {{0, 1, 0, position}};
  Tensor y =
      Program(rotaryText(dim, attributes)).evaluate({x, Tensor()}, call)[0];
  std::vector<double> angles;
  for (int64_t i = 0; i < dim / 2; ++i)
    angles.push_back(std::atan2(y(0, 0, i + dim / 2), y(0, 0, i)));
  return angles;
}

TEST(Rotary, InverseFrequencies) {
  std::vector<double> angles = anglesAt(1, 128, "base 1.000000e+04 dim 128");
  EXPECT_NEAR(angles[0], 1, 1e-12);
  EXPECT_NEAR(angles[1], 0.8659643, 5e-8);
  EXPECT_NEAR(angles[16], 0.1, 1e-12);
  EXPECT_NEAR(angles[32], 0.01, 1e-12);
  EXPECT_NEAR(angles[48], 0.001, 1e-12);
  EXPECT_NEAR(angles[63], 1.154782e-4, 5e-11);
}

/// The base a dynamic NTK row is rotated with at the end of `length` tokens,
/// worked back from the slowest angle.
static double dynamicBase(int64_t length, int64_t dim, int64_t factor,
                          int64_t original) {
  std::string attributes =
      llvm::formatv("base 1.000000e+04 dim {0} ntk {1}.0 original {2}", dim,
                    factor, original);
  double angle = anglesAt(length - 1, dim, attributes).back();
  return std::pow(angle / (length - 1), -double(dim) / (dim - 2));
}

TEST(Rotary, DynamicNtkPublishedBases) {
  EXPECT_NEAR(dynamicBase(8192, 128, 1, 4096), 20221.26, 0.01);
  EXPECT_NEAR(dynamicBase(8192, 128, 2, 4096), 30527.74, 0.01);
  EXPECT_NEAR(dynamicBase(8192, 128, 4, 4096), 51293.79, 0.01);
  EXPECT_NEAR(dynamicBase(32768, 128, 1, 4096), 82684.62, 0.01);
  EXPECT_NEAR(dynamicBase(32768, 128, 2, 4096), 156588.32, 0.01);
  EXPECT_NEAR(dynamicBase(65536, 128, 1, 4096), 167198.74, 0.01);
  EXPECT_NEAR(dynamicBase(65536, 128, 4, 4096), 651131.05, 0.01);
}

TEST(Rotary, ROP_10) {
  EXPECT_NEAR(dynamicBase(100, 64, 2, 2048), 10000, 1e-6);
  EXPECT_NEAR(dynamicBase(2048, 64, 2, 2048), 10000, 1e-6);
  EXPECT_NEAR(dynamicBase(2049, 64, 2, 2048), 10010.08, 0.01);
  EXPECT_NEAR(dynamicBase(4096, 64, 2, 2048), 31082.24, 0.01);
}

/// Decoding one token at an offset gives the row of the whole run.
TEST(Rotary, ROP_15) {
  Program program(rotaryText(8, "base 1.000000e+04 dim 6"));
  Tensor x = gen(0.3, {8, 1, 8});
  Tensor full = program.evaluate({x, Tensor()}, Call::packed({8}))[0];
  for (int64_t offset : {0, 1, 7}) {
    Call call;
    call.segments = {{0, 1, 0, offset}};
    Tensor row =
        program.evaluate({rows(x, offset, offset + 1), Tensor()}, call)[0];
    expectNear(row.data, rows(full, offset, offset + 1).data, 0,
               "row of the whole run");
  }
  // Channels past the rotated ones pass through.
  EXPECT_EQ(full(7, 0, 6), x(7, 0, 6));
  EXPECT_NE(full(7, 0, 5), x(7, 0, 5));
}

TEST(Rotary, InverseUndoes) {
  Tensor x = gen(0.3, {5, 1, 8});
  Call call = Call::packed({5});
  Tensor there = Program(rotaryText(8, "base 1.0e+04 dim 8"))
                     .evaluate({x, Tensor()}, call)[0];
  Tensor back = Program(rotaryText(8, "base 1.0e+04 dim 8 inverse"))
                    .evaluate({there, Tensor()}, call)[0];
  expectNear(back.data, x.data, 1e-14, "rotated there and back");
}

TEST(LogNScale, PublishedFactors) {
  Program program(R"(
func.func @main(%x: tensor<?x1xf32>, %segments: !hybrid.segments) -> tensor<?x1xf32> {
  %y = hybrid.log_n_scale %x, %segments trained 4096 : tensor<?x1xf32>
  return %y : tensor<?x1xf32>
})");
  std::pair<int64_t, double> table[] = {{1, 1},
                                        {4096, 1},
                                        {8192, 1.083333},
                                        {16384, 1.166667},
                                        {32768, 1.250000},
                                        {65536, 1.333333}};
  for (auto [length, factor] : table) {
    Call call;
    call.segments = {{0, 1, 0, length - 1}};
    EXPECT_NEAR(
        program.evaluate({filled({1, 1}, 1), Tensor()}, call)[0].data[0],
        factor, 1e-6);
  }
}
