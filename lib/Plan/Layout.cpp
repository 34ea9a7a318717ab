//===- Layout.cpp - where a tensor lies in a buffer -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Plan/Layout.h"

#include "hybrid/Hybrid/GraphShapes.h"
#include "mlir/IR/AffineExpr.h"

using namespace mlir;
using namespace hybrid;

using Exprs = SmallVector<AffineExpr, 4>;

static AffineExpr product(ArrayRef<AffineExpr> factors, MLIRContext *context) {
  AffineExpr result = getAffineConstantExpr(1, context);
  for (AffineExpr factor : factors)
    result = result * factor;
  return result;
}

Layout Layout::contiguous(RankedTensorType type) {
  MLIRContext *context = type.getContext();
  Layout layout;
  layout.offset = getAffineConstantExpr(0, context);
  llvm::append_range(layout.sizes, getSizes(type).getResults());
  for (size_t dim = 0; dim < layout.sizes.size(); ++dim)
    layout.strides.push_back(
        product(ArrayRef(layout.sizes).drop_front(dim + 1), context));
  return layout;
}

/// Whether the dims in [begin, end) step evenly, as one dim of their product.
static bool isEven(const Layout &layout, size_t begin, size_t end) {
  for (size_t dim = begin; dim + 1 < end; ++dim)
    if (layout.strides[dim] != layout.strides[dim + 1] * layout.sizes[dim + 1])
      return false;
  return true;
}

std::optional<Layout> Layout::reshaped(RankedTensorType type) const {
  MLIRContext *context = type.getContext();
  Layout result;
  result.offset = offset;
  llvm::append_range(result.sizes, getSizes(type).getResults());
  result.strides.resize(result.sizes.size());

  // From the last dim on, take the shortest groups of dims on either side that
  // hold equally many elements; each group must step evenly.
  size_t from = sizes.size(), to = result.sizes.size();
  while (from > 0 && to > 0) {
    size_t fromEnd = from, toEnd = to;
    AffineExpr fromCount = sizes[--from], toCount = result.sizes[--to];
    while (fromCount != toCount) {
      auto fromConstant = dyn_cast<AffineConstantExpr>(fromCount);
      auto toConstant = dyn_cast<AffineConstantExpr>(toCount);
      bool growFrom = fromConstant && toConstant
                          ? fromConstant.getValue() < toConstant.getValue()
                          : bool(fromConstant);
      if (growFrom ? from == 0 : to == 0)
        return std::nullopt;
      if (growFrom)
        fromCount = sizes[--from] * fromCount;
      else
        toCount = result.sizes[--to] * toCount;
    }
    if (!isEven(*this, from, fromEnd))
      return std::nullopt;
    AffineExpr stride = strides[fromEnd - 1];
    for (size_t dim = toEnd; dim-- > to;) {
      result.strides[dim] = stride;
      stride = stride * result.sizes[dim];
    }
  }
  // What is left on either side is of size 1.
  AffineExpr one = getAffineConstantExpr(1, context);
  for (AffineExpr size : ArrayRef(sizes).take_front(from))
    if (size != one)
      return std::nullopt;
  for (size_t dim = 0; dim < to; ++dim) {
    if (result.sizes[dim] != one)
      return std::nullopt;
    result.strides[dim] =
        product(ArrayRef(result.sizes).drop_front(dim + 1), context);
  }
  return result;
}

Layout Layout::sliced(unsigned dim, int64_t from, int64_t size) const {
  Layout result = *this;
  result.offset = offset + strides[dim] * from;
  result.sizes[dim] = getAffineConstantExpr(size, offset.getContext());
  return result;
}
