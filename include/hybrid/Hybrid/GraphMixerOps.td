//===- GraphMixerOps.td - operations that move along the tokens -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_HYBRID_GRAPH_MIXER_OPS_TD
#define HYBRID_HYBRID_GRAPH_MIXER_OPS_TD

include "hybrid/Hybrid/GraphBase.td"

//===----------------------------------------------------------------------===//
// Short convolution
//===----------------------------------------------------------------------===//

def Hybrid_ShortConvOp : Graph_InferredDifferentiableOp<"short_conv"> {
  let summary = "depthwise causal convolution along the tokens of a segment";
  let description = [{
    y_t[c] = Σ_{i < K} w[c, i] · x_{t-K+1+i}[c]. Rows before the segment's begin
    come from the state of its slot (row K-2 is the newest), or are 0 without a
    state. The new state is the last K-1 rows of the old state followed by the
    segment's rows; slots of no segment stay as they are.

    | | shape |
    |---|---|
    | x, y | `[tokens, channels]` |
    | weight | `[channels, kernel]`, f32 |
    | state | `[slots, kernel - 1, channels]` |

    Example, from `test/Hybrid/Graph/ops.mlir`:

    ```mlir
    %y = hybrid.short_conv %x, %w, %segments : (tensor<?x64xf32>, tensor<64x4xf32>, !hybrid.segments) -> tensor<?x64xf32>

    %y, %s2 = hybrid.short_conv %x, %w, %segments state(%s) : (tensor<?x64xf32>, tensor<64x4xf32>, !hybrid.segments, tensor<?x3x64xf32, #hybrid.slots>) -> (tensor<?x64xf32>, tensor<?x3x64xf32, #hybrid.slots>)
    ```
  }];
  let arguments = (ins Graph_Rows:$x, Graph_WeightF32:$weight, Hybrid_Segments:$segments,
                       Optional<Graph_ConvState>:$state);
  let results = (outs Graph_Rows:$result, Optional<Graph_ConvState>:$new_state);
  let assemblyFormat = [{
    $x `,` $weight `,` $segments (`state` `(` $state^ `)`)? attr-dict
    `:` functional-type(operands, results)
  }];
}

def Hybrid_ShortConvGradOp : Graph_InferredOp<"short_conv_grad"> {
  let summary = "adjoint of short_conv without a state";
  let description = [{
    dx_t[c] = Σ_i w[c, i] · dy_{t+K-1-i}[c] inside the segment;
    dw[c, i] = Σ_t dy_t[c] · x_{t-K+1+i}[c], summed in token order.

    Example, from `test/Hybrid/Graph/ops.mlir`:

    ```mlir
    %dx, %dw = hybrid.short_conv_grad %x, %w, %segments, %dy : (tensor<?x64xf32>, tensor<64x4xf32>, !hybrid.segments, tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<64x4xf32>)
    ```
  }];
  let arguments = (ins Graph_Rows:$x, Graph_WeightF32:$weight, Hybrid_Segments:$segments,
                       Graph_Rows:$dy);
  let results = (outs Graph_Rows:$dx, Graph_WeightF32:$dweight);
  let assemblyFormat = [{
    $x `,` $weight `,` $segments `,` $dy attr-dict `:` functional-type(operands, results)
  }];
}

//===----------------------------------------------------------------------===//
// Softmax attention
//===----------------------------------------------------------------------===//

