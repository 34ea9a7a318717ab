//===- Loads.cpp - vectors beside tiles, from memory to registers ---------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelEmitter.h"

#include "../KernelLowering.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::hopper;
using namespace hybrid::nvptx;

/// What a thread has of a block, element by element: for vectors beside tiles.
/// Lanes that hold the same read the same.
LogicalResult KernelEmitter::emitLoad(tile::LoadOp load) {
  auto type = cast<RankedTensorType>(load.getTile().getType());
  if (isHalf(type))
    return load.emitError("brings 16-bit values into registers; load them by "
                          "the role that loads, or leave the program to the "
                          "generic path");
  const View &view = views[load.getView()];
  ArrayRef<int64_t> dims = load.getDims();
  Layout layout = fragmentLayout(type.getShape());
  Values bases{threadRow, threadColumn}, left;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    if (type.getDimSize(dim) == 1)
      bases[dim] = b.i32(0);
    if (size_t(dim) < load.getLimits().size())
      left.push_back(arith::SubIOp::create(
          b, b.fromIndex(mapping.lookupOrDefault(load.getLimits()[dim])),
          b.fromIndex(mapping.lookupOrDefault(load.getIndices()[dims[dim]]))));
  }
  Value address = viewAddress(load.getView(), load.getIndices());
  Values &made = tiles[load.getTile()];
  for (int64_t reg = 0; reg < layout.numRegisters(); ++reg) {
    Coordinates offset = layout.registerOffset(reg);
    Value inside = b.truth(true), elements = b.i64(0);
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      Value at = b.widen(b.add(bases[dim], b.i32(offset[dim])));
      elements = b.add(elements, b.mul(at, view.strides[dims[dim]]));
      if (size_t(dim) < left.size())
        inside = b.both(inside, b.less(at, left[dim]));
    }
    Value bytes = b.mul(elements, b.i64(storedBytes(view.element)));
    made.push_back(b.loadIf(inside, view.element, 1, b.address(address, bytes),
                            /*invariant=*/true)[0]);
  }
  return success();
}
