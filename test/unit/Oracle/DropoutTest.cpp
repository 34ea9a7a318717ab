//===- DropoutTest.cpp - what masks are asked for -*- C++ -*-===//
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
using namespace hybrid::oracle;

static constexpr int64_t kRows = 500, kWidth = 200;

/// Dropout of ones, [kRows, kWidth].
static Tensor maskOf(double rate, int64_t key) {
  Program program(llvm::formatv(
      "func.func @main(%x: tensor<?x{0}xf32>, %key: tensor<1xi32>) -> "
      "tensor<?x{0}xf32> {{\n  %y = hybrid.dropout %x, %key rate {1:F17} : "
      "tensor<?x{0}xf32>\n  return %y : tensor<?x{0}xf32>\n}",
      kWidth, rate));
  Tensor ones({kRows, kWidth}), word({1}, {double(key)});
  std::fill(ones.data.begin(), ones.data.end(), 1.0);
  auto results = program.evaluate({ones, word}, Call::packed({kRows}));
  return results.empty() ? Tensor({kRows, kWidth}) : results[0];
}

// The definition, by hand: key 1, row 2, element 3.
TEST(Dropout, IsItsDefinition) {
  auto mix = [](uint32_t x) {
    x ^= x >> 16;
    x *= 0x7FEB352D;
    x ^= x >> 15;
    x *= 0x846CA68B;
    return x ^ (x >> 16);
  };
  uint32_t hash = mix(mix(1 ^ 2 * 0x9E3779B9) ^ 3 * 0x9E3779B9);
  double place = (static_cast<int32_t>(hash) + 0x1p31) / 0x1p32;
  EXPECT_EQ(maskOf(place - 1e-3, 1)(2, 3), 1 / (1 - (place - 1e-3)));
  EXPECT_EQ(maskOf(place + 1e-3, 1)(2, 3), 0);
}

TEST(Dropout, KeepsTheMean) {
  for (double rate : {0.05, 0.1, 0.5, 0.9})
    for (int64_t key : {0, 1, -1, 123456789}) {
      Tensor mask = maskOf(rate, key);
      double sum = 0;
      for (double m : mask.data) {
        EXPECT_TRUE(m == 0 || std::abs(m - 1 / (1 - rate)) < 1e-5);
        sum += m;
      }
      double deviation = std::sqrt(rate / (1 - rate) / mask.size());
      EXPECT_NEAR(sum / mask.size(), 1, 5 * deviation) << rate << " " << key;
    }
}

// Neighbours in a row, in a column, on a diagonal, and of neighbouring keys.
TEST(Dropout, PlacesKnowNothingOfEachOther) {
  Tensor mask = maskOf(0.5, 7), next = maskOf(0.5, 8);
  auto correlation = [&](const Tensor &other, int64_t rows, int64_t columns) {
    double sum = 0;
    for (int64_t t = 0; t + rows < kRows; ++t)
      for (int64_t j = 0; j + columns < kWidth; ++j)
        sum += (mask(t, j) - 1) * (other(t + rows, j + columns) - 1);
    return sum / std::sqrt(double((kRows - rows) * (kWidth - columns)));
  };
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{0, 1},
                               {1, 0},
                               {1, 1},
                               {0, 64},
                               {64, 0},
                               {3, 16}})
    EXPECT_LT(std::abs(correlation(mask, rows, columns)), 5)
        << rows << " " << columns;
  EXPECT_LT(std::abs(correlation(next, 0, 0)), 5);
  EXPECT_LT(std::abs(correlation(next, 1, 0)), 5);
}

TEST(Dropout, RefusesARateOfOne) {
  for (const char *rate : {"1.0", "-0.1", "0x7FF8000000000000"})
    EXPECT_NE(
        parseError(std::string("func.func @main(%x: tensor<?x4xf32>, %key: "
                               "tensor<1xi32>) {\n  %y = hybrid.dropout %x, "
                               "%key rate ") +
                   rate + " : tensor<?x4xf32>\n  return\n}")
            .find("write a number from 0 to 0.99, such as 0.1"),
        std::string::npos)
        << rate;
}
