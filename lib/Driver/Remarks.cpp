//===- Remarks.cpp - decisions of the compiler, printed -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Driver/Remarks.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/Regex.h"

using namespace mlir;
using namespace hybrid;

namespace {

class DiagnosticStreamer final : public remark::detail::MLIRRemarkStreamerBase {
public:
  void streamOptimizationRemark(const remark::detail::Remark &remark) override {
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
};

} // namespace

LogicalResult hybrid::printRemarks(MLIRContext &context, StringRef filter) {
  if (filter.empty())
    filter = ".*";
  if (!llvm::Regex(filter).isValid())
    return failure();
  remark::RemarkCategories categories;
  categories.passed = categories.missed = categories.failed =
      categories.analysis = filter.str();
  return remark::enableOptimizationRemarks(
      context, std::make_unique<DiagnosticStreamer>(),
      std::make_unique<remark::RemarkEmittingPolicyAll>(), categories);
}
