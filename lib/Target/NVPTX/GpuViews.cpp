//===- GpuViews.cpp - a kernel's views as it reads them -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuViews.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::nvptx;

Value ViewReader::field(Type fieldType, int64_t offset) {
  return LLVM::LoadOp::create(b, fieldType,
                              b.address(arguments, start + offset), 8);
}

Value ViewReader::number(int64_t known, int64_t offset) {
  return ShapedType::isDynamic(known) ? field(b.getI64Type(), offset)
                                      : b.i64(known);
}

Value ViewReader::base() {
  Type generic = LLVM::LLVMPointerType::get(b.getContext());
  Type global = LLVM::LLVMPointerType::get(b.getContext(), kGlobalSpace);
  return LLVM::AddrSpaceCastOp::create(b, global, field(generic, 0));
}

Value ViewReader::size(int64_t dim) {
  return number(type.getShape()[dim], kSizesOffset + 8 * dim);
}

Value ViewReader::stride(int64_t dim) {
  return number(type.getStrides()[dim], kStridesOffset + 8 * dim);
}
