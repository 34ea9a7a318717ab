//===- DispatchOps.cpp - verifiers of the operations in DispatchOps.td ---===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Hybrid/HybridOps.h"
#include "mlir/IR/IntegerSet.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace hybrid;

//===----------------------------------------------------------------------===//
// DispatchOp
//===----------------------------------------------------------------------===//

std::optional<unsigned> DispatchOp::getTiedInput(unsigned result) {
  ArrayRef<int64_t> ties = getTies().value_or(ArrayRef<int64_t>());
  for (size_t i = 0; i + 1 < ties.size(); i += 2)
    if (ties[i] == result)
      return ties[i + 1];
  return std::nullopt;
}

DispatchOp DispatchOp::getFactors() {
  return getProductAttr().getParts()
             ? getInputs().front().getDefiningOp<DispatchOp>()
             : *this;
}

static RankedTensorType matrixType(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() == 2 && isa<FloatType>(type.getElementType())
             ? type
             : RankedTensorType();
}

/// That the factors of a plain product and its result fit each other, and that
/// nothing else is read.
static LogicalResult verifyProduct(DispatchOp op) {
  PlainProductAttr product = op.getProductAttr();
  unsigned added = op.getTiedInput(0) ? 1 : 0, own = product.getParts() ? 1 : 2;
  if (op.getNumResults() != 1 || op.getInputs().size() != own + added ||
      (added && op.getTiedInput(0) != own))
    return op.emitOpError("is a plain product of ")
           << op.getInputs().size() << " inputs and " << op.getNumResults()
           << " results, expected " << own
           << " inputs, then what it is added to and tied to, and 1 result";
  DispatchOp factors = op.getFactors();
  if (!factors || (product.getParts() && factors.getInputs().size() != 2))
    return op.emitOpError("is a plain product of parts, but input 0 is not the "
                          "result of a dispatch of two factors");
  auto a = matrixType(factors.getInputs()[0]);
  auto b = matrixType(factors.getInputs()[1]);
  auto c = matrixType(op.getResult(0));
  if (!a || !b || !c || a.getElementType() != b.getElementType())
    return op.emitOpError("is a plain product of ")
           << factors.getInputs()[0].getType() << " and "
           << factors.getInputs()[1].getType() << " that gives "
           << op.getResult(0).getType()
           << "; expected matrices, the factors of one float type";
  bool ta = product.getTransposeA(), tb = product.getTransposeB();
  auto agree = [](int64_t x, int64_t y) {
    return x == y || ShapedType::isDynamic(x) || ShapedType::isDynamic(y);
  };
  if (!agree(a.getDimSize(ta ? 0 : 1), b.getDimSize(tb ? 1 : 0)) ||
      !agree(a.getDimSize(ta ? 1 : 0), c.getDimSize(0)) ||
      !agree(b.getDimSize(tb ? 0 : 1), c.getDimSize(1)))
    return op.emitOpError("is a plain product of ")
           << a << " and " << b << " that gives " << c
           << "; rows, columns and depth do not agree";
  return success();
}

LogicalResult DispatchOp::verify() {
  ArrayRef<int64_t> ties = getTies().value_or(ArrayRef<int64_t>());
  if (ties.size() % 2)
    return emitOpError("ties has ")
           << ties.size()
           << " entries, but they come in pairs of (result, input)";
  llvm::SmallDenseSet<int64_t> results, inputs;
  for (size_t i = 0; i < ties.size(); i += 2) {
    int64_t result = ties[i], input = ties[i + 1];
    if (result < 0 || result >= getNumResults())
      return emitOpError("ties names result ")
             << result << ", but there are " << getNumResults();
    if (input < 0 || input >= getNumOperands())
      return emitOpError("ties names input ")
             << input << ", but there are " << getNumOperands();
    if (!results.insert(result).second || !inputs.insert(input).second)
      return emitOpError("ties result ")
             << result << " to input " << input
             << ", but one of them is tied already; a tie is one to one";
    Type resultType = getResult(result).getType();
    Type inputType = getOperand(input).getType();
    if (resultType != inputType)
      return emitOpError("ties result ")
             << result << " of type " << resultType << " to input " << input
             << " of type " << inputType << "; tied values have one type";
  }
  return getProductAttr() ? verifyProduct(*this) : success();
}

LogicalResult DispatchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!symbols.lookupNearestSymbolFrom(*this, getProgramAttr()))
    return emitOpError("names program ")
           << getProgramAttr() << ", which is not in the module";
  return success();
}

