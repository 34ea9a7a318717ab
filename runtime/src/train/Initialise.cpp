//===- Initialise.cpp ----------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "train/Initialise.h"

#include "train/NormalDraws.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

namespace hyb::rt {

namespace {

double drawElement(const ParameterInfo &info, const RandomStream &stream,
                   uint64_t element) {
  const double *values = info.values;
  switch (info.init) {
  case InitKind::Normal:
    return values[0] * standardNormal(stream, element);
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
  float *values;
};

/// The part of a parameter that lies in a range of the flat buffer.
void addPieces(const ParameterInfo &info, int64_t first, int64_t count,
               float *values, std::vector<Piece> &pieces) {
  constexpr int64_t kElements = 1 << 14;
  int64_t begin = std::max<int64_t>(first - info.offset, 0);
  int64_t end = std::min(first + count - info.offset, info.elements);
  for (; begin < end; begin += kElements)
    pieces.push_back({&info, begin, std::min(begin + kElements, end),
                      values + (info.offset + begin - first)});
}

/// Zeros where none of the pieces is.
void clearBetween(std::vector<Piece> &pieces, float *values, int64_t count) {
  std::sort(pieces.begin(), pieces.end(),
            [](const Piece &a, const Piece &b) { return a.values < b.values; });
  float *done = values;
  for (const Piece &piece : pieces) {
    if (done < piece.values)
      std::fill(done, piece.values, 0.0f);
    done = piece.values + (piece.end - piece.begin);
  }
  std::fill(done, values + count, 0.0f);
}

void drawPiece(const Piece &piece, uint64_t seed) {
  const ParameterInfo &info = *piece.info;
  RandomStream stream(seed, info.path);
  auto begin = static_cast<uint64_t>(piece.begin);
  if (info.init == InitKind::Normal)
    return drawNormals(stream, info.values[0], begin, piece.end - piece.begin,
                       piece.values);
  for (int64_t i = 0; i < piece.end - piece.begin; ++i)
    piece.values[i] = static_cast<float>(
        drawElement(info, stream, begin + static_cast<uint64_t>(i)));
}

void drawPieces(const std::vector<Piece> &pieces, uint64_t seed,
                ThreadPool *threads) {
  std::atomic<size_t> next{0};
  auto work = [&](int) {
    for (size_t i; (i = next.fetch_add(1)) < pieces.size();)
      drawPiece(pieces[i], seed);
  };
  if (threads)
    threads->run(work);
  else
    work(0);
}

} // namespace

void initialiseParameters(const ParameterTable &table, uint64_t seed,
                          float *parameters, ThreadPool *threads) {
  std::vector<Piece> pieces;
  for (const ParameterInfo &info : table.parameters)
    addPieces(info, info.offset, info.elements, parameters + info.offset,
              pieces);
  drawPieces(pieces, seed, threads);
}

void initialiseRange(const ParameterTable &table, uint64_t seed, int64_t first,
                     int64_t count, float *values, ThreadPool *threads) {
  std::vector<Piece> pieces;
  for (const ParameterInfo &info : table.parameters)
    addPieces(info, first, count, values, pieces);
  clearBetween(pieces, values, count);
  drawPieces(pieces, seed, threads);
}

} // namespace hyb::rt
