//===- ConvolutionDefinitions.cpp - short convolution by its sum ---------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Definitions.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::oracle;

/// Row `t` of the segment, which may lie up to kernel - 1 rows before its
/// begin: there stands the state (newest row last), or 0 without one.
static double rowBefore(const Tensor &x, const Tensor *state,
                        const Segment &segment, int64_t t, int64_t c) {
  if (t >= segment.begin)
    return x(t, c);
  return state ? (*state)(segment.slot, state->dim(1) + t - segment.begin, c)
               : 0;
}

LogicalResult oracle::define(ShortConvOp op, Operands operands,
                             Results &results, const Call &call) {
  const Tensor &x = *operands[0], &weight = *operands[1];
  const Tensor *state = op.getState() ? operands[3] : nullptr;
  int64_t kernel = weight.dim(1);
  Tensor result(x.shape);
  for (const Segment &segment : call.segments)
    for (int64_t t = segment.begin; t < segment.end; ++t)
      for (int64_t c = 0; c < x.dim(1); ++c)
        for (int64_t i = 0; i < kernel; ++i)
          result(t, c) += weight(c, i) *
                          rowBefore(x, state, segment, t - kernel + 1 + i, c);
  results.push_back(std::move(result));
  if (!state)
    return success();

  Tensor newState(*state);
  for (const Segment &segment : call.segments)
    for (int64_t i = 0; i < kernel - 1; ++i)
      for (int64_t c = 0; c < x.dim(1); ++c)
        newState(segment.slot, i, c) =
            rowBefore(x, state, segment, segment.end - (kernel - 1) + i, c);
  results.push_back(std::move(newState));
  return success();
}

LogicalResult oracle::define(ShortConvGradOp op, Operands operands,
                             Results &results, const Call &call) {
  const Tensor &x = *operands[0], &weight = *operands[1], &dy = *operands[3];
  int64_t kernel = weight.dim(1);
  Tensor dx(x.shape), dweight(weight.shape);
  for (const Segment &segment : call.segments)
    for (int64_t t = segment.begin; t < segment.end; ++t)
      for (int64_t c = 0; c < x.dim(1); ++c)
        for (int64_t i = 0; i < kernel; ++i) {
          int64_t from = t - kernel + 1 + i;
          if (from < segment.begin)
            continue;
          dx(from, c) += weight(c, i) * dy(t, c);
          dweight(c, i) += dy(t, c) * x(from, c);
        }
  results.push_back(std::move(dx));
  results.push_back(std::move(dweight));
  return success();
}
