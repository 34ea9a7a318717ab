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

/// The largest |found - expected| relative to the largest finite |expected|.
/// Equal infinities agree; a NaN is infinitely wrong.
double relativeError(const oracle::Tensor &found,
                     const oracle::Tensor &expected);

} // namespace hybrid

#endif // HYBRID_LIB_VERIFY_EVALUATE_H
