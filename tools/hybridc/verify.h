//===- verify.h - a compiled model beside the oracle -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TOOLS_HYBRIDC_VERIFY_H
#define HYBRID_TOOLS_HYBRIDC_VERIFY_H

/// Whether the command line asks for `hybridc verify`.
bool isVerify();

/// Runs it; the exit code.
int runVerify();

#endif // HYBRID_TOOLS_HYBRIDC_VERIFY_H
