//===- PageStack.cpp - the stack layer by layer and head by head -*- C++
//-*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Html.h"
#include "Numbers.h"

#include "llvm/ADT/StringExtras.h"

using namespace hybrid;

//===----------------------------------------------------------------------===//
// Kinds of heads
//===----------------------------------------------------------------------===//

static constexpr size_t numColours = 8;

/// A, B, ..., Z, A2, ...
static std::string getLetter(size_t index) {
  std::string letter(1, static_cast<char>('A' + index % 26));
  return index < 26 ? letter : letter + std::to_string(index / 26 + 1);
}

static std::string describe(const HeadKind &kind) {
  if (kind.mixer != "softmax")
    return kind.mixer + (kind.window ? ", history " + formatCount(kind.window) +
                                           " by " + formatCount(kind.stride)
                                     : ", all tokens in one state");
  std::string text =
      kind.window ? "window " + formatCount(kind.window) : "full attention";
  text += ", " + kind.position;
  if (kind.sinks)
    text += ", " + formatCount(kind.sinks) + " sinks";
  return text + (kind.isLogN ? ", log-n" : "");
}

/// What a query (downwards) sees of the keys (to the right), on 24 by 24.
static void writeGlyph(llvm::raw_ostream &os, const HeadKind &kind,
                       size_t colour) {
  os << "<svg class=\"glyph\" viewBox=\"0 0 24 24\" aria-hidden=\"true\">"
        "<rect width=\"24\" height=\"24\" rx=\"3\" class=\"well\"/>"
        "<g class=\"k"
     << colour << "\">";
  bool isRecurrent = kind.mixer != "softmax";
  if (!isRecurrent && !kind.window)
    os << "<path d=\"M2 2L22 22H2Z\"/>";
  if (!isRecurrent && kind.window)
    os << "<path d=\"M2 2L22 22H14L2 10Z\"/>";
  if (kind.sinks)
    os << "<path d=\"M2 2H5V22H2Z\"/>";
  // A state fades with its age; a bounded history ends.
  for (int step = 0; isRecurrent && step < (kind.window ? 3 : 5); ++step)
    os << "<path opacity=\"" << at(1.0 - 0.19 * step) << "\" d=\"M2 "
       << 2 + 4 * step << "L" << 22 - 4 * step << " 22H"
       << std::max(18 - 4 * step, 2) << "L2 " << 6 + 4 * step << "Z\"/>";
  os << "</g></svg>";
}

void hybrid::writeLegend(llvm::raw_ostream &os, const HeadKinds &kinds,
                         llvm::ArrayRef<PageModel> models) {
  os << "<ul class=\"legend\">\n";
  for (auto [index, kind] : llvm::enumerate(kinds.get())) {
    os << "<li>";
    writeGlyph(os, kind, index % numColours);
    os << "<span class=\"chip k" << index % numColours << "\"><b>"
       << getLetter(index) << "</b></span><span>" << escape(describe(kind))
       << "<small>";
    for (const PageModel &model : models) {
      int64_t heads = 0, layers = 0;
      for (const LayerReport &layer : model.report.layers) {
        bool isIn = false;
        for (const GroupReport &group : layer.groups)
          if (group.kind == kind) {
            heads += group.heads;
            isIn = true;
          }
        layers += isIn;
      }
      os << (&model == models.begin() ? "" : " · ");
      if (models.size() > 1)
        os << "@" << escape(model.report.name) << ": ";
      os << heads << (heads == 1 ? " head in " : " heads in ") << layers
         << (layers == 1 ? " layer" : " layers");
    }
    os << "</small></span></li>\n";
  }
  os << "</ul>\n";
}

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

namespace {
/// Places in the drawing.
struct StackGrid {
  static constexpr double width = 640, left = 34, right = 470, rowHeight = 30,
                          cell = 17, groupGap = 8, headGap = 2;
};
} // namespace

static void writeHeads(llvm::raw_ostream &os, const LayerReport &layer,
                       double y, const HeadKinds &kinds) {
  using Grid = StackGrid;
  int64_t heads = 0;
  for (const GroupReport &group : layer.groups)
    heads += group.heads;
  double gaps = Grid::groupGap * (layer.groups.size() - 1);
  double step = (Grid::right - Grid::left - gaps) / heads;
  double gap = step > 6 ? Grid::headGap : 0;
  double x = Grid::left;
  for (auto [number, group] : llvm::enumerate(layer.groups)) {
    size_t kind = kinds.indexOf(group.kind);
    os << "<g class=\"k" << kind % numColours << "\"><title>"
       << (layer.groups.size() > 1 ? "group " + std::to_string(number) + ": "
                                   : std::string())
       << escape(group.mixer) << "; " << formatCount(group.params)
       << " parameters; " << formatBytes(group.state.perToken) << " per token, "
       << formatBytes(group.state.fixed) << " per sequence</title>\n";
    for (int64_t head = 0; head < group.heads; ++head, x += step) {
      os << "<rect x=\"" << at(x) << "\" y=\"" << at(y) << "\" width=\""
         << at(step - gap) << "\" height=\"" << at(Grid::cell) << "\" rx=\""
         << (gap > 0 ? 3 : 0) << "\"/>\n";
      if (step >= 14)
        writeText(os, x + (step - gap) / 2, y + 12.5, "letter",
                  getLetter(kind));
    }
    os << "</g>\n";
    x += Grid::groupGap;
  }
}

/// Embedding and head, across.
static double writeEnd(llvm::raw_ostream &os, double y,
                       const std::string &text) {
  using Grid = StackGrid;
  os << "<rect x=\"" << at(Grid::left) << "\" y=\"" << at(y) << "\" width=\""
     << at(Grid::right - Grid::left - 2) << "\" height=\"" << at(Grid::cell)
     << "\" rx=\"3\" class=\"well\"/>\n";
  writeText(os, (Grid::left + Grid::right) / 2, y + 12.5, "note middle", text);
  return y + Grid::rowHeight;
}

void hybrid::writeStack(llvm::raw_ostream &os, const ModelReport &report,
                        const HeadKinds &kinds) {
  using Grid = StackGrid;
  double height = Grid::rowHeight * (report.layers.size() + 2) + 22;
  os << "<svg class=\"stack\" viewBox=\"0 0 " << at(Grid::width) << ' '
     << at(height) << "\" role=\"img\" aria-label=\"The layers of @"
     << escape(report.name) << " and their heads\">\n";
  writeText(os, Grid::width, 10, "note end", "cache per token · state");
  double y = writeEnd(os, 18,
                      "embedding, " + formatCount(report.vocab) + " × " +
                          formatCount(report.width));
  for (auto [index, layer] : llvm::enumerate(report.layers)) {
    StateBytes state = layer.getState();
    writeText(os, Grid::left - 10, y + 12.5, "number end",
              std::to_string(index));
    writeHeads(os, layer, y, kinds);
    if (layer.feedForward)
      os << "<rect x=\"" << at(Grid::left) << "\" y=\""
         << at(y + Grid::cell + 2) << "\" width=\""
         << at(Grid::right - Grid::left - 2)
         << "\" height=\"4\" rx=\"2\" class=\"forward\"><title>feed-forward, "
         << formatCount(layer.feedForward) << " channels</title></rect>\n";
    writeText(os, Grid::width, y + 12.5, "number end",
              formatBytes(state.perToken) + " · " + formatBytes(state.fixed));
    y += Grid::rowHeight;
  }
  writeEnd(os, y, "norm and head");
  os << "</svg>\n";
}
