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

#endif // HYBRID_TILE_TILE_ATTRS_TD
