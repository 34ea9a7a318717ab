//===- SpecAttrs.td - words a spec and a stack are written with -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_HYBRID_SPEC_ATTRS_TD
#define HYBRID_HYBRID_SPEC_ATTRS_TD

include "mlir/IR/EnumAttr.td"
include "hybrid/Hybrid/HybridDialect.td"

/// An enumeration that is written as a bare word.
class Hybrid_Word<string name, string summary, list<string> words>
    : I32Enum<name, summary,
              !foreach(i, !range(!size(words)), I32EnumCase<words[i], i>)> {
  let cppNamespace = "::hybrid";
}
class Hybrid_WordAttr<I32Enum words, string mnemonic>
    : EnumAttr<Hybrid_Dialect, words, mnemonic> {
  let assemblyFormat = "$value";
}

/// A count or size. Signed, so that a verifier can print what was written.
def Hybrid_Count : TypedSignlessIntegerAttrBase<I64, "int64_t", "integer"> {
  let convertFromStorage = "$_self.getInt()";
}
/// A real number, written with or without a fraction.
def Hybrid_Number : FloatAttrBase<F64, "number"> {
  let returnType = "double";
  let convertFromStorage = "$_self.getValueAsDouble()";
}

//===----------------------------------------------------------------------===//
// Which layer gets which mixer
//===----------------------------------------------------------------------===//

def Hybrid_MixLeftover : Hybrid_Word<"MixLeftover",
    "what happens to layers after the last whole period of a ratio",
    ["biased", "last_full", "error"]>;
def Hybrid_MixLeftoverAttr : Hybrid_WordAttr<Hybrid_MixLeftover, "mix_leftover"> {
  let description = [{
    `biased`: the rule of the ratio goes on; `last_full`: the same, and the last layer
    is full; `error`: there may be none.

    Example, from `test/Hybrid/ops.mlir`: `leftover(last_full)`
  }];
}

def Hybrid_PatternLeftover : Hybrid_Word<"PatternLeftover",
    "what happens when the last repetition of a pattern is not whole",
    ["cut", "last", "error"]>;
def Hybrid_PatternLeftoverAttr : Hybrid_WordAttr<Hybrid_PatternLeftover, "pattern_leftover"> {
  let description = [{
    `cut`: the repetition ends early; `last`: the same, and the last layer has the
    pattern's last letter; `error`: refused.

    Example, from `test/Hybrid/ops.mlir`: `hybrid.pattern "LLLG" leftover(last)`
  }];
}

//===----------------------------------------------------------------------===//
// The softmax family
//===----------------------------------------------------------------------===//

def Hybrid_PositionKind : Hybrid_Word<"PositionKind",
    "how softmax attention learns where a token stands", ["nope", "rope"]>;
def Hybrid_PositionKindAttr : Hybrid_WordAttr<Hybrid_PositionKind, "position"> {
  let description = [{
    `nope`: by causality alone; `rope`: queries and keys are rotated by their position.

    Example, from `test/Hybrid/ops.mlir`: `position(rope, base = 500000)`
  }];
}

def Hybrid_LogitScaleKind : Hybrid_Word<"LogitScaleKind",
    "factor on the logits beside 1/sqrt(head_dim)", ["constant", "log_n"]>;
def Hybrid_LogitScaleKindAttr : Hybrid_WordAttr<Hybrid_LogitScaleKind, "logit_scale"> {
  let description = [{
    `constant`: one number; `log_n`: max(1, ln(t + 1) / ln L) at position t, with L the
    trained length.

    Example, from `test/Hybrid/ops.mlir`: `logit_scale(log_n, trained = 512)`
  }];
}

//===----------------------------------------------------------------------===//
// The recurrence family
//===----------------------------------------------------------------------===//

def Hybrid_DecayKind : Hybrid_Word<"DecayKind",
    "what a state is multiplied by before a token writes",
    ["none", "scalar", "channel"]>;
def Hybrid_DecayKindAttr : Hybrid_WordAttr<Hybrid_DecayKind, "decay"> {
  let description = [{
    `none`: by 1; `scalar`: by one number per head and token; `channel`: by one number
    per key channel.

    Example, from `test/Hybrid/stack-ops.mlir`: `decay(channel)`
  }];
}

def Hybrid_GateKind : Hybrid_Word<"GateKind",
    "how the log decay is computed from the layer input",
    ["none", "log_sigmoid", "softplus"]>;
def Hybrid_GateKindAttr : Hybrid_WordAttr<Hybrid_GateKind, "gate"> {
  let description = [{
    `none`: there is no decay; `log_sigmoid`: log_sigmoid(W₂ W₁ x + b) / normalizer;
    `softplus`: −exp(A_log) · softplus(W_a x + dt_bias).

    Example, from `test/Hybrid/stack-ops.mlir`: `gate(log_sigmoid) gate_normalizer(16) gate_rank(16)`
  }];
}

def Hybrid_OutputStage : Hybrid_Word<"OutputStage",
    "what happens to the heads before the output projection",
    ["plain", "norm", "gate", "norm_gate"]>;
def Hybrid_OutputStageAttr : Hybrid_WordAttr<Hybrid_OutputStage, "output_stage"> {
  let description = [{
    `plain`: nothing; `norm`: RMS norm per head; `gate`: times silu(W_g x);
    `norm_gate`: both.

    Example, from `test/Hybrid/ops.mlir`: `conv(off) output(gate)`
  }];
}

//===----------------------------------------------------------------------===//
// The channel mixer
//===----------------------------------------------------------------------===//

def Hybrid_MlpKind : Hybrid_Word<"MlpKind",
    "feed-forward part of a layer", ["swiglu"]>;
def Hybrid_MlpKindAttr : Hybrid_WordAttr<Hybrid_MlpKind, "mlp_kind"> {
  let description = [{
    `swiglu`: W_down (silu(W_gate x) · (W_up x)).

    Example, from `test/Hybrid/ops.mlir`: `hybrid.mlp swiglu(512)`
  }];
}

#endif // HYBRID_HYBRID_SPEC_ATTRS_TD
