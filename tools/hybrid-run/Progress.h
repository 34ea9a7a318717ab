//===- Progress.h - What a long command shows -------------------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TOOLS_HYBRID_RUN_PROGRESS_H
#define HYBRID_TOOLS_HYBRID_RUN_PROGRESS_H

#include "RecentPace.h"

#include <cstdint>
#include <string>

namespace hyb::run {

/// A bar that is redrawn on a terminal, and a plain line now and then
/// elsewhere. Goes to the standard error stream, so that results can be piped.
class Progress {
public:
  explicit Progress(bool quiet);
  ~Progress() { finish(); }

  /// Work that `share` of is done already starts or goes on now.
  void begin(double share);
  /// `share` is 0 to 1. Redraws at most ten times a second.
  void show(double share, const std::string &text);
  /// Ends the bar's line.
  void finish();

private:
  bool quiet, terminal;
  bool open = false;
  double lastShown = 0;
  RecentPace pace;
};

/// "1:02:03", "4:05"
std::string clockText(double seconds);

} // namespace hyb::run

#endif // HYBRID_TOOLS_HYBRID_RUN_PROGRESS_H
