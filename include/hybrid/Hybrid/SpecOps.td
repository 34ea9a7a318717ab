//===- SpecOps.td - what a person writes -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_HYBRID_SPEC_OPS_TD
#define HYBRID_HYBRID_SPEC_OPS_TD

include "hybrid/Hybrid/SpecBase.td"

//===----------------------------------------------------------------------===//
// The model
//===----------------------------------------------------------------------===//

def Hybrid_ModelOp : Hybrid_SpecBlockOp<"model", [Symbol]> {
  let summary = "a decoder-only language model";
  let description = [{
    Embedding, `layers` pre-norm blocks, a final RMS norm and the head:

    ```
    x = embed[ids]
    x = x + mixer(rms_norm(x));  x = x + mlp(rms_norm(x))     for each layer
    logits = rms_norm(x) · headᵀ
    ```

    The body says which mixer each layer has, in one of five ways: one mixer for
    all layers, `hybrid.heads`, `hybrid.mix`, `hybrid.pattern` or
    `hybrid.layers`; after it may stand one `hybrid.mlp`.

    | clause | meaning | default |
    |---|---|---|
    | `vocab(n)` | rows of the embedding; ids are 0 … n − 1 | required |
    | `width(n)` | channels of the residual stream | required |
    | `layers(n)` | number of blocks | required |
    | `dtype(t)` | type of activations and of what products read of the weights: `f32`, `bf16` or `f16` | `f32` |
    | `tied` | the head is the embedding | a head of its own |
    | `trained(n)` | tokens of a training sequence, which `log_n` and `dynamic_ntk` refer to | none |
    | `epsilon(x)` | added to the mean square in each RMS norm | `1e-5` |
    | `init_std(x)` | standard deviation of the first weights; projections back to the residual stream get x / sqrt(2 · layers) | `0.02` |
    | `dropout(p)` | in training, share of the elements that is left out, drawn anew in every step, of the embedding and of what mixers and MLPs add to the residual stream; the others are scaled by 1 / (1 − p) | `0` |

    Example, from `test/Hybrid/ops.mlir`:

    ```mlir
    hybrid.model @gdn_nope vocab(256) width(256) layers(8) tied trained(512) {
      hybrid.mix ratio(3 : 1) {
        hybrid.gdn heads(4) head_dim(64)
        hybrid.softmax heads(4) head_dim(64) position(nope)
      }
      hybrid.mlp swiglu(512)
    }
    ```

    `hybrid-expand-stack` makes it a `hybrid.stack`.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Hybrid_Count:$vocab,
      Hybrid_Count:$width, Hybrid_Count:$layers, OptionalAttr<TypeAttr>:$dtype,
      UnitAttr:$tied, OptionalAttr<Hybrid_Count>:$trained,
      OptionalAttr<Hybrid_Number>:$epsilon,
      OptionalAttr<Hybrid_Number>:$init_std,
      OptionalAttr<Hybrid_Number>:$dropout);
  let assemblyFormat = [{
    $sym_name `vocab` `(` $vocab `)` `width` `(` $width `)`
    `layers` `(` $layers `)`
    oilist(`dtype` `(` $dtype `)` | `tied` $tied | `trained` `(` $trained `)`
      | `epsilon` `(` custom<Number>($epsilon) `)`
      | `init_std` `(` custom<Number>($init_std) `)`
      | `dropout` `(` custom<Number>($dropout) `)`)
    attr-dict-with-keyword $body
  }];
  let extraClassDeclaration = [{
    /// The operation that says which mixer each layer has.
    ::mlir::Operation *getPlan() { return &getBody().front().front(); }
    /// The feed-forward part, or null.
    ::hybrid::MlpOp getMlp();
  }];
}

//===----------------------------------------------------------------------===//
// Which layer gets which mixer
//===----------------------------------------------------------------------===//

def Hybrid_MixOp : Hybrid_SpecBlockOp<"mix", [HasParent<"ModelOp">]> {
  let summary = "layers of two kinds in a ratio";
  let description = [{
    The first mixer of the body is the biased one (its layers know positions or
    forget), the second is the full one. With `ratio(r : f)` a period has r + f
    layers, and layer i, counted from 0, has the full mixer where

    ```
    (i − offset) mod (r + f) < f
    ```

    The default `offset` is r: the full layers end each period (3 : 1 is
    L L L F). Layers after the last whole period are the leftover:

    | `leftover` | meaning |
    |---|---|
    | `biased` (default) | the rule goes on, so they are biased unless one stands at the offset |
    | `last_full` | the same, and the last layer is full |
    | `error` | there may be none |

    So 24 : 1 over 24 layers has no full layer by default, one with
    `offset(23)` or `leftover(last_full)`, and is refused with
    `leftover(error)`. A mix that gives one mixer no layer draws a warning.

    Example, from `test/Hybrid/ops.mlir`:

    ```mlir
    hybrid.mix ratio(7 : 1) offset(4) leftover(last_full) {
      hybrid.softmax heads(4) head_dim(64) position(rope) window(128)
      hybrid.softmax heads(4) head_dim(64) position(nope)
    }
    ```
  }];
  let arguments = (ins Hybrid_Count:$biased, Hybrid_Count:$full,
      OptionalAttr<Hybrid_Count>:$offset,
      OptionalAttr<Hybrid_MixLeftoverAttr>:$leftover);
  let assemblyFormat = [{
    `ratio` `(` $biased `:` $full `)`
    oilist(`offset` `(` $offset `)` | `leftover` `(` custom<Word>($leftover) `)`)
    attr-dict-with-keyword $body
  }];
  let extraClassDeclaration = [{
    int64_t getPeriod() { return getBiased() + getFull(); }
    /// Whether layer `index` of `layers` has the second mixer.
    bool isFull(int64_t index, int64_t layers);
  }];
}

def Hybrid_PatternOp : Hybrid_SpecBlockOp<"pattern", [HasParent<"ModelOp">]> {
  let summary = "a repeated string with one letter per layer";
  let description = [{
    Layer i has the mixer named by letter i mod length of the string. Each
    letter is the name of one `hybrid.named` of the body. When the number of
    layers is no multiple of the length:

    | `leftover` | meaning |
    |---|---|
    | `cut` (default) | the last repetition is cut short |
    | `last` | the same, and the last layer has the pattern's last letter |
    | `error` | refused |

    Example, from `test/Hybrid/ops.mlir`:

    ```mlir
    hybrid.pattern "LLLG" leftover(last) {
      hybrid.named "L" {
        hybrid.softmax heads(4) head_dim(64) position(rope) window(128)
      }
      hybrid.named "G" {
        hybrid.softmax heads(4) head_dim(64) position(nope)
      }
    }
    ```
  }];
  let arguments = (ins StrAttr:$letters,
      OptionalAttr<Hybrid_PatternLeftoverAttr>:$leftover);
  let assemblyFormat = [{
    $letters (`leftover` `(` custom<Word>($leftover)^ `)`)? attr-dict-with-keyword $body
  }];
}

def Hybrid_LayersOp : Hybrid_SpecBlockOp<"layers", [HasParent<"ModelOp">]> {
  let summary = "an explicit list with one name per layer";
  let description = [{
    Layer i has the mixer whose `hybrid.named` carries name i of the list. The
    list is as long as the model has layers.

    Example, from `test/Hybrid/ops.mlir`:

    ```mlir
    hybrid.layers ["local", "local", "global", "local", "global"] {
      hybrid.named "local" {
        hybrid.softmax heads(4) head_dim(64) position(rope) window(128)
      }
      hybrid.named "global" {
        hybrid.softmax heads(4) head_dim(64) position(nope)
      }
    }
    ```
  }];
  let arguments = (ins StrArrayAttr:$names);
  let assemblyFormat = "$names attr-dict-with-keyword $body";
}

def Hybrid_NamedOp : Hybrid_SpecBlockOp<"named",
    [ParentOneOf<["PatternOp", "LayersOp"]>]> {
  let summary = "a mixer under the name that a pattern or list calls it by";
  let description = [{
    Holds one mixer. In a `hybrid.pattern` the name is one letter. An example
    stands at `hybrid.pattern`.
  }];
  let arguments = (ins StrAttr:$name);
  let assemblyFormat = "$name attr-dict-with-keyword $body";
  let extraClassDeclaration = [{
    ::mlir::Operation *getMixer() { return &getBody().front().front(); }
  }];
}

//===----------------------------------------------------------------------===//
// Mixers around mixers
//===----------------------------------------------------------------------===//

def Hybrid_HeadsOp : Hybrid_SpecBlockOp<"heads",
    [ParentOneOf<["ModelOp", "MixOp", "NamedOp"]>]> {
  let summary = "groups of heads with different mixers in one layer";
  let description = [{
    Each mixer of the body is a group with projections, cache or state of its
    own; the outputs stand side by side in the order of the groups in one
    buffer, which one output projection reads. `total(n)` states the number of
    heads of the layer, and the groups must add up to it.

    Example, from `test/Hybrid/ops.mlir`:

    ```mlir
    hybrid.heads total(8) {
      hybrid.softmax heads(4) head_dim(32) position(nope)
      hybrid.softmax heads(4) head_dim(32) position(rope) window(128) sinks(4)
    }
    ```
  }];
  let arguments = (ins OptionalAttr<Hybrid_Count>:$total);
  let assemblyFormat = [{
    (`total` `(` $total^ `)`)? attr-dict-with-keyword $body
  }];
}

def Hybrid_SwlaOp : Hybrid_SpecBlockOp<"swla",
    [ParentOneOf<["ModelOp", "MixOp", "NamedOp", "HeadsOp"]>]> {
  let summary = "sliding-window linear attention: a recurrence with bounded history";
  let description = [{
    The recurrence inside reads a history that starts at b(t) with a zero state,

    ```
    b(t) = 0                                        for t < window
    b(t) = stride · (⌊(t − window) / stride⌋ + 1)   otherwise,
    ```

    so it sees window − stride + 1 to window tokens, its own included. The
    stride divides the window. A sequence no longer than the window is not
    changed. Convolutions run over the whole sequence.

    Example, from `test/Hybrid/ops.mlir`:

    ```mlir
    hybrid.swla window(4096) stride(1024) {
      hybrid.gla heads(4) head_dim(32) value_dim(64)
    }
    ```
  }];
  let arguments = (ins Hybrid_Count:$window, Hybrid_Count:$stride);
  let assemblyFormat = [{
    `window` `(` $window `)` `stride` `(` $stride `)`
    attr-dict-with-keyword $body
  }];
  let extraClassDeclaration = [{
    ::mlir::Operation *getMixer() { return &getBody().front().front(); }
  }];
}

//===----------------------------------------------------------------------===//
// Mixers
//===----------------------------------------------------------------------===//

defvar Hybrid_MixerParents = ParentOneOf<["ModelOp", "MixOp", "NamedOp",
                                          "HeadsOp", "SwlaOp", "LayerOp"]>;

def Hybrid_SoftmaxOp : Hybrid_SpecOp<"softmax",
    [Hybrid_MixerParents, Hybrid_MixerInterface]> {
  let summary = "softmax attention: full, windowed, with or without rotary positions";
  let description = [{
    ```
    p_tj = softmax_j( λ_t · head_dim^(−1/2) · q_t · k_j ),   o_t = Σ_j p_tj v_j
    ```

    over the tokens j that t may see: j ≤ t; with `window(w)` also t − j < w, so
    the window counts t itself; with `sinks(n)` the first n tokens of the
    segment are seen besides the window. Query head h reads key head
    h / (heads / kv_heads).

    | clause | meaning | default |
    |---|---|---|
    | `heads(n)` | query heads | required |
    | `kv_heads(n)` | key and value heads; divides `heads` | `heads` |
    | `head_dim(n)` | channels per head, a multiple of 8 up to 256 | required |
    | `position(nope)` | queries and keys are not rotated | required |
    | `position(rope, base = b)` | element i turns with i + head_dim/2 by position · b^(−2i/head_dim) | b = 10000 |
    | `position(rope, dynamic_ntk = f)` | beyond the trained length L, at length T, the base is b · (f·T/L − f + 1)^(d/(d−2)) | off |
    | `window(n)` | tokens seen, the own one included | all |
    | `sinks(n)` | first tokens seen in spite of the window | 0 |
    | `logit_scale(constant, factor = x)` | λ_t = x | 1 |
    | `logit_scale(log_n, trained = L)` | λ_t = max(1, ln(t + 1) / ln L) | L = `trained` of the model |
    | `qk_norm` | RMS norm with weights on q and k per head, before the rotation | off |

    Example, from `test/Hybrid/ops.mlir`:

    ```mlir
    hybrid.softmax heads(8) kv_heads(2) head_dim(64) position(rope, base = 500000)
        window(128) sinks(4) logit_scale(log_n, trained = 512) qk_norm

    hybrid.softmax heads(4) head_dim(64) position(rope, dynamic_ntk = 2.0)
        logit_scale(constant, factor = 1.2)
    ```
  }];
  let arguments = (ins Hybrid_Count:$heads, OptionalAttr<Hybrid_Count>:$kv_heads,
      Hybrid_Count:$head_dim, Hybrid_PositionKindAttr:$position,
      OptionalAttr<Hybrid_Number>:$rope_base,
      OptionalAttr<Hybrid_Number>:$dynamic_ntk,
      OptionalAttr<Hybrid_Count>:$window, OptionalAttr<Hybrid_Count>:$sinks,
      OptionalAttr<Hybrid_LogitScaleKindAttr>:$logit_scale,
      OptionalAttr<Hybrid_Number>:$logit_factor,
      OptionalAttr<Hybrid_Count>:$logit_trained, UnitAttr:$qk_norm);
  let assemblyFormat = [{
    `heads` `(` $heads `)` (`kv_heads` `(` $kv_heads^ `)`)?
    `head_dim` `(` $head_dim `)`
    `position` `(` custom<Position>($position, $rope_base, $dynamic_ntk) `)`
    oilist(`window` `(` $window `)` | `sinks` `(` $sinks `)`
      | `logit_scale` `(` custom<LogitScale>($logit_scale, $logit_factor,
                                             $logit_trained) `)`
      | `qk_norm` $qk_norm)
    `` custom<EndOfClauses>(ref($heads)) attr-dict
  }];
  let extraClassDeclaration = [{
    int64_t getKvHeadsOrDefault() { return getKvHeads().value_or(getHeads()); }
    double getRopeBaseOrDefault() { return getRopeBase().value_or(10000.0); }
  }];
}

/// A mixer of the recurrence family. Its mnemonic is its row in Mixers.h; what
/// the row says nothing about is not an attribute of it.
class Hybrid_RecurrentMixerOp<string mnemonic, dag extraAttributes>
    : Hybrid_Op<mnemonic, [Hybrid_MixerParents,
        Hybrid_MixerInterface,
        Hybrid_RecurrentMixerInterface]> {
  let arguments = !con((ins Hybrid_Count:$heads, Hybrid_Count:$head_dim,
      OptionalAttr<Hybrid_Count>:$value_dim, OptionalAttr<Hybrid_Count>:$conv,
      OptionalAttr<Hybrid_OutputStageAttr>:$output), extraAttributes);
}

def Hybrid_GlaOp : Hybrid_RecurrentMixerOp<"gla",
    (ins OptionalAttr<Hybrid_Number>:$gate_normalizer,
         OptionalAttr<Hybrid_Count>:$gate_rank,
         OptionalAttr<Hybrid_Number>:$gate_bias)> {
  let hasVerifier = 1;
  let summary = "gated linear attention";
  let description = [{
    ```
    S_t = diag(α_t) S_{t−1} + k_t v_tᵀ,    o_t = head_dim^(−1/2) · S_tᵀ q_t
    ln α_t = log_sigmoid(W₂ W₁ x_t + b) / gate_normalizer
    y = W_o (rms_norm(o) · silu(W_g x))
    ```

    with one decay per key channel; the norm is per head. S is head_dim ×
    value_dim, f32.

    | clause | meaning | default |
    |---|---|---|
    | `heads(n)` | heads | required |
    | `head_dim(n)` | key channels per head, a multiple of 8 up to 256 | required |
    | `value_dim(n)` | value channels per head, a multiple of 8 up to 512 | `head_dim` |
    | `conv(n)`, `conv(off)` | causal depthwise convolution of width n and SiLU on q, k and v | off |
    | `output(norm_gate)` | before W_o: `plain`, `norm`, `gate` or `norm_gate` | `norm_gate` |
    | `gate_normalizer(x)` | divides the log decay | 16 |
    | `gate_rank(n)` | rows of W₁ | 16 |
    | `gate_bias(x)` | first value of b; 4 starts with decays of 1 − 0.001 | 0 |

    Example, from `test/Hybrid/ops.mlir`:

    ```mlir
    hybrid.gla heads(4) head_dim(32) value_dim(64) conv(4) output(norm)
        gate_normalizer(8) gate_rank(8) gate_bias(4)
    ```

    Source: Yang et al., arXiv 2312.06635.
  }];
  let assemblyFormat = [{
    `heads` `(` $heads `)` `head_dim` `(` $head_dim `)`
    oilist(`value_dim` `(` $value_dim `)` | `conv` `(` custom<Conv>($conv) `)`
      | `output` `(` custom<Word>($output) `)`
      | `gate_normalizer` `(` custom<Number>($gate_normalizer) `)`
      | `gate_rank` `(` $gate_rank `)`
      | `gate_bias` `(` custom<Number>($gate_bias) `)`)
    `` custom<EndOfClauses>(ref($heads)) attr-dict
  }];
}

def Hybrid_GdnOp : Hybrid_RecurrentMixerOp<"gdn",
    (ins OptionalAttr<Hybrid_Number>:$gate_bias,
         UnitAttr:$negative_eigenvalues)> {
  let summary = "gated DeltaNet";
  let description = [{
    ```
    S̃ = α_t S_{t−1},   u_t = β_t (v_t − S̃ᵀ k_t),   S_t = S̃ + k_t u_tᵀ
    o_t = head_dim^(−1/2) · S_tᵀ q_t
    ln α_t = −exp(A_log) · softplus(W_a x_t + dt_bias),   β_t = σ(W_b x_t)
    y = W_o (rms_norm(o) · silu(W_g x))
    ```

    with one decay per head; q and k have length 1 (after the convolution,
    x · rsqrt(Σ x² + 1e-6)). First values: A uniform in (0, 16), dt
    log-uniform in [0.001, 0.1].

    | clause | meaning | default |
    |---|---|---|
    | `heads(n)` | heads | required |
    | `head_dim(n)` | key channels per head, a multiple of 8 up to 256 | required |
    | `value_dim(n)` | value channels per head, a multiple of 8 up to 512 | `head_dim` |
    | `conv(n)`, `conv(off)` | causal depthwise convolution of width n and SiLU on q, k and v; `off` leaves the SiLU | 4 |
    | `output(norm_gate)` | before W_o: `plain`, `norm`, `gate` or `norm_gate` | `norm_gate` |
    | `gate_bias(x)` | first value of dt_bias in place of the draw above | drawn |
    | `negative_eigenvalues` | β_t = 2 σ(W_b x_t) | off |

    Example, from `test/Hybrid/ops.mlir`:

    ```mlir
    hybrid.gdn heads(6) head_dim(64) value_dim(128) conv(off) output(gate)
        gate_bias(-4.5) negative_eigenvalues
    ```

    Source: Yang et al., arXiv 2412.06464.
  }];
  let assemblyFormat = [{
    `heads` `(` $heads `)` `head_dim` `(` $head_dim `)`
    oilist(`value_dim` `(` $value_dim `)` | `conv` `(` custom<Conv>($conv) `)`
      | `output` `(` custom<Word>($output) `)`
      | `gate_bias` `(` custom<Number>($gate_bias) `)`
      | `negative_eigenvalues` $negative_eigenvalues)
    `` custom<EndOfClauses>(ref($heads)) attr-dict
  }];
}

def Hybrid_DeltaNetOp : Hybrid_RecurrentMixerOp<"delta_net",
    (ins UnitAttr:$negative_eigenvalues)> {
  let summary = "DeltaNet";
  let description = [{
    ```
    u_t = β_t (v_t − S_{t−1}ᵀ k_t),   S_t = S_{t−1} + k_t u_tᵀ
    o_t = head_dim^(−1/2) · S_tᵀ q_t,   β_t = σ(W_b x_t)
    y = W_o rms_norm(o)
    ```

    Gated DeltaNet without the decay: nothing is forgotten but what a key writes
    over. q and k have length 1.

    | clause | meaning | default |
    |---|---|---|
    | `heads(n)` | heads | required |
    | `head_dim(n)` | key channels per head, a multiple of 8 up to 256 | required |
    | `value_dim(n)` | value channels per head, a multiple of 8 up to 512 | `head_dim` |
    | `conv(n)`, `conv(off)` | causal depthwise convolution of width n and SiLU on q, k and v; `off` leaves the SiLU | 4 |
    | `output(norm)` | before W_o: `plain`, `norm`, `gate` or `norm_gate` | `norm` |
    | `negative_eigenvalues` | β_t = 2 σ(W_b x_t) | off |

    Example, from `test/Hybrid/ops.mlir`:

    ```mlir
    hybrid.delta_net heads(8) head_dim(64) conv(off) output(norm_gate)
    ```

    Source: Yang et al., arXiv 2406.06484.
  }];
  let assemblyFormat = [{
    `heads` `(` $heads `)` `head_dim` `(` $head_dim `)`
    oilist(`value_dim` `(` $value_dim `)` | `conv` `(` custom<Conv>($conv) `)`
      | `output` `(` custom<Word>($output) `)`
      | `negative_eigenvalues` $negative_eigenvalues)
    `` custom<EndOfClauses>(ref($heads)) attr-dict
  }];
}

//===----------------------------------------------------------------------===//
// The channel mixer
//===----------------------------------------------------------------------===//

def Hybrid_MlpOp : Hybrid_SpecOp<"mlp", [ParentOneOf<["ModelOp", "LayerOp"]>]> {
  let summary = "feed-forward part of a layer";
  let description = [{
    `swiglu(n)`: y = W_down (silu(W_gate x) · (W_up x)) with n channels inside
    and no bias.

    Example, from `test/Hybrid/ops.mlir`:

    ```mlir
    hybrid.mlp swiglu(512)
    ```
  }];
  let arguments = (ins Hybrid_MlpKindAttr:$kind, Hybrid_Count:$channels);
  let assemblyFormat = "custom<Word>($kind) `(` $channels `)` `` custom<EndOfClauses>(ref($channels)) attr-dict";
}

#endif // HYBRID_HYBRID_SPEC_OPS_TD
