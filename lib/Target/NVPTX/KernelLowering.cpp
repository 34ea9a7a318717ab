//===- KernelLowering.cpp - the frame of a kernel -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Arguments, grid, and the order in which ops are lowered and kernels wait for
// each other.
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::nvptx;

KernelLowering::KernelLowering(tile::ProgramOp program,
                               const KernelBudget &budget)
    : program(program), budget(budget), plan(program), builder(program),
      b(program.getLoc(), builder), shared(b),
      isOverlapping(budget.overlap &&
                    program->hasAttr(tile::TileDialect::kOverlapAttr)),
      mustWait(isOverlapping) {}

int64_t KernelLowering::blocks() const {
  constexpr int64_t kReserved = 1024, kManyFragments = 12, kRoom = 4;
  // The assembler loads as many fragments ahead as it has registers for, which
  // then keep the kernels in front and behind from the multiprocessor. With few
  // fragments registers are for something else, and would spill.
  if (isOverlapping && rowFragments > kManyFragments)
    return kRoom;
  tile::ProgramOp wish = program;
  auto warps = wish->getAttrOfType<IntegerAttr>(tile::TileDialect::kWarpsAttr);
  // What begins early lives beside other kernels, and says itself what it
  // needs.
  if (!warps || isOverlapping)
    return 1;
  int64_t room = (budget.sharedBytes + kReserved) / (usedShared + kReserved);
  int64_t wanted = warps.getInt() / plan.numWarps();
  return std::max<int64_t>(1, std::min(room, wanted));
}

FailureOr<func::FuncOp> KernelLowering::run() {
  MLIRContext *context = b.getContext();
  Type pointer = LLVM::LLVMPointerType::get(context);
  b.setInsertionPoint(program);
  auto memory = LLVM::GlobalOp::create(
      b, LLVM::LLVMArrayType::get(b.getI8Type(), 0), /*isConstant=*/false,
      LLVM::Linkage::External, (program.getSymName() + "_shared").str(),
      Attribute(), /*alignment=*/128, kSharedSpace);
  auto kernel = func::FuncOp::create(b, program.getSymName(),
                                     b.getFunctionType(pointer, {}));
  int64_t gridOffset = kViewBytes * int64_t(program.getViews().size());
  kernel.setArgAttr(0, LLVM::LLVMDialect::getByValAttrName(),
                    TypeAttr::get(LLVM::LLVMArrayType::get(
                        b.getI8Type(), gridOffset + kGridBytes)));
  kernel.setArgAttr(0, LLVM::LLVMDialect::getAlignAttrName(),
                    b.getI64IntegerAttr(8));
  Block *entry = kernel.addEntryBlock();
  b.setInsertionPointToStart(entry);
  // `entryEnd` ends what all code may use; more is put before it later.
  b.readThread();
  Value base = LLVM::AddressOfOp::create(b, memory);
  Value arguments = entry->getArgument(0);
  entryEnd = b.zero(b.getI32Type()).getDefiningOp();
  shared.begin(base, entryEnd);
  readViews(arguments);
  if (failed(lowerGrid(b.address(arguments, gridOffset))))
    return failure();
  // A kernel that has not waited would end before the one in front of it.
  waitForPredecessor();
  func::ReturnOp::create(b);
  usedShared = shared.place();
  if (usedShared > 0)
    usedShared += llvm::alignTo(overshoot, 128);
  // There is a block for each processor: three on one wait for each other's
  // matrices. So those of a fifth of its memory ask for a quarter of it: beside
  // a large block of the launch in front there is room for two.
  if (bulkBytes >= budget.sharedBytes / 5)
    usedShared = std::max(usedShared, budget.sharedBytes / 4);
  return kernel;
}

/// Whether the stride of a dim that is not known is a multiple of 16 bytes: in
/// a contiguous view it is one of all sizes behind.
static bool isMultipleOf16(tile::ViewType type, int64_t dim) {
  int64_t multiple = storedBytes(type.getElementType());
  for (int64_t size : type.getShape().drop_front(dim + 1))
    if (!ShapedType::isDynamic(size))
      multiple *= size;
  return type.isContiguous() && multiple % 16 == 0;
}

