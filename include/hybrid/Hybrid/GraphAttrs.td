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
include "hybrid/Hybrid/SpecAttrs.td"

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

    Example, from `test/Hybrid/Graph/ops.mlir`:
    `tensor<?x2x?x64xf32, #hybrid.slots<rows = affine_map<()[s0, s1, s2, s3, s4, s5] -> (s4)>>>`
  }];
  let parameters = (ins OptionalParameter<"::mlir::AffineMapAttr">:$rows);
  let assemblyFormat = "(`<` `rows` `=` $rows^ `>`)?";
  let genVerifyDecl = 1;
}

def Hybrid_PerSegmentAttr : Graph_Encoding<"PerSegment", "per_segment"> {
  let summary = "a tensor whose leading size is the number of segments";
  let description = [{
    Example, from `test/Hybrid/Graph/ops.mlir`:
    `tensor<?x64xf32, #hybrid.per_segment>`
  }];
}

def Hybrid_SizedAttr : Graph_Encoding<"Sized", "sized"> {
  let summary = "a tensor whose dynamic sizes are expressions of the symbols";
  let description = [{
    The encoding of workspaces that pass between dispatches, such as partial
    results per chunk. The map has one result per dynamic dimension.

    Example, from `test/Hybrid/Graph/ops.mlir`:
    `tensor<?x8x8xf32, #hybrid.sized<affine_map<()[s0, s1, s2, s3, s4, s5] -> (s0 floordiv 64 + s1)>>>`
  }];
  let parameters = (ins "::mlir::AffineMapAttr":$sizes);
  let assemblyFormat = "`<` $sizes `>`";
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Dispatches
//===----------------------------------------------------------------------===//

def Hybrid_PlainProductAttr : AttrDef<Hybrid_Dialect, "PlainProduct"> {
  let mnemonic = "plain_product";
  let summary = "a dispatch that computes one matrix product and nothing else";
  let description = [{
    Says that a dispatch gives op(a) op(b), two-dimensional operands of one
    float type, or adds that to the input that its result is tied to. Inputs 0
    and 1 are a and b, and there are no others but the tied one. The plan names
    the views, so that a runtime may compute the product otherwise.

    With `parts` the dispatch sums parts that the dispatch of its input 0 has
    computed, each of a range of the depth; a and b are inputs 0 and 1 of that
    one. Both together are the product.

    Example, from `test/Hybrid/Dispatch/ops.mlir`:
    `#hybrid.plain_product<transpose_b = true>`
  }];
  let parameters = (ins DefaultValuedParameter<"bool", "false">:$transpose_a,
                        DefaultValuedParameter<"bool", "false">:$transpose_b,
                        DefaultValuedParameter<"bool", "false">:$parts);
  let assemblyFormat = "(`<` struct(params)^ `>`)?";
}

//===----------------------------------------------------------------------===//
// Enumerations
//===----------------------------------------------------------------------===//

def Hybrid_NormKind : Hybrid_Word<"NormKind", "what a row is divided by",
    ["rms", "l2"]>;
def Hybrid_NormKindAttr : Hybrid_WordAttr<Hybrid_NormKind, "norm_kind"> {
  let description = [{
    `rms`: the root of the mean square; `l2`: the root of the sum of squares.

    Example, from `test/Hybrid/Graph/ops.mlir`: `hybrid.normalize rms %x`
  }];
}

def Hybrid_UpdateRule : Hybrid_Word<"UpdateRule", "how a recurrence writes to its state",
    ["additive", "delta"]>;
def Hybrid_UpdateRuleAttr : Hybrid_WordAttr<Hybrid_UpdateRule, "update_rule"> {
  let description = [{
    `additive` adds k vᵀ; `delta` first takes away what the state holds under k.

    Example, from `test/Hybrid/stack-ops.mlir`: `update(delta)`
  }];
}

#endif // HYBRID_HYBRID_GRAPH_ATTRS_TD