//===----------------------------------------------------------------------===//
// AlternativesOp
//===----------------------------------------------------------------------===//

static constexpr unsigned numSymbols = 6;

LogicalResult AlternativesOp::verify() {
  if (getAlgorithms().size() != getGuards().size() + 1)
    return emitOpError("has ")
           << getGuards().size() << " guards and " << getAlgorithms().size()
           << " regions; every region but the last has a guard";
  for (Attribute guard : getGuards()) {
    auto set = dyn_cast<IntegerSetAttr>(guard);
    if (!set)
      return emitOpError("guard ") << guard << " is not an integer set";
    if (set.getValue().getNumConstraints() != 1 ||
        set.getValue().getNumDims() != 0 ||
        set.getValue().getNumSymbols() != numSymbols)
      return emitOpError("guard ")
             << guard << " must be one constraint over the " << numSymbols
             << " symbols of a call";
    if (set.getValue().isEq(0))
      return emitOpError("guard ")
             << guard << " must be an inequality, so that it can be negated";
  }
  for (Region &algorithm : getAlgorithms()) {
    auto yield = dyn_cast<YieldOp>(algorithm.front().back());
    if (!yield)
      return emitOpError("region must end with hybrid.yield");
    if (TypeRange(yield.getValues()) != getResultTypes()) {
      InFlightDiagnostic diagnostic =
          emitOpError("region yields other types than the op's results");
      diagnostic.attachNote(yield.getLoc()) << "yielded here";
      return diagnostic;
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// PiecesOp
//===----------------------------------------------------------------------===//

/// A tensor with one row per token.
static bool isPerToken(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return !tensor.getEncoding() && tensor.getRank() > 0 &&
         tensor.isDynamicDim(0) && tensor.getNumDynamicDims() == 1;
}

Value PiecesOp::getYielded(OpResult result) {
  return getBlock().getTerminator()->getOperand(result.getResultNumber());
}

LogicalResult PiecesOp::verify() {
  if (!isa<FunctionOpInterface>((*this)->getParentOp()))
    return emitOpError("stands in ")
           << (*this)->getParentOp()->getName()
           << "; pieces are made of all rows of a function's stream";
  if (getRows() < 1)
    return emitOpError("has pieces of ") << getRows() << " rows, at least 1";
  for (Value stream : getStreams())
    if (!isPerToken(stream.getType()))
      return emitOpError("cuts ")
             << stream.getType()
             << ", which has no row per token; capture it whole";
  for (Value sum : getSums())
    if (!cast<RankedTensorType>(sum.getType()).hasStaticShape())
      return emitOpError("has a sum of type ")
             << sum.getType() << "; a sum over pieces has a static shape";
  if (getNumResults() < getSums().size())
    return emitOpError("has ")
           << getSums().size() << " sums and " << getNumResults()
           << " results; each sum is one";
  for (OpResult result : getResults())
    if (!isSum(result) && !isPerToken(result.getType()))
      return emitOpError("result ")
             << result.getResultNumber() << " of type " << result.getType()
             << " has no row per token; only sums are put together otherwise";
  if (getBlock().empty() || !isa<YieldOp>(getBlock().back()))
    return emitOpError("region must end with hybrid.yield");
  return success();
}

LogicalResult PiecesOp::verifyRegions() {
  Block &block = getBlock();
  if (block.getArgumentTypes() != getOperandTypes())
    return emitOpError("block has ")
           << block.getNumArguments()
           << " arguments, expected one of the type of each of "
           << getNumOperands() << " operands";
  auto yield = cast<YieldOp>(block.back());
  if (TypeRange(yield.getValues()) != getResultTypes()) {
    InFlightDiagnostic diagnostic =
        emitOpError("region yields other types than the op's results");
    diagnostic.attachNote(yield.getLoc()) << "yielded here";
    return diagnostic;
  }
  for (auto [sum, result] :
       llvm::zip_equal(getSums(), getResults().take_back(getSums().size())))
    if (sum.getType() != result.getType())
      return emitOpError("sum of type ")
             << sum.getType() << " gives a result of type " << result.getType();
  WalkResult walk = getBody().walk([&](Operation *op) {
    for (Value value : op->getOperands()) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      if (getBody().isAncestor(value.getParentRegion()) ||
          (type && type.hasStaticShape()))
        continue;
      emitOpError("reads ") << value.getType()
                            << " from outside, whose rows are not those of a "
                               "piece; make it an operand";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

#define GET_OP_CLASSES
#include "hybrid/Hybrid/DispatchOps.cpp.inc"