void KernelLowering::readViews(Value arguments) {
  ArrayRef<int64_t> constant;
  if (auto attr = program->getAttrOfType<DenseI64ArrayAttr>(
          tile::TileDialect::kOverlapAttr))
    constant = attr.asArrayRef();
  for (auto [number, argument] : llvm::enumerate(program.getViews())) {
    auto type = cast<tile::ViewType>(argument.getType());
    ViewReader reader(b, arguments, int64_t(number), type);
    View view;
    view.element = type.getElementType();
    view.base = reader.base();
    view.isWritten = program.writes(argument);
    // Before an early kernel has waited, others may still write the rest.
    view.isReady =
        isOverlapping && llvm::is_contained(constant, int64_t(number));
    view.isConstant = !view.isWritten && (view.isReady || !isOverlapping);
    llvm::append_range(view.known, type.getStrides());
    // A contiguous buffer begins at a multiple of 256 bytes; what is a part of
    // another is looked at.
    Value bits = b.i64(0);
    if (!type.isContiguous())
      bits = LLVM::PtrToIntOp::create(b, b.getI64Type(), view.base);
    bool isProved = type.isContiguous(), isStatic = isProved;
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      view.sizes.push_back(reader.size(dim));
      view.strides.push_back(reader.stride(dim));
      if (!ShapedType::isDynamic(type.getStrides()[dim]))
        continue;
      isStatic = false;
      isProved = isProved && isMultipleOf16(type, dim);
      bits = b.createOrFold<arith::OrIOp>(
          bits, b.mul(view.strides.back(), b.i64(storedBytes(view.element))));
    }
    if (!isStatic)
      view.isAlignedHere = arith::CmpIOp::create(
          b, arith::CmpIPredicate::eq,
          b.createOrFold<arith::AndIOp>(bits, b.i64(15)), b.i64(0));
    if (!isProved)
      view.isAligned = view.isAlignedHere;
    views[argument] = view;
  }
}

/// The ids along parallel dims are the digits of the block's number, the last
/// fastest.
LogicalResult KernelLowering::lowerGrid(Value grid) {
  unsigned rank = program.getGridRank();
  ids.resize(rank);
  auto sizeOf = [&](unsigned dim) -> Value {
    return LLVM::LoadOp::create(b, b.getI64Type(), b.address(grid, 8 * dim), 8);
  };
  // Blocks are fewer than 2^31, and so is every size along the way.
  Value task = b.block();
  SmallVector<unsigned> parallel;
  for (unsigned dim = 0; dim < rank; ++dim)
    if (program.getOrderOf(dim) == tile::Order::parallel)
      parallel.push_back(dim);
  for (unsigned dim : llvm::reverse(parallel)) {
    Value id = task;
    if (dim != parallel.front()) {
      Value size = arith::TruncIOp::create(b, b.getI32Type(), sizeOf(dim));
      id = arith::RemUIOp::create(b, task, size);
      task = arith::DivUIOp::create(b, task, size);
    }
    ids[dim] = b.toIndex(arith::ExtUIOp::create(b, b.getI64Type(), id));
  }
  return lowerOrdered(0, grid);
}

LogicalResult KernelLowering::lowerOrdered(unsigned dim, Value grid) {
  if (dim == program.getGridRank())
    return lowerBlock(program.getBlock());
  if (program.getOrderOf(dim) == tile::Order::parallel)
    return lowerOrdered(dim + 1, grid);
  Value size =
      LLVM::LoadOp::create(b, b.getI64Type(), b.address(grid, 8 * dim), 8);
  waitForPredecessor();
  auto loop = scf::ForOp::create(b, b.toIndex(b.i64(0)), b.toIndex(size),
                                 b.toIndex(b.i64(1)));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(loop.getBody()->getTerminator());
  ids[dim] = loop.getInductionVar();
  SharedMemory::Mark mark = shared.enter();
  if (failed(lowerOrdered(dim + 1, grid)))
    return failure();
  shared.flush();
  shared.leaveLoop(mark);
  return success();
}

