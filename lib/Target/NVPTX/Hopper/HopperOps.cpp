//===- HopperOps.cpp - rules of the hopper dialect ------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Target/NVPTX/Hopper/HopperOps.h"

#include "hybrid/Tile/ProgramFormat.h"

using namespace mlir;
using namespace hybrid::hopper;

#define GET_OP_CLASSES
#include "hybrid/Target/NVPTX/Hopper/HopperOps.cpp.inc"

//===----------------------------------------------------------------------===//
// KernelOp
//===----------------------------------------------------------------------===//

void KernelOp::build(OpBuilder &builder, OperationState &state, StringRef name,
                     AffineMap grid, ArrayRef<int64_t> traversal,
                     ArrayRef<int64_t> descending, int64_t group,
                     TypeRange views) {
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.sym_name = builder.getStringAttr(name);
  properties.grid = AffineMapAttr::get(grid);
  properties.traversal = builder.getDenseI64ArrayAttr(traversal);
  properties.descending = builder.getDenseI64ArrayAttr(descending);
  properties.group = builder.getI64IntegerAttr(group);
  Block &block = state.addRegion()->emplaceBlock();
  for (Type view : views)
    block.addArgument(view, state.location);
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::Argument> views;
  int64_t group = 1;
  auto parseDims = [&](StringRef keyword, StringAttr attribute) -> ParseResult {
    SmallVector<int64_t> dims;
    if (parser.parseKeyword(keyword) ||
        parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
          return parser.parseInteger(dims.emplace_back());
        }))
      return failure();
    result.addAttribute(attribute,
                        parser.getBuilder().getDenseI64ArrayAttr(dims));
    return success();
  };
  if (hybrid::tile::parseProgramHead(parser, result,
                                     getSymNameAttrName(result.name),
                                     getGridAttrName(result.name), views) ||
      parseDims("traversal", getTraversalAttrName(result.name)) ||
      parseDims("descending", getDescendingAttrName(result.name)) ||
      parser.parseKeyword("group") || parser.parseInteger(group) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  result.addAttribute(getGroupAttrName(result.name),
                      parser.getBuilder().getI64IntegerAttr(group));
  return parser.parseRegion(*result.addRegion(), views);
}

void KernelOp::print(OpAsmPrinter &p) {
  hybrid::tile::printProgramHead(p, getSymName(), getViews(), getGridAttr());
  p << " traversal [";
  llvm::interleaveComma(getTraversal(), p);
  p << "] descending [";
  llvm::interleaveComma(getDescending(), p);
  p << "] group " << getGroup();
  hybrid::tile::printProgramTail(p, *this,
                                 {getSymNameAttrName(), getGridAttrName(),
                                  getTraversalAttrName(),
                                  getDescendingAttrName(), getGroupAttrName()});
}

