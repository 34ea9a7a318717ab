//===- KernelEmitter.cpp - the frame of a hopper kernel -------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelEmitter.h"

#include "../LowerPrograms.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::hopper;
using namespace hybrid::nvptx;

/// CUtensorMap.
constexpr int64_t kMapBytes = 128, kMapAlignment = 64;
/// The swizzle repeats every 1024 bytes.
constexpr int64_t kBufferAlignment = 1024;

KernelEmitter::KernelEmitter(KernelOp kernel)
    : kernel(kernel), builder(kernel), b(kernel.getLoc(), builder) {}

FailureOr<func::FuncOp> KernelEmitter::run() {
  placeShared();
  makeFunction();
  readViews();
  readGrid();
  initBarriers();
  auto roles = cast<RolesOp>(kernel.getBlock().getTerminator());
  for (Operation &op : kernel.getBlock().without_terminator())
    if (!isa<TensorMapOp, AllocateOp, MakeBarriersOp>(op) &&
        failed(emitOp(&op)))
      return failure();
  if (failed(emitRoles(roles, 0, 0)))
    return failure();
  func::ReturnOp::create(b);
  return function;
}

void KernelEmitter::placeShared() {
  for (auto allocate : kernel.getBlock().getOps<AllocateOp>()) {
    BufferType type = allocate.getBuffer().getType();
    sharedBytes = llvm::alignTo(sharedBytes, kBufferAlignment);
    offsets[allocate.getBuffer()] = sharedBytes;
    sharedBytes += type.getCopies() * type.getCopyBytes();
  }
  for (auto made : kernel.getBlock().getOps<MakeBarriersOp>()) {
    offsets[made.getBarriers()] = sharedBytes;
    sharedBytes += 8 * made.getBarriers().getType().getCount();
  }
}

void KernelEmitter::makeFunction() {
  MLIRContext *context = b.getContext();
  Type pointer = LLVM::LLVMPointerType::get(context);
  b.setInsertionPoint(kernel);
  auto memory = LLVM::GlobalOp::create(
      b, LLVM::LLVMArrayType::get(b.getI8Type(), 0), /*isConstant=*/false,
      LLVM::Linkage::External, (kernel.getSymName() + "_shared").str(),
      Attribute(), kBufferAlignment, kSharedSpace);
  SmallVector<Type> types{pointer};
  SmallVector<Attribute> mapAttributes;
  for (auto map : kernel.getBlock().getOps<TensorMapOp>()) {
    types.push_back(pointer);
    auto view = cast<BlockArgument>(map.getView());
    StringRef element =
        map.getMap().getType().getElementType().isBF16() ? "bf16" : "f16";
    mapAttributes.push_back(b.getDictionaryAttr(
        {b.getNamedAttr("type", b.getStringAttr(element)),
         b.getNamedAttr("view", b.getI64IntegerAttr(view.getArgNumber())),
         b.getNamedAttr("box", b.getDenseI64ArrayAttr(
                                   map.getMap().getType().getShape()))}));
  }
  function = func::FuncOp::create(b, kernel.getSymName(),
                                  b.getFunctionType(types, {}));
  auto byValue = [&](unsigned number, int64_t bytes, int64_t alignment) {
    function.setArgAttr(
        number, LLVM::LLVMDialect::getByValAttrName(),
        TypeAttr::get(LLVM::LLVMArrayType::get(b.getI8Type(), bytes)));
    function.setArgAttr(number, LLVM::LLVMDialect::getAlignAttrName(),
                        b.getI64IntegerAttr(alignment));
  };
  byValue(0, kViewBytes * int64_t(kernel.getViews().size()) + kGridBytes, 8);
  for (unsigned n = 1; n < types.size(); ++n)
    byValue(n, kMapBytes, kMapAlignment);
  function->setAttr(kSharedBytesAttr, b.getI64IntegerAttr(sharedBytes));
  function->setAttr(
      kThreadsAttr,
      b.getI64IntegerAttr(kernel.getNumWarpgroups() * kWarpgroupThreads));
  function->setAttr(kTensorMapsAttr, b.getArrayAttr(mapAttributes));
  if (kernel.isPersistent())
    function->setAttr(kPersistentAttr, b.getUnitAttr());
  b.setInsertionPointToStart(function.addEntryBlock());
  unsigned number = 1;
  for (auto map : kernel.getBlock().getOps<TensorMapOp>())
    maps[map.getMap()] = function.getArgument(number++);
  b.readThread();
  Value base = LLVM::AddressOfOp::create(b, memory);
  sharedBase = arith::TruncIOp::create(
      b, b.getI32Type(), LLVM::PtrToIntOp::create(b, b.getI64Type(), base));
  // A warpgroup has four warps; its rows are theirs in order.
  Value warpInGroup = arith::AndIOp::create(b, b.warp(), b.i32(3));
  Value row = arith::ShRUIOp::create(b, b.lane(), b.i32(2));
  threadRow = b.add(b.mul(warpInGroup, b.i32(16)), row);
  threadColumn = b.mul(arith::AndIOp::create(b, b.lane(), b.i32(3)), b.i32(2));
  // Lane 0's, so that it is known to be one number per warp.
  Value own = arith::ShRUIOp::create(b, b.thread(), b.i32(7));
  warpgroup = b.intrinsic("llvm.nvvm.shfl.sync.idx.i32", b.getI32Type(),
                          {b.i32(-1), own, b.i32(0), b.i32(31)});
}

