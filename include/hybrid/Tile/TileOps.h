//===- TileOps.h - operations of the tile dialect -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TILE_TILEOPS_H
#define HYBRID_TILE_TILEOPS_H

#include "hybrid/Tile/TileDialect.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "hybrid/Tile/TileEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "hybrid/Tile/TileAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "hybrid/Tile/TileTypes.h.inc"

namespace hybrid::tile {
/// Type of the `rows` or `mask` of a gathered tile: one integer of `width` bits
/// per row of `tile`.
mlir::Type rowVectorType(mlir::Type tile, unsigned width);

/// Names of the arith and math ops that a program may hold: those that every
/// target and the interpreter know. (`arith.constant` comes on top.)
llvm::ArrayRef<llvm::StringRef> elementwiseOps();
} // namespace hybrid::tile

#define GET_OP_CLASSES
#include "hybrid/Tile/TileOps.h.inc"

#endif // HYBRID_TILE_TILEOPS_H
