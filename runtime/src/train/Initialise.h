//===- Initialise.h - First values of parameters ----------------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_TRAIN_INITIALISE_H
#define HYBRID_RUNTIME_TRAIN_INITIALISE_H

#include "core/Tables.h"
#include "cpu/ThreadPool.h"

namespace hyb::rt {

/// Fills `parameters`, laid out by the table. A number depends on the seed, the
/// parameter's path and the element alone, so it does not change when layers
/// are added elsewhere, nor with the threads, which share the work when there
/// are any.
void initialiseParameters(const ParameterTable &table, uint64_t seed,
                          float *parameters, ThreadPool *threads = nullptr);

/// The same for `count` elements of the flat buffer from `first` on, which
/// `values` need not have room for more than. What lies between parameters is
/// 0.
void initialiseRange(const ParameterTable &table, uint64_t seed, int64_t first,
                     int64_t count, float *values, ThreadPool *threads);

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_TRAIN_INITIALISE_H
