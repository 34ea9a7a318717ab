//===- report.h - what specs cost -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TOOLS_HYBRIDC_REPORT_H
#define HYBRID_TOOLS_HYBRIDC_REPORT_H

/// Whether the command line asks for `hybridc report`.
bool isReport();

/// Prints the report that the command line asks for; the exit code.
int runReport();

#endif // HYBRID_TOOLS_HYBRIDC_REPORT_H
