//===- Versions.cpp - a tile in the layout that a use asks for -----------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::nvptx;

static Type elementOf(Value tile) {
  return cast<RankedTensorType>(tile.getType()).getElementType();
}

//===----------------------------------------------------------------------===//
// What is there
//===----------------------------------------------------------------------===//

void KernelLowering::remember(Value tile, const Layout &layout,
                              Values registers) {
  versions[tile].distributed.push_back({layout, std::move(registers)});
  log.push_back({tile, false});
}

void KernelLowering::remember(Value tile, const SharedTile &shared) {
  versions[tile].shared = shared;
  log.push_back({tile, true});
}

void KernelLowering::leaveScope(size_t mark) {
  while (log.size() > mark) {
    auto [tile, isShared] = log.pop_back_val();
    Versions &entry = versions[tile];
    if (isShared)
      entry.shared.reset();
    else
      entry.distributed.pop_back();
  }
}

KernelLowering::Values KernelLowering::threadBase(const Layout &layout) {
  for (auto &[known, base] : bases)
    if (known.sameThreads(layout) &&
        known.getShape().size() == layout.getShape().size())
      return base;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(entryEnd);
  bases.emplace_back(layout, b.threadBase(layout));
  return bases.back().second;
}

//===----------------------------------------------------------------------===//
// Distributed
//===----------------------------------------------------------------------===//

KernelLowering::Values KernelLowering::get(Value tile, const Layout &layout) {
  for (const Distributed &version : versions[tile].distributed)
    if (version.layout == layout)
      return version.registers;
  Values registers = compute(tile, layout);
  remember(tile, layout, registers);
  return registers;
}

/// Registers of a version whose threads hold the same elements.
std::optional<KernelLowering::Values>
KernelLowering::byRegisters(Value tile, const Layout &layout) {
  for (const Distributed &version : versions[tile].distributed) {
    if (!version.layout.sameThreads(layout))
      continue;
    Values registers;
    for (int64_t reg = 0; reg < layout.numRegisters(); ++reg) {
      auto from = version.layout.registerAt(layout.registerOffset(reg));
      if (!from)
        break;
      registers.push_back(version.registers[*from]);
    }
    if (int64_t(registers.size()) == layout.numRegisters())
      return registers;
  }
  return std::nullopt;
}

KernelLowering::Values KernelLowering::compute(Value tile,
                                               const Layout &layout) {
  Operation *op = tile.getDefiningOp();
  int64_t count = layout.numRegisters();
  if (auto constant = dyn_cast_or_null<arith::ConstantOp>(op)) {
    auto splat = dyn_cast<SplatElementsAttr>(constant.getValue());
    if (!splat)
      return readTable(constant, layout);
    auto value = cast<TypedAttr>(splat.getSplatValue<Attribute>());
    return Values(count, arith::ConstantOp::create(b, value));
  }
  if (auto splat = dyn_cast_or_null<tile::SplatOp>(op))
    return Values(count, scalar(splat.getScalar()));
  if (auto iota = dyn_cast_or_null<tile::IotaOp>(op)) {
    unsigned dim = iota.getDim();
    Value base = threadBase(layout)[dim];
    Values registers;
    for (int64_t reg = 0; reg < count; ++reg)
      registers.push_back(b.add(base, b.i32(layout.registerOffset(reg)[dim])));
    return registers;
  }
  if (auto broadcast = dyn_cast_or_null<tile::BroadcastOp>(op)) {
    Layout narrow = layout.restricted(shapeOf(broadcast.getInput()));
    Values from = get(broadcast.getInput(), narrow), registers;
    for (int64_t reg = 0; reg < count; ++reg) {
      Coordinates offset = layout.registerOffset(reg);
      for (auto [x, size] : llvm::zip(offset, narrow.getShape()))
        x = size == 1 ? 0 : x;
      registers.push_back(from[*narrow.registerAt(offset)]);
    }
    return registers;
  }
  if (auto transpose = dyn_cast_or_null<tile::TransposeOp>(op)) {
    auto inverse = invertPermutationVector(transpose.getPermutation());
    return get(transpose.getInput(), layout.permuted(inverse));
  }
  if (auto reshape = dyn_cast_or_null<tile::ReshapeOp>(op)) {
    Value input = reshape.getInput();
    if (auto from = layout.reshaped(shapeOf(input)))
      return get(input, *from);
    if (plan.isCheap(input) && !versions[tile].shared)
      reshapeInMemory(reshape);
  }
  if (op && plan.isCheap(tile))
    return computeElementwise(op, layout);
  if (auto registers = byRegisters(tile, layout))
    return *registers;
  if (!versions[tile].shared)
    if (auto load = dyn_cast_or_null<tile::LoadOp>(op))
      if (!views[load.getView()].isWritten)
        return loadFromView(load, layout);
  return read(staged(tile), layout);
}

