//===- PageMemory.cpp - memory over the launches of a call -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Html.h"
#include "Numbers.h"

#include "llvm/ADT/StringSwitch.h"

using namespace hybrid;
using llvm::StringRef;

namespace {
struct MemoryGrid {
  static constexpr double width = 640, height = 216, left = 66, right = 632,
                          top = 14, bottom = 186;
  static double y(double bytes, double largest) {
    return bottom - (bottom - top) * bytes / largest;
  }
};
} // namespace

/// Colour class of what the caller holds.
static StringRef getClass(StringRef what) {
  return llvm::StringSwitch<StringRef>(what)
      .Case("parameters", "m0")
      .Case("gradients", "m1")
      .Case("moments", "m2")
      .Case("states and caches", "m3")
      .Default("m4");
}

static void writeScale(llvm::raw_ostream &os, double largest) {
  using Grid = MemoryGrid;
  double tick = getTick(largest, 1024);
  for (double value = 0; value <= largest; value += tick) {
    double y = Grid::y(value, largest);
    os << "<path class=\"grid\" d=\"M" << at(Grid::left) << ' ' << at(y) << 'H'
       << at(Grid::right) << "\"/>\n";
    writeText(os, Grid::left - 6, y + 3.5, "note end", formatBytes(value));
  }
}

/// The arena's use as steps on top of what the caller holds.
static void writeLive(llvm::raw_ostream &os, const CallReport &call,
                      double base, double largest) {
  using Grid = MemoryGrid;
  double step = (Grid::right - Grid::left) / call.live.size();
  os << "<path class=\"m5\" d=\"M" << at(Grid::left) << ' '
     << at(Grid::y(base, largest));
  for (auto [index, live] : llvm::enumerate(call.live))
    os << 'V' << at(Grid::y(base + live, largest)) << 'H'
       << at(Grid::left + step * (index + 1));
  os << 'V' << at(Grid::y(base, largest)) << "Z\"/>\n<g class=\"hover\">\n";
  for (auto [index, live] : llvm::enumerate(call.live))
    os << "<rect x=\"" << at(Grid::left + step * index) << "\" y=\""
       << at(Grid::top) << "\" width=\"" << at(step) << "\" height=\""
       << at(Grid::bottom - Grid::top) << "\"><title>launch " << index << ", "
       << escape(call.places[index]) << ": " << formatBytes(live)
       << " of the arena in use</title></rect>\n";
  os << "</g>\n";
}

static void writePeak(llvm::raw_ostream &os, const CallReport &call,
                      double base, double largest) {
  using Grid = MemoryGrid;
  auto peak = std::max_element(call.live.begin(), call.live.end());
  size_t index = std::distance(call.live.begin(), peak);
  double x = Grid::left +
             (Grid::right - Grid::left) * (index + 0.5) / call.live.size();
  double y = Grid::y(base + *peak, largest);
  os << "<circle class=\"peak\" cx=\"" << at(x) << "\" cy=\"" << at(y)
     << "\" r=\"3\"/>\n";
  bool isLeft = x < (Grid::left + Grid::right) / 2;
  writeText(os, x + (isLeft ? 7 : -7), std::max(y - 5, 10.0),
            isLeft ? "mark" : "mark end", "peak at " + call.places[index]);
}

static void writeMemoryLegend(llvm::raw_ostream &os, const CallReport &call) {
  os << "<ul class=\"legend tight\">\n";
  auto entry = [&](StringRef what, StringRef classes, uint64_t bytes,
                   const std::string &note) {
    os << "<li><span class=\"chip " << classes << "\"></span><span>" << what
       << " <b>" << formatBytes(bytes) << "</b>" << note << "</span></li>\n";
  };
  for (const auto &[what, bytes] : call.bound)
    entry(what, getClass(what), bytes, "");
  if (call.arena)
    entry("arena", "m5", call.arena,
          " <small>(" + formatBytes(call.withoutReuse) +
              " without reuse)</small>");
  os << "</ul>\n";
}

void hybrid::writeMemory(llvm::raw_ostream &os, const CallReport &call,
                         uint64_t top) {
  using Grid = MemoryGrid;
  double largest = std::max<double>(top, 1) * 1.06;
  os << "<figure><figcaption>" << call.title << ", " << call.live.size()
     << " launches, <b>" << formatBytes(call.getBound() + call.arena)
     << "</b></figcaption>\n<svg viewBox=\"0 0 " << at(Grid::width) << ' '
     << at(Grid::height)
     << "\" role=\"img\" aria-label=\"Memory over the launches of "
     << call.title << "\">\n";
  writeScale(os, largest);
  double base = 0;
  for (const auto &[what, bytes] : call.bound) {
    double y = Grid::y(base + bytes, largest);
    os << "<rect class=\"" << getClass(what) << "\" x=\"" << at(Grid::left)
       << "\" y=\"" << at(y) << "\" width=\"" << at(Grid::right - Grid::left)
       << "\" height=\"" << at(Grid::y(base, largest) - y) << "\"/>\n";
    base += bytes;
  }
  if (call.arena) {
    double y = Grid::y(base + call.arena, largest);
    os << "<path class=\"limit\" d=\"M" << at(Grid::left) << ' ' << at(y) << 'H'
       << at(Grid::right) << "\"/>\n";
  }
  if (!call.live.empty())
    writeLive(os, call, base, largest);
  if (call.arena)
    writePeak(os, call, base, largest);
  writeText(os, Grid::left, Grid::height - 12, "note", "first launch");
  writeText(os, Grid::right, Grid::height - 12, "note end", "last launch");
  os << "</svg>\n";
  writeMemoryLegend(os, call);
  os << "</figure>\n";
}

void hybrid::writeRecompute(llvm::raw_ostream &os, const PlanReport &plan) {
  if (plan.recompute.empty())
    return;
  uint64_t largest = 1;
  for (const RecomputeReport &row : plan.recompute)
    largest = std::max(largest, row.arena);
  os << "<figure class=\"bars\"><figcaption>Training arena by what backward "
        "computes again (<code>hybrid.recompute</code>)</figcaption>\n";
  for (const RecomputeReport &row : plan.recompute)
    os << "<div" << (row.isChosen ? " class=\"chosen\"" : "") << "><span>"
       << row.name << (row.isChosen ? " (this spec)" : "")
       << "</span><span class=\"bar\"><i style=\"width:"
       << at(100.0 * row.arena / largest) << "%\"></i></span><span>"
       << formatBytes(row.arena) << " <small>of " << formatBytes(row.total)
       << ", " << row.launches << " launches</small></span></div>\n";
  os << "</figure>\n";
}
