//===- Passes.td - passes of the phase 'graph' -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_GRAPH_PASSES_TD
#define HYBRID_GRAPH_PASSES_TD

include "mlir/Pass/PassBase.td"

def HybridBuildGraph : Pass<"hybrid-build-graph", "::mlir::ModuleOp"> {
  let summary = "make one function per entry point of a stack";
  let description = [{
    Replaces the one `hybrid.stack` of the module by functions on tensors:

    | entry | results |
    |---|---|
    | `loss` | weighted cross entropy per token |
    | `extend` | logits of each segment's last row, and the states |
    | `extend_all` | logits of all rows, and the states |

    (`hybrid-differentiate` makes `backward` of `loss`.) Each argument has its
    `hybrid.role` and, where it is a parameter or state, its `hybrid.path`. The
    module gets the tables `hybrid.meta`, `hybrid.params` and `hybrid.states`
    (`hybrid/Graph/ModelTables.h`). The location of an operation is its place in
    the model, `layers.3.mixer.q_proj`, around its place in the spec.

    Before:

    ```mlir
    hybrid.stack @m vocab(256) width(64) trained(0) epsilon(1.0e-5) init_std(0.02) {
      hybrid.layer 0 {
        hybrid.softmax heads(2) kv_heads(2) head_dim(32) position(nope)
      }
    }
    ```

    After (the attention of `loss`):

    ```mlir
    %7 = hybrid.product %5, %arg2 transpose_b : (tensor<?x64xf32>, tensor<64x64xf32>) -> tensor<?x64xf32>
    %8 = hybrid.reshape %7 : tensor<?x64xf32> -> tensor<?x2x32xf32>
    ...
    %o, %log_sum_exp = hybrid.attention %8, %10, %12, %arg11 scale 0.17677669529663687 windows [0, 0] sinks [0, 0] : ...
    ```
  }];
  let statistics = [
    Statistic<"numParameters", "parameters", "Parameters of the model">,
    Statistic<"numStates", "states", "States of a slot">
  ];
  let dependentDialects = ["::hybrid::HybridDialect", "::mlir::func::FuncDialect"];
}

#endif // HYBRID_GRAPH_PASSES_TD
