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

    Before, from `test/Report/report.mlir`:

    ```mlir
    hybrid.model @mixed vocab(256) width(64) layers(2) trained(64) {
      hybrid.mix ratio(1 : 1) {
        hybrid.gla heads(2) head_dim(16) value_dim(32) gate_rank(8)
        hybrid.softmax heads(4) kv_heads(2) head_dim(16) position(rope) window(8) sinks(1)
      }
      hybrid.mlp swiglu(32)
    }
    ```

    Prints:

    ```
    model @mixed: 2 layers, width 64, vocab 256

    parameters                      74,880
      without embedding and head    42,112
    cache bytes per token                0
    state bytes per sequence         6,400
    both at 16 tokens                6,400
    ```
  }];
  let options = [
    Option<"context", "context", "int64_t", "0",
           "tokens that work is counted for; 0: the trained length, or 4096">
  ];
}

#endif // HYBRID_REPORT_PASSES_TD
