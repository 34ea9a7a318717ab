//===- Evaluate.h - an entry's graph, value by value -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_VERIFY_EVALUATE_H
#define HYBRID_LIB_VERIFY_EVALUATE_H

#include "hybrid/Oracle/Oracle.h"

namespace hybrid {

/// Makes the tensor of an argument. Parameters of a large model do not fit in
/// memory twice, so arguments are made when they are first read, and every
/// value goes with its last reader.
using MakeArgument = llvm::function_ref<oracle::Tensor(mlir::BlockArgument)>;

/// Called with every operation and what the oracle has computed for it. What it
/// leaves in the results is what later operations read.
using Visit = llvm::function_ref<void(mlir::Operation *,
                                      llvm::MutableArrayRef<oracle::Tensor>)>;

/// Evaluates a graph function in fp64 and returns its results.
mlir::FailureOr<std::vector<oracle::Tensor>>
evaluateGraph(mlir::func::FuncOp function, const oracle::Call &call,
              MakeArgument makeArgument, Visit visit);

/// The largest finite |value|.
double largestOf(const oracle::Tensor &tensor);

/// The largest |found - expected| relative to the largest finite |expected|.
/// Equal infinities agree; a NaN is infinitely wrong. `beside` is the largest
/// value among the results that come with this one: what is smaller than f32's
/// rounding of that has cancelled (the gradient of q where a row sees one key),
/// and is compared with a tenth of it.
double relativeError(const oracle::Tensor &found,
                     const oracle::Tensor &expected, double beside);

} // namespace hybrid

#endif // HYBRID_LIB_VERIFY_EVALUATE_H
