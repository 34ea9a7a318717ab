//===- Html.cpp - pieces of the page -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Html.h"

#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace hybrid;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static constexpr llvm::StringLiteral replacement = "\xEF\xBF\xBD";

/// The character at the front of `text` as it may stand in a page; removes it.
static std::string takeCharacter(StringRef &text) {
  unsigned char first = text.front();
  size_t length = llvm::getNumBytesForUTF8(first);
  if (first >= 0x80) {
    const auto *begin = reinterpret_cast<const llvm::UTF8 *>(text.data());
    if (length > text.size() ||
        !llvm::isLegalUTF8Sequence(begin, begin + length)) {
      text = text.drop_front();
      return replacement.str();
    }
    std::string character = text.take_front(length).str();
    text = text.drop_front(length);
    // No characters in XML: U+FFFE and U+FFFF.
    return character == "\xEF\xBF\xBE" || character == "\xEF\xBF\xBF"
               ? replacement.str()
               : character;
  }
  text = text.drop_front();
  switch (first) {
  case '&':
    return "&amp;";
  case '<':
    return "&lt;";
  case '>':
    return "&gt;";
  case '"':
    return "&quot;";
  case '\'':
    return "&#39;";
  default:
    return first < 0x20 || first == 0x7f ? replacement.str()
                                         : std::string(1, first);
  }
}

std::string hybrid::escape(StringRef text) {
  std::string escaped;
  while (!text.empty())
    escaped += takeCharacter(text);
  return escaped;
}

std::string hybrid::at(double value) {
  std::string text = llvm::formatv("{0:F2}", value).str();
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.')
    text.pop_back();
  return text == "-0" ? "0" : text;
}

void hybrid::writeText(llvm::raw_ostream &os, double x, double y,
                       StringRef classes, const std::string &text) {
  os << "<text x=\"" << at(x) << "\" y=\"" << at(y) << "\" class=\"" << classes
     << "\">" << escape(text) << "</text>\n";
}

double hybrid::getTick(double largest, double base) {
  // The largest of 1, 2, 5 (or powers of two) times a power of the base that
  // gives at least three lines.
  double power = std::pow(base, std::floor(std::log(largest) / std::log(base)));
  for (double step :
       {512.0, 256.0, 128.0, 64.0, 32.0, 16.0, 8.0, 4.0, 2.0, 1.0, 0.5, 0.25})
    if (step < base && largest >= 3.0 * step * power)
      return step * power;
  return power / 4.0;
}

//===----------------------------------------------------------------------===//
// Kinds
//===----------------------------------------------------------------------===//

HeadKinds::HeadKinds(llvm::ArrayRef<PageModel> models) {
  for (const PageModel &model : models)
    for (const LayerReport &layer : model.report.layers)
      for (const GroupReport &group : layer.groups)
        if (!llvm::is_contained(kinds, group.kind))
          kinds.push_back(group.kind);
}

size_t HeadKinds::indexOf(const HeadKind &kind) const {
  return std::distance(kinds.begin(), llvm::find(kinds, kind));
}

llvm::ArrayRef<llvm::StringLiteral> hybrid::getOperationKinds() {
  static constexpr llvm::StringLiteral kinds[] = {
      "product", "attention", "recurrence", "row-wise", "other"};
  return kinds;
}

size_t hybrid::indexOfOperationKind(StringRef kind) {
  return std::distance(getOperationKinds().begin(),
                       llvm::find(getOperationKinds(), kind));
}

double hybrid::getFloor(const Work &work, const Device &device) {
  return std::max(work.flops / device.flops, work.bytes / device.bandwidth);
}
