//===- Copies.cpp - global memory, to registers and to shared memory -----===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block of a view is a pointer to its base, which is the same for all threads
// and 64 bits wide, and what a thread and a register add to it. Elements at or
// past a limit are left out by a predicate per access, not by branches. Where
// the view may begin anywhere, whether 16 bytes can be accessed at once is
// asked at run time.
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

#include <numeric>

using namespace mlir;
using namespace hybrid;
using namespace hybrid::nvptx;

static Type elementOf(Value tile) {
  return cast<RankedTensorType>(tile.getType()).getElementType();
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

/// What `index` is a multiple of, as far as can be seen.
int64_t KernelLowering::divisibility(Value index, unsigned depth) {
  constexpr int64_t kAny = 1 << 20;
  Operation *op = index.getDefiningOp();
  if (depth > 8)
    return 1;
  auto of = [&](Value value) { return divisibility(value, depth + 1); };
  if (!op) {
    auto loop = dyn_cast<scf::ForOp>(
        cast<BlockArgument>(index).getOwner()->getParentOp());
    if (loop && index == loop.getInductionVar())
      return std::gcd(of(loop.getLowerBound()), of(loop.getStep()));
    return 1;
  }
  APInt constant;
  if (matchPattern(index, m_ConstantInt(&constant))) {
    int64_t value = std::abs(constant.getSExtValue());
    return value == 0 ? kAny : value;
  }
  if (isa<arith::MulIOp>(op))
    return std::min(kAny, of(op->getOperand(0)) * of(op->getOperand(1)));
  if (isa<arith::AddIOp, arith::SubIOp, arith::MinSIOp, arith::MaxSIOp>(op))
    return std::gcd(of(op->getOperand(0)), of(op->getOperand(1)));
  return 1;
}

KernelLowering::Access KernelLowering::access(Value view, ValueRange indices,
                                              ValueRange limits,
                                              ArrayRef<int64_t> dims,
                                              const Layout &layout,
                                              IRMapping &scalars) {
  const View &memory = views[view];
  auto valueOf = [&](Value value) {
    Value here = scalars.lookupOrNull(value);
    return b.fromIndex(here ? here : scalar(value));
  };
  Access result;
  result.layout = layout;
  result.element = memory.element;
  result.invariant = memory.isConstant;
  result.isAligned = memory.isAligned;
  result.base = threadBase(layout);
  result.owns = b.isFirstCopy(layout);

  int64_t bytes = storedBytes(memory.element);
  Value offset = b.i64(0);
  for (auto [index, stride] : llvm::zip_equal(indices, memory.strides))
    offset = b.add(offset, b.mul(valueOf(index), stride));
  Value own = b.i64(0);
  for (auto [d, dim] : llvm::enumerate(dims)) {
    result.known.push_back(memory.known[dim]);
    result.strides.push_back(memory.strides[dim]);
    own = b.add(own, b.mul(b.widen(result.base[d]), memory.strides[dim]));
    Value left;
    if (d < limits.size()) {
      Value inside = b.createOrFold<arith::SubIOp>(valueOf(limits[d]),
                                                   valueOf(indices[dim]));
      inside =
          b.createOrFold<arith::MinSIOp>(inside, b.i64(layout.getShape()[d]));
      left = b.createOrFold<arith::TruncIOp>(
          b.getI32Type(), b.createOrFold<arith::MaxSIOp>(inside, b.i64(0)));
    } else if (layout.reachesPast(d)) {
      left = b.i32(layout.getShape()[d]);
    }
    result.left.push_back(left);
  }
  Value start = b.address(memory.base, b.mul(offset, b.i64(bytes)));
  result.address = b.address(start, b.mul(own, b.i64(bytes)));

  // How many elements one access may have.
  unsigned last = dims.size() - 1;
  bool isContiguous =
      dims.back() == int64_t(memory.strides.size()) - 1 && bytes <= 4;
  int64_t multiple = isContiguous ? layout.run(last) : 1;
  if (isContiguous) {
    for (auto [dim, known] : llvm::enumerate(memory.known))
      if (int64_t(dim) == dims.back())
        multiple = std::gcd(multiple, divisibility(indices[dim]));
      else if (!ShapedType::isDynamic(known))
        multiple = std::gcd(multiple, known);
    if (last < limits.size())
      multiple = std::gcd(multiple, divisibility(limits[last]));
  }
  int64_t vector = 16 / bytes;
  while (multiple % vector != 0)
    vector /= 2;
  result.vector = vector;
  return result;
}

void KernelLowering::addRows(Access &access, Value rows, Value mask, Value view,
                             int64_t dim) {
  // The rows' own layout: dim 0 of the tile's.
  Coordinates narrow(access.layout.getShape().size(), 1);
  narrow.front() = access.layout.getShape().front();
  Layout layout = *access.layout.restricted(narrow).reshaped({narrow.front()});
  access.rows = get(rows, layout);
  access.masks = get(mask, layout);
  // Two ways keep addresses of rows apart that would not all find registers:
  // f32 attention over a ring spills without.
  access.isAligned = views[view].isAlignedHere;
  // The thread's own row is in the index.
  Value stride = access.strides.front();
  int64_t bytes = storedBytes(access.element);
  Value own = b.mul(b.widen(access.base.front()), stride);
  Value back = b.mul(own, b.i64(-bytes));
  access.address = b.address(access.address, back);
}

Value KernelLowering::addressAt(const Access &access,
                                const Coordinates &offset) {
  int64_t bytes = storedBytes(access.element), known = 0;
  Value dynamic;
  auto addDynamic = [&](Value elements) {
    dynamic = dynamic ? b.add(dynamic, elements) : elements;
  };
  for (auto [d, x] : llvm::enumerate(offset)) {
    if (d == 0 && !access.rows.empty()) {
      Coordinates narrow{x};
      Coordinates shape(access.layout.getShape().size(), 1);
      shape.front() = access.layout.getShape().front();
      Layout rows = *access.layout.restricted(shape).reshaped({shape.front()});
      addDynamic(b.mul(b.widen(access.rows[*rows.registerAt(narrow)]),
                       access.strides[d]));
    } else if (!ShapedType::isDynamic(access.known[d])) {
      known += x * access.known[d];
    } else if (x != 0) {
      addDynamic(b.mul(access.strides[d], b.i64(x)));
    }
  }
  Value address = access.address;
  if (dynamic)
    address = b.address(address, b.mul(dynamic, b.i64(bytes)));
  if (known * bytes > std::numeric_limits<int32_t>::max())
    return b.address(address, b.i64(known * bytes));
  return b.address(address, known * bytes);
}

/// Whether the element at an offset is there; null where it always is.
Value KernelLowering::insideAt(const Access &access,
                               const Coordinates &offset) {
  Value inside;
  for (auto [d, x] : llvm::enumerate(offset))
    if (access.left[d])
      inside = b.both(inside,
                      b.less(b.add(access.base[d], b.i32(x)), access.left[d]));
  if (!access.masks.empty()) {
    Coordinates shape(access.layout.getShape().size(), 1);
    shape.front() = access.layout.getShape().front();
    Layout rows = *access.layout.restricted(shape).reshaped({shape.front()});
    inside = b.both(inside, access.masks[*rows.registerAt({offset.front()})]);
  }
  return inside;
}

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

KernelLowering::Values KernelLowering::loadAll(const Access &access,
                                               int64_t vector) {
  Values registers;
  for (int64_t reg = 0; reg < access.layout.numRegisters(); reg += vector) {
    Coordinates offset = access.layout.registerOffset(reg);
    Value address = addressAt(access, offset);
    Value inside = insideAt(access, offset);
    llvm::append_range(registers, inside
                                      ? b.loadIf(inside, access.element, vector,
                                                 address, access.invariant)
                                      : b.load(access.element, vector, address,
                                               access.invariant));
  }
  return registers;
}

KernelLowering::Values KernelLowering::loadAll(const Access &access) {
  if (access.vector == 1 || !access.isAligned)
    return loadAll(access, access.vector);
  SmallVector<Type> types(access.layout.numRegisters(), access.element);
  auto branch = scf::IfOp::create(b, types, access.isAligned,
                                  /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  for (auto [block, vector] : {std::pair(branch.thenBlock(), access.vector),
                               {branch.elseBlock(), 1}}) {
    b.setInsertionPointToEnd(block);
    Values registers = loadAll(access, vector);
    scf::YieldOp::create(b, registers);
  }
  return Values(branch.getResults());
}

void KernelLowering::storeAll(
    const Access &access, ValueRange registers,
    function_ref<Values(ValueRange, Value, Value)> combine) {
  auto storeBy = [&](int64_t vector) {
    for (int64_t reg = 0; reg < access.layout.numRegisters(); reg += vector) {
      Coordinates offset = access.layout.registerOffset(reg);
      Value address = addressAt(access, offset);
      Value inside = b.both(access.owns, insideAt(access, offset));
      Values elements(registers.slice(reg, vector));
      if (combine)
        elements = combine(elements, address, inside);
      if (inside)
        b.storeIf(inside, elements, address);
      else
        b.store(elements, address);
    }
  };
  if (access.vector == 1 || !access.isAligned)
    return storeBy(access.vector);
  auto branch = scf::IfOp::create(b, access.isAligned, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(branch.thenBlock()->getTerminator());
  storeBy(access.vector);
  b.setInsertionPoint(branch.elseBlock()->getTerminator());
  storeBy(1);
}

KernelLowering::Values KernelLowering::loadFromView(tile::LoadOp load,
                                                    const Layout &layout) {
  readsView(load.getView());
  IRMapping none;
  return loadAll(access(load.getView(), load.getIndices(), load.getLimits(),
                        load.getDims(), layout, none));
}

/// Whether a tile is large and asked for before the kernel waits for the one in
/// front. Such tiles are copied to shared memory: in registers they would keep
/// the blocks of the next kernels, and what these ask for, from the processor.
/// So are matrices of products of one row, which have to be there in any case.
bool KernelLowering::isAskedEarly(Value tile) {
  constexpr int64_t kLarge = 4096;
  bool isMatrix = plan.isRowMatrix(tile);
  bool isLarge =
      mustWait && isTile(tile) &&
      cast<RankedTensorType>(tile.getType()).getNumElements() >= kLarge;
  if (!isMatrix && !isLarge)
    return false;
  if (auto load = tile.getDefiningOp<tile::LoadOp>())
    return (isMatrix || views[load.getView()].isConstant) &&
           storedBytes(elementOf(tile)) <= 4;
  auto branch = tile.getDefiningOp<scf::IfOp>();
  if (!branch)
    return false;
  unsigned number = cast<OpResult>(tile).getResultNumber();
  return llvm::all_of(branch->getRegions(), [&](Region &region) {
    return isAskedEarly(region.front().getTerminator()->getOperand(number));
  });
}

/// Where a tile that is asked for early is put: the branches of a choice put
/// theirs in one place.
SharedTile KernelLowering::placeOf(Value tile) {
  auto known = places.find(tile);
  SharedTile to;
  if (known != places.end()) {
    to = known->second;
  } else {
    if (comesInBulk(tile)) {
      to = placeForBulk(tile);
    } else {
      to = allocateFor(tile, shapeOf(tile));
      shared.writesAsync(to.buffer);
    }
  }
  if (auto branch = tile.getDefiningOp<scf::IfOp>())
    for (Region &region : branch->getRegions())
      places[region.front().getTerminator()->getOperand(
          cast<OpResult>(tile).getResultNumber())] = to;
  return to;
}

void KernelLowering::lowerLoad(tile::LoadOp load) {
  Value tile = load.getTile();
  auto ahead = copiedAhead.find(load);
  if (ahead != copiedAhead.end())
    return remember(tile, ahead->second);
  bool isEarly = isAskedEarly(tile);
  if (!isEarly && (!plan.isOperand(tile) || storedBytes(elementOf(tile)) > 4)) {
    Layout layout = plan.layoutOf(tile);
    return remember(tile, layout, loadFromView(load, layout));
  }
  readsView(load.getView());
  SharedTile to = placeOf(tile);
  IRMapping none;
  if (to.arrivals)
    copyInBulk(load, to);
  else
    copyToShared(load, to, none);
  remember(tile, to);
}

void KernelLowering::lowerStore(tile::StoreOp store) {
  Layout layout = plan.layoutOf(store.getTile());
  Values registers = get(store.getTile(), layout);
  shared.writesView(store.getView(), store);
  IRMapping none;
  storeAll(access(store.getView(), store.getIndices(), store.getLimits(),
                  store.getDims(), layout, none),
           registers);
}

void KernelLowering::lowerAccumulate(tile::AccumulateOp accumulate) {
  Layout layout = plan.layoutOf(accumulate.getTile());
  Values registers = get(accumulate.getTile(), layout);
  shared.writesView(accumulate.getView());
  IRMapping none;
  Access to =
      access(accumulate.getView(), accumulate.getIndices(),
             accumulate.getLimits(), accumulate.getDims(), layout, none);
  Value first;
  if (accumulate.getFirst())
    first = scalar(accumulate.getFirst());
  storeAll(to, registers,
           [&](ValueRange elements, Value address, Value inside) {
             Value wanted = inside;
             if (first) {
               Value again = arith::XOrIOp::create(b, first, b.truth(true));
               wanted = b.both(inside, again);
             }
             Values old = wanted ? b.loadIf(wanted, to.element, elements.size(),
                                            address, false)
                                 : b.load(to.element, elements.size(), address);
             Values sums;
             // Where nothing was read the old value is 0: what is stored first
             // is the tile itself, but for the sign of a zero.
             for (auto [element, before] : llvm::zip_equal(elements, old))
               sums.push_back(arith::AddFOp::create(b, before, element));
             return sums;
           });
}

/// Tiles whose rows lie anywhere are dealt with rows whole.
void KernelLowering::lowerLoadRows(tile::LoadRowsOp load) {
  Layout layout = plan.layoutOf(load.getTile());
  IRMapping none;
  Access from = access(load.getView(), load.getIndices(), {}, load.getDims(),
                       layout, none);
  addRows(from, load.getRows(), load.getMask(), load.getView(), 0);
  readsView(load.getView());
  remember(load.getTile(), layout, loadAll(from));
}

void KernelLowering::lowerStoreRows(tile::StoreRowsOp store) {
  Layout layout = plan.layoutOf(store.getTile());
  Values registers = get(store.getTile(), layout);
  IRMapping none;
  Access to = access(store.getView(), store.getIndices(), {}, store.getDims(),
                     layout, none);
  addRows(to, store.getRows(), store.getMask(), store.getView(), 0);
  shared.writesView(store.getView());
  storeAll(to, registers);
}

Value KernelLowering::scalarAddress(Value view, ValueRange indices) {
  const View &memory = views[view];
  Value offset = b.i64(0);
  for (auto [index, stride] : llvm::zip_equal(indices, memory.strides))
    offset = b.add(offset, b.mul(b.fromIndex(scalar(index)), stride));
  return b.address(memory.base,
                   b.mul(offset, b.i64(storedBytes(memory.element))));
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

/// Whether this thread's piece at an offset has a place in `to`; null where
/// every thread's has.
static Value isWithin(GpuBuilder &b, const Layout &layout, ValueRange base,
                      const Coordinates &offset, const SharedTile &to) {
  Coordinates lastOffset = layout.registerOffset(layout.numRegisters() - 1);
  Value inside;
  for (auto [d, x] : llvm::enumerate(offset)) {
    int64_t lastBase = layout.extent(d) - 1 - lastOffset[d];
    if (x + lastBase >= to.extents[d])
      inside = b.both(inside, b.less(base[d], b.i32(to.extents[d] - x)));
  }
  return inside;
}

/// Copies without passing through registers, in pieces of 16 bytes where memory
/// allows it. What is past a limit becomes zero.
void KernelLowering::copyToShared(tile::LoadOp load, const SharedTile &to,
                                  IRMapping &scalars) {
  int64_t bytes = storedBytes(to.element);
  Layout layout =
      Layout::blocked(shapeOf(load.getTile()), plan.numWarps(), 16 / bytes);
  Access from = access(load.getView(), load.getIndices(), load.getLimits(),
                       load.getDims(), layout, scalars);
  unsigned last = layout.getShape().size() - 1;
  // A limit inside a piece cuts it, so it does not matter what it divides.
  bool isContiguous = load.getDims().back() ==
                      int64_t(views[load.getView()].strides.size()) - 1;
  int64_t vector = from.vector;
  if (isContiguous && last < load.getLimits().size()) {
    vector = layout.run(last);
    for (auto [dim, known] : llvm::enumerate(views[load.getView()].known))
      if (int64_t(dim) == load.getDims().back())
        vector = std::gcd(vector, divisibility(load.getIndices()[dim]));
      else if (!ShapedType::isDynamic(known))
        vector = std::gcd(vector, known);
  }

  auto copyBy = [&](int64_t count) {
    for (int64_t reg = 0; reg < layout.numRegisters(); reg += count) {
      Coordinates offset = layout.registerOffset(reg);
      Value inside;
      for (auto [d, x] : llvm::enumerate(offset)) {
        if (!from.left[d])
          continue;
        Value rest = b.createOrFold<arith::SubIOp>(
            from.left[d], b.add(from.base[d], b.i32(x)));
        // Whole pieces along the other dims; along the last, what is left.
        int64_t most = d == last ? count : 1;
        rest = b.createOrFold<arith::MinSIOp>(
            b.createOrFold<arith::MaxSIOp>(rest, b.i32(0)), b.i32(most));
        Value size = b.mul(rest, b.i32(count * bytes / most));
        inside = inside ? b.createOrFold<arith::MinSIOp>(inside, size) : size;
      }
      OpBuilder::InsertionGuard guard(b);
      if (Value isIn = isWithin(b, layout, from.base, offset, to)) {
        auto branch = scf::IfOp::create(b, isIn, /*withElseRegion=*/false);
        b.setInsertionPoint(branch.thenBlock()->getTerminator());
      }
      b.copyAsync(addressIn(b, to, from.base, offset), addressAt(from, offset),
                  count * bytes, inside);
    }
  };
  auto copyThrough = [&] {
    // Parts of words cannot be copied asynchronously.
    from.vector = 1;
    Layout narrow = layout;
    writeUnordered(narrow, loadAll(from, 1), to);
  };
  OpBuilder::InsertionGuard outer(b);
  // Lanes too: who sees a copy in flight cannot tell that another brings the
  // same.
  if (Value first = b.isFirstCopy(layout)) {
    auto branch = scf::IfOp::create(b, first, /*withElseRegion=*/false);
    b.setInsertionPoint(branch.thenBlock()->getTerminator());
  }
  auto copyPieces = [&](int64_t count) {
    if (count * bytes >= 4)
      copyBy(count);
    else
      copyThrough();
  };
  if (vector == 1 || !from.isAligned)
    return copyPieces(vector);
  auto branch = scf::IfOp::create(b, from.isAligned, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(branch.thenBlock()->getTerminator());
  copyPieces(vector);
  b.setInsertionPoint(branch.elseBlock()->getTerminator());
  copyPieces(1);
}
