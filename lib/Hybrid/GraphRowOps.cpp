//===- GraphRowOps.cpp - verifiers of the operations in GraphRowOps.td ---===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SpecVerify.h"

#include "hybrid/Hybrid/HybridOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace hybrid;

using MaybeLocation = std::optional<Location>;

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

/// `b` is matched with the last dimensions of `a`, each equal or 1.
static LogicalResult verifyBroadcast(Operation *op, RankedTensorType a,
                                     RankedTensorType b) {
  int64_t skipped = a.getRank() - b.getRank();
  bool matches = skipped >= 0;
  for (int64_t dim = 0; matches && dim < b.getRank(); ++dim)
    matches = b.getDimSize(dim) == 1 ||
              b.getDimSize(dim) == a.getDimSize(skipped + dim);
  if (!matches)
    return op->emitOpError()
           << "cannot stretch b of type " << b << " to a of type " << a
           << "; every dimension of b must be 1 or that of a, counted from the "
              "last";
  // A dynamic size has one meaning, so the encodings agree where both have one.
  if (!b.hasStaticShape() && a.getEncoding() != b.getEncoding())
    return op->emitOpError()
           << "leading sizes of a and b are counted differently: " << a
           << " and " << b;
  return success();
}

LogicalResult AddOp::verify() {
  return verifyBroadcast(*this, getA().getType(), getB().getType());
}
LogicalResult SubOp::verify() {
  return verifyBroadcast(*this, getA().getType(), getB().getType());
}
LogicalResult MulOp::verify() {
  return verifyBroadcast(*this, getA().getType(), getB().getType());
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

LogicalResult CastOp::verify() {
  RankedTensorType from = getX().getType(), to = getResult().getType();
  if (from.getEncoding() != to.getEncoding())
    return emitOpError() << "from " << from << " to " << to
                         << " changes what the dynamic sizes count; a cast "
                            "changes the element type alone";
  if (from == to)
    return emitOpError() << "from " << from
                         << " to the same type changes nothing; use x itself";
  return success();
}

bool CastOp::isParameterCopy() {
  auto argument = dyn_cast<BlockArgument>(getX());
  auto function =
      argument
          ? dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp())
          : FunctionOpInterface();
  auto role = function ? function.getArgAttrOfType<StringAttr>(
                             argument.getArgNumber(), "hybrid.role")
                       : StringAttr();
  return role && role == "param";
}

bool CastOp::isRowwise() { return getX().getType().getRank() > 0; }

//===----------------------------------------------------------------------===//
// Norms and positions
//===----------------------------------------------------------------------===//

template <typename Op> static LogicalResult verifyNorm(Op op) {
  double epsilon = op.getEpsilon().convertToDouble();
  if (!(epsilon > 0))
    return op.emitOpError()
           << "epsilon is " << epsilon
           << " but must be above 0, so that a zero row has a gradient";
  RankedTensorType type = op.getX().getType();
  if (type.getRank() == 0 || type.isDynamicDim(type.getRank() - 1))
    return op.emitOpError()
           << "sums over the last dimension, which must be static in " << type;
  return success();
}

LogicalResult NormalizeOp::verify() { return verifyNorm(*this); }
LogicalResult NormalizeGradOp::verify() { return verifyNorm(*this); }

LogicalResult RotaryOp::verify() {
  int64_t headDim = getX().getType().getDimSize(2), rotaryDim = getRotaryDim();
  if (rotaryDim <= 0 || rotaryDim % 2 != 0)
    return emitOpError()
           << "rotates " << rotaryDim
           << " channels in two halves, so the number must be even and above 0";
  if (rotaryDim > headDim)
    return emitOpError() << "rotates " << rotaryDim
                         << " channels of heads that have " << headDim;
  if (!(getBase().convertToDouble() > 1))
    return emitOpError() << "base is " << getBase().convertToDouble()
                         << " but must be above 1";

  if (getNtkFactor().has_value() != getOriginalLength().has_value())
    return emitOpError() << "has "
                         << (getNtkFactor()
                                 ? "ntk_factor but no original_length"
                                 : "original_length but no ntk_factor")
                         << "; dynamic NTK needs both";
  if (!getNtkFactor())
    return success();
  double factor = getNtkFactor()->convertToDouble();
  if (!(factor >= 1))
    return emitOpError() << "ntk factor is " << factor
                         << " but must be at least 1";
  if (*getOriginalLength() <= 0)
    return emitOpError() << "original length is " << *getOriginalLength()
                         << " but must be above 0";
  if (rotaryDim == 2)
    return emitOpError() << "dynamic NTK raises to the power d / (d - 2), so "
                            "it needs more than 2 "
                            "rotated channels";
  return success();
}

LogicalResult LogNScaleOp::verify() {
  if (getTrained() < 2)
    return emitOpError()
           << "trained length is " << getTrained()
           << " but must be at least 2: rows are divided by its logarithm";
  if (getX().getType().getRank() == 0)
    return emitOpError() << "scales rows, but x of type " << getX().getType()
                         << " has none";
  return success();
}

//===----------------------------------------------------------------------===//
// Dropout
//===----------------------------------------------------------------------===//

