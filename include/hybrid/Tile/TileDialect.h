//===- TileDialect.h - the tile dialect -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TILE_TILEDIALECT_H
#define HYBRID_TILE_TILEDIALECT_H

#include "mlir/IR/Dialect.h"

#include "hybrid/Tile/TileDialect.h.inc"

#endif // HYBRID_TILE_TILEDIALECT_H