void KernelEmitter::readViews() {
  Value arguments = function.getArgument(0);
  for (auto [number, argument] : llvm::enumerate(kernel.getViews())) {
    auto type = cast<tile::ViewType>(argument.getType());
    ViewReader reader(b, arguments, int64_t(number), type);
    View view;
    view.element = type.getElementType();
    view.base = reader.base();
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      view.sizes.push_back(reader.size(dim));
      view.strides.push_back(reader.stride(dim));
    }
    views[argument] = view;
  }
}

Value KernelEmitter::viewAddress(Value view, ValueRange indices) {
  const View &from = views[view];
  Value offset = b.i64(0);
  for (auto [dim, at] : llvm::enumerate(indices))
    offset = b.add(offset, b.mul(b.fromIndex(mapping.lookupOrDefault(at)),
                                 from.strides[dim]));
  return b.address(from.base, b.mul(offset, b.i64(storedBytes(from.element))));
}

void KernelEmitter::readGrid() {
  Value grid = b.address(function.getArgument(0),
                         kViewBytes * int64_t(kernel.getViews().size()));
  for (int64_t dim = 0; dim < kernel.getGridRank(); ++dim)
    gridSizes.push_back(arith::TruncIOp::create(
        b, b.getI32Type(),
        LLVM::LoadOp::create(b, b.getI64Type(), b.address(grid, 8 * dim), 8)));
  ids = placesOf(b.block());
}

/// The point with the number `task`, i32; `hopper.kernel` has the rule.
KernelEmitter::Values KernelEmitter::placesOf(Value task) {
  Values &sizes = gridSizes;
  Values places(sizes.size());
  SmallVector<int64_t> order(kernel.getTraversal());
  auto rem = [&](Value x, Value y) -> Value {
    return arith::RemUIOp::create(b, x, y);
  };
  auto div = [&](Value x, Value y) -> Value {
    return arith::DivUIOp::create(b, x, y);
  };
  if (kernel.getGroup() > 1) {
    int64_t fast = order.pop_back_val(), next = order.pop_back_val();
    Value whole = b.mul(sizes[fast], sizes[next]);
    Value inside = order.empty() ? task : rem(task, whole);
    task = order.empty() ? task : div(task, whole);
    Value perGroup = b.mul(b.i32(kernel.getGroup()), sizes[next]);
    Value first = b.mul(div(inside, perGroup), b.i32(kernel.getGroup()));
    Value left = arith::SubIOp::create(b, sizes[fast], first);
    Value width = arith::MinUIOp::create(b, left, b.i32(kernel.getGroup()));
    Value inGroup = rem(inside, perGroup);
    places[fast] = b.add(first, rem(inGroup, width));
    places[next] = div(inGroup, width);
  }
  for (auto [number, dim] : llvm::enumerate(llvm::reverse(order))) {
    bool isSlowest = number + 1 == order.size();
    places[dim] = isSlowest ? task : rem(task, sizes[dim]);
    task = isSlowest ? task : div(task, sizes[dim]);
  }
  for (int64_t dim : kernel.getDescending())
    places[dim] = arith::SubIOp::create(
        b, arith::SubIOp::create(b, sizes[dim], b.i32(1)), places[dim]);
  for (Value &place : places)
    place =
        b.toIndex(arith::ExtUIOp::create(b, b.getI64Type(), place).getResult());
  return places;
}

