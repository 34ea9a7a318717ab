//===- PositionFaults.cpp - public faults of rotary positions -------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A row with 1 in channel i and 0 elsewhere becomes the cosine in channel i and
// the sine in channel i + D / 2: it makes tables visible as numbers.
//
//===----------------------------------------------------------------------===//

#include "Cases.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace hybrid::cases;

namespace {
struct Row {
  int64_t position;
  double angle;
};
} // namespace

/// One token per row, each in a sequence of its own at the given position.
static Case rotated(std::string name, int64_t dim, int64_t channel,
                    const std::string &attributes, const std::vector<Row> &rows,
                    double tolerance) {
  std::string type = llvm::formatv("tensor<?x1x{0}xf32>", dim);
  int64_t count = rows.size();
  Case fault{std::move(name),
             llvm::formatv("func.func @main(%x: {0}, %s: !hybrid.segments) -> "
                           "{0} {{\n  %y = hybrid.rotary %x, %s {1} : {0}\n"
                           "  return %y : {0}\n}\n",
                           type, attributes),
             {},
             {Tensor({count, 1, dim}), Tensor()},
             {}};
  for (int64_t i = 0; i < count; ++i) {
    fault.arguments[0](i, 0, channel) = 1;
    fault.call.segments.push_back({i, i + 1, i, rows[i].position});
    fault.expected.push_back(
        {0, i * dim + channel, {std::cos(rows[i].angle)}, tolerance});
    fault.expected.push_back(
        {0, i * dim + channel + dim / 2, {std::sin(rows[i].angle)}, tolerance});
  }
  return fault;
}

/// The base grows with the length of the sequence beyond the original one.
static Case dynamicNtk() {
  const std::pair<int64_t, double> bases[] = {
      {100, 10000}, {2048, 10000}, {2049, 10010.08}, {4096, 31082.24}};
  std::vector<Row> rows;
  for (auto [length, base] : bases)
    rows.push_back({length - 1, (length - 1) * std::pow(base, -30.0 / 64)});
  // 1e-7 relative in the printed base moves the angle of 4095 by 1e-6.
  return rotated("ROP_10", 64, 15, "base 10000.0 dim 64 ntk 2.0 original 2048",
                 rows, 1e-5);
}

/// Position 5000 in a layer that is not scaled and in one whose base has grown.
static Case ownScaling() {
  double grown = 10000 * std::pow(8 * 5001.0 / 2048 - 7, 64.0 / 62),
         plainAngle = 5000 * std::pow(10000.0, -30.0 / 64),
         scaledAngle = 5000 * std::pow(grown, -30.0 / 64);
  Case fault{"ROP_13",
             R"(
!x = tensor<?x1x64xf32>
func.func @main(%x: !x, %s: !hybrid.segments) -> (!x, !x) {
  %plain = hybrid.rotary %x, %s base 10000.0 dim 64 : !x
  %scaled = hybrid.rotary %x, %s base 10000.0 dim 64 ntk 8.0 original 2048 : !x
  return %plain, %scaled : !x, !x
})",
             {},
             {Tensor({1, 1, 64}), Tensor()},
             {{0, 15, {std::cos(plainAngle)}, 1e-5},
              {0, 47, {std::sin(plainAngle)}, 1e-5},
              {1, 15, {std::cos(scaledAngle)}, 1e-5},
              {1, 47, {std::sin(scaledAngle)}, 1e-5}}};
  fault.arguments[0](0, 0, 15) = 1;
  fault.call.segments = {{0, 1, 0, 5000}};
  return fault;
}

std::vector<Case> hybrid::cases::positionFaults() {
  // Angles are fixed point, in 2^-32 of a turn: 1.2e-5 at position 15962.
  Case far = rotated("ROP_02", 8, 0, "base 10000.0 dim 8",
                     {{15962, 15962.0}, {256, 256.0}, {257, 257.0}}, 1.2e-5);
  far.expected.push_back({0, 0, {-0.908016}, 1e-5});
  double inverse = std::pow(10000.0, -1.0 / 64);
  // The angle is a product of fp32 numbers: half a unit in its last place.
  return {far,
          rotated("ROP_03", 128, 1, "base 10000.0 dim 128",
                  {{4095, 4095 * inverse}}, 2e-4),
          dynamicNtk(),
          rotated("ROP_15", 8, 1, "base 10000.0 dim 8",
                  {{0, 0.0}, {1, 0.1}, {7, 0.7}}, 1e-6),
          // Two prompts of 5 and 3 tokens decode three more each.
          rotated("ROP_16", 8, 0, "base 10000.0 dim 8",
                  {{5, 5.0}, {3, 3.0}, {6, 6.0}, {4, 4.0}, {7, 7.0}, {5, 5.0}},
                  1e-6),
          ownScaling()};
}
