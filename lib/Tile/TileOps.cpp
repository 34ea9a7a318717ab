//===- TileOps.cpp - verifiers and syntax of the tile dialect -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Tile/TileOps.h"

using namespace mlir;
using namespace hybrid::tile;

#define GET_OP_CLASSES
#include "hybrid/Tile/TileOps.cpp.inc"
