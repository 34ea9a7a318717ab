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

    Before, from `test/Plan/print-plan.mlir`:

    ```mlir
    %0 = hybrid.dispatch @product(%x, %w)
        : (tensor<?x64xf32, #hybrid.slots>, tensor<32x64xf32>) -> tensor<?x32xf32>
        loc("layers.0.mixer.q_proj")
    ```

    Prints (its result among the buffers):

    ```
    "first": 0,
    "kind": "arena",
    "last": 1,
    "name": "layers.0.mixer.q_proj",
    "sizes": [
      "tokens",
      32
    ],
    "type": "f32"
    ```
  }];
}

#endif // HYBRID_PLAN_PASSES_TD
