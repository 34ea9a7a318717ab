//===- PageTest.cpp - text on a page is text -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Report/Page.h"

#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>

using namespace hybrid;

/// The page of a model whose every text is `text`.
static std::string pageOf(const std::string &text) {
  PageModel model;
  model.report.name = text;
  model.report.context = 16;
  LayerReport layer;
  layer.groups.push_back({text, {text, text, 4, 0, 0, false}, 2, 10, {}});
  model.report.layers = {layer};
  CallReport call;
  call.title = "a call";
  call.arena = 64;
  call.live = {32, 64};
  call.places = {text, text};
  call.operations = {{0, text, "product", text, 1, {100.0, 10.0}}};
  model.plan.calls = {call};
  std::string page;
  llvm::raw_string_ostream os(page);
  writePage(os, {model, model}, getDevices().front());
  return page;
}

static size_t count(const std::string &page, const std::string &what) {
  size_t found = 0;
  for (size_t at = page.find(what); at != std::string::npos;
       at = page.find(what, at + what.size()))
    ++found;
  return found;
}

TEST(Page, EscapesWhatComesFromASpec) {
  std::string plain = pageOf("x"),
              hostile = pageOf("</title><script>a('1')&\"</script>");
  EXPECT_EQ(count(hostile, "<script"), 0u);
  EXPECT_EQ(count(hostile, "</title>"), count(plain, "</title>"));
  EXPECT_EQ(count(hostile, "<"), count(plain, "<"));
  EXPECT_EQ(count(hostile, "\""), count(plain, "\""));
  EXPECT_GT(count(hostile, "&lt;script&gt;a(&#39;1&#39;)&amp;&quot;"), 10u);
}

TEST(Page, ReplacesWhatNoPageMayHold) {
  // A control character, half a character, an overlong one, a surrogate, and
  // U+FFFF; then one that is as it should be.
  std::string page = pageOf("[\x07|\xC3|\xC0\xAF|\xED\xA0\x80|\xEF\xBF\xBF|µ]");
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_NE(page.find("[" + bad + "|" + bad + "|" + bad + bad + "|" + bad +
                      bad + bad + "|" + bad + "|µ]"),
            std::string::npos);
  EXPECT_EQ(page.find('\x07'), std::string::npos);
  EXPECT_EQ(page.find("\xEF\xBF\xBF"), std::string::npos);
}

/// Nothing to draw draws nothing, and divides by nothing.
TEST(Page, TakesAModelWithoutCalls) {
  PageModel model;
  model.report.name = "m";
  model.report.context = 1;
  std::string page;
  llvm::raw_string_ostream os(page);
  writePage(os, model, getDevices().front());
  EXPECT_EQ(page.find("nan"), std::string::npos);
  EXPECT_NE(page.find("</html>"), std::string::npos);
}
