//===- Passes.td - passes of the room 'report' -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_REPORT_PASSES_TD
#define HYBRID_REPORT_PASSES_TD

include "mlir/Pass/PassBase.td"

def HybridPrintReport : Pass<"hybrid-print-report", "::mlir::ModuleOp"> {
  let summary = "print what each model of a spec costs";
  let description = [{
    Prints parameters, cache and state bytes by layer and head group, and the
    operations and bytes of every graph operation; of two models also a
    comparison. Changes nothing.

    ```
    model @a: 1 layers, width 64, vocab 256

    parameters                      49,280
    ...
    ```
  }];
  let options = [
    Option<"context", "context", "int64_t", "0",
           "tokens that work is counted for; 0: the trained length, or 4096">
  ];
}

#endif // HYBRID_REPORT_PASSES_TD
