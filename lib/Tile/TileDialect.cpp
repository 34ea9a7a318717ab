//===- TileDialect.cpp - the tile dialect -*- C++ -*-===//
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
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace hybrid::tile;

#include "hybrid/Tile/TileDialect.cpp.inc"

#include "hybrid/Tile/TileEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "hybrid/Tile/TileAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "hybrid/Tile/TileTypes.cpp.inc"

void TileDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "hybrid/Tile/TileAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "hybrid/Tile/TileTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "hybrid/Tile/TileOps.cpp.inc"
      >();
}

static bool areViews(ProgramOp program, ArrayRef<int64_t> numbers) {
  int64_t count = program.getViews().size();
  return llvm::all_of(numbers, [&](int64_t n) { return n >= 0 && n < count; });
}

LogicalResult TileDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attr) {
  if (attr.getName() == kCautionAttr) {
    if (isa<ProgramOp>(op) && isa<StringAttr>(attr.getValue()))
      return success();
    return op->emitOpError("'")
           << kCautionAttr << "' is a string on a tile.program, got "
           << attr.getValue() << " on '" << op->getName() << "'";
  }
  if (attr.getName() == kOverlapAttr) {
    auto program = dyn_cast<ProgramOp>(op);
    auto numbers = dyn_cast<DenseI64ArrayAttr>(attr.getValue());
    if (program && numbers && areViews(program, numbers.asArrayRef()))
      return success();
    return op->emitOpError("'")
           << kOverlapAttr
           << "' is an array<i64> of numbers of a tile.program's views, got "
           << attr.getValue() << " on '" << op->getName() << "'";
  }
  if (attr.getName() == kWarpsAttr) {
    auto warps = dyn_cast<IntegerAttr>(attr.getValue());
    if (isa<ProgramOp>(op) && warps && warps.getType().isInteger(64) &&
        warps.getInt() >= 1 && warps.getInt() <= 64)
      return success();
    return op->emitOpError("'")
           << kWarpsAttr << "' is an i64 from 1 to 64 on a tile.program, got "
           << attr.getValue() << " on '" << op->getName() << "'";
  }
  if (attr.getName() != kNameAttr)
    return op->emitOpError("has an unknown attribute '")
           << attr.getName().getValue()
           << "'; the tile dialect gives other ops only '" << kNameAttr << "'";
  if (!isa<StringAttr>(attr.getValue()))
    return op->emitOpError("'")
           << kNameAttr << "' must be a string, got " << attr.getValue();
  if (!op->getParentOfType<ProgramOp>())
    return op->emitOpError("'")
           << kNameAttr
           << "' names ops of a tile.program; this op is outside of one";
  return success();
}

//===----------------------------------------------------------------------===//
// ViewType
//===----------------------------------------------------------------------===//

SmallVector<int64_t> ViewType::contiguousStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t d = static_cast<int64_t>(shape.size()) - 2; d >= 0; --d) {
    bool known = !ShapedType::isDynamic(shape[d + 1]) &&
                 !ShapedType::isDynamic(strides[d + 1]);
    // A stride that is no 64-bit number is refused with the shape.
    if (!known || llvm::MulOverflow(shape[d + 1], strides[d + 1], strides[d]))
      strides[d] = ShapedType::kDynamic;
  }
  return strides;
}

LogicalResult ViewType::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<int64_t> shape, Type elementType,
                               ArrayRef<int64_t> strides) {
  if (shape.empty() || shape.size() > 4)
    return emitError() << "a view has 1 to 4 dims, got " << shape.size()
                       << "; merge dims or index the outer ones before";
  if (!elementType.isFloat() && !elementType.isInteger(32))
    return emitError() << "a view holds floats or i32, got " << elementType;
  if (strides.size() != shape.size())
    return emitError() << "a view has one stride per dim, got "
                       << strides.size() << " strides for " << shape.size()
                       << " dims";
  for (auto [size, stride] : llvm::zip_equal(shape, strides))
    if ((size < 0 && !ShapedType::isDynamic(size)) ||
        (stride < 0 && !ShapedType::isDynamic(stride)))
      return emitError()
             << "sizes and strides of a view are not negative, got size "
             << size << " and stride " << stride;
  int64_t elements = 1;
  for (int64_t size : shape)
    if (!ShapedType::isDynamic(size) &&
        llvm::MulOverflow(elements, std::max<int64_t>(size, 1), elements))
      return emitError() << "a view of more elements than a 64-bit number "
                            "counts cannot be addressed";
  if (strides.back() != 1)
    return emitError() << "the last stride of a view is 1, got "
                       << (ShapedType::isDynamic(strides.back())
                               ? "?"
                               : llvm::Twine(strides.back()).str());
  return success();
}

/// stride-list ::= `[` (`?` | integer) (`,` (`?` | integer))* `]`
static ParseResult parseStrides(AsmParser &parser,
                                SmallVectorImpl<int64_t> &strides) {
  return parser.parseCommaSeparatedList(
      AsmParser::Delimiter::Square, [&]() -> ParseResult {
        if (succeeded(parser.parseOptionalQuestion())) {
          strides.push_back(ShapedType::kDynamic);
          return success();
        }
        return parser.parseInteger(strides.emplace_back());
      });
}

Type ViewType::parse(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> shape, strides;
  Type elementType;
  if (parser.parseLess() || parser.parseDimensionList(shape) ||
      parser.parseType(elementType))
    return {};
  if (succeeded(parser.parseOptionalComma())) {
    if (parser.parseKeyword("strides") || parser.parseEqual() ||
        parseStrides(parser, strides))
      return {};
  } else {
    strides = contiguousStrides(shape);
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<ViewType>(loc, parser.getContext(), shape,
                                     elementType, strides);
}

void ViewType::print(AsmPrinter &printer) const {
  printer << "<";
  printer.printDimensionList(getShape());
  printer << "x" << getElementType();
  if (!isContiguous()) {
    printer << ", strides = [";
    llvm::interleaveComma(getStrides(), printer.getStream(),
                          [&](int64_t stride) {
                            if (ShapedType::isDynamic(stride))
                              printer << "?";
                            else
                              printer << stride;
                          });
    printer << "]";
  }
  printer << ">";
}
