//===- GraphAttrs.td - attributes of graph types and operations -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_HYBRID_GRAPH_ATTRS_TD
#define HYBRID_HYBRID_GRAPH_ATTRS_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/TensorEncoding.td"
include "hybrid/Hybrid/HybridDialect.td"

class Graph_Encoding<string name, string attrMnemonic>
    : AttrDef<Hybrid_Dialect, name, [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let mnemonic = attrMnemonic;
}

//===----------------------------------------------------------------------===//
// Encodings: what the dynamic sizes of a tensor are. Without an encoding the
// leading dynamic size is the number of tokens. `getSizes` of GraphShapes.h
// turns any of them into expressions of the six symbols.
//===----------------------------------------------------------------------===//

def Hybrid_SlotsAttr : Graph_Encoding<"Slots", "slots"> {
  let summary = "a tensor whose leading size is the number of state slots";
  let description = [{
    The encoding of a per-slot state, `tensor<?x4x64x64xf32, #hybrid.slots>`.
    In a cache, `tensor<?x4x?x64xf32, #hybrid.slots<rows = affine_map<...>>>`,
    `rows` gives the second dynamic size as an expression of the symbols
    `()[tokens, segments, longest, slots, context, depth]`.
  }];
  let parameters = (ins OptionalParameter<"::mlir::AffineMapAttr">:$rows);
  let assemblyFormat = "(`<` `rows` `=` $rows^ `>`)?";
  let genVerifyDecl = 1;
}

def Hybrid_PerSegmentAttr : Graph_Encoding<"PerSegment", "per_segment"> {
  let summary = "a tensor whose leading size is the number of segments";
}

def Hybrid_SizedAttr : Graph_Encoding<"Sized", "sized"> {
  let summary = "a tensor whose dynamic sizes are expressions of the symbols";
  let description = [{
    The encoding of workspaces that pass between dispatches, such as partial
    results per chunk. The map has one result per dynamic dimension:
    `tensor<?x64x64xf32, #hybrid.sized<affine_map<()[s0, s1, s2, s3, s4, s5] -> (s0 floordiv 64 + s1)>>>`.
  }];
  let parameters = (ins "::mlir::AffineMapAttr":$sizes);
  let assemblyFormat = "`<` $sizes `>`";
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Enumerations
//===----------------------------------------------------------------------===//

class Graph_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::hybrid";
  let genSpecializedAttr = 0;
}

def Hybrid_NormKind : Graph_Enum<"NormKind", "what a row is divided by",
    [I32EnumAttrCase<"rms", 0>, I32EnumAttrCase<"l2", 1>]>;
def Hybrid_NormKindAttr : EnumAttr<Hybrid_Dialect, Hybrid_NormKind, "norm_kind">;

def Hybrid_UpdateRule : Graph_Enum<"UpdateRule", "how a recurrence writes to its state",
    [I32EnumAttrCase<"additive", 0>, I32EnumAttrCase<"delta", 1>]>;
def Hybrid_UpdateRuleAttr : EnumAttr<Hybrid_Dialect, Hybrid_UpdateRule, "update_rule">;

#endif // HYBRID_HYBRID_GRAPH_ATTRS_TD
