//===- usage.h - reading the command line -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TOOLS_HYBRIDC_USAGE_H
#define HYBRID_TOOLS_HYBRIDC_USAGE_H

namespace llvm {
class Twine;
} // namespace llvm

/// Reads the options; false when they are wrong, which has been printed.
bool readCommandLine(int argc, char **argv);

/// Prints what is wrong with the command line and where its help is; the exit
/// code.
int usageError(const llvm::Twine &message);

#endif // HYBRID_TOOLS_HYBRIDC_USAGE_H
