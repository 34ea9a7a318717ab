//===- RecurrenceHalves.cpp - scores per channel as products -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two tokens m < t of a chunk are first apart in one of log2 C halvings: there
// m is in the first half of a group and t in the second, and the border between
// the halves is a reference point that splits their decay into two factors of
// at most 1,
//
//     e^{G_t − G_m} = e^{G_t − G_b} e^{G_b − G_m},
//
// the sums of the gates from the border to t and from m to the border. So each
// halving gives its pairs by one matrix product of [C, K] tiles, under a mask.
//
//===----------------------------------------------------------------------===//

#include "RecurrenceEquations.h"

using namespace mlir;
using namespace hybrid::tile;
using namespace hybrid::tile::recurrence;

/// Of `groups` halves, one after the other, every second one.
Value Equations::isSecondHalf(int64_t groups) {
  Value number = e.iota(0, {groups, 1, 1});
  Value two = e.splat(e.i32(2), {groups, 1, 1});
  return e.eq(e.rem(number, two), e.splat(e.i32(1), {groups, 1, 1}));
}

/// The pairs (t, m) that part in halves of `half` tokens.
Value Equations::halfPairs(int64_t half) {
  int64_t rows = shape.chunkSize();
  auto numbers = [&](unsigned dim, ArrayRef<int64_t> sizes) {
    return e.div(e.iota(dim, sizes), e.splat(e.i32(half), sizes));
  };
  int64_t column[] = {rows, 1}, row[] = {1, rows};
  Value of = numbers(0, column), first = numbers(1, row);
  Value one = e.splat(e.i32(1), row), two = e.splat(e.i32(2), row);
  // No half has the number −1.
  Value partner = e.select(e.eq(e.rem(first, two), e.splat(e.i32(0), row)),
                           e.add(first, one), e.splat(e.i32(-1), row));
  return e.eq(of, partner);
}

/// The decay between each token and the border of its half: after the border
/// up to the token in a second half, after the token up to the border in a
/// first one.
Value Equations::halfDecays(const HalfOperands &operands, int64_t half) {
  int64_t rows = shape.chunkSize(), groups = rows / half, K = shape.keyDim;
  SmallVector<int64_t> grouped = {groups, half, K};
  Value after = e.prefixSum(e.reshape(operands.decay, grouped), 1);
  Value isLast =
      e.eq(e.iota(1, {1, half, 1}), e.splat(e.i32(half - 1), {1, half, 1}));
  Value next = e.select(isLast, e.zeros(grouped),
                        e.reshape(operands.nextDecay, grouped));
  Value before = e.prefixSum(next, 1, /*reverse=*/true);
  Value exponent = e.select(isSecondHalf(groups), after, before);
  return e.reshape(e.exp(exponent), {rows, K});
}

/// What the gates get of the gradient of those exponents.
Value Equations::halfDecaysAdjoint(Value dExponent, int64_t half) {
  int64_t rows = shape.chunkSize(), groups = rows / half, K = shape.keyDim;
  SmallVector<int64_t> grouped = {groups, half, K};
  Value given = e.reshape(dExponent, grouped), none = e.zeros(grouped);
  Value isSecond = isSecondHalf(groups);
  Value after = e.select(isSecond, given, none);
  Value before = e.select(isSecond, none, given);
  Value sums = e.sub(
      e.add(e.prefixSum(after, 1, /*reverse=*/true), e.prefixSum(before, 1)),
      before);
  return e.reshape(sums, {rows, K});
}

Scores Equations::scoresByHalves(const Chunk &chunk) {
  int64_t rows = shape.chunkSize();
  HalfOperands operands = chunk.halfOperands();
  Scores scores;
  if (operands.query)
    scores.query =
        e.masked(onDiagonal(), e.sum(e.mul(operands.query, operands.key), 1));
  if (shape.isDelta())
    scores.key =
        e.masked(onDiagonal(), e.sum(e.mul(operands.key, operands.key), 1));
  if (!operands.query && !shape.isDelta())
    return scores;
  for (int64_t half = 1; half < rows; half *= 2) {
    Value decays = halfDecays(operands, half);
    Value keys = e.mul(decays, operands.key), pairs = halfPairs(half);
    auto add = [&](Value &sum, Value x) {
      if (sum)
        sum = e.select(pairs, e.dot(e.mul(decays, x), keys, Transpose::B), sum);
    };
    add(scores.query, operands.query);
    add(scores.key, operands.key);
  }
  return scores;
}

Equations::ScoreGradient
Equations::scoreAdjointByHalves(const Chunk &chunk, Value dQuery, Value dKey) {
  int64_t rows = shape.chunkSize();
  ScoreGradient gradient;
  if (!dQuery && !dKey)
    return gradient;
  HalfOperands operands = chunk.halfOperands();
  Value fromKeys; // what k gets as the x of B(k)
  if (dQuery) {
    Value diagonal = e.sum(e.masked(onDiagonal(), dQuery), 1);
    gradient.query = e.mul(diagonal, operands.key);
    gradient.key = e.mul(diagonal, operands.query);
  }
  for (int64_t half = 1; half < rows; half *= 2) {
    Value decays = halfDecays(operands, half), pairs = halfPairs(half);
    Value keys = e.mul(decays, operands.key), dExponent, dKeys;
    auto side = [&](Value d, Value x, Value &dX) {
      if (!d)
        return;
      d = e.masked(pairs, d);
      Value decayed = e.mul(decays, x);
      Value rowsGet = e.dot(d, keys);
      dKeys = e.dot(d, decayed, Transpose::A, dKeys);
      dX = sum(dX, e.mul(decays, rowsGet));
      dExponent = sum(dExponent, e.mul(decayed, rowsGet));
    };
    side(dQuery, operands.query, gradient.query);
    side(dKey, operands.key, fromKeys);
    dExponent = e.add(dExponent, e.mul(keys, dKeys));
    gradient.key = sum(gradient.key, e.mul(decays, dKeys));
    gradient.gate = sum(gradient.gate, halfDecaysAdjoint(dExponent, half));
  }
  if (fromKeys)
    gradient.key = e.add(gradient.key, fromKeys);
  return gradient;
}
