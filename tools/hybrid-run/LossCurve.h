//===- LossCurve.h - A picture of a training log ----------------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TOOLS_HYBRID_RUN_LOSSCURVE_H
#define HYBRID_TOOLS_HYBRID_RUN_LOSSCURVE_H

#include "core/Status.h"

namespace hyb::run {

/// Reads a run's log.jsonl and writes an SVG of bits per byte over bytes seen:
/// training as a line, validations as rings (of a part of the data, during the
/// run) and dots (of all of it).
rt::Status drawLossCurve(const std::string &log, const std::string &picture);

} // namespace hyb::run

#endif // HYBRID_TOOLS_HYBRID_RUN_LOSSCURVE_H
