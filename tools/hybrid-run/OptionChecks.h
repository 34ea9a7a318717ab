//===- OptionChecks.h - What the value of an option may be ------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks of the text of an option before it is converted: a number that the
// conversion would round, wrap or clip is refused with what would be right.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TOOLS_HYBRID_RUN_OPTION_CHECKS_H
#define HYBRID_TOOLS_HYBRID_RUN_OPTION_CHECKS_H

#include <CLI/CLI.hpp>

namespace hyb::run {

/// A whole number of these bounds, both included.
CLI::Validator wholeNumber(int64_t least, int64_t most = INT64_MAX);
/// A whole number below 2^64.
CLI::Validator seedNumber();
/// A finite number of these bounds, both included.
CLI::Validator realNumber(double least,
                          double most = std::numeric_limits<float>::max());
/// A share above 0 and up to 1.
CLI::Validator shareAboveZero();
/// A share from 0 and below 1, as a float too.
CLI::Validator shareBelowOne();
/// At least one byte.
CLI::Validator someText();
/// What could name a device. Whether it is there shows when it is opened.
CLI::Validator deviceName();
CLI::Validator productsName();
/// What could name a level of the processor. Whether the processor and the
/// artefact have it shows later.
CLI::Validator levelName();

} // namespace hyb::run

#endif // HYBRID_TOOLS_HYBRID_RUN_OPTION_CHECKS_H