void KernelEmitter::initBarriers() {
  Value isFirst =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, b.thread(), b.i32(0));
  auto branch = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    for (auto made : kernel.getBlock().getOps<MakeBarriersOp>())
      for (int64_t n = 0; n < made.getBarriers().getType().getCount(); ++n)
        b.initArrivals(
            b.add(sharedBase, b.i32(offsets[made.getBarriers()] + 8 * n)),
            made.getArrivals());
    b.showArrivals();
  }
  b.barrier();
}

LogicalResult KernelEmitter::emitRoles(RolesOp roles, unsigned role,
                                       int64_t first) {
  int64_t count = roles.getWarpgroups().size();
  if (role >= count)
    return success();
  int64_t own = roles.getWarpgroups()[role];
  scf::IfOp branch;
  OpBuilder::InsertionGuard guard(b);
  if (int64_t(role) + 1 < count) {
    Value isOwn = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, warpgroup,
                                        b.i32(first + own));
    branch = scf::IfOp::create(b, isOwn, /*withElseRegion=*/true);
    b.setInsertionPointToStart(branch.thenBlock());
  }
  // What the block starts with: an equal share, in steps of 8.
  int64_t threads = kernel.getNumWarpgroups() * kWarpgroupThreads;
  int64_t registers = roles.getRegisters()[role],
          share = std::min<int64_t>(65536 / threads / 8 * 8, 248);
  if (count > 1 && registers != share)
    b.assembly(std::string("setmaxnreg.") +
                   (registers > share ? "inc" : "dec") + ".sync.aligned.u32 " +
                   std::to_string(registers) + ";",
               "", {});
  firstWarpgroup = first;
  roleThreads = own * kWarpgroupThreads;
  Block &body = roles.getBodies()[role].front();
  if (roles.getSingle()[role]) {
    Value inGroup =
        arith::AndIOp::create(b, b.thread(), b.i32(kWarpgroupThreads - 1));
    Value isFirst =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, inGroup, b.i32(0));
    auto single = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPointToStart(single.thenBlock());
    if (failed(emitBlock(body)))
      return failure();
  } else if (failed(emitBlock(body))) {
    return failure();
  }
  if (!branch)
    return success();
  b.setInsertionPointToStart(branch.elseBlock());
  return emitRoles(roles, role + 1, first + own);
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

LogicalResult KernelEmitter::emitBlock(Block &block) {
  for (Operation &op : block.without_terminator()) {
    b.setLoc(op.getLoc());
    if (failed(emitOp(&op)))
      return failure();
  }
  return success();
}

static bool isSpread(Type type) {
  return isa<RankedTensorType, FlightType>(type);
}

void KernelEmitter::appendValues(ValueRange values, Values &flat) {
  for (Value value : values)
    if (isSpread(value.getType()))
      llvm::append_range(flat, tiles[value]);
    else
      flat.push_back(mapping.lookupOrDefault(value));
}

void KernelEmitter::bindValues(ValueRange values, ValueRange flat) {
  for (Value value : values) {
    if (!isSpread(value.getType())) {
      mapping.map(value, flat.front());
      flat = flat.drop_front();
      continue;
    }
    auto shape = isa<FlightType>(value.getType())
                     ? cast<FlightType>(value.getType()).getShape()
                     : cast<RankedTensorType>(value.getType()).getShape();
    Type element = isa<FlightType>(value.getType())
                       ? Type(b.getF32Type())
                       : getElementTypeOrSelf(value.getType());
    bool isHalf =
        isa<FloatType>(element) && element.getIntOrFloatBitWidth() == 16;
    size_t count = fragmentLayout(shape).numRegisters() / (isHalf ? 2 : 1);
    tiles[value] = Values(flat.take_front(count));
    flat = flat.drop_front(count);
  }
}

