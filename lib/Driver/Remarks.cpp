//===- Remarks.cpp - decisions of the compiler, printed -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Driver/Remarks.h"

#include "hybrid/Driver/Statistics.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/Regex.h"

using namespace mlir;
using namespace hybrid;

namespace {

class DiagnosticStreamer final : public remark::detail::MLIRRemarkStreamerBase {
public:
  DiagnosticStreamer(std::optional<llvm::Regex> printed, Statistics *statistics)
      : printed(std::move(printed)), statistics(statistics) {}

  void streamOptimizationRemark(const remark::detail::Remark &remark) override {
    if (statistics)
      statistics->addRemark(remark.getRemarkName());
    if (printed && printed->match(remark.getCategoryName()))
      print(remark);
  }

private:
  static void print(const remark::detail::Remark &remark) {
    Location loc = remark.getLocation();
    InFlightDiagnostic diagnostic = emitRemark(loc);
    diagnostic << "[" << remark.getRemarkName() << "] ";
    if (auto named = dyn_cast<NameLoc>(loc))
      diagnostic << named.getName().getValue() << ": ";
    bool first = true;
    for (const remark::detail::Remark::Arg &arg : remark.getArgs()) {
      if (!first)
        diagnostic << "; ";
      first = false;
      if (arg.key != "Remark")
        diagnostic << llvm::StringRef(arg.key).lower() << ": ";
      diagnostic << arg.val;
    }
  }

  std::optional<llvm::Regex> printed;
  Statistics *statistics;
};

} // namespace

static LogicalResult enable(MLIRContext &context,
                            std::optional<StringRef> filter,
                            Statistics *statistics) {
  std::optional<llvm::Regex> printed;
  if (filter) {
    printed.emplace(filter->empty() ? StringRef(".*") : *filter);
    if (!printed->isValid())
      return failure();
  }
  remark::RemarkCategories categories;
  categories.passed = categories.missed = categories.failed =
      categories.analysis = ".*";
  return remark::enableOptimizationRemarks(
      context,
      std::make_unique<DiagnosticStreamer>(std::move(printed), statistics),
      std::make_unique<remark::RemarkEmittingPolicyAll>(), categories);
}

LogicalResult hybrid::printRemarks(MLIRContext &context, StringRef filter) {
  return enable(context, filter, nullptr);
}

LogicalResult hybrid::countRemarks(MLIRContext &context, Statistics &statistics,
                                   std::optional<StringRef> filter) {
  return enable(context, filter, &statistics);
}
