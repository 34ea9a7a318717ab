//===- NormalDraws.h - Normal numbers of a stream, many at a time ---------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_TRAIN_NORMALDRAWS_H
#define HYBRID_RUNTIME_TRAIN_NORMALDRAWS_H

#include "core/Random.h"
#include "cpu/CpuLevel.h"

namespace hyb::rt {

/// The definition: Box and Muller by the C library. Two uniforms make one
/// normal number, the second of the pair is left unused so that element i has
/// counter i.
double standardNormal(const RandomStream &stream, uint64_t element);

/// values[i] = scale · standardNormal(stream, first + i), rounded to f32: the
/// same bits as by the definition, at a sixth of its time. `level` is no more
/// than what the processor has.
void drawNormals(const RandomStream &stream, double scale, uint64_t first,
                 int64_t count, float *values,
                 std::optional<CpuLevel> level = hostCpuLevel());

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_TRAIN_NORMALDRAWS_H
