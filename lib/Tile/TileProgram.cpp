//===- TileProgram.cpp - programs and schedules -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Tile/ProgramFormat.h"
#include "hybrid/Tile/TileOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

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

ParseResult
hybrid::tile::parseProgramHead(OpAsmParser &parser, OperationState &result,
                               StringAttr nameAttr, StringAttr gridAttr,
                               SmallVectorImpl<OpAsmParser::Argument> &views) {
  StringAttr name;
  AffineMapAttr grid;
  return failure(parser.parseSymbolName(name, nameAttr, result.attributes) ||
                 parser.parseArgumentList(views, OpAsmParser::Delimiter::Paren,
                                          /*allowType=*/true) ||
                 parser.parseKeyword("grid") ||
                 parser.parseAttribute(grid, gridAttr, result.attributes));
}

void hybrid::tile::printProgramHead(OpAsmPrinter &p, StringRef name,
                                    ArrayRef<BlockArgument> views,
                                    AffineMapAttr grid) {
  p << " ";
  p.printSymbolName(name);
  p << "(";
  llvm::interleaveComma(
      views, p, [&](BlockArgument view) { p.printRegionArgument(view); });
  p << ") grid " << grid;
}

void hybrid::tile::printProgramTail(OpAsmPrinter &p, Operation *op,
                                    ArrayRef<StringRef> printedAttrs) {
  p.printOptionalAttrDictWithKeyword(op->getAttrs(), printedAttrs);
  p << " ";
  p.printRegion(op->getRegion(0), /*printEntryBlockArgs=*/false);
}

ParseResult ProgramOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::Argument> views;
  ArrayAttr order;
  if (parseProgramHead(parser, result, getSymNameAttrName(result.name),
                       getGridAttrName(result.name), views) ||
      parser.parseKeyword("order") || parseOrder(parser, order) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  result.addAttribute(getOrderAttrName(result.name), order);
  return parser.parseRegion(*result.addRegion(), views);
}