/// Elementary functions of what is known are computed before the wait, where
/// time is free; in the order of the program, for that of a map of values is
/// another in each run.
void KernelLowering::finishEarly() {
  program->walk([&](Operation *op) {
    if (!isa<math::MathDialect>(op->getDialect()))
      return;
    auto entry = versions.find(op->getResult(0));
    if (entry == versions.end())
      return;
    for (Distributed &version : entry->second.distributed)
      for (Value &value : version.registers)
        if (value.getType().isF32())
          value = b.madeHere(value);
  });
}

void KernelLowering::waitForPredecessor() {
  // The next kernel may begin as soon as all blocks of this one have come here:
  // it takes what they leave of the processors, and what it asks for comes
  // behind what this one has asked for.
  if (mustWait) {
    finishEarly();
    b.releaseSuccessor();
    b.waitForPredecessor();
  }
  mustWait = false;
}

/// Whether `op`, or one inside of it, reads memory that the kernel in front may
/// write, or writes any, which that one may read.
bool KernelLowering::readsPredecessor(Operation *op) {
  return op
      ->walk([&](Operation *inner) {
        if (isa<tile::DimOp>(inner))
          return WalkResult::advance();
        bool isRead =
            isa<tile::LoadOp, tile::LoadRowsOp, tile::LoadScalarOp>(inner);
        for (Value operand : inner->getOperands())
          if (isa<tile::ViewType>(operand.getType()) &&
              !(isRead && views[operand].isReady))
            return WalkResult::interrupt();
        return WalkResult::advance();
      })
      .wasInterrupted();
}

/// Waiting comes in front of the first op of the program that needs it, so it
/// is outside of branches and loops, and all threads pass it.
LogicalResult KernelLowering::lowerBlock(Block &block) {
  for (Operation &op : block.without_terminator()) {
    if (mustWait && readsPredecessor(&op)) {
      beginStreams(&op);
      waitForPredecessor();
    }
    if (op.getNumRegions() > 0 || usesLeftParts(&op))
      finishReductions();
    if (failed(lower(&op)))
      return failure();
  }
  finishReductions();
  return success();
}

bool KernelLowering::usesLeftParts(Operation *op) {
  return llvm::any_of(leftParts, [&](LeftParts &parts) {
    return llvm::is_contained(op->getOperands(), parts.reduce.getResult());
  });
}

LogicalResult KernelLowering::lower(Operation *op) {
  b.setLoc(op->getLoc());
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case<scf::ForOp>([&](auto loop) { return lowerFor(loop); })
      .Case<scf::IfOp>([&](auto branch) { return lowerIf(branch); })
      .Case<tile::IdOp>([&](tile::IdOp id) {
        mapping.map(id.getResult(), ids[id.getDim()]);
        return success();
      })
      .Case<tile::DimOp>([&](tile::DimOp dim) {
        mapping.map(dim.getResult(),
                    b.toIndex(views[dim.getView()].sizes[dim.getDim()]));
        return success();
      })
      .Case<tile::LoadScalarOp>(
          [&](auto load) { return lowerLoadScalar(load), success(); })
      .Case<tile::StoreScalarOp>(
          [&](auto store) { return lowerStoreScalar(store), success(); })
      .Case<tile::LoadOp>([&](auto load) { return lowerLoad(load), success(); })
      .Case<tile::StoreOp>(
          [&](auto store) { return lowerStore(store), success(); })
      .Case<tile::AccumulateOp>(
          [&](auto sum) { return lowerAccumulate(sum), success(); })
      .Case<tile::LoadRowsOp>(
          [&](auto load) { return lowerLoadRows(load), success(); })
      .Case<tile::StoreRowsOp>(
          [&](auto store) { return lowerStoreRows(store), success(); })
      .Case<tile::DotOp>([&](auto dot) { return lowerDot(dot); })
      .Case<tile::ReduceOp>(
          [&](auto reduce) { return lowerReduce(reduce), success(); })
      .Case<tile::PrefixSumOp>(
          [&](auto prefix) { return lowerPrefixSum(prefix), success(); })
      .Case<tile::UnitLowerInverseOp>(
          [&](auto inverse) { return lowerInverse(inverse), success(); })
      .Case<tile::SliceOp>(
          [&](auto slice) { return lowerSlice(slice), success(); })
      .Case<tile::ConcatOp>(
          [&](auto concat) { return lowerConcat(concat), success(); })
      .Case<tile::ReshapeOp>(
          [&](auto reshape) { return lowerReshape(reshape), success(); })
      // Computed where they are used.
      .Case<tile::SplatOp, tile::IotaOp, tile::BroadcastOp, tile::TransposeOp>(
          [&](auto) { return success(); })
      .Case<tensor::ExtractOp>(
          [&](auto extract) { return lowerExtract(extract), success(); })
      .Default([&](Operation *other) { return lowerOther(other); });
}

