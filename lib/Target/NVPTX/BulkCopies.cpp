//===- BulkCopies.cpp - what the copy engine brings to shared memory -----===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From sm_90 on, `cp.async.bulk` copies whole rows without a thread's help, and
// a barrier in shared memory counts the bytes that have arrived. In a kernel
// that begins early the matrix of a product of one row comes so: asked for by
// all threads it would lie in the queue of their loads, in front of the rows
// that other kernels on the processor wait for.
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::nvptx;

constexpr int64_t kUnitBytes = 16;

/// Whether the tile is the matrix of a product of one row in a kernel that has
/// not waited yet, all of whose rows are whole units. In shared memory nothing
/// may have been before: what threads did there and what the engine does has no
/// order without a fence. So the load is in no loop, which would make the
/// barrier that counts, and bring what is read of it, once more.
bool KernelLowering::comesInBulk(Value tile) {
  if (!budget.bulk || !plan.isRowMatrix(tile) || !mustWait || !shared.isFresh())
    return false;
  if (auto branch = tile.getDefiningOp<scf::IfOp>()) {
    unsigned number = cast<OpResult>(tile).getResultNumber();
    return llvm::all_of(branch->getRegions(), [&](Region &region) {
      return comesInBulk(region.front().getTerminator()->getOperand(number));
    });
  }
  auto load = tile.getDefiningOp<tile::LoadOp>();
  if (!load)
    return false;
  const View &view = views[load.getView()];
  int64_t unit = kUnitBytes / storedBytes(view.element);
  return !load->getParentOfType<scf::ForOp>() && !view.isAligned &&
         view.known.size() == 2 && load.getDims() == ArrayRef<int64_t>{0, 1} &&
         load.getLimits().size() <= 1 &&
         !ShapedType::isDynamic(view.known[0]) && view.known[1] == 1 &&
         view.known[0] % unit == 0 && shapeOf(tile)[1] % unit == 0 &&
         divisibility(load.getIndices()[1]) % unit == 0;
}

/// Rows are a unit more apart than a multiple of 128 bytes, so that eight rows'
/// units of one number lie in different banks; the engine puts each where it
/// is told.
SharedTile KernelLowering::placeForBulk(Value tile) {
  auto type = cast<RankedTensorType>(tile.getType());
  ArrayRef<int64_t> shape = type.getShape();
  int64_t bytes = storedBytes(type.getElementType());
  int64_t pitch = llvm::alignTo(shape[1], kSwizzledRow) + kUnitBytes / bytes;
  auto [buffer, pointer] = shared.allocate(shape[0] * pitch * bytes);
  SharedTile to{
      buffer, pointer, type.getElementType(), {pitch, 1}, Coordinates(shape)};
  bulkBytes += shape[0] * pitch * bytes;
  to.arrivals = shared.allocateBarrier();
  shared.writesInBulk(buffer, to.arrivals);
  {
    Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                          b.thread(), b.i32(0));
    auto branch = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(branch.thenBlock()->getTerminator());
    b.initArrivals(to.arrivals, plan.numWarps());
    b.showArrivals();
  }
  b.barrier();
  return to;
}

/// Zeros from row `first` on, unit by unit in turn.
void KernelLowering::clearRows(const SharedTile &to, Value first) {
  int64_t units = to.strides[0] * storedBytes(to.element) / kUnitBytes;
  Value begin = b.add(b.mul(first, b.i32(units)), b.thread());
  auto loop = scf::ForOp::create(b, begin, b.i32(to.extents[0] * units),
                                 b.i32(numThreads()));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(loop.getBody()->getTerminator());
  Value at =
      b.address(to.pointer, b.mul(loop.getInductionVar(), b.i32(kUnitBytes)));
  b.store(Values(kUnitBytes / storedBytes(to.element), b.zero(to.element)), at);
}

/// The first thread of each warp copies the warp's rows, which are as many
/// apart as there are warps. Rows past a limit are zeros.
void KernelLowering::copyInBulk(tile::LoadOp load, const SharedTile &to) {
  const View &view = views[load.getView()];
  ArrayRef<int64_t> shape = shapeOf(load.getTile());
  int64_t bytes = storedBytes(to.element), warps = plan.numWarps();
  auto at = [&](Value value) { return b.fromIndex(scalar(value)); };
  Value first = at(load.getIndices()[0]), rows = b.i32(shape[0]);
  bool isCut = !load.getLimits().empty();
  if (isCut) {
    Value left =
        b.createOrFold<arith::SubIOp>(at(load.getLimits().front()), first);
    left = b.createOrFold<arith::MaxSIOp>(left, b.i64(0));
    left = b.createOrFold<arith::MinSIOp>(left, b.i64(shape[0]));
    rows = b.createOrFold<arith::TruncIOp>(b.getI32Type(), left);
    clearRows(to, rows);
  }
  Value offset = b.add(b.mul(b.add(first, b.widen(b.warp())), view.strides[0]),
                       at(load.getIndices()[1]));
  Value from = b.address(view.base, b.mul(offset, b.i64(bytes)));
  Value target =
      b.address(to.pointer, b.mul(b.warp(), b.i32(to.strides[0] * bytes)));
  Value isOne =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, b.lane(), b.i32(0));
  auto elected = scf::IfOp::create(b, isOne, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(elected.thenBlock()->getTerminator());
  Value own = b.createOrFold<arith::DivUIOp>(
      b.createOrFold<arith::SubIOp>(b.add(rows, b.i32(warps - 1)), b.warp()),
      b.i32(warps));
  b.expectBytes(to.arrivals, b.mul(own, b.i32(shape[1] * bytes)));
  for (int64_t n = 0; n * warps < shape[0]; ++n) {
    OpBuilder::InsertionGuard inner(b);
    if (isCut || (n + 1) * warps > shape[0]) {
      auto branch = scf::IfOp::create(b, b.less(b.i32(n), own),
                                      /*withElseRegion=*/false);
      b.setInsertionPoint(branch.thenBlock()->getTerminator());
    }
    b.copyInBulk(b.address(target, n * warps * to.strides[0] * bytes),
                 b.address(from, n * warps * view.known[0] * bytes),
                 shape[1] * bytes, to.arrivals);
  }
}
