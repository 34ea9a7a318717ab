//===- GraphOps.cpp - verifiers and syntax of GraphOps.td -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SpecSyntax.h"

using namespace mlir;
using namespace hybrid;

#include "hybrid/Hybrid/GraphInterfaces.cpp.inc"

#define GET_OP_CLASSES
#include "hybrid/Hybrid/GraphOps.cpp.inc"

using MaybeLocation = std::optional<Location>;

//===----------------------------------------------------------------------===//
// Embedding and products
//===----------------------------------------------------------------------===//

LogicalResult EmbedOp::inferReturnTypes(MLIRContext *, MaybeLocation location,
                                        Adaptor adaptor,
                                        SmallVectorImpl<Type> &results) {
  auto ids = cast<RankedTensorType>(adaptor.getIds().getType());
  auto table = cast<RankedTensorType>(adaptor.getTable().getType());
  results.push_back(
      RankedTensorType::get({ids.getDimSize(0), table.getDimSize(1)},
                            table.getElementType(), ids.getEncoding()));
  return success();
}

LogicalResult EmbedGradOp::verify() {
  int64_t width = getDy().getType().getDimSize(1);
  int64_t tableWidth = getDtable().getType().getDimSize(1);
  if (width != tableWidth)
    return emitOpError() << "dy has " << width << " channels but the table has "
                         << tableWidth;
  return success();
}

LogicalResult ProductOp::inferReturnTypes(MLIRContext *, MaybeLocation location,
                                          Adaptor adaptor,
                                          SmallVectorImpl<Type> &results) {
  auto a = cast<RankedTensorType>(adaptor.getA().getType());
  auto b = cast<RankedTensorType>(adaptor.getB().getType());
  bool transposeA = adaptor.getTransposeA(),
       transposeB = adaptor.getTransposeB();
  int64_t innerA = a.getDimSize(transposeA ? 0 : 1);
  int64_t innerB = b.getDimSize(transposeB ? 1 : 0);
  if (innerA != innerB) {
    auto spell = [](int64_t size) {
      return ShapedType::isDynamic(size) ? std::string("?")
                                         : std::to_string(size);
    };
    return emitOptionalError(
        location, "product sums over ", spell(innerA), " columns of a but ",
        spell(innerB),
        " rows of b; transpose_a and transpose_b say which dimension is "
        "summed");
  }
  if (a.getElementType() != b.getElementType())
    return emitOptionalError(location, "product multiplies ",
                             a.getElementType(), " by ", b.getElementType(),
                             "; put a hybrid.cast in front of one of them");
  // The rows of the result are those of a, so it is per token or per segment as
  // a is.
  Attribute encoding = transposeA ? Attribute() : a.getEncoding();
  results.push_back(RankedTensorType::get(
      {a.getDimSize(transposeA ? 1 : 0), b.getDimSize(transposeB ? 0 : 1)},
      a.getElementType(), encoding));
  return success();
}

/// The sums are f32 and may be stored as such.
bool ProductOp::isCompatibleReturnTypes(TypeRange inferred, TypeRange actual) {
  auto narrow = cast<RankedTensorType>(inferred.front());
  return actual.size() == 1 &&
         (actual.front() == narrow ||
          actual.front() ==
              narrow.clone(Float32Type::get(narrow.getContext())));
}

//===----------------------------------------------------------------------===//
// Heads
//===----------------------------------------------------------------------===//

LogicalResult CrossEntropyOp::inferReturnTypes(MLIRContext *,
                                               MaybeLocation location,
                                               Adaptor adaptor,
                                               SmallVectorImpl<Type> &results) {
  results.push_back(adaptor.getWeights().getType());
  return success();
}

LogicalResult LastRowsOp::inferReturnTypes(MLIRContext *context,
                                           MaybeLocation location,
                                           Adaptor adaptor,
                                           SmallVectorImpl<Type> &results) {
  auto x = cast<RankedTensorType>(adaptor.getX().getType());
  results.push_back(
      RankedTensorType::get({ShapedType::kDynamic, x.getDimSize(1)},
                            x.getElementType(), PerSegmentAttr::get(context)));
  return success();
}

//===----------------------------------------------------------------------===//
// RowwiseOp
//===----------------------------------------------------------------------===//

ParseResult RowwiseOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  auto parseBinding = [&]() -> ParseResult {
    return failure(parser.parseArgument(arguments.emplace_back()) ||
                   parser.parseEqual() ||
                   parser.parseOperand(operands.emplace_back()) ||
                   parser.parseColonType(arguments.back().type));
  };
  SMLoc start = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren,
                                     parseBinding) ||
      parser.parseOptionalArrowTypeList(result.types) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();

  SmallVector<Type> types =
      llvm::map_to_vector(arguments, [](const OpAsmParser::Argument &argument) {
        return argument.type;
      });
  if (parser.resolveOperands(operands, types, start, result.operands) ||
      parser.parseRegion(*result.addRegion(), arguments))
    return failure();
  ensureTerminator(*result.regions.front(), parser.getBuilder(),
                   result.location);
  return success();
}

void RowwiseOp::print(OpAsmPrinter &printer) {
  printer << " (";
  llvm::interleaveComma(llvm::zip(getBody().getArguments(), getInputs()),
                        printer, [&](auto binding) {
                          auto [argument, input] = binding;
                          printer.printRegionArgument(argument, {},
                                                      /*omitType=*/true);
                          printer << " = " << input << " : " << input.getType();
                        });
  printer << ")";
  printer.printOptionalArrowTypeList(getResultTypes());
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs());
  printer << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult RowwiseOp::verify() {
  TypeRange inputs = getInputs().getTypes(),
            arguments = getBody().getArgumentTypes();
  if (inputs.size() != arguments.size())
    return emitOpError() << "has " << inputs.size()
                         << " inputs but its block has " << arguments.size()
                         << " arguments";
  for (auto [index, input, argument] : llvm::enumerate(inputs, arguments))
    if (input != argument)
      return emitOpError() << "input " << index << " is " << input
                           << " but block argument " << index << " is "
                           << argument;
  return success();
}

LogicalResult RowwiseOp::verifyRegions() {
  for (Operation &op : getBody().front().without_terminator()) {
    auto rowwise = dyn_cast<RowwiseOpInterface>(op);
    if (!rowwise || !rowwise.isRowwise()) {
      InFlightDiagnostic error =
          emitOpError() << "may hold row-wise operations only, but holds '"
                        << op.getName() << "'; move it out of the region";
      error.attachNote(op.getLoc()) << "the operation is here";
      return error;
    }
  }
  auto yield = cast<YieldOp>(getBody().front().getTerminator());
  if (yield.getValues().getTypes() != getResultTypes())
    return emitOpError() << "yields " << yield.getValues().getTypes()
                         << " but has the results " << getResultTypes();
  return success();
}
