//===- Page.cpp - a report as one HTML page -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The page is HTML and well-formed XML, has no script and loads nothing.
//
//===----------------------------------------------------------------------===//

#include "Html.h"
#include "Numbers.h"
#include "PageStyle.h"

#include "llvm/ADT/StringExtras.h"

using namespace hybrid;
using llvm::ArrayRef;
using llvm::StringRef;

/// Classes of colours: fill in drawings, background of chips in legends.
static void writeColours(llvm::raw_ostream &os) {
  auto write = [&](char letter, unsigned count) {
    for (unsigned n = 0; n < count; ++n) {
      std::string name = std::string(1, letter) + std::to_string(n);
      os << '.' << name << "{fill:var(--" << name << ")}.chip." << name
         << "{background:var(--" << name << ")}\n";
      if (letter == 'o')
        os << ".dots ." << name << "{stroke:var(--" << name << ")}\n";
    }
  };
  write('k', 8);
  write('m', 6);
  write('o', getOperationKinds().size());
}

static void writeHead(llvm::raw_ostream &os, const std::string &title) {
  os << "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" "
        "lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
        "<meta name=\"viewport\" content=\"width=device-width, "
        "initial-scale=1\"/>\n<title>"
     << escape(title) << "</title>\n<style>" << pageStyle;
  writeColours(os);
  os << "</style>\n</head>\n<body>\n<main>\n<h1>" << escape(title) << "</h1>\n";
}

static void writeFacts(llvm::raw_ostream &os, const PageModel &model) {
  const ModelReport &report = model.report;
  StateBytes state = report.getState();
  os << "<dl class=\"facts\">\n";
  auto fact = [&](const std::string &what, const std::string &value) {
    os << "<div><dt>" << escape(what) << "</dt><dd>" << escape(value)
       << "</dd></div>\n";
  };
  fact("parameters", formatShort(report.params));
  fact("without embedding and head",
       formatShort(report.params - report.embeddingParams));
  fact("cache per token", formatBytes(state.perToken));
  fact("state per sequence", formatBytes(state.fixed));
  fact("both at " + formatCount(report.context) + " tokens",
       formatBytes(state.at(report.context)));
  fact("forward, operations per token",
       formatShort(report.getForward().flops / report.context));
  for (const CallReport &call : model.plan.calls)
    if (call.arena)
      fact(call.title + ", memory", formatBytes(call.getBound() + call.arena));
  os << "</dl>\n";
}

/// A card per model, side by side when there are two.
static void writeCards(llvm::raw_ostream &os, ArrayRef<PageModel> models,
                       llvm::function_ref<void(const PageModel &)> write) {
  os << "<section class=\"" << (models.size() > 1 ? "pair" : "one") << "\">\n";
  for (const PageModel &model : models) {
    os << "<div class=\"card\">\n";
    if (models.size() > 1)
      os << "<h3>@" << escape(model.report.name) << "</h3>\n";
    write(model);
    os << "</div>\n";
  }
  os << "</section>\n";
}

/// The most bytes that a call of this title takes in any model.
static uint64_t getLargest(ArrayRef<PageModel> models, StringRef title) {
  uint64_t largest = 0;
  for (const PageModel &model : models)
    for (const CallReport &call : model.plan.calls)
      if (call.title == title)
        largest = std::max(largest, call.getBound() + call.arena);
  return largest;
}

static void writeDrawings(llvm::raw_ostream &os, ArrayRef<PageModel> models,
                          const Device &device) {
  HeadKinds kinds(models);
  os << "<h2 id=\"stack\">The stack</h2>\n<p>One cell per query head, first "
        "layer on top. The small squares show which keys (to the right) a "
        "query (downwards) reaches; a recurrence reaches them through its "
        "state.</p>\n";
  writeLegend(os, kinds, models);
  writeCards(os, models, [&](const PageModel &model) {
    writeStack(os, model.report, kinds);
  });
  os << "<h2 id=\"memory\">Memory over time</h2>\n<p>What the caller holds "
        "throughout, and the arena on top of it launch by launch. The dashed "
        "line is what is allocated.</p>\n";
  writeCards(os, models, [&](const PageModel &model) {
    os << "<div class=\"charts\">\n";
    for (const CallReport &call : model.plan.calls)
      writeMemory(os, call, getLargest(models, call.title));
    os << "</div>\n";
    writeRecompute(os, model.plan);
  });
  os << "<h2 id=\"roofline\">Roofline</h2>\n<p>" << escape(device.title) << ": "
     << formatShort(device.flops) << " operations/s ("
     << escape(device.flopsNote) << "), " << formatShort(device.bandwidth)
     << "B/s. A dot is an operation at the rate it can reach at most; its area "
        "is its share of the least time, which the bar adds up by "
        "kind.</p>\n";
  writeCards(os, models, [&](const PageModel &model) {
    os << "<div class=\"charts\">\n";
    for (const CallReport &call : model.plan.calls)
      writeRoofline(os, call, device);
    os << "</div>\n";
  });
}

static void writeTables(llvm::raw_ostream &os, ArrayRef<PageModel> models,
                        const Device &device) {
  os << "<h2 id=\"layers\">Parameters, caches and states</h2>\n";
  for (const PageModel &model : models)
    writeCards(os, model, [&](const PageModel &model) {
      if (models.size() > 1)
        os << "<h3>@" << escape(model.report.name) << "</h3>\n";
      writeLayerTable(os, model.report);
    });
  os << "<h2 id=\"operations\">Operations and their launches</h2>\n"
        "<p>Operations count the plain definition of each operation, bytes "
        "what "
        "its launches read and write; layers that are alike share a row.</p>\n";
  for (const PageModel &model : models)
    writeCards(os, model, [&](const PageModel &model) {
      if (models.size() > 1)
        os << "<h3>@" << escape(model.report.name) << "</h3>\n";
      for (const CallReport &call : model.plan.calls)
        writeOperationTable(os, call, device);
    });
}

void hybrid::writePage(llvm::raw_ostream &os, ArrayRef<PageModel> models,
                       const Device &device) {
  std::string title =
      llvm::join(llvm::map_range(models,
                                 [](const PageModel &model) {
                                   return "@" + model.report.name;
                                 }),
                 " and ");
  writeHead(os, title);
  const ModelReport &first = models.front().report;
  os << "<p>" << first.layers.size() << " layers, width "
     << formatCount(first.width) << ", vocabulary " << formatCount(first.vocab);
  for (const PageModel &model : models.drop_front())
    os << "; beside " << model.report.layers.size() << " layers, width "
       << formatCount(model.report.width) << ", vocabulary "
       << formatCount(model.report.vocab);
  os << ". One sequence of " << formatCount(first.context) << " tokens.</p>\n";
  writeCards(os, models,
             [&](const PageModel &model) { writeFacts(os, model); });
  if (models.size() == 2) {
    os << "<h2 id=\"comparison\">Side by side</h2>\n<div class=\"card\">\n";
    writeComparison(os, models[0].report, models[1].report);
    os << "</div>\n";
  }
  writeDrawings(os, models, device);
  writeTables(os, models, device);
  os << "<footer>hybridc report --html</footer>\n</main>\n</body>\n</html>\n";
}
