//===- SpecVerify.h - checks of spec and stack operations -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_HYBRID_SPECVERIFY_H
#define HYBRID_LIB_HYBRID_SPECVERIFY_H

#include "hybrid/Hybrid/HybridOps.h"

namespace hybrid {

/// Bounds that keep every size of one layer and one call far inside 64 bits.
constexpr int64_t kMaxTokens = (int64_t(1) << 31) - 1;
constexpr int64_t kMaxWidth = int64_t(1) << 20;
constexpr int64_t kMaxLayers = 4096;
constexpr int64_t kMaxHeads = 1024;
/// What the tile programs of the two families hold in one block.
constexpr int64_t kMaxHeadDim = 256;
constexpr int64_t kMaxValueDim = 512;
constexpr int64_t kMaxConv = 8;
/// Factors beyond it are typing errors, and their products no f32 numbers.
constexpr double kMaxNumber = 1.0e6;

/// Of the elements left out at random; kept ones are scaled by up to 100.
constexpr double kMaxDropout = 0.99;

/// `value` lies in [least, most].
mlir::LogicalResult verifyCount(mlir::Operation *op, llvm::StringRef role,
                                int64_t value, int64_t least, int64_t most);

/// `type` is one that a model may have (docs/rationale/precision.md).
mlir::LogicalResult verifyComputeType(mlir::Operation *op, mlir::Type type);

/// `value` is a multiple of 8 in [8, most].
mlir::LogicalResult verifyChannels(mlir::Operation *op, llvm::StringRef role,
                                   int64_t value, int64_t most);

/// `rate` lies in [0, kMaxDropout].
mlir::LogicalResult verifyDropout(mlir::Operation *op, llvm::StringRef role,
                                  double rate);

/// A window of whole strides.
mlir::LogicalResult verifyHistory(mlir::Operation *op, int64_t window,
                                  int64_t stride);

/// `body` holds one mixer and nothing else.
mlir::LogicalResult verifyOneMixer(mlir::Operation *op, mlir::Block &body);

} // namespace hybrid

#endif // HYBRID_LIB_HYBRID_SPECVERIFY_H
