//===- PrintReport.cpp - print what each model of a spec costs -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Report/Passes.h"
#include "hybrid/Report/Report.h"

namespace hybrid {
#define GEN_PASS_DEF_HYBRIDPRINTREPORT
#include "hybrid/Report/Passes.h.inc"
} // namespace hybrid

using namespace mlir;
using namespace hybrid;

namespace {

struct PrintReport : public hybrid::impl::HybridPrintReportBase<PrintReport> {
  using HybridPrintReportBase::HybridPrintReportBase;

  void runOnOperation() override {
    std::vector<ModelReport> reports;
    for (auto model : getOperation().getOps<ModelOp>()) {
      FailureOr<ModelReport> report = analyseModel(model, {context});
      if (failed(report))
        return signalPassFailure();
      printReport(llvm::outs(), *report);
      llvm::outs() << '\n';
      reports.push_back(std::move(*report));
    }
    if (reports.size() == 2)
      printComparison(llvm::outs(), reports[0], reports[1]);
    markAllAnalysesPreserved();
  }
};

} // namespace