LogicalResult KernelEmitter::emitFor(scf::ForOp loop) {
  Values inits;
  appendValues(loop.getInitArgs(), inits);
  auto made =
      scf::ForOp::create(b, mapping.lookupOrDefault(loop.getLowerBound()),
                         mapping.lookupOrDefault(loop.getUpperBound()),
                         mapping.lookupOrDefault(loop.getStep()), inits);
  {
    OpBuilder::InsertionGuard guard(b);
    if (made.getBody()->mightHaveTerminator())
      made.getBody()->getTerminator()->erase();
    b.setInsertionPointToEnd(made.getBody());
    mapping.map(loop.getInductionVar(), made.getInductionVar());
    bindValues(loop.getRegionIterArgs(), made.getRegionIterArgs());
    if (failed(emitBlock(*loop.getBody())))
      return failure();
    Values next;
    appendValues(loop.getBody()->getTerminator()->getOperands(), next);
    scf::YieldOp::create(b, next);
  }
  bindValues(loop.getResults(), made.getResults());
  return success();
}

LogicalResult KernelEmitter::emitIf(scf::IfOp branch) {
  Value condition = mapping.lookupOrDefault(branch.getCondition());
  SmallVector<Values> results;
  SmallVector<Block *> blocks;
  // The types are known when a region has been emitted.
  Block *home = b.getInsertionBlock();
  auto place = b.getInsertionPoint();
  SmallVector<std::unique_ptr<Region>> regions;
  for (Region &region : branch->getRegions()) {
    auto made = std::make_unique<Region>();
    if (!region.empty()) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(&made->emplaceBlock());
      if (failed(emitBlock(region.front())))
        return failure();
      Values values;
      appendValues(region.front().getTerminator()->getOperands(), values);
      scf::YieldOp::create(b, values);
      results.push_back(values);
    }
    regions.push_back(std::move(made));
  }
  b.setInsertionPoint(home, place);
  auto made =
      scf::IfOp::create(b, ValueRange(results.front()).getTypes(), condition,
                        regions.size() > 1 && !regions[1]->empty());
  for (auto [to, from] : llvm::zip(made->getRegions(), regions))
    if (!from->empty())
      to.takeBody(*from);
  bindValues(branch.getResults(), made.getResults());
  return success();
}

LogicalResult KernelEmitter::emitOp(Operation *op) {
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return emitFor(loop);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return emitIf(branch);
  if (auto id = dyn_cast<IdOp>(op)) {
    Values places = ids;
    if (id.getTask())
      places = placesOf(arith::TruncIOp::create(
          b, b.getI32Type(),
          b.fromIndex(mapping.lookupOrDefault(id.getTask()))));
    mapping.map(id.getResult(), places[id.getDim()]);
    return success();
  }
  if (isa<TasksOp, BlockNumberOp, BlockCountOp>(op)) {
    Value count = b.i32(1);
    if (isa<BlockNumberOp>(op))
      count = b.block();
    else if (isa<BlockCountOp>(op))
      count = b.intrinsic("llvm.nvvm.read.ptx.sreg.nctaid.x", b.getI32Type());
    else
      for (Value size : gridSizes)
        count = b.mul(count, size);
    mapping.map(op->getResult(0),
                b.toIndex(arith::ExtUIOp::create(b, b.getI64Type(), count)));
    return success();
  }
  if (auto number = dyn_cast<WarpgroupOp>(op)) {
    Value own = arith::SubIOp::create(b, warpgroup, b.i32(firstWarpgroup));
    mapping.map(number.getResult(),
                b.toIndex(arith::ExtUIOp::create(b, b.getI64Type(), own)));
    return success();
  }
  if (auto dim = dyn_cast<tile::DimOp>(op)) {
    mapping.map(dim.getResult(),
                b.toIndex(views[dim.getView()].sizes[dim.getDim()]));
    return success();
  }
  if (auto load = dyn_cast<tile::LoadScalarOp>(op)) {
    Value address = viewAddress(load.getView(), load.getIndices());
    mapping.map(load.getValue(), b.load(views[load.getView()].element, 1,
                                        address, /*invariant=*/true)[0]);
    return success();
  }
  if (isa<HopperDialect>(op->getDialect()))
    return emitShared(op);
  if (isa<tile::StoreOp, tile::AccumulateOp>(op))
    return emitStore(op);
  if (llvm::any_of(op->getResultTypes(), isSpread))
    return emitTile(op);
  b.clone(*op, mapping);
  return success();
}
