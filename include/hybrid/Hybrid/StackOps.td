//===- StackOps.td - every layer and head group explicit -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_HYBRID_STACK_OPS_TD
#define HYBRID_HYBRID_STACK_OPS_TD

include "hybrid/Hybrid/SpecBase.td"

def Hybrid_StackOp : Hybrid_SpecBlockOp<"stack", [Symbol]> {
  let summary = "a model with every layer written out";
  let description = [{
    What `hybrid-expand-stack` makes of a `hybrid.model`: the same words with
    the same meaning, every default written out, and one `hybrid.layer` per
    layer in place of a ratio, pattern or list. `trained(0)`: no length was
    stated. Without `dtype` the compute type is f32; without `dropout` nothing
    is left out.

    Example, from `test/Hybrid/stack-ops.mlir`:

    ```mlir
    hybrid.stack @tiny vocab(256) width(64) trained(128) epsilon(1.0e-5)
        init_std(0.02) tied {
      hybrid.layer 0 {
        hybrid.softmax heads(2) kv_heads(2) head_dim(32) position(nope)
        hybrid.mlp swiglu(128)
      }
    }
    ```

    `hybrid-build-graph` makes functions of it.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Hybrid_Count:$vocab,
      Hybrid_Count:$width, Hybrid_Count:$trained, Hybrid_Number:$epsilon,
      Hybrid_Number:$init_std, OptionalAttr<TypeAttr>:$dtype,
      OptionalAttr<Hybrid_Number>:$dropout, UnitAttr:$tied);
  let assemblyFormat = [{
    $sym_name `vocab` `(` $vocab `)` `width` `(` $width `)`
    `trained` `(` $trained `)` `epsilon` `(` custom<Number>($epsilon) `)`
    `init_std` `(` custom<Number>($init_std) `)` (`dtype` `(` $dtype^ `)`)?
    (`dropout` `(` custom<Number>($dropout)^ `)`)? (`tied` $tied^)?
    attr-dict-with-keyword $body
  }];
  let extraClassDeclaration = [{
    /// What activations and the operands of products are made of.
    ::mlir::Type getComputeType();
    double getDropoutOrDefault() { return getDropout().value_or(0.0); }
  }];
}

def Hybrid_LayerOp : Hybrid_SpecBlockOp<"layer", [HasParent<"StackOp">]> {
  let summary = "one layer: its head groups, then its feed-forward part";
  let description = [{
    Each mixer is a group of heads; one group is a plain layer. Groups are
    `hybrid.softmax` or `hybrid.recurrent`. An example stands at
    `hybrid.stack`.
  }];
  let arguments = (ins Hybrid_Count:$index);
  let assemblyFormat = "$index attr-dict-with-keyword $body";
  let extraClassDeclaration = [{
    /// The head groups in order.
    ::llvm::SmallVector<::hybrid::MixerInterface> getGroups();
    /// The feed-forward part, or null.
    ::hybrid::MlpOp getMlp();
  }];
}

def Hybrid_RecurrentOp : Hybrid_SpecOp<"recurrent", [HasParent<"LayerOp">,
    Hybrid_MixerInterface]> {
  let summary = "a group of heads of the recurrence family, with its row written out";
  let description = [{
    What every named recurrence becomes. The words are the columns of the mixer
    table (`docs/spec-language.md`); later phases read them and never the name,
    which is kept for reports.

    | clause | meaning |
    |---|---|
    | `update` | `additive`: S += k vᵀ; `delta`: S += β k (v − Sᵀk)ᵀ |
    | `decay` | `none`, `scalar` per head or `channel` per key channel |
    | `gate` | `log_sigmoid`: ln α = log_sigmoid(W₂W₁x + b) / normalizer, `softplus`: ln α = −exp(A_log) · softplus(W_a x + dt_bias) |
    | `gate_rank` | rows of W₁; 0 without one |
    | `gate_bias` | first value of the bias; absent when it is drawn |
    | `beta` | largest write strength, β = beta · σ(W_b x); 0: the update has none |
    | `qk_norm` | `l2` or `rms`: norm of q and k per head, without weights |
    | `conv` | width of the convolution on q, k and v; 0: none |
    | `silu` | SiLU on q, k and v, behind the convolution |
    | `output` | `plain`, `norm`, `gate` or `norm_gate` before the output projection |
    | `window`, `stride` | bounded history, as in `hybrid.swla` |

    Example, from `test/Hybrid/stack-ops.mlir`:

    ```mlir
    hybrid.recurrent "gla" heads(4) head_dim(32) value_dim(64) update(additive)
        decay(channel) gate(log_sigmoid) gate_normalizer(16) gate_rank(16)
        beta(0) conv(0) output(norm_gate) gate_bias(0)
        window(512) stride(128)
    ```
  }];
  let arguments = (ins StrAttr:$mixer, Hybrid_Count:$heads,
      Hybrid_Count:$head_dim, Hybrid_Count:$value_dim,
      Hybrid_UpdateRuleAttr:$update, Hybrid_DecayKindAttr:$decay,
      Hybrid_GateKindAttr:$gate, Hybrid_Number:$gate_normalizer,
      Hybrid_Count:$gate_rank, Hybrid_Number:$beta,
      OptionalAttr<Hybrid_NormKindAttr>:$qk_norm, Hybrid_Count:$conv,
      UnitAttr:$silu, Hybrid_OutputStageAttr:$output,
      OptionalAttr<Hybrid_Number>:$gate_bias,
      OptionalAttr<Hybrid_Count>:$window, OptionalAttr<Hybrid_Count>:$stride);
  let assemblyFormat = [{
    $mixer `heads` `(` $heads `)` `head_dim` `(` $head_dim `)`
    `value_dim` `(` $value_dim `)` `update` `(` custom<Word>($update) `)`
    `decay` `(` custom<Word>($decay) `)` `gate` `(` custom<Word>($gate) `)`
    `gate_normalizer` `(` custom<Number>($gate_normalizer) `)`
    `gate_rank` `(` $gate_rank `)` `beta` `(` custom<Number>($beta) `)`
    (`qk_norm` `(` custom<Word>($qk_norm)^ `)`)? `conv` `(` $conv `)`
    (`silu` $silu^)?
    `output` `(` custom<Word>($output) `)`
    (`gate_bias` `(` custom<Number>($gate_bias)^ `)`)?
    (`window` `(` $window^ `)` `stride` `(` $stride `)`)?
    attr-dict
  }];
}

#endif // HYBRID_HYBRID_STACK_OPS_TD
