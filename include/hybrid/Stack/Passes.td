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

    Before, from `test/Stack/expand-stack.mlir`:

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

def HybridShrinkModel : Pass<"hybrid-shrink-model", "::mlir::ModuleOp"> {
  let summary = "give a model small sizes and keep its structure";
  let description = [{
    Writes each `hybrid.model` with sizes that a reference evaluates in a moment:
    at most 96 ids, width 64, heads of 16 channels, two key heads, a feed-forward
    part of 96. Lengths (trained, windows, strides) shrink by one factor, so that
    a trained length of 64 stands for the stated one, and windows stay in their
    relation to it. A ratio keeps one period, a pattern one repetition, a model
    of one mixer two layers. Mixers, positions, groups, gates, norms and clauses
    stay. For tests and bug reports; changes numbers, of course.

    Before, from `test/Stack/shrink-model.mlir`:

    ```mlir
    hybrid.model @m vocab(128256) width(1536) layers(12) trained(4096) {
      hybrid.mix ratio(3 : 1) {
        hybrid.swla window(4096) stride(1024) {
          hybrid.gla heads(4) head_dim(192) value_dim(384)
        }
        hybrid.softmax heads(12) head_dim(128) position(nope) logit_scale(log_n)
      }
      hybrid.mlp swiglu(5376)
    }
    ```

    After:

    ```mlir
    hybrid.model @m vocab(96) width(64) layers(4) trained(64) {
      hybrid.mix ratio(3 : 1) {
        hybrid.swla window(64) stride(16) {
          hybrid.gla heads(2) head_dim(16) value_dim(32)
        }
        hybrid.softmax heads(2) head_dim(16) position(nope) logit_scale(log_n)
      }
      hybrid.mlp swiglu(96)
    }
    ```
  }];
  let dependentDialects = ["::hybrid::HybridDialect"];
}

#endif // HYBRID_STACK_PASSES_TD