void ProgramOp::print(OpAsmPrinter &p) {
  printProgramHead(p, getSymName(), getViews(), getGridAttr());
  p << " order [";
  llvm::interleaveComma(
      getOrder().getAsRange<OrderAttr>(), p,
      [&](OrderAttr order) { p << stringifyOrder(order.getValue()); });
  p << "]";
  printProgramTail(
      p, *this, {getSymNameAttrName(), getGridAttrName(), getOrderAttrName()});
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
  for (auto [dim, size] : llvm::enumerate(grid.getResults()))
    if (auto known = dyn_cast<AffineConstantExpr>(size);
        known && known.getValue() < 0)
      return emitOpError("grid dim ")
             << dim << " is " << known.getValue()
             << "; write a number from 0 on, or an expression of the symbols";
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

ArrayRef<StringRef> hybrid::tile::elementwiseOps() {
  static constexpr StringRef names[] = {
      "arith.addf",       "arith.addi",       "arith.andi",
      "arith.ceildivsi",  "arith.ceildivui",  "arith.cmpf",
      "arith.cmpi",       "arith.divf",       "arith.divsi",
      "arith.divui",      "arith.extf",       "arith.extsi",
      "arith.extui",      "arith.floordivsi", "arith.fptosi",
      "arith.index_cast", "arith.maximumf",   "arith.maxsi",
      "arith.minimumf",   "arith.minsi",      "arith.mulf",
      "arith.muli",       "arith.negf",       "arith.ori",
      "arith.remsi",      "arith.remui",      "arith.select",
      "arith.shrui",      "arith.sitofp",     "arith.subf",
      "arith.subi",       "arith.truncf",     "arith.trunci",
      "arith.uitofp",     "arith.xori",       "math.absf",
      "math.cos",         "math.erf",         "math.exp",
      "math.exp2",        "math.expm1",       "math.floor",
      "math.fma",         "math.log",         "math.log1p",
      "math.rsqrt",       "math.sin",         "math.sqrt",
      "math.tanh"};
  return names;
}

/// What the body of a program may use beside the tile dialect. Anything else
/// would be known to some targets only.
static bool isAllowedInProgram(Operation *op) {
  return isa<TileDialect>(op->getDialect()) ||
         isa<scf::ForOp, scf::IfOp, scf::YieldOp, tensor::ExtractOp,
             arith::ConstantOp>(op) ||
         llvm::is_contained(elementwiseOps(), op->getName().getStringRef());
}

/// A scalar, or a tile of rank 1 to 3 without empty dims.
static bool isProgramType(Type type) {
  auto tile = dyn_cast<RankedTensorType>(type);
  if (isa<ShapedType>(type) &&
      (!tile || !tile.hasStaticShape() || tile.getRank() < 1 ||
       tile.getRank() > 3 || tile.getNumElements() == 0 || tile.getEncoding()))
    return false;
  Type element = getElementTypeOrSelf(type);
  return isa<FloatType>(element) || element.isInteger(1) ||
         element.isInteger(32) ||
         (!tile && (element.isIndex() || element.isInteger(64)));
}

/// Checks one op of a body by itself.
static LogicalResult verifyBodyOp(Operation *op) {
  if (!op->getDialect() || !isAllowedInProgram(op))
    return op->emitOpError("is not allowed in a tile.program; use tile, "
                           "scf.for, scf.if, tensor.extract and the arith and "
                           "math ops that every target knows");
  for (Type type : op->getResultTypes())
    if (!isProgramType(type))
      return op->emitOpError("gives ")
             << type << "; values of a program are scalars and tiles of static "
             << "shape, rank 1 to 3, of floats, i32 or i1";
  if (auto loop = dyn_cast<scf::ForOp>(op))
    if (!loop.getInductionVar().getType().isIndex() || loop.getUnsignedCmp())
      return op->emitOpError("counts in ")
             << (loop.getUnsignedCmp() ? "unsigned " : "")
             << loop.getInductionVar().getType()
             << "; loops of a program count in index";
  if (auto relaxed = dyn_cast<arith::ArithFastMathInterface>(op))
    if (arith::FastMathFlagsAttr flags = relaxed.getFastMathFlagsAttr();
        flags && flags.getValue() != arith::FastMathFlags::none)
      return op->emitOpError("has fast-math flags; the numbers of a program "
                             "are those of its ops in their order");
  return success();
}

LogicalResult ProgramOp::verifyRegions() {
  llvm::StringMap<Operation *> named;
  WalkResult result = getBody().walk([&](Operation *op) -> WalkResult {
    if (failed(verifyBodyOp(op)))
      return WalkResult::interrupt();
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

/// The words that `barrier` and `operand` may be.
static ArrayRef<StringRef> wordsOf(StringRef key) {
  static constexpr StringRef barriers[] = {"mbarrier", "named", "turn"};
  static constexpr StringRef places[] = {"registers", "shared"};
  if (key == "barrier")
    return barriers;
  return key == "operand" ? ArrayRef(places) : ArrayRef<StringRef>();
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
    ArrayRef<StringRef> words = wordsOf(field.getName());
    if (!words.empty() &&
        !llvm::is_contained(words, cast<StringAttr>(field.getValue())))
      return op.emitOpError(what)
             << " '" << entry.getName().getValue() << "' has "
             << field.getValue() << " for '" << field.getName().getValue()
             << "'; write one of " << llvm::join(words, ", ");
  }
  return success();
}

/// Every role has a size, and together they fit the register file of a
/// multiprocessor: 65536 registers, 128 threads in a warpgroup.
static LogicalResult verifyBudget(ScheduleOp op) {
  constexpr int64_t kThreads = 128, kRegisters = 65536;
  int64_t total = 0;
  for (NamedAttribute role : op.getRoles()) {
    auto record = cast<DictionaryAttr>(role.getValue());
    auto field = [&](StringRef key) {
      auto number = record.getAs<IntegerAttr>(key);
      return number ? number.getInt() : 0;
    };
    int64_t groups = field("warpgroups"), registers = field("registers");
    if (groups < 1 || groups > 8)
      return op.emitOpError("role '")
             << role.getName().getValue() << "' has " << groups
             << " warpgroups; a block has 1 to 8";
    if (registers < 24 || registers > 256 || registers % 8 != 0)
      return op.emitOpError("role '")
             << role.getName().getValue() << "' has " << registers
             << " registers per thread; their number is a multiple of 8 from "
                "24 to 256";
    total += groups * kThreads * registers;
  }
  if (total > kRegisters)
    return op.emitOpError("roles take ")
           << total << " registers of a block, a multiprocessor has "
           << kRegisters;
  return success();
}

LogicalResult ScheduleOp::verify() {
  for (NamedAttribute role : getRoles())
    if (failed(verifyRecord(*this, "role", role)))
      return failure();
  if (failed(verifyBudget(*this)))
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
  for (Operation *other = (*this)->getPrevNode(); other;
       other = other->getPrevNode())
    if (auto record = dyn_cast<ScheduleOp>(other);
        record && record.getProgramAttr() == getProgramAttr() &&
        record.getTarget() == getTarget()) {
      auto error = emitOpError("schedules @")
                   << program.getSymName() << " for '" << getTarget()
                   << "' once more; a program has one record per target";
      error.attachNote(record.getLoc()) << "the other record is here";
      return error;
    }
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