bool KernelOp::isPersistent() {
  return walk([](BlockCountOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

int64_t KernelOp::getNumWarpgroups() {
  int64_t count = 0;
  for (int64_t warpgroups :
       cast<RolesOp>(getBlock().getTerminator()).getWarpgroups())
    count += warpgroups;
  return count;
}

LogicalResult KernelOp::verify() {
  int64_t rank = getGridRank();
  if (rank < 1 || rank > 4)
    return emitOpError("grid has ") << rank << " dims, 1 to 4 are possible";
  SmallVector<int64_t> dims(getTraversal());
  llvm::sort(dims);
  if (!llvm::equal(dims, llvm::seq<int64_t>(0, rank)))
    return emitOpError("traversal names each of the ")
           << rank << " grid dims once, got [" << getTraversal() << "]";
  for (int64_t dim : getDescending())
    if (dim < 0 || dim >= rank)
      return emitOpError("descending names grid dim ")
             << dim << ", the grid has " << rank;
  if (getGroup() < 1 || (getGroup() > 1 && rank < 2))
    return emitOpError("group is ")
           << getGroup() << " on a grid of " << rank
           << " dims; a group is at least 1, and more needs two dims";
  for (BlockArgument view : getViews())
    if (!isa<tile::ViewType>(view.getType()))
      return emitOpError("argument ")
             << view.getArgNumber() << " must be a view, got "
             << view.getType();
  if (getBlock().empty() || !isa<RolesOp>(getBlock().back()))
    return emitOpError("body must end with hopper.roles");
  return success();
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

LogicalResult RolesOp::verify() {
  size_t count = getBodies().size();
  if (getWarpgroups().size() != count || getRegisters().size() != count ||
      getSingle().size() != count)
    return emitOpError("has ")
           << count << " regions, " << getWarpgroups().size()
           << " numbers of warpgroups, " << getRegisters().size()
           << " of registers and " << getSingle().size()
           << " truth values; give one of each per role";
  constexpr int64_t kRegisters = 65536;
  int64_t total = 0;
  for (auto [groups, registers] :
       llvm::zip_equal(getWarpgroups(), getRegisters())) {
    if (groups < 1 || groups > 8)
      return emitOpError("a role has 1 to 8 warpgroups, got ") << groups;
    if (registers < 24 || registers > 240 || registers % 8 != 0)
      return emitOpError("a role has a multiple of 8 registers per thread from "
                         "24 to 240, got ")
             << registers;
    total += groups * kWarpgroupThreads * registers;
  }
  if (total > kRegisters)
    return emitOpError("roles take ")
           << total << " registers, a multiprocessor has " << kRegisters;
  for (Region &body : getBodies())
    if (body.front().empty() || !isa<YieldOp>(body.front().back()))
      return emitOpError("a role must end with hopper.yield");
  return success();
}

/// The number of the role that an op is in; none outside of roles.
static std::optional<unsigned> roleOf(Operation *op) {
  Region *region = op->getParentRegion();
  while (region && !isa<RolesOp>(region->getParentOp()))
    region = region->getParentRegion();
  if (!region)
    return std::nullopt;
  return region->getRegionNumber();
}

/// Some ops are for the thread that issues copies, others for whole warps.
static LogicalResult verifyInRole(Operation *op, bool single) {
  std::optional<unsigned> role = roleOf(op);
  if (!role)
    return op->emitOpError("must be inside a role");
  auto roles = op->getParentOfType<RolesOp>();
  if (roles.getSingle()[*role] != single)
    return op->emitOpError("belongs into a role of ")
           << (single ? "a single thread" : "whole warpgroups") << ", role "
           << *role << " is one of "
           << (single ? "whole warpgroups" : "a single thread");
  return success();
}

LogicalResult IdOp::verify() {
  auto kernel = (*this)->getParentOfType<KernelOp>();
  if (!kernel)
    return emitOpError("must be inside a hopper.kernel");
  if (getDim() >= kernel.getGridRank())
    return emitOpError("asks for grid dim ")
           << getDim() << ", the grid of @" << kernel.getSymName() << " has "
           << kernel.getGridRank();
  return success();
}

LogicalResult WarpgroupOp::verify() { return verifyInRole(*this, false); }
LogicalResult ExpectOp::verify() { return verifyInRole(*this, true); }
LogicalResult ArriveOp::verify() { return verifyInRole(*this, false); }
LogicalResult ClearRowsOp::verify() { return verifyInRole(*this, false); }

static LogicalResult verifyThreads(Operation *op, int64_t threads) {
  if (threads % 32 != 0 || threads > 1024)
    return op->emitOpError("counts whole warps, 32 to 1024 threads, got ")
           << threads;
  return verifyInRole(op, false);
}
LogicalResult SyncOp::verify() { return verifyThreads(*this, getThreads()); }
LogicalResult SignalOp::verify() { return verifyThreads(*this, getThreads()); }

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

LogicalResult TensorMapOp::verify() {
  auto view = cast<tile::ViewType>(getView().getType());
  MapType map = getMap().getType();
  if (view.getElementType() != map.getElementType())
    return emitOpError("map holds ")
           << map.getElementType() << ", the view " << view.getElementType();
  if (view.getRank() != int64_t(map.getShape().size()))
    return emitOpError("box has ")
           << map.getShape().size() << " dims, the view " << view.getRank();
  // The runtime checks what is only known there.
  for (int64_t stride : view.getStrides().drop_back())
    if (!ShapedType::isDynamic(stride) && stride % 8 != 0)
      return emitOpError("view has a stride of ")
             << stride << " elements; the copy engine needs multiples of 16 "
             << "bytes";
  return success();
}

LogicalResult TensorLoadOp::verify() {
  ArrayRef<int64_t> box = getMap().getType().getShape();
  BufferType buffer = getBuffer().getType();
  if (getIndices().size() != box.size())
    return emitOpError("has ") << getIndices().size() << " indices, the map "
                               << box.size() << " dims";
  ArrayRef<int64_t> dims = getDims();
  if (dims.size() != 2 || dims[0] < 0 || dims[0] >= dims[1] ||
      dims[1] + 1 != int64_t(box.size()))
    return emitOpError("reads rows along a dim and columns along the last of ")
           << box.size() << ", got dims [" << dims << "]";
  for (auto [dim, size] : llvm::enumerate(box)) {
    int64_t wanted = int64_t(dim) == dims[0]   ? buffer.getRows()
                     : int64_t(dim) == dims[1] ? BufferType::kPanelColumns
                                               : 1;
    if (size != wanted)
      return emitOpError("box has ")
             << size << " elements along dim " << dim << ", a panel of "
             << buffer << " needs " << wanted;
  }
  if (getMap().getType().getElementType() != buffer.getElementType())
    return emitOpError("map holds ")
           << getMap().getType().getElementType() << ", the buffer "
           << buffer.getElementType();
  return verifyInRole(*this, true);
}

LogicalResult SubmatrixOp::verify() {
  BufferType buffer = getBuffer().getType();
  MatrixType matrix = getMatrix().getType();
  if (matrix.getPanelRows() != buffer.getRows() ||
      matrix.getElementType() != buffer.getElementType() ||
      (!getColumn() && matrix.getColumns() != buffer.getColumns()))
    return emitOpError("takes all columns of ") << buffer << ", got " << matrix;
  if (matrix.getColumns() % BufferType::kPanelColumns != 0 ||
      matrix.getColumns() > buffer.getColumns())
    return emitOpError("takes whole panels of ")
           << buffer << ", got " << matrix;
  return success();
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

LogicalResult ProductOp::verify() {
  MatrixType b = getB().getType();
  FlightType result = getResult().getType();
  int64_t rows, depth;
  Type element;
  if (auto matrix = dyn_cast<MatrixType>(getA().getType())) {
    rows = matrix.getRows(), depth = matrix.getColumns();
    if (getTransposeA())
      std::swap(rows, depth);
    element = matrix.getElementType();
  } else {
    if (getTransposeA())
      return emitOpError("left operand is in registers and cannot be read "
                         "transposed");
    auto tile = cast<RankedTensorType>(getA().getType());
    if (tile.getRank() != 2)
      return emitOpError("left operand must be a matrix, got ") << tile;
    rows = tile.getDimSize(0), depth = tile.getDimSize(1);
    element = tile.getElementType();
  }
  if (rows != kRows)
    return emitOpError("left operand has ")
           << rows << " rows, a warpgroup multiplies " << kRows;
  if (element != b.getElementType())
    return emitOpError("operands must have one type, got ")
           << element << " and " << b.getElementType();
  int64_t depthB = getTransposeB() ? b.getColumns() : b.getRows();
  int64_t columns = getTransposeB() ? b.getRows() : b.getColumns();
  if (depth != depthB || depth % kStepDepth != 0)
    return emitOpError("left operand has depth ")
           << depth << ", right " << depthB << "; both are one multiple of "
           << kStepDepth;
  if (columns != result.getShape()[1])
    return emitOpError("right operand has ")
           << columns << " columns, the result " << result.getShape()[1];
  if (!getAcc())
    return verifyInRole(*this, false);
  auto shapeOf = [](Type type) {
    if (auto flight = dyn_cast<FlightType>(type))
      return flight.getShape();
    return cast<RankedTensorType>(type).getShape();
  };
  bool isFloat = !isa<RankedTensorType>(getAcc().getType()) ||
                 getElementTypeOrSelf(getAcc().getType()).isF32();
  if (!isFloat || shapeOf(getAcc().getType()) != result.getShape())
    return emitOpError("accumulator is ")
           << getAcc().getType() << ", the result " << result;
  return verifyInRole(*this, false);
}

static LogicalResult verifySame(Operation *op, Type flight, Type tile) {
  auto sum = cast<FlightType>(flight);
  auto held = cast<RankedTensorType>(tile);
  if (sum.getShape() != held.getShape() ||
      sum.getElementType() != held.getElementType())
    return op->emitOpError("matches ") << sum << " with " << held;
  return success();
}

LogicalResult AccumulatorOp::verify() {
  return verifySame(*this, getFlight().getType(), getTile().getType());
}

LogicalResult ProductWaitOp::verify() {
  if (getFlights().size() != getTiles().size())
    return emitOpError("has ") << getFlights().size() << " operands and "
                               << getTiles().size() << " results";
  for (auto [flight, tile] : llvm::zip_equal(getFlights(), getTiles()))
    if (failed(verifySame(*this, flight.getType(), tile.getType())))
      return failure();
  return verifyInRole(*this, false);
}
