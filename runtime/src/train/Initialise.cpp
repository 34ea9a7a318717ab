//===- Initialise.cpp ----------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "train/Initialise.h"

#include "core/Random.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

namespace hyb::rt {

namespace {

/// Box and Muller: two uniforms make one normal number here, the second of the
/// pair is left unused so that element i has counter i.
double standardNormal(std::array<double, 2> uniforms) {
  constexpr double kTwoPi = 6.283185307179586476925;
  // 1 - u is in (0, 1]: its logarithm is finite.
  return std::sqrt(-2 * std::log(1 - uniforms[0])) *
         std::cos(kTwoPi * uniforms[1]);
}

double drawElement(const ParameterInfo &info, const RandomStream &stream,
                   uint64_t element) {
  const double *values = info.values;
  switch (info.init) {
  case InitKind::Normal:
    return values[0] * standardNormal(stream.uniforms(element));
  case InitKind::Ones:
    return 1;
  case InitKind::Zeros:
    return 0;
  case InitKind::Constant:
    return values[0];
  case InitKind::LogUniform: {
    // A ~ U(low, high), stored as ln A; low may be 0, which is never drawn.
    double u = 1 - stream.uniform(element);
    return std::log(values[0] + (values[1] - values[0]) * u);
  }
  case InitKind::InverseSoftplusLogUniform: {
    // dt log-uniform in [low, high], at least floor; softplus gives it back.
    double low = std::log(values[0]), high = std::log(values[1]);
    double dt = std::exp(low + (high - low) * stream.uniform(element));
    dt = std::max(dt, values[2]);
    return dt + std::log(-std::expm1(-dt));
  }
  }
  return 0;
}

/// Elements of one parameter that one thread draws.
struct Piece {
  const ParameterInfo *info;
  int64_t begin, end;
};

std::vector<Piece> cutIntoPieces(const ParameterTable &table) {
  constexpr int64_t kElements = 1 << 16;
  std::vector<Piece> pieces;
  for (const ParameterInfo &info : table.parameters)
    for (int64_t begin = 0; begin < info.elements; begin += kElements)
      pieces.push_back(
          {&info, begin, std::min(begin + kElements, info.elements)});
  return pieces;
}

void drawPiece(const Piece &piece, uint64_t seed, float *parameters) {
  const ParameterInfo &info = *piece.info;
  RandomStream stream(seed, info.path);
  for (int64_t i = piece.begin; i < piece.end; ++i)
    parameters[info.offset + i] =
        static_cast<float>(drawElement(info, stream, static_cast<uint64_t>(i)));
}

} // namespace

void initialiseParameters(const ParameterTable &table, uint64_t seed,
                          float *parameters, ThreadPool *threads) {
  const std::vector<Piece> pieces = cutIntoPieces(table);
  std::atomic<size_t> next{0};
  auto work = [&](int) {
    for (size_t i; (i = next.fetch_add(1)) < pieces.size();)
      drawPiece(pieces[i], seed, parameters);
  };
  if (threads)
    threads->run(work);
  else
    work(0);
}

} // namespace hyb::rt
