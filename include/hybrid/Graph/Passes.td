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

    (`hybrid-differentiate` makes `backward` of `loss`; of a model with dropout it
    makes it of `training_loss`, which is `loss` with elements left out.) Each
    argument has its `hybrid.role` and, where it is a parameter, a state or a
    random key, its `hybrid.path`. The
    module gets the tables `hybrid.meta`, `hybrid.params` and `hybrid.states`
    (`hybrid/Graph/ModelTables.h`). The location of an operation is its place in
    the model, `layers.3.mixer.q_proj`, around its place in the spec.

    Before, from `test/Graph/build-graph.mlir`:

    ```mlir
    hybrid.stack @m vocab(256) width(64) trained(0) epsilon(1.0e-5) init_std(0.02) {
      hybrid.layer 0 {
        hybrid.softmax heads(2) kv_heads(2) head_dim(32) position(nope)
        hybrid.mlp swiglu(128)
      }
    }
    ```

    After (the attention of `loss`):

    ```mlir
    %3 = hybrid.product %2, %arg2 transpose_b : (tensor<?x64xf32>, tensor<64x64xf32>) -> tensor<?x64xf32>
    %4 = hybrid.reshape %3 : tensor<?x64xf32> -> tensor<?x2x32xf32>
    ...
    %o, %log_sum_exp = hybrid.attention %4, %6, %8, %arg15 scale 0.17677669529663687 windows [0, 0] sinks [0, 0] : ...
    %9 = hybrid.reshape %o : tensor<?x2x32xf32> -> tensor<?x64xf32>
    ```
  }];
  let statistics = [
    Statistic<"numParameters", "parameters", "Parameters of the model">,
    Statistic<"numStates", "states", "States of a slot">
  ];
  let dependentDialects = ["::hybrid::HybridDialect", "::mlir::func::FuncDialect"];
}

def HybridMergeAttention : Pass<"hybrid-merge-attention", "::mlir::ModuleOp"> {
  let summary = "make neighbouring softmax head groups of a layer one attention";
  let description = [{
    Head groups whose outputs stand side by side and that differ in window and
    sinks alone (and in whatever happens to q and k before: rotation, norms, the
    log-n factor) become one `hybrid.attention` with an entry per head: one
    launch instead of one per group, forward and backward, since
    differentiation comes after. q, k and v are concatenations along the heads,
    into whose parts the groups' projections write, and the output needs none any
    more; nothing is copied.

    Groups stay apart when they differ in head dim, value dim, query heads per
    key head or scale, when another mixer stands between them, and when they read
    a cache: one cache for all would keep every row for a group that sees a
    window.

    Remarks (category `graph`):

    | id | says |
    |---|---|
    | `HYB-G101` | which head groups became one attention |
    | `HYB-G201` | a head group keeps an attention of its own, and why |

    It changes no numbers.

    Before, from `test/Graph/merge-attention.mlir`:

    ```mlir
    %o0, %l0 = hybrid.attention %q0, %kv0, %kv0, %s scale 0.5 windows [0, 0] sinks [0, 0] : ...
    %0 = hybrid.reshape %o0 : ...
    %o1, %l1 = hybrid.attention %q1, %kv1, %kv1, %s scale 0.5 windows [3, 3, 3, 3] sinks [1, 1, 1, 1] : ...
    %1 = hybrid.reshape %o1 : ...
    %2 = hybrid.concat %0, %1 dim 1 : (tensor<?x8xf32>, tensor<?x16xf32>) -> tensor<?x24xf32>
    ```

    After:

    ```mlir
    %q = hybrid.concat %q0, %q1 dim 1 : (tensor<?x2x4xf32>, tensor<?x4x4xf32>) -> tensor<?x6x4xf32>
    ...
    %o, %l = hybrid.attention %q, %k, %v, %s scale 5.000000e-01 windows [0, 0, 3, 3, 3, 3] sinks [0, 0, 1, 1, 1, 1] : ...
    %2 = hybrid.reshape %o : tensor<?x6x4xf32> -> tensor<?x24xf32>
    ```
  }];
  let statistics = [
    Statistic<"numMerged", "merged", "Head groups that went into their neighbour">
  ];
  let dependentDialects = ["::hybrid::HybridDialect"];
}

#endif // HYBRID_GRAPH_PASSES_TD
