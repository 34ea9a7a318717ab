//===- Html.h - pieces of the page -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_REPORT_HTML_H
#define HYBRID_LIB_REPORT_HTML_H

#include "hybrid/Report/Page.h"

namespace hybrid {

/// `text` as character data and as an attribute's value, in HTML and in XML.
/// What may stand in neither (control characters, broken UTF-8) becomes U+FFFD.
std::string escape(llvm::StringRef text);

/// A coordinate: two digits at most behind the point, no trailing zeros.
std::string at(double value);

/// `<text>` at a place, with a class and the escaped text.
void writeText(llvm::raw_ostream &os, double x, double y,
               llvm::StringRef classes, const std::string &text);

/// A value on one of a few lines that divide [0, largest] evenly.
double getTick(double largest, double base);

/// The kinds of heads of all models in the order of their first appearance;
/// they share colours and letters.
class HeadKinds {
public:
  explicit HeadKinds(llvm::ArrayRef<PageModel> models);
  size_t indexOf(const HeadKind &kind) const;
  llvm::ArrayRef<HeadKind> get() const { return kinds; }

private:
  std::vector<HeadKind> kinds;
};

/// Kinds of operations, in the order of their colours.
llvm::ArrayRef<llvm::StringLiteral> getOperationKinds();
size_t indexOfOperationKind(llvm::StringRef kind);

// The parts of a page, each of one model.

void writeLegend(llvm::raw_ostream &os, const HeadKinds &kinds,
                 llvm::ArrayRef<PageModel> models);
void writeStack(llvm::raw_ostream &os, const ModelReport &report,
                const HeadKinds &kinds);
/// `largest` is the top of the scale in bytes, which models side by side share.
void writeMemory(llvm::raw_ostream &os, const CallReport &call,
                 uint64_t largest);
/// What a training step holds under each choice of what is computed again.
void writeRecompute(llvm::raw_ostream &os, const PlanReport &plan);
void writeRoofline(llvm::raw_ostream &os, const CallReport &call,
                   const Device &device);
void writeLayerTable(llvm::raw_ostream &os, const ModelReport &report);
void writeOperationTable(llvm::raw_ostream &os, const CallReport &call,
                         const Device &device);
void writeComparison(llvm::raw_ostream &os, const ModelReport &a,
                     const ModelReport &b);

/// Seconds that an operation takes at least on `device`.
double getFloor(const Work &work, const Device &device);

} // namespace hybrid

#endif // HYBRID_LIB_REPORT_HTML_H
