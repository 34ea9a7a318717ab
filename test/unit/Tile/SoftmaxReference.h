//===- SoftmaxReference.h - softmax attention by its definition -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TEST_UNIT_TILE_SOFTMAXREFERENCE_H
#define HYBRID_TEST_UNIT_TILE_SOFTMAXREFERENCE_H

#include "ProgramTest.h"
#include "hybrid/Tile/Families/Softmax.h"

namespace hybrid::tile {

/// An attention, its sequences, and where each begins after earlier tokens.
struct SoftmaxCase {
  const char *name;
  SoftmaxShape shape;
  llvm::SmallVector<int64_t> lengths, first;
};

/// What a failing parameterised test prints.
inline void PrintTo(const SoftmaxCase &c, std::ostream *os) { *os << c.name; }

/// Small tiles, so that a short sequence has several.
inline SoftmaxShape softmaxShape(int64_t heads, int64_t kvHeads, int64_t dim,
                                 int64_t valueDim,
                                 llvm::ArrayRef<int64_t> windows = {},
                                 llvm::ArrayRef<int64_t> sinks = {},
                                 int64_t queryTile = 16, int64_t keyTile = 16) {
  SoftmaxShape s;
  s.heads = heads;
  s.kvHeads = kvHeads;
  s.dim = dim;
  s.valueDim = valueDim;
  s.scale = 1.0 / std::sqrt(double(dim));
  s.windows.assign(windows.begin(), windows.end());
  s.sinks.assign(sinks.begin(), sinks.end());
  s.windows.resize(heads, windows.empty() ? 0 : windows.back());
  s.sinks.resize(heads, sinks.empty() ? 0 : sinks.back());
  s.queryTile = queryTile;
  s.keyTile = keyTile;
  return s;
}

/// Dense softmax attention in double: a mask per pair, one row at a time.
struct SoftmaxReference {
  SoftmaxReference(const SoftmaxShape &shape, llvm::ArrayRef<int64_t> lengths,
                   llvm::ArrayRef<int64_t> first = {})
      : s(shape) {
    // Constants of a program are f32.
    s.scale = static_cast<float>(s.scale);
    for (auto [n, length] : llvm::enumerate(lengths)) {
      segments.push_back(
          {tokens, tokens + length, first.empty() ? 0 : first[n]});
      tokens += length;
    }
  }

  bool visible(int64_t head, int64_t query, int64_t key,
               int64_t keyPosition) const {
    int64_t window = s.windows.empty() ? 0 : s.windows[head];
    int64_t sinks = s.sinks.empty() ? 0 : s.sinks[head];
    return key <= query &&
           (window == 0 || query - key < window || keyPosition < sinks);
  }

  double score(const HostBuffer &q, const HostBuffer &k, int64_t t, int64_t j,
               int64_t head) const {
    double sum = 0.0;
    for (int64_t c = 0; c < s.dim; ++c)
      sum += q({t, head, c}) * k({j, head / s.group(), c});
    return s.scale * sum;
  }

  /// Calls `row(t, head, visible keys)` for every row and head.
  template <typename Row> void forEachRow(Row row) const {
    for (const Range &segment : segments)
      for (int64_t t = segment.begin; t < segment.end; ++t)
        for (int64_t head = 0; head < s.heads; ++head) {
          std::vector<int64_t> keys;
          for (int64_t j = segment.begin; j <= t; ++j)
            if (visible(head, t, j, segment.first + j - segment.begin))
              keys.push_back(j);
          row(t, head, keys);
        }
  }

  void forward(const HostBuffer &q, const HostBuffer &k, const HostBuffer &v,
               HostBuffer &o, HostBuffer &lse) const {
    forEachRow([&](int64_t t, int64_t head, const std::vector<int64_t> &keys) {
      double max = -std::numeric_limits<double>::infinity(), sum = 0.0;
      for (int64_t j : keys)
        max = std::max(max, score(q, k, t, j, head));
      for (int64_t c = 0; c < s.valueDim; ++c)
        o({t, head, c}) = 0.0;
      for (int64_t j : keys)
        sum += std::exp(score(q, k, t, j, head) - max);
      for (int64_t j : keys)
        for (int64_t c = 0; c < s.valueDim; ++c)
          o({t, head, c}) += std::exp(score(q, k, t, j, head) - max) / sum *
                             v({j, head / s.group(), c});
      lse({t, head}) = max + std::log(sum);
    });
  }

  void backward(const HostBuffer &q, const HostBuffer &k, const HostBuffer &v,
                const HostBuffer &o, const HostBuffer &lse,
                const HostBuffer &dout, HostBuffer &dq, HostBuffer &dk,
                HostBuffer &dv) const {
    for (HostBuffer *gradient : {&dq, &dk, &dv})
      std::fill(gradient->elements().begin(), gradient->elements().end(), 0.0);
    forEachRow([&](int64_t t, int64_t head, const std::vector<int64_t> &keys) {
      int64_t kvHead = head / s.group();
      double delta = 0.0;
      for (int64_t c = 0; c < s.valueDim; ++c)
        delta += dout({t, head, c}) * o({t, head, c});
      for (int64_t j : keys) {
        double p = std::exp(score(q, k, t, j, head) - lse({t, head})), dp = 0.0;
        for (int64_t c = 0; c < s.valueDim; ++c) {
          dp += dout({t, head, c}) * v({j, kvHead, c});
          dv({j, kvHead, c}) += p * dout({t, head, c});
        }
        double ds = s.scale * p * (dp - delta);
        for (int64_t c = 0; c < s.dim; ++c) {
          dq({t, head, c}) += ds * k({j, kvHead, c});
          dk({j, kvHead, c}) += ds * q({t, head, c});
        }
      }
    });
  }

  struct Range {
    int64_t begin, end, first;
  };
  SoftmaxShape s;
  std::vector<Range> segments;
  int64_t tokens = 0;
};

} // namespace hybrid::tile

#endif // HYBRID_TEST_UNIT_TILE_SOFTMAXREFERENCE_H
