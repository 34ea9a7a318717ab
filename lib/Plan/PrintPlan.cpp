//===- PrintPlan.cpp - the plan of a module as text -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Plan/Passes.h"
#include "hybrid/Plan/Plan.h"

namespace hybrid {
#define GEN_PASS_DEF_HYBRIDPRINTPLAN
#include "hybrid/Plan/Passes.h.inc"
} // namespace hybrid

using namespace mlir;
using namespace hybrid;

namespace {

struct PrintPlan : hybrid::impl::HybridPrintPlanBase<PrintPlan> {
  void runOnOperation() override {
    FailureOr<Plan> plan = buildPlan(getOperation());
    if (failed(plan))
      return signalPassFailure();
    llvm::outs() << llvm::formatv("{0:2}", planToJSON(*plan)) << "\n";
    markAllAnalysesPreserved();
  }
};

} // namespace
