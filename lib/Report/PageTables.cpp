//===- PageTables.cpp - tables of a page -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Html.h"
#include "Numbers.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>

using namespace hybrid;
using llvm::StringRef;

namespace {

/// A table whose first and last columns are text, and the second and third of
/// a wide one.
class HtmlTable {
public:
  HtmlTable(llvm::raw_ostream &os, llvm::ArrayRef<std::string> heads,
            StringRef classes = "plain")
      : os(os) {
    os << "<div class=\"scroll\"><table class=\"" << classes
       << "\">\n<thead><tr>";
    for (const std::string &head : heads)
      os << "<th>" << escape(head) << "</th>";
    os << "</tr></thead>\n<tbody>\n";
  }
  ~HtmlTable() { os << "</tbody></table></div>\n"; }

  void add(llvm::ArrayRef<std::string> row, StringRef classes = "") {
    os << "<tr" << (classes.empty() ? "" : " class=\"") << classes
       << (classes.empty() ? "" : "\"") << '>';
    for (const std::string &text : row)
      os << "<td>" << escape(text) << "</td>";
    os << "</tr>\n";
  }

private:
  llvm::raw_ostream &os;
};

} // namespace

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

void hybrid::writeLayerTable(llvm::raw_ostream &os, const ModelReport &report) {
  HtmlTable table(
      os, {"layer", "parameters", "cache, per token", "state, per sequence",
           "at " + formatCount(report.context) + " tokens", "mixer"});
  auto add = [&](const std::string &name, int64_t params,
                 const StateBytes &state, const std::string &mixer,
                 StringRef classes) {
    table.add({name, formatCount(params), formatBytes(state.perToken),
               formatBytes(state.fixed), formatBytes(state.at(report.context)),
               mixer},
              classes);
  };
  for (auto [index, layer] : llvm::enumerate(report.layers)) {
    bool isGrouped = layer.groups.size() > 1;
    add(std::to_string(index), layer.params, layer.getState(),
        isGrouped ? std::to_string(layer.groups.size()) + " head groups"
                  : layer.groups.front().mixer,
        "");
    for (auto [number, group] : llvm::enumerate(layer.groups))
      if (isGrouped)
        add("group " + std::to_string(number), group.params, group.state,
            group.mixer, "sub");
  }
  add("embedding and head", report.embeddingParams, {}, "", "");
  add("all", report.params, report.getState(), "", "sum");
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// 0–2, 4–6, 8
static std::string formatLayers(const std::vector<int64_t> &layers) {
  std::string text;
  for (size_t begin = 0, end; begin < layers.size(); begin = end) {
    for (end = begin + 1;
         end < layers.size() && layers[end] == layers[end - 1] + 1;)
      ++end;
    text += (text.empty() ? "" : ", ") + std::to_string(layers[begin]);
    if (end - begin > 1)
      text += (end - begin > 2 ? "–" : ", ") + std::to_string(layers[end - 1]);
  }
  return text;
}

namespace {
/// Operations that differ in their layer alone.
struct AlikeOperations {
  const OperationReport *operation = nullptr;
  std::vector<int64_t> layers;
  unsigned count = 0;
};
} // namespace

static std::vector<AlikeOperations> groupAlike(const CallReport &call) {
  std::vector<AlikeOperations> groups;
  llvm::StringMap<size_t> places;
  std::map<std::pair<int64_t, std::string>, unsigned> repeats;
  for (const OperationReport &operation : call.operations) {
    std::string key =
        llvm::formatv("{0}|{1}|{2}|{3}|{4}|{5}", operation.layer >= 0,
                      operation.place, operation.kind, operation.kernels,
                      operation.work.flops, operation.work.bytes)
            .str();
    // A second operation of the same text in a layer is a row of its own.
    key += "|" + std::to_string(repeats[{operation.layer, key}]++);
    auto [place, isNew] = places.try_emplace(key, groups.size());
    if (isNew)
      groups.push_back({&operation, {}, 0});
    AlikeOperations &group = groups[place->second];
    ++group.count;
    if (operation.layer >= 0)
      group.layers.push_back(operation.layer);
  }
  for (AlikeOperations &group : groups)
    llvm::sort(group.layers);
  return groups;
}

static void writeAlike(llvm::raw_ostream &os,
                       llvm::ArrayRef<AlikeOperations> groups,
                       const Device &device, double total) {
  HtmlTable table(os,
                  {"operation", "layers", "kind", "operations each",
                   "bytes each", "per byte", "at least, each", "share of all",
                   "launches each"},
                  "wide");
  for (const AlikeOperations &group : groups) {
    const OperationReport &operation = *group.operation;
    const Work &work = operation.work;
    double floor = getFloor(work, device);
    table.add({operation.place, formatLayers(group.layers), operation.kind,
               formatShort(work.flops), formatShort(work.bytes),
               work.bytes > 0 ? at(work.flops / work.bytes) : "",
               formatSeconds(floor),
               total > 0 ? llvm::formatv("{0:F1} %",
                                         100.0 * floor * group.count / total)
                               .str()
                         : "",
               operation.kernels});
  }
}

void hybrid::writeOperationTable(llvm::raw_ostream &os, const CallReport &call,
                                 const Device &device) {
  std::vector<AlikeOperations> groups = groupAlike(call);
  double total = 0;
  for (const AlikeOperations &group : groups)
    total += group.count * getFloor(group.operation->work, device);
  os << "<details><summary>" << call.title << ": " << call.operations.size()
     << " operations, " << call.live.size() << " launches</summary>\n";
  writeAlike(os, groups, device, total);
  os << "</details>\n";
}

//===----------------------------------------------------------------------===//
// Two models
//===----------------------------------------------------------------------===//

void hybrid::writeComparison(llvm::raw_ostream &os, const ModelReport &a,
                             const ModelReport &b) {
  HtmlTable table(os, {"", "@" + a.name, "@" + b.name, "ratio"});
  auto add = [&](const std::string &what, double left, double right,
                 bool isBytes) {
    auto format = isBytes ? formatBytes : formatShort;
    table.add({what, format(left), format(right),
               left > 0 ? llvm::formatv("{0:F3}", right / left).str() : ""});
  };
  StateBytes stateA = a.getState(), stateB = b.getState();
  add("parameters", a.params, b.params, false);
  add("cache per token", stateA.perToken, stateB.perToken, true);
  add("state per sequence", stateA.fixed, stateB.fixed, true);
  int64_t context = std::max(a.context, b.context);
  for (int64_t tokens : {context, 16 * context})
    add("both at " + formatCount(tokens) + " tokens", stateA.at(tokens),
        stateB.at(tokens), true);
  add("forward, operations per token", a.getForward().flops / a.context,
      b.getForward().flops / b.context, false);
  add("decode, operations", a.getDecode().flops, b.getDecode().flops, false);
  add("decode, bytes", a.getDecode().bytes, b.getDecode().bytes, true);
}
