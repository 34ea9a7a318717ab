//===- GraphShapes.cpp - sizes of graph tensors as expressions -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Hybrid/GraphShapes.h"
#include "hybrid/Hybrid/HybridOps.h"

using namespace mlir;
using namespace hybrid;

StringRef hybrid::stringifyCallSymbol(CallSymbol symbol) {
  switch (symbol) {
  case CallSymbol::tokens:
    return "tokens";
  case CallSymbol::segments:
    return "segments";
  case CallSymbol::longest:
    return "longest";
  case CallSymbol::slots:
    return "slots";
  case CallSymbol::context:
    return "context";
  case CallSymbol::depth:
    return "depth";
  }
  llvm_unreachable("not a call symbol");
}

AffineExpr hybrid::getSymbolExpr(CallSymbol symbol, MLIRContext *context) {
  return getAffineSymbolExpr(static_cast<unsigned>(symbol), context);
}

AffineMap hybrid::getSizes(RankedTensorType type) {
  MLIRContext *context = type.getContext();
  // One expression per dynamic dimension, in order.
  SmallVector<AffineExpr> dynamic;
  if (auto slots = dyn_cast_or_null<SlotsAttr>(type.getEncoding())) {
    dynamic.push_back(getSymbolExpr(CallSymbol::slots, context));
    if (slots.getRows())
      dynamic.push_back(slots.getRows().getAffineMap().getResult(0));
  } else if (isa_and_nonnull<PerSegmentAttr>(type.getEncoding())) {
    dynamic.push_back(getSymbolExpr(CallSymbol::segments, context));
  } else if (auto sized = dyn_cast_or_null<SizedAttr>(type.getEncoding())) {
    llvm::append_range(dynamic, sized.getSizes().getAffineMap().getResults());
  } else {
    dynamic.push_back(getSymbolExpr(CallSymbol::tokens, context));
  }

  SmallVector<AffineExpr> sizes;
  unsigned next = 0;
  for (int64_t size : type.getShape())
    sizes.push_back(ShapedType::isDynamic(size)
                        ? dynamic[next++]
                        : getAffineConstantExpr(size, context));
  return AffineMap::get(0, numCallSymbols, sizes, context);
}

/// Maps of encodings take the six symbols and nothing else.
static LogicalResult verifySymbols(function_ref<InFlightDiagnostic()> emitError,
                                   AffineMap map) {
  if (map.getNumDims() == 0 && map.getNumSymbols() == numCallSymbols)
    return success();
  return emitError() << "map has " << map.getNumDims() << " dimensions and "
                     << map.getNumSymbols() << " symbols, expected 0 and "
                     << numCallSymbols
                     << "; write affine_map<()[tokens, segments, longest, "
                        "slots, context, depth] "
                        "-> (...)>";
}

LogicalResult SlotsAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                AffineMapAttr rows) {
  if (!rows)
    return success();
  if (failed(verifySymbols(emitError, rows.getAffineMap())))
    return failure();
  if (rows.getAffineMap().getNumResults() == 1)
    return success();
  return emitError() << "rows has " << rows.getAffineMap().getNumResults()
                     << " results, expected 1";
}

LogicalResult SizedAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                AffineMapAttr sizes) {
  return verifySymbols(emitError, sizes.getAffineMap());
}

/// The dynamic sizes of an encoded tensor are the ones the encoding explains.
static LogicalResult
verifyDynamicSizes(function_ref<InFlightDiagnostic()> emitError,
                   ArrayRef<int64_t> shape, size_t expected) {
  size_t found = llvm::count_if(shape, ShapedType::isDynamic);
  if (found == expected)
    return success();
  return emitError() << "tensor has " << found
                     << " dynamic sizes but its encoding gives " << expected;
}

LogicalResult
SlotsAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                          function_ref<InFlightDiagnostic()> emitError) const {
  return verifyDynamicSizes(emitError, shape, getRows() ? 2 : 1);
}

LogicalResult PerSegmentAttr::verifyEncoding(
    ArrayRef<int64_t> shape, Type,
    function_ref<InFlightDiagnostic()> emitError) const {
  return verifyDynamicSizes(emitError, shape, 1);
}

LogicalResult
SizedAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                          function_ref<InFlightDiagnostic()> emitError) const {
  return verifyDynamicSizes(emitError, shape,
                            getSizes().getAffineMap().getNumResults());
}