LogicalResult KernelLowering::lowerOther(Operation *op) {
  bool known = isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) &&
               op->getNumRegions() == 0;
  if (!known)
    return op->emitOpError("is not supported in a program for a GPU; use "
                           "arith, math, scf.for, scf.if, tensor.extract and "
                           "tile ops");
  if (isElementwise(op)) {
    Value tile = op->getResult(0);
    if (plan.isCheap(tile))
      return success();
    Layout layout = plan.layoutOf(tile);
    remember(tile, layout, computeElementwise(op, layout));
    return success();
  }
  if (op->getNumResults() == 1 && isTile(op->getResult(0)))
    return success(); // constants
  Values operands;
  for (Value operand : op->getOperands())
    operands.push_back(scalar(operand));
  mapping.map(op->getResult(0), scalarOp(b, op, operands));
  return success();
}

void KernelLowering::lowerLoadScalar(tile::LoadScalarOp load) {
  readsView(load.getView());
  const View &view = views[load.getView()];
  Value address = scalarAddress(load.getView(), load.getIndices());
  mapping.map(load.getValue(),
              b.load(view.element, 1, address, view.isConstant)[0]);
}

void KernelLowering::lowerStoreScalar(tile::StoreScalarOp store) {
  shared.writesView(store.getView());
  Value first =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, b.thread(), b.i32(0));
  b.storeIf(first, scalar(store.getValue()),
            scalarAddress(store.getView(), store.getIndices()));
}

void KernelLowering::lowerExtract(tensor::ExtractOp extract) {
  Value tile = extract.getTensor();
  ArrayRef<int64_t> shape = shapeOf(tile);
  Type element = extract.getType();
  auto linear = [&](ArrayRef<int64_t> strides) {
    Value at = b.i64(0);
    for (auto [index, stride] : llvm::zip_equal(extract.getIndices(), strides))
      at = b.add(at, b.mul(b.fromIndex(scalar(index)), b.i64(stride)));
    return b.mul(at, b.i64(storedBytes(element)));
  };
  Value result;
  auto constant = tile.getDefiningOp<arith::ConstantOp>();
  bool isOne = llvm::all_of(shape, [](int64_t size) { return size == 1; });
  if (isOne || (constant && plan.isCheap(tile))) {
    // Of a tile of one element every thread has it.
    Layout everywhere(Coordinates(shape.size(), 1), {}, {{kCopies, kLanes, 0}},
                      {{kCopies, plan.numWarps(), 0}});
    Layout layout = isOne ? everywhere : plan.layoutOf(tile);
    result = get(tile, layout).front();
  } else if (constant) {
    Coordinates strides(shape.size(), 1);
    for (unsigned d = shape.size() - 1; d-- > 0;)
      strides[d] = strides[d + 1] * shape[d + 1];
    Value table = constantTable(constant);
    result = b.load(element, 1, b.address(table, linear(strides)), true)[0];
  } else {
    SharedTile from = staged(tile);
    shared.reads(from.buffer);
    result = b.load(element, 1, b.address(from.pointer, linear(from.strides)))
                 .front();
  }
  mapping.map(extract.getResult(), result);
}
