//===- TileDialect.cpp - the tile dialect -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Tile/TileOps.h"

using namespace mlir;
using namespace hybrid::tile;

#include "hybrid/Tile/TileDialect.cpp.inc"

#include "hybrid/Tile/TileEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "hybrid/Tile/TileAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "hybrid/Tile/TileTypes.cpp.inc"

void TileDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "hybrid/Tile/TileAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "hybrid/Tile/TileTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "hybrid/Tile/TileOps.cpp.inc"
      >();
}
