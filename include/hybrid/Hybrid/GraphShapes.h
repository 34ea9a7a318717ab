//===- GraphShapes.h - sizes of graph tensors as expressions -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every dynamic size of a graph tensor is an expression of six non-negative
// integers that describe a call. Affine maps and sets over them have no
// dimensions and these six symbols in this order.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_HYBRID_GRAPHSHAPES_H
#define HYBRID_HYBRID_GRAPHSHAPES_H

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/BuiltinTypes.h"

namespace hybrid {

/// Order of the symbols in `affine_map<()[...] -> (...)>`.
enum class CallSymbol : unsigned {
  tokens,   // rows of the packed stream
  segments, // segments in this call
  longest,  // rows of the longest segment
  slots,    // state slots of the state object, 0 when stateless
  context,  // token capacity of a slot
  depth,    // rollback depth of the state
};
inline constexpr unsigned numCallSymbols = 6;

llvm::StringRef stringifyCallSymbol(CallSymbol symbol);

mlir::AffineExpr getSymbolExpr(CallSymbol symbol, mlir::MLIRContext *context);

/// The sizes of `type`, one expression per dimension. A dynamic leading size is
/// `tokens` unless the encoding says otherwise.
mlir::AffineMap getSizes(mlir::RankedTensorType type);

} // namespace hybrid

#endif // HYBRID_HYBRID_GRAPHSHAPES_H
