//===- TileOps.td - operations of the tile dialect -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TILE_TILE_OPS_TD
#define HYBRID_TILE_TILE_OPS_TD

include "hybrid/Tile/TileAttrs.td"
include "hybrid/Tile/TileTypes.td"

#endif // HYBRID_TILE_TILE_OPS_TD
