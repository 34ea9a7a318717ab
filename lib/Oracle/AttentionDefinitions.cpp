//===- AttentionDefinitions.cpp - softmax attention with a dense mask ----===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Definitions.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace hybrid;
using namespace hybrid::oracle;

namespace {
/// The attributes that say who sees whom, with the head counts.
struct Heads {
  ArrayRef<int64_t> windows;
  ArrayRef<int64_t> sinks;
  int64_t group;
  double scale;

  template <typename Op>
  explicit Heads(Op op)
      : windows(op.getWindows()), sinks(op.getSinks()), group(op.getKvGroup()),
        scale(op.getScale().convertToDouble()) {}

  int64_t count() const { return windows.size(); }
  int64_t kvHead(int64_t head) const { return head / group; }

  /// Whether a query at position `query` sees a key at `key`; the window counts
  /// the query's own position.
  bool sees(int64_t head, int64_t query, int64_t key) const {
    if (key > query)
      return false;
    return windows[head] == 0 || query - key < windows[head] ||
           key < sinks[head];
  }
};
} // namespace

/// Turns the scores of the visible keys into probabilities and returns
/// ln Σ exp. NaN goes through; when every score is -inf, or there is none, all
/// probabilities are 0 and the answer is -inf (GEN-05).
static double softmax(std::vector<double> &scores) {
  double largest = -std::numeric_limits<double>::infinity();
  for (double score : scores)
    if (std::isnan(score) || score > largest)
      largest = score;
  if (largest == -std::numeric_limits<double>::infinity()) {
    std::fill(scores.begin(), scores.end(), 0.0);
    return largest;
  }
  double sum = 0;
  for (double &score : scores)
    sum += score = std::exp(score - largest);
  for (double &score : scores)
    score /= sum;
  return largest + std::log(sum);
}

static double dot(const Tensor &a, int64_t ta, int64_t ha, const Tensor &b,
                  int64_t tb, int64_t hb) {
  double sum = 0;
  for (int64_t c = 0; c < a.dim(2); ++c)
    sum += a(ta, ha, c) * b(tb, hb, c);
  return sum;
}

//===----------------------------------------------------------------------===//
// Inside the segment
//===----------------------------------------------------------------------===//

/// Rows of the segment that row `t` sees.
static std::vector<int64_t> visibleRows(const Heads &heads,
                                        const Segment &segment, int64_t head,
                                        int64_t t) {
  std::vector<int64_t> rows;
  int64_t shift = segment.position - segment.begin;
  for (int64_t j = segment.begin; j < segment.end; ++j)
    if (heads.sees(head, t + shift, j + shift))
      rows.push_back(j);
  return rows;
}

LogicalResult oracle::define(AttentionOp op, Operands operands,
                             Results &results, const Call &call) {
  const Tensor &q = *operands[0], &k = *operands[1], &v = *operands[2];
  Heads heads(op);
  Tensor o({q.dim(0), q.dim(1), v.dim(2)}), logSumExp({q.dim(0), q.dim(1)});
  for (const Segment &segment : call.segments)
    for (int64_t h = 0; h < heads.count(); ++h)
      for (int64_t t = segment.begin; t < segment.end; ++t) {
        std::vector<int64_t> rows = visibleRows(heads, segment, h, t);
        std::vector<double> p;
        for (int64_t j : rows)
          p.push_back(heads.scale * dot(q, t, h, k, j, heads.kvHead(h)));
        logSumExp(t, h) = softmax(p);
        for (auto [probability, j] : llvm::zip(p, rows))
          for (int64_t c = 0; c < v.dim(2); ++c)
            o(t, h, c) += probability * v(j, heads.kvHead(h), c);
      }
  results.push_back(std::move(o));
  results.push_back(std::move(logSumExp));
  return success();
}

LogicalResult oracle::define(AttentionGradOp op, Operands operands,
                             Results &results, const Call &call) {
  const Tensor &q = *operands[0], &k = *operands[1], &v = *operands[2],
               &o = *operands[3], &logSumExp = *operands[4],
               &dout = *operands[5];
  Heads heads(op);
  Tensor dq(q.shape), dk(k.shape), dv(v.shape);
  for (const Segment &segment : call.segments)
    for (int64_t h = 0; h < heads.count(); ++h)
      for (int64_t t = segment.begin; t < segment.end; ++t) {
        if (logSumExp(t, h) == -std::numeric_limits<double>::infinity())
          continue; // an empty row
        int64_t kv = heads.kvHead(h);
        double d = dot(dout, t, h, o, t, h);
        for (int64_t j : visibleRows(heads, segment, h, t)) {
          double p =
              std::exp(heads.scale * dot(q, t, h, k, j, kv) - logSumExp(t, h));
          double da = heads.scale * p * (dot(dout, t, h, v, j, kv) - d);
          for (int64_t c = 0; c < q.dim(2); ++c) {
            dq(t, h, c) += da * k(j, kv, c);
            dk(j, kv, c) += da * q(t, h, c);
          }
          for (int64_t c = 0; c < v.dim(2); ++c)
            dv(j, kv, c) += p * dout(t, h, c);
        }
      }
  results.push_back(std::move(dq));
  results.push_back(std::move(dk));
  results.push_back(std::move(dv));
  return success();
}

