//===- Print.cpp - a report as text -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Numbers.h"

#include "hybrid/Report/Report.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace hybrid;

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

namespace {

/// Columns as wide as their widest entry, each to the left or right as the
/// letters of `alignment` say.
class Table {
public:
  explicit Table(StringRef alignment) : alignment(alignment) {}
  void add(std::vector<std::string> row) { rows.push_back(std::move(row)); }

  void print(raw_ostream &os) const {
    std::vector<size_t> widths(alignment.size(), 0);
    for (const auto &row : rows)
      for (auto [width, text] : llvm::zip(widths, row))
        width = std::max(width, text.size());
    for (const auto &row : rows) {
      std::string line;
      llvm::raw_string_ostream text(line);
      for (auto [column, entry] : llvm::enumerate(row))
        text << (column ? "  " : "")
             << (alignment[column] == 'l'
                     ? llvm::left_justify(entry, widths[column])
                     : llvm::right_justify(entry, widths[column]));
      os << StringRef(line).rtrim() << '\n';
    }
  }

private:
  StringRef alignment;
  std::vector<std::vector<std::string>> rows;
};

} // namespace

//===----------------------------------------------------------------------===//
// One model
//===----------------------------------------------------------------------===//

static void printSummary(raw_ostream &os, const ModelReport &report) {
  StateBytes state = report.getState();
  Work forward = report.getForward(), decode = report.getDecode();
  os << "model @" << report.name << ": " << report.layers.size()
     << " layers, width " << report.width << ", vocab " << report.vocab
     << "\n\n";
  Table table("lr");
  table.add({"parameters", formatCount(report.params)});
  table.add({"  without embedding and head",
             formatCount(report.params - report.embeddingParams)});
  table.add({"cache bytes per token", formatCount(state.perToken)});
  table.add({"state bytes per sequence", formatCount(state.fixed)});
  table.add({"both at " + formatCount(report.context) + " tokens",
             formatCount(state.at(report.context))});
  table.add({"forward, operations per token",
             formatShort(forward.flops / report.context)});
  table.add({"decode at " + formatCount(report.context) + ", operations",
             formatShort(decode.flops)});
  table.add({"decode at " + formatCount(report.context) + ", bytes",
             formatShort(decode.bytes)});
  table.print(os);
}

static void printLayers(raw_ostream &os, const ModelReport &report) {
  Table table("lrrrl");
  table.add({"layer", "parameters", "cache/token", "state", "mixer"});
  for (auto [index, layer] : llvm::enumerate(report.layers)) {
    bool grouped = layer.groups.size() > 1;
    StateBytes state = layer.getState();
    table.add({std::to_string(index), formatCount(layer.params),
               formatCount(state.perToken), formatCount(state.fixed),
               grouped ? std::to_string(layer.groups.size()) + " groups"
                       : layer.groups.front().mixer});
    if (!grouped)
      continue;
    for (auto [number, group] : llvm::enumerate(layer.groups))
      table.add({"  group " + std::to_string(number), formatCount(group.params),
                 formatCount(group.state.perToken),
                 formatCount(group.state.fixed), group.mixer});
  }
  table.print(os);
}

static void addPlaces(Table &table, const std::vector<PlaceReport> &places,
                      int64_t context) {
  for (const PlaceReport &place : places)
    table.add({"  " + place.name, formatShort(place.forward.flops / context),
               formatShort(place.forward.bytes / context),
               formatShort(place.decode.flops),
               formatShort(place.decode.bytes)});
}

/// The work per place, once for layers that are alike.
static void printWork(raw_ostream &os, const ModelReport &report) {
  Table table("lrrrr");
  table.add({"work per token", "forward", "bytes", "decode", "bytes"});
  llvm::MapVector<StringRef, SmallVector<size_t>> kinds;
  std::vector<std::string> mixers;
  for (const LayerReport &layer : report.layers)
    mixers.push_back(layer.getMixers());
  for (auto [index, text] : llvm::enumerate(mixers))
    kinds[text].push_back(index);
  for (auto &[text, indices] : kinds) {
    std::string list = llvm::join(
        llvm::map_range(indices, [](size_t i) { return std::to_string(i); }),
        " ");
    table.add({(indices.size() > 1 ? "each of layers " : "layer ") + list});
    addPlaces(table, report.work[indices.front()], report.context);
  }
  table.add({"model"});
  addPlaces(table, report.work.back(), report.context);
  table.print(os);
}

void hybrid::printReport(raw_ostream &os, const ModelReport &report) {
  printSummary(os, report);
  os << '\n';
  printLayers(os, report);
  os << '\n';
  printWork(os, report);
}

//===----------------------------------------------------------------------===//
// Two models
//===----------------------------------------------------------------------===//

void hybrid::printComparison(raw_ostream &os, const ModelReport &a,
                             const ModelReport &b) {
  Table table("lrrr");
  table.add({"", "@" + a.name, "@" + b.name, "ratio"});
  auto add = [&](const std::string &what, double left, double right) {
    std::string ratio =
        left > 0 ? llvm::formatv("{0:F3}", right / left).str() : "";
    table.add({what, formatShort(left), formatShort(right), ratio});
  };
  StateBytes stateA = a.getState(), stateB = b.getState();
  add("parameters", a.params, b.params);
  add("  without embedding and head", a.params - a.embeddingParams,
      b.params - b.embeddingParams);
  add("cache bytes per token", stateA.perToken, stateB.perToken);
  add("state bytes per sequence", stateA.fixed, stateB.fixed);
  int64_t context = std::max(a.context, b.context);
  for (int64_t tokens : {context, 16 * context})
    add("both at " + formatCount(tokens) + " tokens", stateA.at(tokens),
        stateB.at(tokens));
  add("forward, operations per token", a.getForward().flops / a.context,
      b.getForward().flops / b.context);
  add("decode, operations", a.getDecode().flops, b.getDecode().flops);
  add("decode, bytes", a.getDecode().bytes, b.getDecode().bytes);
  table.print(os);
}
