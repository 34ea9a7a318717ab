//===- SharedMemory.cpp - buffers of a block, and who waits for whom -----===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SharedMemory.h"

#include "hybrid/Tile/TileOps.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace hybrid::nvptx;

/// Of every buffer: what the widest access asks for, and whole cache lines.
static constexpr int64_t kAlignment = 128;

void SharedMemory::begin(Value pointer, Operation *before) {
  base = pointer;
  constantsBefore = before;
}

std::pair<unsigned, Value> SharedMemory::allocate(int64_t bytes) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(constantsBefore);
  auto offset = arith::ConstantOp::create(b, b.getI32IntegerAttr(0));
  Value pointer = b.address(base, offset.getResult());
  buffers.push_back({int64_t(llvm::alignTo(bytes, kAlignment)), offset});
  return {unsigned(buffers.size() - 1), pointer};
}

void SharedMemory::touch(unsigned buffer) {
  Buffer &entry = buffers[buffer];
  if (entry.first < 0)
    entry.first = epoch;
  entry.last = epoch;
}

void SharedMemory::barrier(Copies copies) {
  if (copies == Copies::done && !copying.empty()) {
    b.commitCopies();
    b.waitForCopies(0);
    copying.clear();
  }
  b.barrier();
  // Behind it, for before it not all threads know the barriers that count.
  if (copies == Copies::done) {
    for (auto &[buffer, counter] : arriving)
      b.waitForArrivals(counter, b.i32(0));
    arriving.clear();
  }
  ++epoch;
  read.clear();
  written = copying;
  for (auto &[buffer, counter] : arriving)
    written.insert(buffer);
  viewsRead.clear();
  viewsWritten.clear();
}

void SharedMemory::barrierFor(ArrayRef<unsigned> list) {
  bool isCopied = llvm::any_of(list, [&](unsigned buffer) {
    return copying.contains(buffer) || arriving.contains(buffer);
  });
  barrier(isCopied ? Copies::done : Copies::pending);
}

void SharedMemory::barrierAround(const Mark &mark) {
  copying.insert(mark.copying.begin(), mark.copying.end());
  for (auto &[buffer, counter] : mark.arriving)
    arriving.insert({buffer, counter});
  barrier();
}

bool SharedMemory::isPending() const {
  return !read.empty() || !written.empty() || !viewsRead.empty() ||
         !viewsWritten.empty();
}

void SharedMemory::flush() {
  if (isPending())
    barrier();
}

void SharedMemory::reads(ArrayRef<unsigned> list) {
  if (llvm::any_of(list,
                   [&](unsigned buffer) { return written.contains(buffer); }))
    barrierFor(list);
  for (unsigned buffer : list) {
    read.insert(buffer);
    touch(buffer);
  }
}

void SharedMemory::readsAndWrites(unsigned from, unsigned to) {
  if (written.contains(from) || written.contains(to) || read.contains(to))
    barrierFor({from, to});
  reads(from);
  writes(to);
}

void SharedMemory::writes(unsigned buffer) {
  if (read.contains(buffer) || written.contains(buffer))
    barrierFor(buffer);
  written.insert(buffer);
  touch(buffer);
}

void SharedMemory::writesAsync(unsigned buffer) {
  writes(buffer);
  copying.insert(buffer);
}

void SharedMemory::writesInBulk(unsigned buffer, Value barrier) {
  writes(buffer);
  arriving.insert({buffer, barrier});
}

Value SharedMemory::allocateBarrier() {
  auto [buffer, pointer] = allocate(8);
  touch(buffer);
  barriers.push_back(buffer);
  return pointer;
}

void SharedMemory::keepAlive(unsigned buffer) { touch(buffer); }

void SharedMemory::readsView(Value view) {
  if (viewsWritten.contains(view))
    barrier(Copies::pending);
  viewsRead.insert(view);
}

/// Whether two stores to one view are apart along a dim in which both places
/// are known.
static bool areApart(Operation *a, Operation *b) {
  auto x = dyn_cast_or_null<hybrid::tile::StoreOp>(a),
       y = dyn_cast_or_null<hybrid::tile::StoreOp>(b);
  if (!x || !y)
    return false;
  auto placeAlong = [](hybrid::tile::StoreOp store, int64_t dim) {
    std::optional<int64_t> first = getConstantIntValue(store.getIndices()[dim]);
    int64_t size = 1;
    for (auto [d, of] : llvm::enumerate(store.getDims()))
      if (of == dim)
        size = cast<RankedTensorType>(store.getTile().getType()).getDimSize(d);
    return std::pair(first, size);
  };
  for (int64_t dim = 0; dim < int64_t(x.getIndices().size()); ++dim) {
    auto [from, size] = placeAlong(x, dim);
    auto [other, otherSize] = placeAlong(y, dim);
    if (from && other &&
        (*from + size <= *other || *other + otherSize <= *from))
      return true;
  }
  return false;
}

void SharedMemory::writesView(Value view, Operation *store) {
  auto known = viewsWritten.find(view);
  bool isApart = known == viewsWritten.end() ||
                 llvm::all_of(known->second, [&](Operation *before) {
                   return areApart(before, store);
                 });
  if (viewsRead.contains(view) || !isApart)
    barrier(Copies::pending);
  viewsWritten[view].push_back(store);
}

void SharedMemory::leaveLoop(const Mark &mark) {
  for (unsigned n = 0; n < mark.buffers; ++n)
    if (buffers[n].last >= mark.epoch)
      buffers[n].last = epoch;
}

int64_t SharedMemory::place() {
  llvm::for_each(barriers, [&](unsigned buffer) { touch(buffer); });
  struct Placed {
    int64_t begin, end, first, last;
  };
  SmallVector<Placed> placed;
  SmallVector<unsigned> order;
  for (unsigned n = 0; n < buffers.size(); ++n)
    if (buffers[n].first >= 0)
      order.push_back(n);
  // Large ones first: they are the hardest to fit.
  llvm::sort(order, [&](unsigned x, unsigned y) {
    return std::pair(buffers[x].bytes, x) > std::pair(buffers[y].bytes, y);
  });
  int64_t end = 0;
  for (unsigned n : order) {
    Buffer &buffer = buffers[n];
    int64_t begin = 0;
    // `placed` is kept in the order of addresses.
    for (const Placed &other : placed) {
      bool meet = buffer.first <= other.last && other.first <= buffer.last;
      if (meet && begin < other.end && other.begin < begin + buffer.bytes)
        begin = other.end;
    }
    Placed mine{begin, begin + buffer.bytes, buffer.first, buffer.last};
    auto *at =
        llvm::lower_bound(placed, mine, [](const Placed &x, const Placed &y) {
          return std::pair(x.begin, x.end) < std::pair(y.begin, y.end);
        });
    placed.insert(at, mine);
    end = std::max(end, mine.end);
    buffer.offset.setValueAttr(b.getI32IntegerAttr(int32_t(begin)));
  }
  return end;
}