//===----------------------------------------------------------------------===//
// Over a cache
//===----------------------------------------------------------------------===//

namespace {
/// Where positions live in a cache: the first `kept` stay, the rest is a ring.
struct CacheRows {
  int64_t kept;
  int64_t ring;

  CacheRows(const Heads &heads, int64_t rows)
      : kept(std::min(*llvm::max_element(heads.sinks), rows)),
        ring(rows - kept) {}

  int64_t row(int64_t position) const {
    return position < kept ? position : kept + (position - kept) % ring;
  }
  bool canHold(int64_t position) const { return position < kept || ring > 0; }
  /// Whether the row of `position` still holds it when positions up to `end`
  /// have been written.
  bool holds(int64_t position, int64_t end) const {
    return position < kept || position + ring >= end;
  }
};
} // namespace

/// Writes the segment's rows of `x` into its slot of `cache`.
static void append(const Tensor &x, const Segment &segment,
                   const CacheRows &rows, Tensor &cache) {
  for (int64_t t = segment.begin; t < segment.end; ++t)
    for (int64_t h = 0; h < x.dim(1); ++h)
      for (int64_t c = 0; c < x.dim(2); ++c)
        cache(segment.slot, h, rows.row(segment.position + t - segment.begin),
              c) = x(t, h, c);
}

/// One query over the cache of its slot; the answer goes to row `t` of `o`.
static LogicalResult attendCached(AttentionCachedOp op, const Heads &heads,
                                  const CacheRows &rows, const Segment &segment,
                                  int64_t t, int64_t h, const Tensor &q,
                                  const Tensor &kCache, const Tensor &vCache,
                                  Tensor &o) {
  int64_t kv = heads.kvHead(h), query = segment.position + t - segment.begin;
  int64_t end = segment.position + segment.length();
  std::vector<int64_t> visible;
  std::vector<double> p;
  for (int64_t key = 0; key <= query; ++key) {
    if (!heads.sees(h, query, key))
      continue;
    if (!rows.holds(key, end))
      return op.emitOpError()
             << "needs position " << key << " for the query at position "
             << query << ", but a cache of " << rows.kept + rows.ring
             << " rows has lost it by position " << end
             << "; give the state more rows or the call fewer tokens";
    double score = 0;
    for (int64_t c = 0; c < q.dim(2); ++c)
      score += q(t, h, c) * kCache(segment.slot, kv, rows.row(key), c);
    visible.push_back(rows.row(key));
    p.push_back(heads.scale * score);
  }
  softmax(p);
  for (auto [probability, row] : llvm::zip(p, visible))
    for (int64_t c = 0; c < o.dim(2); ++c)
      o(t, h, c) += probability * vCache(segment.slot, kv, row, c);
  return success();
}

LogicalResult oracle::define(AttentionCachedOp op, Operands operands,
                             Results &results, const Call &call) {
  const Tensor &q = *operands[0], &k = *operands[1], &v = *operands[2];
  Tensor kCache(*operands[3]), vCache(*operands[4]);
  Heads heads(op);
  CacheRows rows(heads, kCache.dim(2));
  Tensor o({q.dim(0), q.dim(1), v.dim(2)});
  for (const Segment &segment : call.segments) {
    if (segment.length() > 0 &&
        !rows.canHold(segment.position + segment.length() - 1))
      return op.emitOpError()
             << "has " << kCache.dim(2) << " cache rows, all of them for sink "
             << "tokens, but is at position " << segment.position
             << "; give the state more rows";
    append(k, segment, rows, kCache);
    append(v, segment, rows, vCache);
    for (int64_t h = 0; h < heads.count(); ++h)
      for (int64_t t = segment.begin; t < segment.end; ++t)
        if (failed(attendCached(op, heads, rows, segment, t, h, q, kCache,
                                vCache, o)))
          return failure();
  }
  results.push_back(std::move(o));
  results.push_back(std::move(kCache));
  results.push_back(std::move(vCache));
  return success();
}
