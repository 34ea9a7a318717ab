//===- Passes.td - passes of the phase 'stack' -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_STACK_PASSES_TD
#define HYBRID_STACK_PASSES_TD

include "mlir/Pass/PassBase.td"

def HybridExpandStack : Pass<"hybrid-expand-stack", "::mlir::ModuleOp"> {
  let summary = "write every layer, head group and default out";
  let description = [{
    Replaces each `hybrid.model` by a `hybrid.stack`: ratios, patterns and lists
    become one `hybrid.layer` per layer, `hybrid.heads` becomes the groups of a
    layer, named recurrences become `hybrid.recurrent` with their row of the
    mixer table, and every default is written out. Changes no numbers.

    Before:

    ```mlir
    hybrid.model @mix vocab(256) width(64) layers(2) {
      hybrid.mix ratio(1 : 1) {
        hybrid.gdn heads(2) head_dim(32)
        hybrid.softmax heads(2) head_dim(32) position(nope)
      }
    }
    ```

    After:

    ```mlir
    hybrid.stack @mix vocab(256) width(64) trained(0) epsilon(1.0e-05)
        init_std(0.02) {
      hybrid.layer 0 {
        hybrid.recurrent "gdn" heads(2) head_dim(32) value_dim(32) update(delta)
            decay(scalar) gate(softplus) gate_normalizer(1) gate_rank(0) beta(1)
            qk_norm(l2) conv(4) silu output(norm_gate)
      }
      hybrid.layer 1 {
        hybrid.softmax heads(2) kv_heads(2) head_dim(32) position(nope)
      }
    }
    ```

    A mix that gives one of its mixers no layer draws a warning.
  }];
  let statistics = [
    Statistic<"numLayers", "layers", "Layers written out">,
    Statistic<"numGroups", "head-groups", "Head groups written out">
  ];
  let dependentDialects = ["::hybrid::HybridDialect"];
}

#endif // HYBRID_STACK_PASSES_TD
