//===- Passes.td - passes of the phase 'plan' -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_PLAN_PASSES_TD
#define HYBRID_PLAN_PASSES_TD

include "mlir/Pass/PassBase.td"

def HybridPrintPlan : Pass<"hybrid-print-plan", "::mlir::ModuleOp"> {
  let summary = "print the launch list of every entry as JSON";
  let description = [{
    Plans the module (`hybrid/Plan/Plan.h`) and prints what an artefact would
    hold in its `plan` section. The module is not changed.
  }];
}

#endif // HYBRID_PLAN_PASSES_TD