KernelLowering::Values
KernelLowering::computeElementwise(Operation *op, const Layout &layout) {
  SmallVector<Values> operands;
  for (Value operand : op->getOperands())
    operands.push_back(isTile(operand)
                           ? get(operand, layout)
                           : Values(layout.numRegisters(), scalar(operand)));
  Values registers;
  for (int64_t reg = 0; reg < layout.numRegisters(); ++reg) {
    Values scalars;
    for (const Values &operand : operands)
      scalars.push_back(operand[reg]);
    registers.push_back(scalarOp(b, op, scalars));
  }
  return registers;
}

//===----------------------------------------------------------------------===//
// In shared memory
//===----------------------------------------------------------------------===//

/// Whether the products that read the tile go along its rows (depth along the
/// last dim) or along its columns.
static bool depthIsLast(Value tile) {
  for (Operation *user : tile.getUsers()) {
    auto dot = dyn_cast<tile::DotOp>(user);
    if (dot && ((dot.getA() == tile && dot.getTransposeA()) ||
                (dot.getB() == tile && !dot.getTransposeB())))
      return false;
    if (isa<tile::TransposeOp>(user))
      return false;
  }
  return true;
}

/// Elements from one row of an operand to the next, so that the eight rows or
/// the four columns that a fragment reads at once lie in different banks.
static int64_t rowStride(int64_t columns, int64_t bytes, bool depthLast) {
  int64_t stride = llvm::alignTo(columns, 16 / bytes);
  auto isGood = [&](int64_t s) {
    if (bytes == 2) // eight rows of 16 bytes
      return s % 16 == 8;
    if (depthLast) // rows g of pairs 2t
      return s % 32 == 8 || s % 32 == 24;
    return s % 16 == 4 || s % 16 == 12; // rows 2t, columns g
  };
  while (!isGood(stride))
    stride += 16 / bytes;
  return stride;
}

/// Rows of an operand in shared memory, and elements from one to the next.
std::pair<int64_t, int64_t>
KernelLowering::operandExtents(Value tile, ArrayRef<int64_t> extents) {
  if (plan.isRowMatrix(tile))
    return {extents[0], llvm::alignTo(extents[1], kSwizzledRow)};
  return {llvm::alignTo(extents[0], 16),
          rowStride(llvm::alignTo(extents[1], 8), storedBytes(elementOf(tile)),
                    depthIsLast(tile))};
}

int64_t KernelLowering::stagedBytes(Value tile) {
  int64_t elements = cast<RankedTensorType>(tile.getType()).getNumElements();
  if (plan.isOperand(tile) && shapeOf(tile).size() == 2) {
    auto [rows, stride] = operandExtents(tile, shapeOf(tile));
    elements = rows * stride;
  }
  return elements * storedBytes(elementOf(tile));
}

SharedTile KernelLowering::allocateFor(Value tile, ArrayRef<int64_t> extents) {
  Type element = elementOf(tile);
  int64_t bytes = storedBytes(element);
  if (!plan.isOperand(tile) || extents.size() != 2 || bytes > 4)
    return allocateRowMajor(element, extents);
  auto [rows, stride] = operandExtents(tile, extents);
  auto [buffer, pointer] = shared.allocate(rows * stride * bytes);
  SharedTile to{buffer, pointer, element, {stride, 1}, {rows, stride}};
  to.isSwizzled = plan.isRowMatrix(tile);
  return to;
}

SharedTile KernelLowering::allocateRowMajor(Type element,
                                            ArrayRef<int64_t> shape) {
  Coordinates strides(shape.size(), 1);
  for (unsigned d = shape.size() - 1; d-- > 0;)
    strides[d] = strides[d + 1] * shape[d + 1];
  auto [buffer, pointer] =
      shared.allocate(strides[0] * shape[0] * storedBytes(element));
  return {buffer, pointer, element, strides, Coordinates(shape)};
}