LogicalResult DropoutOp::verify() {
  if (failed(verifyDropout(*this, "rate", getRate().convertToDouble())))
    return failure();
  if (getX().getType().getRank() == 0)
    return emitOpError() << "leaves out elements of rows, but x of type "
                         << getX().getType() << " has none";
  return success();
}

//===----------------------------------------------------------------------===//
// Sums and shapes
//===----------------------------------------------------------------------===//

LogicalResult ReduceTokensOp::verify() {
  ArrayRef<int64_t> from = getX().getType().getShape(),
                    to = getResult().getType().getShape();
  if (to.size() >= from.size() || from.take_back(to.size()) != to ||
      !getResult().getType().hasStaticShape())
    return emitOpError() << "result of type " << getResult().getType()
                         << " is not the static end of the shape of "
                         << getX().getType();
  return success();
}

LogicalResult ReduceDimOp::inferReturnTypes(MLIRContext *,
                                            MaybeLocation location,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &results) {
  auto type = cast<RankedTensorType>(adaptor.getX().getType());
  if (type.getRank() < 2)
    return emitOptionalError(
        location,
        "reduce_dim sums over the last of at least 2 dimensions, "
        "but x is ",
        type);
  SmallVector<int64_t> shape(type.getShape());
  shape.back() = 1;
  results.push_back(type.clone(shape));
  return success();
}

/// Elements per index of the leading dimension if that is dynamic, else in all.
static int64_t countStatic(RankedTensorType type) {
  int64_t count = 1;
  for (int64_t size : type.getShape())
    if (!ShapedType::isDynamic(size))
      count *= size;
  return count;
}

static bool hasDynamicRows(RankedTensorType type) {
  return type.getRank() > 0 && type.isDynamicDim(0);
}

LogicalResult ReshapeOp::verify() {
  RankedTensorType from = getX().getType(), to = getResult().getType();
  if (from.getNumDynamicDims() > 1 ||
      from.getNumDynamicDims() != to.getNumDynamicDims() ||
      hasDynamicRows(from) != hasDynamicRows(to) ||
      from.getEncoding() != to.getEncoding())
    return emitOpError()
           << "from " << from << " to " << to
           << " moves the dynamic size; it must stay the leading one";
  if (countStatic(from) != countStatic(to))
    return emitOpError() << "from " << countStatic(from) << " to "
                         << countStatic(to) << " elements"
                         << (hasDynamicRows(from) ? " per row" : "");
  return success();
}

bool ReshapeOp::isRowwise() { return hasDynamicRows(getX().getType()); }

static LogicalResult checkDim(MaybeLocation location, StringRef op,
                              RankedTensorType type, int64_t dim) {
  if (dim < 0 || dim >= type.getRank())
    return emitOptionalError(location, op, " along dimension ", dim, " of ",
                             type, ", which has ", type.getRank(),
                             " dimensions");
  if (type.isDynamicDim(dim))
    return emitOptionalError(
        location, op, " along dimension ", dim, " of ", type,
        ", which is dynamic; only static dimensions are cut and joined");
  return success();
}

LogicalResult SliceOp::inferReturnTypes(MLIRContext *, MaybeLocation location,
                                        Adaptor adaptor,
                                        SmallVectorImpl<Type> &results) {
  auto type = cast<RankedTensorType>(adaptor.getX().getType());
  int64_t dim = adaptor.getDim(), offset = adaptor.getOffset(),
          size = adaptor.getSize();
  if (failed(checkDim(location, "slice", type, dim)))
    return failure();
  if (offset < 0 || size <= 0 || offset > type.getDimSize(dim) - size)
    return emitOptionalError(location, "slice takes ", size, " indices from ",
                             offset, " on, but dimension ", dim, " of ", type,
                             " has ", type.getDimSize(dim));
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = size;
  results.push_back(type.clone(shape));
  return success();
}

bool SliceOp::isRowwise() {
  return getDim() > 0 && hasDynamicRows(getX().getType());
}

LogicalResult ConcatOp::inferReturnTypes(MLIRContext *, MaybeLocation location,
                                         Adaptor adaptor,
                                         SmallVectorImpl<Type> &results) {
  if (adaptor.getParts().empty())
    return emitOptionalError(location,
                             "concat has no operands, expected at least 1");
  auto first = cast<RankedTensorType>(adaptor.getParts().front().getType());
  int64_t dim = adaptor.getDim(), total = 0;
  for (auto [index, part] : llvm::enumerate(adaptor.getParts())) {
    auto type = cast<RankedTensorType>(part.getType());
    if (failed(checkDim(location, "concat", type, dim)))
      return failure();
    total += type.getDimSize(dim);
    SmallVector<int64_t> shape(type.getShape());
    if (dim < first.getRank())
      shape[dim] = first.getDimSize(dim);
    if (type.clone(shape) != first)
      return emitOptionalError(location, "concat joins operand 0 of type ",
                               first, " and operand ", index, " of type ", type,
                               ", which differ beside dimension ", dim);
  }
  SmallVector<int64_t> shape(first.getShape());
  shape[dim] = total;
  results.push_back(first.clone(shape));
  return success();
}

bool ConcatOp::isRowwise() {
  return getDim() > 0 && hasDynamicRows(getResult().getType());
}
