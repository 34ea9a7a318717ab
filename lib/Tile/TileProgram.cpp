//===- TileProgram.cpp - programs and schedules -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Tile/TileOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using namespace hybrid::tile;

//===----------------------------------------------------------------------===//
// ProgramOp
//===----------------------------------------------------------------------===//

void ProgramOp::build(OpBuilder &builder, OperationState &state, StringRef name,
                      AffineMap grid, ArrayRef<Order> order,
                      ArrayRef<Type> views) {
  SmallVector<Attribute> orders;
  for (Order o : order)
    orders.push_back(OrderAttr::get(builder.getContext(), o));
  state.addAttribute(getSymNameAttrName(state.name),
                     builder.getStringAttr(name));
  state.addAttribute(getGridAttrName(state.name), AffineMapAttr::get(grid));
  state.addAttribute(getOrderAttrName(state.name),
                     builder.getArrayAttr(orders));
  auto &block = state.addRegion()->emplaceBlock();
  for (Type view : views)
    block.addArgument(view, state.location);
}

/// order-list ::= `[` (`parallel` | `ordered`) (`,` ...)* `]`
static ParseResult parseOrder(OpAsmParser &parser, ArrayAttr &order) {
  SmallVector<Attribute> orders;
  auto parseOne = [&]() -> ParseResult {
    SMLoc loc = parser.getCurrentLocation();
    StringRef word;
    if (parser.parseKeyword(&word))
      return failure();
    std::optional<Order> value = symbolizeOrder(word);
    if (!value)
      return parser.emitError(loc)
             << "order of a grid dim is 'parallel' or 'ordered', got '" << word
             << "'";
    orders.push_back(OrderAttr::get(parser.getContext(), *value));
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOne))
    return failure();
  order = parser.getBuilder().getArrayAttr(orders);
  return success();
}

ParseResult ProgramOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  SmallVector<OpAsmParser::Argument> views;
  AffineMapAttr grid;
  ArrayAttr order;
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name),
                             result.attributes) ||
      parser.parseArgumentList(views, OpAsmParser::Delimiter::Paren,
                               /*allowType=*/true) ||
      parser.parseKeyword("grid") ||
      parser.parseAttribute(grid, getGridAttrName(result.name),
                            result.attributes) ||
      parser.parseKeyword("order") || parseOrder(parser, order) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  result.addAttribute(getOrderAttrName(result.name), order);
  return parser.parseRegion(*result.addRegion(), views);
}

void ProgramOp::print(OpAsmPrinter &p) {
  p << " ";
  p.printSymbolName(getSymName());
  p << "(";
  llvm::interleaveComma(
      getViews(), p, [&](BlockArgument view) { p.printRegionArgument(view); });
  p << ") grid " << getGridAttr() << " order [";
  llvm::interleaveComma(
      getOrder().getAsRange<OrderAttr>(), p,
      [&](OrderAttr order) { p << stringifyOrder(order.getValue()); });
  p << "]";
  p.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(),
      {getSymNameAttrName(), getGridAttrName(), getOrderAttrName()});
  p << " ";
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult ProgramOp::verify() {
  AffineMap grid = getGrid();
  if (grid.getNumDims() != 0 || grid.getNumSymbols() != kNumSymbols)
    return emitOpError("grid must be a map of the ")
           << kNumSymbols
           << " symbols [tokens, segments, longest, slots, context, depth] and "
              "no dims, got "
           << grid.getNumSymbols() << " symbols and " << grid.getNumDims()
           << " dims";
  if (grid.getNumResults() > 4)
    return emitOpError("grid has ")
           << grid.getNumResults() << " dims, at most 4 are possible; "
           << "merge dims and take them apart with arith.divui";
  if (getOrder().size() != grid.getNumResults())
    return emitOpError("grid has ")
           << grid.getNumResults() << " dims but order has "
           << getOrder().size() << " words; give one word per dim";
  for (BlockArgument view : getViews())
    if (!isa<ViewType>(view.getType()))
      return emitOpError("argument ")
             << view.getArgNumber() << " must be a view, got "
             << view.getType();
  if (getBlock().empty() || !isa<ReturnOp>(getBlock().back()))
    return emitOpError("body must end with tile.return");
  return success();
}

/// What the body of a program may use beside the tile dialect. Anything else
/// would be known to some targets only.
static bool isAllowedInProgram(Operation *op) {
  return isa<TileDialect, arith::ArithDialect, math::MathDialect>(
             op->getDialect()) ||
         isa<scf::ForOp, scf::IfOp, scf::YieldOp, tensor::ExtractOp>(op);
}

