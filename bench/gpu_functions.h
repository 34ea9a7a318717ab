//===- gpu_functions.h - graph functions as launches -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_BENCH_GPUFUNCTIONS_H
#define HYBRID_BENCH_GPUFUNCTIONS_H

#include "mlir/IR/BuiltinOps.h"

namespace hybrid {

/// Graph functions become launches of programs for `target`, as in hybridc.
mlir::LogicalResult scheduleFunctions(mlir::ModuleOp module,
                                      llvm::StringRef target);

/// A JSON line per function and number of tokens: the shapes of its values,
/// arguments first, and what each launch is given.
void describeFunctions(mlir::ModuleOp module, llvm::ArrayRef<int64_t> tokens);

} // namespace hybrid

#endif // HYBRID_BENCH_GPUFUNCTIONS_H
