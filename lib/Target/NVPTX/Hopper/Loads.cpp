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
/// Lanes that hold the same read the same. A block that no limit cuts is read
/// without conditions, at constant distances from one address.
LogicalResult KernelEmitter::emitLoad(tile::LoadOp load) {
  auto type = cast<RankedTensorType>(load.getTile().getType());
  if (isHalf(type))
    return load.emitError("brings 16-bit values into registers; load them by "
                          "the role that loads, or leave the program to the "
                          "generic path");
  const View &view = views[load.getView()];
  ArrayRef<int64_t> dims = load.getDims();
  Layout layout = fragmentLayout(type.getShape());
  Value bytes = b.i64(storedBytes(view.element)), own = b.i64(0),
        isWhole = b.truth(true);
  // What is left in front of each limit, from this thread's first element on.
  Values left;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    Value base = dim == 0 ? threadRow : threadColumn;
    base = type.getDimSize(dim) == 1 ? b.i64(0) : b.widen(base);
    own = b.add(own, b.mul(base, view.strides[dims[dim]]));
    if (size_t(dim) >= load.getLimits().size())
      continue;
    Value whole = arith::SubIOp::create(
        b, b.fromIndex(mapping.lookupOrDefault(load.getLimits()[dim])),
        b.fromIndex(mapping.lookupOrDefault(load.getIndices()[dims[dim]])));
    isWhole = b.both(isWhole, b.less(b.i64(type.getDimSize(dim) - 1), whole));
    left.push_back(arith::SubIOp::create(b, whole, base));
  }
  Value address = b.address(viewAddress(load.getView(), load.getIndices()),
                            b.mul(own, bytes));
  auto read = [&](bool isCut) {
    Values made;
    for (int64_t reg = 0; reg < layout.numRegisters(); ++reg) {
      Coordinates offset = layout.registerOffset(reg);
      Value inside = b.truth(true), elements = b.i64(0);
      for (int64_t dim = 0; dim < type.getRank(); ++dim) {
        Value at = b.i64(offset[dim]);
        elements = b.add(elements, b.mul(at, view.strides[dims[dim]]));
        if (isCut && size_t(dim) < left.size())
          inside = b.both(inside, b.less(at, left[dim]));
      }
      Value from = b.address(address, b.mul(elements, bytes));
      made.push_back(
          isCut ? b.loadIf(inside, view.element, 1, from, /*invariant=*/true)[0]
                : b.load(view.element, 1, from, /*invariant=*/true)[0]);
    }
    return made;
  };
  if (left.empty()) {
    tiles[load.getTile()] = read(/*isCut=*/false);
    return success();
  }
  auto branch = scf::IfOp::create(
      b, SmallVector<Type>(layout.numRegisters(), view.element), isWhole,
      /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  for (bool isCut : {false, true}) {
    b.setInsertionPointToStart(isCut ? branch.elseBlock() : branch.thenBlock());
    scf::YieldOp::create(b, read(isCut));
  }
  tiles[load.getTile()] = Values(branch.getResults());
  return success();
}