def Hybrid_AttentionOp : Graph_InferredDifferentiableOp<"attention"> {
  let summary = "softmax attention inside each segment";
  let description = [{
    o_t = Σ_j softmax_j(scale · q_t·k_j) v_j over the visible j: not after t, in
    the same segment, and with a window W also t - j < W or position(j) < sinks.
    The window counts the token itself. `windows` and `sinks` have one entry per
    query head; 0 means none. Query head h reads key and value head
    h / (query heads / key heads). `log_sum_exp` is ln Σ_j exp(scale · q_t·k_j),
    what the adjoint needs. Statistics and accumulators are f32.

    | | shape |
    |---|---|
    | q | `[tokens, heads, dim]` |
    | k | `[tokens, kv_heads, dim]` |
    | v | `[tokens, kv_heads, value_dim]` |
    | o | `[tokens, heads, value_dim]` |
    | log_sum_exp | `[tokens, heads]` |

    Example, from `test/Hybrid/Graph/ops.mlir`:

    ```mlir
    %o, %lse = hybrid.attention %q, %k, %v, %segments scale 1.250000e-01 windows [0, 128, 128, 64] sinks [0, 4, 4, 0]
        : (tensor<?x4x64xf32>, tensor<?x2x64xf32>, tensor<?x2x32xf32>, !hybrid.segments) -> (tensor<?x4x32xf32>, tensor<?x4xf32>)
    ```
  }];
  let arguments = (ins Graph_Heads:$q, Graph_Heads:$k, Graph_Heads:$v, Hybrid_Segments:$segments,
                       F64Attr:$scale, DenseI64ArrayAttr:$windows, DenseI64ArrayAttr:$sinks);
  let results = (outs Graph_Heads:$o, Graph_PerHead:$log_sum_exp);
  let assemblyFormat = [{
    $q `,` $k `,` $v `,` $segments `scale` $scale `windows` $windows `sinks` $sinks attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  code kvGroup = [{
    /// Query heads per key and value head.
    int64_t getKvGroup() {
      return getQ().getType().getDimSize(1) / getK().getType().getDimSize(1);
    }
  }];
  let extraClassDeclaration = kvGroup;
}

def Hybrid_AttentionGradOp : Graph_InferredOp<"attention_grad"> {
  let summary = "adjoint of attention";
  let description = [{
    P_tj = exp(scale · q_t·k_j - log_sum_exp_t), D_t = do_t·o_t,
    dA_tj = P_tj (do_t·v_j - D_t); dq_t = scale Σ_j dA_tj k_j,
    dk_j = scale Σ_t dA_tj q_t, dv_j = Σ_t P_tj do_t. dk and dv sum over the
    query heads of their group.

    Example, from `test/Hybrid/Graph/ops.mlir`:

    ```mlir
    %dq, %dk, %dv = hybrid.attention_grad %q, %k, %v, %o, %lse, %do, %segments scale 1.250000e-01 windows [0, 128, 128, 64] sinks [0, 4, 4, 0]
        : (tensor<?x4x64xf32>, tensor<?x2x64xf32>, tensor<?x2x32xf32>, tensor<?x4x32xf32>, tensor<?x4xf32>, tensor<?x4x32xf32>, !hybrid.segments)
        -> (tensor<?x4x64xf32>, tensor<?x2x64xf32>, tensor<?x2x32xf32>)
    ```
  }];
  let arguments = (ins Graph_Heads:$q, Graph_Heads:$k, Graph_Heads:$v, Graph_Heads:$o,
                       Graph_PerHead:$log_sum_exp, Graph_Heads:$dout, Hybrid_Segments:$segments,
                       F64Attr:$scale, DenseI64ArrayAttr:$windows, DenseI64ArrayAttr:$sinks);
  let results = (outs Graph_Heads:$dq, Graph_Heads:$dk, Graph_Heads:$dv);
  let assemblyFormat = [{
    $q `,` $k `,` $v `,` $o `,` $log_sum_exp `,` $dout `,` $segments
    `scale` $scale `windows` $windows `sinks` $sinks attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = Hybrid_AttentionOp.kvGroup;
}

def Hybrid_AttentionCachedOp : Graph_InferredOp<"attention_cached"> {
  let summary = "appends keys and values to a cache, then attends over it";
  let description = [{
    As `hybrid.attention`, for any number of new tokens, 0 included: a query sees
    every earlier position of its slot, subject to window and sinks.

    The cache row of position p is p while p is below the largest entry n of
    `sinks`, and n + (p - n) mod (rows - n) after that: sink tokens stay, the
    rest is a ring. A head without a window needs `rows` of at least the context;
    heads with windows need n + (largest window - 1) + new tokens, plus the depth
    to which the state may be rolled back.

    | | shape |
    |---|---|
    | q | `[tokens, heads, dim]` |
    | k, v | `[tokens, kv_heads, dim]`, `[tokens, kv_heads, value_dim]` |
    | k_cache, v_cache | `[slots, kv_heads, rows, dim]`, `[slots, kv_heads, rows, value_dim]` |

    Example, from `test/Hybrid/Graph/ops.mlir`:

    ```mlir
    %o, %kc2, %vc2 = hybrid.attention_cached %q, %k, %v, %kc, %vc, %segments scale 1.250000e-01 windows [0, 128, 128, 64] sinks [0, 4, 4, 0]
        : (tensor<?x4x64xf32>, tensor<?x2x64xf32>, tensor<?x2x32xf32>, tensor<?x2x?x64xf32, #hybrid.slots<rows = #context>>, tensor<?x2x?x32xf32, #hybrid.slots<rows = #context>>, !hybrid.segments)
        -> (tensor<?x4x32xf32>, tensor<?x2x?x64xf32, #hybrid.slots<rows = #context>>, tensor<?x2x?x32xf32, #hybrid.slots<rows = #context>>)
    ```
  }];
  let arguments = (ins Graph_Heads:$q, Graph_Heads:$k, Graph_Heads:$v, Graph_Cache:$k_cache,
                       Graph_Cache:$v_cache, Hybrid_Segments:$segments, F64Attr:$scale,
                       DenseI64ArrayAttr:$windows, DenseI64ArrayAttr:$sinks);
  let results = (outs Graph_Heads:$o, Graph_Cache:$new_k_cache, Graph_Cache:$new_v_cache);
  let assemblyFormat = [{
    $q `,` $k `,` $v `,` $k_cache `,` $v_cache `,` $segments
    `scale` $scale `windows` $windows `sinks` $sinks attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = Hybrid_AttentionOp.kvGroup;
}

//===----------------------------------------------------------------------===//
// Recurrences
//===----------------------------------------------------------------------===//

def Hybrid_RecurrenceOp
    : Graph_InferredDifferentiableOp<"recurrence", [AttrSizedOperandSegments]> {
  let summary = "linear recurrence with a matrix state per head";
  let description = [{
    Per head, with α_t = exp(decay_t) (1 without decay) and the state S `[K, V]`:

    - additive: S_t = diag(α_t) S_{t-1} + k_t v_tᵀ
    - delta: S̃ = diag(α_t) S_{t-1}; S_t = S̃ + β_t k_t (v_t - S̃ᵀ k_t)ᵀ

    and o_t = scale · S_tᵀ q_t. The decay is in log space, at most 0; β is 1 when
    absent. The state starts at 0 in every segment, or at the state of its slot;
    then the last state comes back in `final`, and slots of no segment stay as
    they are. A slot occurs at most once in a call. States and gates are f32.

    With `window` W and `stride` S the history is bounded (SWLA): the output at
    position p is that of the recurrence started from zero at position
    b(p) = 0 for p < W, else S · (floor((p - W) / S) + 1). A slot holds W / S
    live states; the state opened at position c · S has the ring index
    c mod (W / S), and an entry is not touched before it is opened. What an
    entry holds once its window has ended is not specified: nothing reads it.

    | | shape |
    |---|---|
    | q | `[tokens, heads, K]` |
    | k, v | `[tokens, kv_heads, K]`, `[tokens, kv_heads, V]` |
    | decay | `[tokens, heads, 1]` or `[tokens, heads, K]` |
    | beta | `[tokens, heads]` |
    | initial, final | `[slots, heads, K, V]`, with a window `[slots, W/S, heads, K, V]` |
    | o | `[tokens, heads, V]` |

    Example, from `test/Hybrid/Graph/ops.mlir`:

    ```mlir
    %o = hybrid.recurrence delta %q, %k, %v, %segments decay(%g) beta(%b) scale 1.250000e-01
        : (tensor<?x4x64xf32>, tensor<?x4x64xf32>, tensor<?x4x32xf32>, !hybrid.segments, tensor<?x4x1xf32>, tensor<?x4xf32>) -> tensor<?x4x32xf32>
    %o2, %s2 = hybrid.recurrence additive %q, %k, %v, %segments decay(%gk) initial(%s) scale 1.250000e-01 window 256 stride 64
        : (tensor<?x4x64xf32>, tensor<?x4x64xf32>, tensor<?x4x32xf32>, !hybrid.segments, tensor<?x4x64xf32>, tensor<?x4x4x64x32xf32, #hybrid.slots>) -> (tensor<?x4x32xf32>, tensor<?x4x4x64x32xf32, #hybrid.slots>)
    ```
  }];
  let arguments = (ins Hybrid_UpdateRuleAttr:$update, Graph_Heads:$q, Graph_Heads:$k,
                       Graph_Heads:$v, Hybrid_Segments:$segments, Optional<Graph_HeadsF32>:$decay,
                       Optional<Graph_PerHead>:$beta, Optional<Graph_Tensor>:$initial,
                       F64Attr:$scale, OptionalAttr<I64Attr>:$window,
                       OptionalAttr<I64Attr>:$stride);
  let results = (outs Graph_Heads:$o, Optional<Graph_Tensor>:$final);
  let assemblyFormat = [{
    custom<Word>($update) $q `,` $k `,` $v `,` $segments (`decay` `(` $decay^ `)`)? (`beta` `(` $beta^ `)`)?
    (`initial` `(` $initial^ `)`)? `scale` $scale (`window` $window^ `stride` $stride)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  code kvGroup = [{
    /// Query heads per key and value head.
    int64_t getKvGroup() {
      return getQ().getType().getDimSize(1) / getK().getType().getDimSize(1);
    }
    /// Whether every key channel has a decay of its own.
    bool hasChannelDecay() {
      return getDecay() && getDecay().getType().getDimSize(2) != 1;
    }
  }];
  let extraClassDeclaration = kvGroup;
}

def Hybrid_RecurrenceGradOp
    : Graph_InferredOp<"recurrence_grad", [AttrSizedOperandSegments]> {
  let summary = "adjoint of recurrence";
  let description = [{
    Backwards over the tokens with dS, which starts at `dfinal` (0 when absent):

    - additive: dS += scale · q doᵀ; dq = scale · S_t do; dk = dS v; dv = dSᵀ k;
      ddecay = α ⊙ rowsum(dS ⊙ S_{t-1}); dS ← diag(α) dS
    - delta, with r = v - S̃ᵀ k and u = β r: dS += scale · q doᵀ; dq = scale · S_t do;
      du = dSᵀ k; dβ = du·r; dv = w = β du; dk = dS u - S̃ w; dS̃ = dS - k wᵀ;
      ddecay = α ⊙ rowsum(dS̃ ⊙ S_{t-1}); dS ← diag(α) dS̃

    A decay of one number per head sums ddecay over the channels; dk and dv sum
    over the query heads of their group. dinitial is dS at the segment's begin.

    Results are dq, dk, dv, then ddecay, dbeta, dinitial for each of decay, beta,
    initial that is present.

    Example, from `test/Hybrid/Graph/ops.mlir`:

    ```mlir
    %dq, %dk, %dv, %optional:3 = hybrid.recurrence_grad delta %q, %k, %v, %segments, %do decay(%g) beta(%b) initial(%s) dfinal(%ds) scale 1.250000e-01
        : (tensor<?x4x64xf32>, tensor<?x4x64xf32>, tensor<?x4x32xf32>, !hybrid.segments, tensor<?x4x32xf32>, tensor<?x4x1xf32>, tensor<?x4xf32>, tensor<?x4x64x32xf32, #hybrid.slots>, tensor<?x4x64x32xf32, #hybrid.slots>)
        -> (tensor<?x4x64xf32>, tensor<?x4x64xf32>, tensor<?x4x32xf32>, tensor<?x4x1xf32>, tensor<?x4xf32>, tensor<?x4x64x32xf32, #hybrid.slots>)
    ```
  }];
  let arguments = (ins Hybrid_UpdateRuleAttr:$update, Graph_Heads:$q, Graph_Heads:$k,
                       Graph_Heads:$v, Hybrid_Segments:$segments, Graph_Heads:$dout,
                       Optional<Graph_HeadsF32>:$decay, Optional<Graph_PerHead>:$beta,
                       Optional<Graph_Tensor>:$initial, Optional<Graph_Tensor>:$dfinal,
                       F64Attr:$scale, OptionalAttr<I64Attr>:$window,
                       OptionalAttr<I64Attr>:$stride);
  let results = (outs Graph_Heads:$dq, Graph_Heads:$dk, Graph_Heads:$dv,
                      Variadic<Graph_Tensor>:$optional_gradients);
  let assemblyFormat = [{
    custom<Word>($update) $q `,` $k `,` $v `,` $segments `,` $dout (`decay` `(` $decay^ `)`)?
    (`beta` `(` $beta^ `)`)? (`initial` `(` $initial^ `)`)? (`dfinal` `(` $dfinal^ `)`)?
    `scale` $scale (`window` $window^ `stride` $stride)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = Hybrid_RecurrenceOp.kvGroup # [{
    /// The gradients of the optional operands, null where the operand is absent.
    ::mlir::Value getDdecay();
    ::mlir::Value getDbeta();
    ::mlir::Value getDinitial();
  }];
}

#endif // HYBRID_HYBRID_GRAPH_MIXER_OPS_TD
