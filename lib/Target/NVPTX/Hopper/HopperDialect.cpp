//===- HopperDialect.cpp - the hopper dialect and its types ---------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Target/NVPTX/Hopper/HopperOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace hybrid::hopper;

#include "hybrid/Target/NVPTX/Hopper/HopperDialect.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "hybrid/Target/NVPTX/Hopper/HopperTypes.cpp.inc"

void HopperDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "hybrid/Target/NVPTX/Hopper/HopperTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "hybrid/Target/NVPTX/Hopper/HopperOps.cpp.inc"
      >();
}

LogicalResult HopperDialect::verifyOperationAttribute(Operation *op,
                                                      NamedAttribute attr) {
  StringRef name = attr.getName();
  Attribute value = attr.getValue();
  StringRef kind;
  bool isKind = false;
  if (name == kTraversalAttr || name == kDescendingAttr) {
    kind = "an array of i64";
    isKind = isa<DenseI64ArrayAttr>(value);
  } else if (name == kGroupAttr) {
    kind = "a number";
    isKind = isa<IntegerAttr>(value);
  } else if (name == kPersistentAttr) {
    kind = "a unit attribute";
    isKind = isa<UnitAttr>(value);
  } else {
    return op->emitOpError("has an unknown attribute '")
           << name << "'; the hopper dialect gives a tile.schedule '"
           << kTraversalAttr << "', '" << kDescendingAttr << "', '"
           << kGroupAttr << "' and '" << kPersistentAttr << "'";
  }
  if (!isa<tile::ScheduleOp>(op) || !isKind)
    return op->emitOpError("'")
           << name << "' is " << kind << " on a tile.schedule, got " << value;
  return success();
}

//===----------------------------------------------------------------------===//
// Syntax: <4x128x64xbf16>
//===----------------------------------------------------------------------===//

template <typename ShapedType> static Type parseShaped(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> shape;
  Type element;
  if (parser.parseLess() ||
      parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(element) || parser.parseGreater())
    return {};
  return parser.getChecked<ShapedType>(loc, parser.getContext(), shape,
                                       element);
}

template <typename ShapedType>
static void printShaped(ShapedType type, AsmPrinter &printer) {
  printer << "<";
  printer.printDimensionList(type.getShape());
  printer << "x" << type.getElementType() << ">";
}

Type MapType::parse(AsmParser &parser) { return parseShaped<MapType>(parser); }
void MapType::print(AsmPrinter &printer) const { printShaped(*this, printer); }
Type BufferType::parse(AsmParser &parser) {
  return parseShaped<BufferType>(parser);
}
void BufferType::print(AsmPrinter &printer) const {
  printShaped(*this, printer);
}
Type MatrixType::parse(AsmParser &parser) {
  return parseShaped<MatrixType>(parser);
}
void MatrixType::print(AsmPrinter &printer) const {
  printShaped(*this, printer);
}
Type FlightType::parse(AsmParser &parser) {
  return parseShaped<FlightType>(parser);
}
void FlightType::print(AsmPrinter &printer) const {
  printShaped(*this, printer);
}

Type BarriersType::parse(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  int64_t count;
  if (parser.parseLess() || parser.parseInteger(count) || parser.parseGreater())
    return {};
  return parser.getChecked<BarriersType>(loc, parser.getContext(), count);
}
void BarriersType::print(AsmPrinter &printer) const {
  printer << "<" << getCount() << ">";
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

using EmitError = function_ref<InFlightDiagnostic()>;

static LogicalResult verifyHalf(EmitError emitError, StringRef what,
                                Type element) {
  if (element.isBF16() || element.isF16())
    return success();
  return emitError() << "a " << what << " holds bf16 or f16, got " << element
                     << "; the copy engine swizzles rows of 64 such elements";
}

LogicalResult MapType::verify(EmitError emitError, ArrayRef<int64_t> shape,
                              Type element) {
  if (failed(verifyHalf(emitError, "tensor map", element)))
    return failure();
  if (shape.empty() || shape.size() > 4 ||
      shape.back() != BufferType::kPanelColumns)
    return emitError() << "a box has 1 to 4 dims, the last of "
                       << BufferType::kPanelColumns << " elements, got <"
                       << shape << ">";
  for (int64_t size : shape)
    if (size < 1 || size > 256)
      return emitError() << "a box has 1 to 256 elements along a dim, got "
                         << size << "; read the tile as several boxes";
  return success();
}

LogicalResult BufferType::verify(EmitError emitError, ArrayRef<int64_t> shape,
                                 Type element) {
  if (failed(verifyHalf(emitError, "buffer", element)))
    return failure();
  if (shape.size() != 3 || shape[0] < 1)
    return emitError() << "a buffer is copies x rows x columns, got <" << shape
                       << ">";
  if (shape[1] < 8 || shape[1] > 256 || shape[1] % 8 != 0)
    return emitError() << "a buffer has a multiple of 8 rows up to 256, got "
                       << shape[1] << "; the swizzle repeats every 8 rows";
  if (shape[2] < kPanelColumns || shape[2] % kPanelColumns != 0)
    return emitError() << "a buffer has a multiple of " << kPanelColumns
                       << " columns, got " << shape[2];
  return success();
}

LogicalResult MatrixType::verify(EmitError emitError, ArrayRef<int64_t> shape,
                                 Type element) {
  if (failed(verifyHalf(emitError, "matrix", element)))
    return failure();
  if (shape.size() != 3)
    return emitError() << "a matrix is rows x columns x rows of its buffer, "
                          "got <"
                       << shape << ">";
  if (shape[0] > shape[2] || shape[0] % 8 != 0)
    return emitError() << "a matrix has a multiple of 8 rows, no more than the "
                       << shape[2] << " of its buffer, got " << shape[0];
  return success();
}

LogicalResult FlightType::verify(EmitError emitError, ArrayRef<int64_t> shape,
                                 Type element) {
  if (!element.isF32())
    return emitError() << "sums are f32, got " << element;
  if (shape.size() != 2 || shape[0] != kRows || shape[1] < 8 ||
      shape[1] > 256 || shape[1] % 8 != 0)
    return emitError() << "an accumulator has " << kRows
                       << " rows and a multiple of 8 columns up to 256, got <"
                       << shape << ">";
  return success();
}

LogicalResult BarriersType::verify(EmitError emitError, int64_t count) {
  if (count < 1)
    return emitError() << "there is at least one barrier, got " << count;
  return success();
}