SharedTile KernelLowering::staged(Value tile) {
  if (auto known = versions[tile].shared)
    return *known;
  if (auto transpose = tile.getDefiningOp<tile::TransposeOp>()) {
    SharedTile from = staged(transpose.getInput());
    SharedTile to = from;
    for (auto [d, source] : llvm::enumerate(transpose.getPermutation())) {
      to.strides[d] = from.strides[source];
      to.extents[d] = from.extents[source];
    }
    return to;
  }
  Layout layout = plan.layoutOf(tile);
  const Versions &entry = versions[tile];
  if (!entry.distributed.empty() &&
      llvm::none_of(entry.distributed, [&](const Distributed &version) {
        return version.layout == layout;
      }))
    layout = entry.distributed.front().layout;
  Values registers = get(tile, layout);
  Coordinates extents;
  for (unsigned d = 0; d < layout.getShape().size(); ++d)
    extents.push_back(layout.extent(d));
  SharedTile to = allocateFor(tile, extents);
  write(layout, registers, to);
  remember(tile, to);
  return to;
}

/// How many registers from the first on can be accessed at once.
static int64_t vectorOf(const Layout &layout, const SharedTile &tile) {
  unsigned last = layout.getShape().size() - 1;
  if (tile.strides[last] != 1)
    return 1;
  int64_t bytes = storedBytes(tile.element);
  int64_t vector = std::min(layout.run(last), tile.vector);
  if (bytes > 4)
    return 1;
  auto fits = [&](int64_t v) {
    if (v * bytes > 16 || layout.run(last) % v != 0)
      return false;
    for (unsigned d = 0; d < last; ++d)
      if (tile.strides[d] % v != 0)
        return false;
    // Digits along the last dim are multiples of a run.
    for (ArrayRef<Factor> factors :
         {layout.getRegisters(), layout.getLanes(), layout.getWarps()})
      for (const Factor &factor : factors)
        if (factor.dim == int(last) && factor.stride != 1 &&
            factor.stride % v != 0)
          return false;
    return true;
  };
  vector = int64_t(1) << llvm::Log2_64(vector);
  while (vector > 1 && !fits(vector))
    vector /= 2;
  return vector;
}

/// Bytes from the tile's start to this thread's first register.
static Value threadAddress(GpuBuilder &b, const SharedTile &tile,
                           ArrayRef<Value> base) {
  Value elements = b.i32(0);
  for (auto [x, stride] : llvm::zip_equal(base, tile.strides))
    elements = b.add(elements, b.mul(x, b.i32(stride)));
  return b.address(tile.pointer,
                   b.mul(elements, b.i32(storedBytes(tile.element))));
}

static int64_t offsetIn(const SharedTile &tile, const Coordinates &offset) {
  int64_t elements = 0;
  for (auto [x, stride] : llvm::zip_equal(offset, tile.strides))
    elements += x * stride;
  return elements * storedBytes(tile.element);
}

Value hybrid::nvptx::addressIn(GpuBuilder &b, const SharedTile &tile,
                               ValueRange base, const Coordinates &offset) {
  if (!tile.isSwizzled)
    return b.address(threadAddress(b, tile, GpuBuilder::Values(base)),
                     offsetIn(tile, offset));
  // Whole blocks of eight rows of 128 bytes are where they would be otherwise.
  Coordinates inside{offset[0] % 8, offset[1] % kSwizzledRow};
  Value row = b.add(base[0], b.i32(inside[0])),
        column = b.add(base[1], b.i32(inside[1]));
  Value turned = b.mul(arith::AndIOp::create(b, row, b.i32(7)), b.i32(8));
  column = arith::XOrIOp::create(b, column, turned);
  return b.address(
      threadAddress(b, tile, {row, column}),
      offsetIn(tile, {offset[0] - inside[0], offset[1] - inside[1]}));
}

void KernelLowering::write(const Layout &layout, ValueRange registers,
                           const SharedTile &to, const Layout *owners) {
  shared.writes(to.buffer);
  writeUnordered(layout, registers, to, owners);
}

