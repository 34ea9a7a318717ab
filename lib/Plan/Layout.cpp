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

/// The dims of these sizes that hold more than one element; where the others
/// begin says nothing about where elements lie.
static SmallVector<unsigned> dimsThatStep(ArrayRef<AffineExpr> sizes) {
  SmallVector<unsigned> dims;
  for (auto [dim, size] : llvm::enumerate(sizes))
    if (auto constant = dyn_cast<AffineConstantExpr>(size);
        !constant || constant.getValue() != 1)
      dims.push_back(dim);
  return dims;
}

/// Whether these dims step evenly, as one dim of their product.
static bool isEven(const Layout &layout, ArrayRef<unsigned> dims) {
  for (size_t i = 0; i + 1 < dims.size(); ++i)
    if (layout.strides[dims[i]] !=
        layout.strides[dims[i + 1]] * layout.sizes[dims[i + 1]])
      return false;
  return true;
}

std::optional<Layout> Layout::reshaped(RankedTensorType type) const {
  Layout result;
  result.offset = offset;
  llvm::append_range(result.sizes, getSizes(type).getResults());
  result.strides.resize(result.sizes.size());
  SmallVector<unsigned> fromDims = dimsThatStep(sizes),
                        toDims = dimsThatStep(result.sizes);

  // From the last dim on, take the shortest groups of dims on either side that
  // hold equally many elements; each group must step evenly.
  size_t from = fromDims.size(), to = toDims.size();
  while (from > 0 && to > 0) {
    size_t fromEnd = from, toEnd = to;
    AffineExpr fromCount = sizes[fromDims[--from]],
               toCount = result.sizes[toDims[--to]];
    while (fromCount != toCount) {
      auto fromConstant = dyn_cast<AffineConstantExpr>(fromCount);
      auto toConstant = dyn_cast<AffineConstantExpr>(toCount);
      bool growFrom = fromConstant && toConstant
                          ? fromConstant.getValue() < toConstant.getValue()
                          : bool(fromConstant);
      if (growFrom ? from == 0 : to == 0)
        return std::nullopt;
      if (growFrom)
        fromCount = sizes[fromDims[--from]] * fromCount;
      else
        toCount = result.sizes[toDims[--to]] * toCount;
    }
    if (!isEven(*this, ArrayRef(fromDims).slice(from, fromEnd - from)))
      return std::nullopt;
    AffineExpr stride = strides[fromDims[fromEnd - 1]];
    for (size_t i = toEnd; i-- > to;) {
      result.strides[toDims[i]] = stride;
      stride = stride * result.sizes[toDims[i]];
    }
  }
  if (from > 0 || to > 0)
    return std::nullopt;
  // A dim of size 1 steps over all that is behind it, as in a contiguous view.
  AffineExpr step = getAffineConstantExpr(1, type.getContext());
  for (size_t dim = result.sizes.size(); dim-- > 0;) {
    if (!result.strides[dim])
      result.strides[dim] = step;
    step = result.strides[dim] * result.sizes[dim];
  }
  return result;
}

Layout Layout::sliced(unsigned dim, int64_t from, int64_t size) const {
  Layout result = *this;
  result.offset = offset + strides[dim] * from;
  result.sizes[dim] = getAffineConstantExpr(size, offset.getContext());
  return result;
}
