//===- Storage.h - how elements are kept in memory -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The same for every target: a buffer may be written by one and read by
// another.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TARGET_STORAGE_H
#define HYBRID_TARGET_STORAGE_H

#include "mlir/IR/BuiltinTypes.h"

namespace hybrid {

/// How a type is kept in memory: i1 as a byte.
inline mlir::Type storedType(mlir::Type element) {
  return element.isInteger(1) ? mlir::IntegerType::get(element.getContext(), 8)
                              : element;
}

/// The bytes of one element in memory.
inline int64_t storedBytes(mlir::Type element) {
  return storedType(element).getIntOrFloatBitWidth() / 8;
}

} // namespace hybrid

#endif // HYBRID_TARGET_STORAGE_H
