//===- Progress.cpp ------------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Progress.h"

#include "Session.h"

#include <algorithm>
#include <cstdio>
#include <unistd.h>

namespace hyb::run {

namespace {
constexpr double kRedrawSeconds = 0.1;
constexpr double kLineSeconds = 10;
constexpr int kBarWidth = 24;
} // namespace

Progress::Progress(bool quiet)
    : quiet(quiet), terminal(::isatty(STDERR_FILENO) != 0) {
  begin(0);
}

void Progress::begin(double share) {
  pace = RecentPace();
  pace.note(secondsNow(), share);
}

void Progress::show(double share, const std::string &text) {
  double now = secondsNow();
  pace.note(now, share);
  bool last = share >= 1;
  if (quiet ||
      (!last && now - lastShown < (terminal ? kRedrawSeconds : kLineSeconds)))
    return;
  lastShown = now;
  double secondsLeft = pace.secondsLeft();
  std::string left =
      last || secondsLeft < 0 ? "" : "  " + clockText(secondsLeft) + " left";
  if (terminal) {
    int filled = static_cast<int>(std::clamp(share, 0.0, 1.0) * kBarWidth);
    std::string bar(static_cast<size_t>(filled), '#');
    bar.resize(kBarWidth, '.');
    std::fprintf(stderr, "\r[%s] %3.0f%%  %s%s\033[K", bar.c_str(), 100 * share,
                 text.c_str(), left.c_str());
    open = true;
  } else {
    std::fprintf(stderr, "%3.0f%%  %s%s\n", 100 * share, text.c_str(),
                 left.c_str());
  }
  std::fflush(stderr);
}

void Progress::finish() {
  if (open)
    std::fputc('\n', stderr);
  open = false;
}

std::string clockText(double seconds) {
  long total = static_cast<long>(seconds + 0.5);
  char text[32];
  if (total >= 3600)
    std::snprintf(text, sizeof(text), "%ld:%02ld:%02ld", total / 3600,
                  total / 60 % 60, total % 60);
  else
    std::snprintf(text, sizeof(text), "%ld:%02ld", total / 60, total % 60);
  return text;
}

} // namespace hyb::run