void KernelLowering::writeUnordered(const Layout &layout, ValueRange registers,
                                    const SharedTile &to,
                                    const Layout *owners) {
  Values base = threadBase(layout);
  int64_t vector = vectorOf(layout, to);
  OpBuilder::InsertionGuard outer(b);
  if (Value first = b.isFirstWarp(owners ? *owners : layout)) {
    auto branch = scf::IfOp::create(b, first, /*withElseRegion=*/false);
    b.setInsertionPoint(branch.thenBlock()->getTerminator());
  }
  for (int64_t reg = 0; reg < layout.numRegisters(); reg += vector) {
    Coordinates offset = layout.registerOffset(reg);
    Value inside;
    for (auto [d, x] : llvm::enumerate(offset))
      if (layout.extent(d) > to.extents[d])
        inside = b.both(inside, b.less(base[d], b.i32(to.extents[d] - x)));
    OpBuilder::InsertionGuard guard(b);
    if (inside) {
      auto branch = scf::IfOp::create(b, inside, /*withElseRegion=*/false);
      b.setInsertionPoint(branch.thenBlock()->getTerminator());
    }
    b.store(registers.slice(reg, vector), addressIn(b, to, base, offset));
  }
}

KernelLowering::Values KernelLowering::read(const SharedTile &from,
                                            const Layout &layout) {
  assert(!from.isSwizzled && "only products of one row read the tile");
  shared.reads(from.buffer);
  Values base = threadBase(layout);
  Value address = threadAddress(b, from, base);
  int64_t vector = vectorOf(layout, from);
  bool beyond = false;
  for (unsigned d = 0; d < layout.getShape().size(); ++d)
    beyond |= layout.extent(d) > from.extents[d];
  Values registers;
  for (int64_t reg = 0; reg < layout.numRegisters(); reg += vector) {
    Coordinates offset = layout.registerOffset(reg);
    Value at;
    if (beyond) {
      // What lies past the tile has no value, but it must be memory.
      Values clamped;
      for (auto [d, x] : llvm::enumerate(offset))
        clamped.push_back(b.createOrFold<arith::MinSIOp>(
            b.add(base[d], b.i32(x)),
            b.i32(from.extents[d] - (d + 1 == offset.size() ? vector : 1))));
      at = threadAddress(b, from, clamped);
    } else {
      at = b.address(address, offsetIn(from, offset));
    }
    llvm::append_range(registers, b.load(from.element, vector, at));
  }
  return registers;
}

//===----------------------------------------------------------------------===//
// Constant data
//===----------------------------------------------------------------------===//

Value KernelLowering::constantTable(arith::ConstantOp constant) {
  Value &pointer = tables[constant];
  if (pointer)
    return pointer;
  auto values = cast<DenseElementsAttr>(constant.getValue());
  Type element = values.getElementType(), stored = storedType(element);
  if (stored != element) {
    SmallVector<Attribute> bytes;
    for (bool bit : values.getValues<bool>())
      bytes.push_back(b.getIntegerAttr(stored, bit));
    values = DenseElementsAttr::get(values.getType().clone(stored), bytes);
  }
  int64_t count = values.getNumElements();
  values = values.reshape(RankedTensorType::get({count}, stored));
  std::string name =
      (program.getSymName() + "_table_" + llvm::Twine(numTables++)).str();
  LLVM::GlobalOp global;
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(program);
    global = LLVM::GlobalOp::create(
        b, LLVM::LLVMArrayType::get(stored, count), /*isConstant=*/true,
        LLVM::Linkage::Internal, name, values, /*alignment=*/16, kGlobalSpace);
  }
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(entryEnd);
  pointer = LLVM::AddressOfOp::create(b, global);
  return pointer;
}

KernelLowering::Values KernelLowering::readTable(arith::ConstantOp constant,
                                                 const Layout &layout) {
  Value table = constantTable(constant);
  Type element = elementOf(constant.getResult());
  Values base = threadBase(layout), registers;
  for (int64_t reg = 0; reg < layout.numRegisters(); ++reg) {
    Value linear = b.i32(0);
    for (auto [d, x] : llvm::enumerate(layout.registerOffset(reg))) {
      int64_t size = layout.getShape()[d];
      Value at = b.add(base[d], b.i32(x));
      if (layout.reachesPast(d))
        at = b.createOrFold<arith::MinSIOp>(at, b.i32(size - 1));
      linear = b.add(b.mul(linear, b.i32(size)), at);
    }
    Value address =
        b.address(table, b.mul(linear, b.i32(storedBytes(element))));
    llvm::append_range(registers, b.load(element, 1, address, true));
  }
  return registers;
}
