//===- Errors.h - how a compilation ends early -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_DRIVER_ERRORS_H
#define HYBRID_LIB_DRIVER_ERRORS_H

#include "hybrid/Driver/Compile.h"

namespace hybrid {

/// Prints an error that has no place in the spec.
Outcome fail(const llvm::Twine &message);

/// The same for what is wrong with the command line.
Outcome failUsage(const llvm::Twine &message);

/// Reports a failure of our own and how to repeat it.
Outcome internalError(const PhaseInfo &phase, mlir::ModuleOp before,
                      llvm::StringRef pipeline, llvm::StringRef what);

} // namespace hybrid

#endif // HYBRID_LIB_DRIVER_ERRORS_H