LogicalResult ProgramOp::verifyRegions() {
  llvm::StringMap<Operation *> named;
  WalkResult result = getBody().walk([&](Operation *op) -> WalkResult {
    if (!op->getDialect() || !isAllowedInProgram(op)) {
      op->emitOpError("is not allowed in a tile.program; use tile, arith, "
                      "math, scf.for, scf.if "
                      "and tensor.extract");
      return WalkResult::interrupt();
    }
    for (Type type : op->getResultTypes())
      if (auto tensor = dyn_cast<TensorType>(type);
          tensor && !tensor.hasStaticShape()) {
        op->emitOpError("gives ")
            << type << "; every tile of a program has a static shape";
        return WalkResult::interrupt();
      }
    auto name = op->getAttrOfType<StringAttr>(TileDialect::kNameAttr);
    if (!name)
      return WalkResult::advance();
    auto [it, inserted] = named.try_emplace(name.getValue(), op);
    if (inserted)
      return WalkResult::advance();
    auto error = op->emitOpError("has the name '")
                 << name.getValue() << "' of another op; names "
                 << "are unique in a program";
    error.attachNote(it->second->getLoc()) << "the other op is here";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

Operation *ProgramOp::lookupNamedOp(StringRef name) {
  Operation *found = nullptr;
  getBody().walk([&](Operation *op) {
    auto attr = op->getAttrOfType<StringAttr>(TileDialect::kNameAttr);
    if (!attr || attr.getValue() != name)
      return WalkResult::advance();
    found = op;
    return WalkResult::interrupt();
  });
  return found;
}

bool ProgramOp::writes(BlockArgument view) {
  return llvm::any_of(view.getUses(), [](OpOperand &use) {
    return isa<StoreOp, StoreScalarOp, StoreRowsOp, AccumulateOp>(
        use.getOwner());
  });
}

//===----------------------------------------------------------------------===//
// IdOp
//===----------------------------------------------------------------------===//

LogicalResult IdOp::verify() {
  auto program = (*this)->getParentOfType<ProgramOp>();
  if (!program)
    return emitOpError("must be inside a tile.program");
  if (getDim() >= program.getGridRank())
    return emitOpError("asks for grid dim ")
           << getDim() << ", but the grid of @" << program.getSymName()
           << " has " << program.getGridRank();
  return success();
}

//===----------------------------------------------------------------------===//
// ScheduleOp
//===----------------------------------------------------------------------===//

/// The keys an entry of `roles` or `ops` may have, and whether they are
/// integers.
static std::optional<bool> isIntegerKey(StringRef key, bool isRole) {
  if (isRole)
    return llvm::StringSwitch<std::optional<bool>>(key)
        .Cases({"warpgroups", "registers"}, true)
        .Default(std::nullopt);
  return llvm::StringSwitch<std::optional<bool>>(key)
      .Cases({"stage", "buffers", "issue", "wait"}, true)
      .Cases({"role", "barrier", "operand"}, false)
      .Default(std::nullopt);
}

static LogicalResult verifyRecord(ScheduleOp op, StringRef what,
                                  NamedAttribute entry) {
  bool isRole = what == "role";
  auto record = dyn_cast<DictionaryAttr>(entry.getValue());
  if (!record)
    return op.emitOpError(what)
           << " '" << entry.getName().getValue() << "' needs a dictionary, got "
           << entry.getValue();
  for (NamedAttribute field : record) {
    std::optional<bool> integer = isIntegerKey(field.getName(), isRole);
    if (!integer)
      return op.emitOpError(what)
             << " '" << entry.getName().getValue() << "' has the unknown key '"
             << field.getName().getValue() << "'; keys are "
             << (isRole
                     ? "warpgroups, registers"
                     : "role, stage, buffers, issue, barrier, operand, wait");
    auto number = dyn_cast<IntegerAttr>(field.getValue());
    if (*integer ? !number || number.getInt() < 0
                 : !isa<StringAttr>(field.getValue()))
      return op.emitOpError(what)
             << " '" << entry.getName().getValue() << "' needs "
             << (*integer ? "a non-negative integer" : "a string") << " for '"
             << field.getName().getValue() << "', got " << field.getValue();
  }
  return success();
}

LogicalResult ScheduleOp::verify() {
  for (NamedAttribute role : getRoles())
    if (failed(verifyRecord(*this, "role", role)))
      return failure();
  for (NamedAttribute entry : getOps()) {
    if (failed(verifyRecord(*this, "op", entry)))
      return failure();
    auto role =
        cast<DictionaryAttr>(entry.getValue()).getAs<StringAttr>("role");
    if (!role)
      return emitOpError("op '")
             << entry.getName().getValue() << "' has no role";
    if (!getRoles().contains(role))
      return emitOpError("op '")
             << entry.getName().getValue() << "' has the role " << role
             << ", which is not declared in roles";
  }
  return success();
}

LogicalResult ScheduleOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  auto program =
      symbolTable.lookupNearestSymbolFrom<ProgramOp>(*this, getProgramAttr());
  if (!program)
    return emitOpError("there is no tile.program ") << getProgramAttr();
  for (NamedAttribute entry : getOps())
    if (!program.lookupNamedOp(entry.getName())) {
      auto error = emitOpError("no op of @")
                   << program.getSymName() << " has the name '"
                   << entry.getName().getValue() << "'; give one a "
                   << TileDialect::kNameAttr;
      error.attachNote(program.getLoc()) << "the program is here";
      return error;
    }
  return success();
}
