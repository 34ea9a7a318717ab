//===- TileAttrs.td - attributes and enumerations of the tile dialect -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TILE_TILE_ATTRS_TD
#define HYBRID_TILE_TILE_ATTRS_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "hybrid/Tile/TileDialect.td"

class Tile_Enum<string name, string summary, list<I32EnumCase> cases>
    : I32Enum<name, summary, cases> {
  let cppNamespace = "::hybrid::tile";
}

class Tile_EnumAttr<EnumInfo info, string mnemonic> : EnumAttr<Tile_Dialect, info, mnemonic>;

def Tile_Order : Tile_Enum<"Order", "how programs along a grid dim relate", [
    I32EnumCase<"parallel", 0>,
    I32EnumCase<"ordered", 1>,
]>;

def Tile_OrderAttr : Tile_EnumAttr<Tile_Order, "order"> {
  let description = [{
    One word per grid dim: `parallel` programs are independent; along an
    `ordered` dim they take turns in ascending order.

    Example, from `test/Tile/ops.mlir`: `order [parallel, ordered]`
  }];
  let assemblyFormat = "`<` $value `>`";
}

def Tile_OrderArrayAttr
    : TypedArrayAttrBase<Tile_OrderAttr, "order of each grid dim">;

def Tile_ReduceKind : Tile_Enum<"ReduceKind", "what a reduction computes", [
    I32EnumCase<"sum", 0>,
    I32EnumCase<"max", 1>,
]>;

def Tile_ReduceKindAttr : Tile_EnumAttr<Tile_ReduceKind, "reduce_kind"> {
  let description = [{
    Example, from `test/Tile/ops.mlir`: `tile.reduce sum %d dim 0 : tensor<16x4xf32>`
  }];
}

def Tile_Precision : Tile_Enum<"Precision", "operand precision of a product", [
    I32EnumCase<"fp32", 0>,
    I32EnumCase<"tf32", 1>,
    I32EnumCase<"split2", 2>,
    I32EnumCase<"split3", 3>,
]>;

def Tile_PrecisionAttr : Tile_EnumAttr<Tile_Precision, "precision"> {
  let description = [{
    How f32 operands enter a product: as they are (`fp32`), rounded to tf32
    (`tf32`), or as the sum of two or three bf16 parts (`split2`, `split3`).
    Operands of a narrower type are exact in each of them.

    Example, from `test/Tile/ops.mlir`:
    `tile.dot %x, %x, %z16 precision split3 {transpose_b}`
  }];
}

#endif // HYBRID_TILE_TILE_ATTRS_TD
