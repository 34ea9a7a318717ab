//===- GraphAdjoints.cpp - how gradients pass through graph operations ---===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One rule per operation. `resultGradients` has a value for every result that
// something flows back from; the rules with one result are called only when it
// has. Gradients that nobody uses are dead code and disappear as such.
//
//===----------------------------------------------------------------------===//

#include "hybrid/Hybrid/HybridOps.h"

using namespace mlir;
using namespace hybrid;

using Gradients = FailureOr<SmallVector<Value>>;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static Value createZeros(OpBuilder &builder, Location loc, Type type) {
  return FillOp::create(builder, loc, type, builder.getF64FloatAttr(0));
}

/// What the gradient of `value` is made of: f32 for a parameter, over whose
/// tokens it is summed, else what the value is made of.
static RankedTensorType gradientType(Value value) {
  RankedTensorType type = typeOf(value);
  return type.hasStaticShape() ? type.clone(Float32Type::get(type.getContext()))
                               : type;
}

static Value castTo(OpBuilder &builder, Location loc, Value value,
                    Type element) {
  RankedTensorType type = typeOf(value);
  if (type.getElementType() == element)
    return value;
  // What was widened is known in the type that it had.
  if (auto widened = value.getDefiningOp<CastOp>();
      widened && type.getElementType().isF32() &&
      widened.getX().getType().getElementType() == element)
    return widened.getX();
  return CastOp::create(builder, loc, type.clone(element), value);
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

/// Sums `gradient`, which has the shape of the stretched operand, back to the
/// type the operand had before it was stretched.
static FailureOr<Value> sumToShape(Operation *op, OpBuilder &builder,
                                   Value gradient, RankedTensorType type) {
  Location loc = op->getLoc();
  if (typeOf(gradient) == type)
    return gradient;
  ArrayRef<int64_t> kept = type.getShape();
  // Leading ones are stretched over whatever stands there.
  if (type.hasStaticShape())
    while (kept.size() > 1 && kept.front() == 1)
      kept = kept.drop_front();
  if ((kept.empty() || kept.back() == 1) &&
      typeOf(gradient).getShape().back() != 1)
    gradient = ReduceDimOp::create(builder, loc, gradient);
  int64_t rank = std::max<int64_t>(kept.size(), 1);
  ArrayRef<int64_t> from = typeOf(gradient).getShape(),
                    end = from.take_back(rank);
  if (!kept.empty() && end != kept)
    return op->emitOpError()
           << "stretches a dimension between others of " << type
           << ", which has no adjoint; stretch leading or last dimensions only";
  if (rank < static_cast<int64_t>(from.size()))
    gradient = ReduceTokensOp::create(
        builder, loc, RankedTensorType::get(end, type.getElementType()),
        gradient);
  if (typeOf(gradient) != type)
    gradient = ReshapeOp::create(builder, loc, type, gradient);
  return gradient;
}

Gradients AddOp::buildAdjoint(OpBuilder &builder,
                              ArrayRef<Value> resultGradients) {
  Value dy = resultGradients[0];
  FailureOr<Value> db = sumToShape(*this, builder, dy, getB().getType());
  if (failed(db))
    return failure();
  return SmallVector<Value>{dy, *db};
}

Gradients SubOp::buildAdjoint(OpBuilder &builder,
                              ArrayRef<Value> resultGradients) {
  Value dy = resultGradients[0];
  FailureOr<Value> db = sumToShape(
      *this, builder, NegOp::create(builder, getLoc(), dy), getB().getType());
  if (failed(db))
    return failure();
  return SmallVector<Value>{dy, *db};
}

Gradients MulOp::buildAdjoint(OpBuilder &builder,
                              ArrayRef<Value> resultGradients) {
  Value dy = resultGradients[0];
  Value da = MulOp::create(builder, getLoc(), dy, getB());
  FailureOr<Value> db =
      sumToShape(*this, builder, MulOp::create(builder, getLoc(), dy, getA()),
                 getB().getType());
  if (failed(db))
    return failure();
  return SmallVector<Value>{da, *db};
}

Gradients SiluOp::buildAdjoint(OpBuilder &builder,
                               ArrayRef<Value> resultGradients) {
  return SmallVector<Value>{
      SiluGradOp::create(builder, getLoc(), getX(), resultGradients[0])};
}

Gradients SigmoidOp::buildAdjoint(OpBuilder &builder,
                                  ArrayRef<Value> resultGradients) {
  return SmallVector<Value>{SigmoidGradOp::create(
      builder, getLoc(), getResult(), resultGradients[0])};
}

Gradients LogSigmoidOp::buildAdjoint(OpBuilder &builder,
                                     ArrayRef<Value> resultGradients) {
  return SmallVector<Value>{
      LogSigmoidGradOp::create(builder, getLoc(), getX(), resultGradients[0])};
}

Gradients SoftplusOp::buildAdjoint(OpBuilder &builder,
                                   ArrayRef<Value> resultGradients) {
  return SmallVector<Value>{
      SoftplusGradOp::create(builder, getLoc(), getX(), resultGradients[0])};
}

Gradients ExpOp::buildAdjoint(OpBuilder &builder,
                              ArrayRef<Value> resultGradients) {
  return SmallVector<Value>{
      MulOp::create(builder, getLoc(), resultGradients[0], getResult())};
}

Gradients NegOp::buildAdjoint(OpBuilder &builder,
                              ArrayRef<Value> resultGradients) {
  return SmallVector<Value>{
      NegOp::create(builder, getLoc(), resultGradients[0])};
}

Gradients ScaleOp::buildAdjoint(OpBuilder &builder,
                                ArrayRef<Value> resultGradients) {
  return SmallVector<Value>{
      ScaleOp::create(builder, getLoc(), resultGradients[0], getFactorAttr())};
}

/// What was left out passes nothing back: the mask is that of the key again.
Gradients DropoutOp::buildAdjoint(OpBuilder &builder,
                                  ArrayRef<Value> resultGradients) {
  return SmallVector<Value>{DropoutOp::create(builder, getLoc(),
                                              resultGradients[0], getKey(),
                                              getRateAttr()),
                            Value()};
}

Gradients CastOp::buildAdjoint(OpBuilder &builder,
                               ArrayRef<Value> resultGradients) {
  return SmallVector<Value>{castTo(builder, getLoc(), resultGradients[0],
                                   gradientType(getX()).getElementType())};
}

//===----------------------------------------------------------------------===//
// Norms, positions, shapes
//===----------------------------------------------------------------------===//

Gradients NormalizeOp::buildAdjoint(OpBuilder &builder,
                                    ArrayRef<Value> resultGradients) {
  return SmallVector<Value>{
      NormalizeGradOp::create(builder, getLoc(), getKindAttr(), getX(),
                              resultGradients[0], getEpsilonAttr())};
}

Gradients RotaryOp::buildAdjoint(OpBuilder &builder,
                                 ArrayRef<Value> resultGradients) {
  auto back = cast<RotaryOp>(builder.clone(**this));
  back.getXMutable().assign(resultGradients[0]);
  back.setInverse(!getInverse());
  return SmallVector<Value>{back.getResult(), Value()};
}

Gradients LogNScaleOp::buildAdjoint(OpBuilder &builder,
                                    ArrayRef<Value> resultGradients) {
  return SmallVector<Value>{
      LogNScaleOp::create(builder, getLoc(), resultGradients[0], getSegments(),
                          getTrainedAttr()),
      Value()};
}

Gradients ReshapeOp::buildAdjoint(OpBuilder &builder,
                                  ArrayRef<Value> resultGradients) {
  return SmallVector<Value>{ReshapeOp::create(
      builder, getLoc(), gradientType(getX()), resultGradients[0])};
}

Gradients SliceOp::buildAdjoint(OpBuilder &builder,
                                ArrayRef<Value> resultGradients) {
  RankedTensorType type = gradientType(getX());
  int64_t dim = getDim(), offset = getOffset(),
          end = offset + static_cast<int64_t>(getSize());
  SmallVector<Value> parts;
  auto addZeros = [&](int64_t size) {
    if (size == 0)
      return;
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = size;
    parts.push_back(createZeros(builder, getLoc(), type.clone(shape)));
  };
  addZeros(offset);
  parts.push_back(resultGradients[0]);
  addZeros(type.getDimSize(dim) - end);
  if (parts.size() == 1)
    return parts;
  return SmallVector<Value>{
      ConcatOp::create(builder, getLoc(), parts, getDimAttr())};
}

Gradients ConcatOp::buildAdjoint(OpBuilder &builder,
                                 ArrayRef<Value> resultGradients) {
  SmallVector<Value> gradients;
  int64_t offset = 0;
  for (Value part : getParts()) {
    int64_t size = typeOf(part).getDimSize(getDim());
    gradients.push_back(SliceOp::create(builder, getLoc(), resultGradients[0],
                                        getDim(), static_cast<uint64_t>(offset),
                                        static_cast<uint64_t>(size)));
    offset += size;
  }
  return gradients;
}

//===----------------------------------------------------------------------===//
// Embedding, products, loss
//===----------------------------------------------------------------------===//

Gradients EmbedOp::buildAdjoint(OpBuilder &builder,
                                ArrayRef<Value> resultGradients) {
  return SmallVector<Value>{
      Value(), EmbedGradOp::create(builder, getLoc(), gradientType(getTable()),
                                   getIds(), resultGradients[0])};
}

Gradients ProductOp::buildAdjoint(OpBuilder &builder,
                                  ArrayRef<Value> resultGradients) {
  Value a = getA(), b = getB();
  Value dc =
      castTo(builder, getLoc(), resultGradients[0], typeOf(a).getElementType());
  bool ta = getTransposeA(), tb = getTransposeB();
  auto product = [&](Value of, Value left, Value right, bool transposeLeft,
                     bool transposeRight) -> Value {
    return ProductOp::create(builder, getLoc(), gradientType(of), left, right,
                             transposeLeft, transposeRight);
  };
  // With A = op(a) and B = op(b): dA = dC Bᵀ and dB = Aᵀ dC, transposed back
  // where the operand was.
  Value da = ta ? product(a, b, dc, tb, true) : product(a, dc, b, false, !tb);
  Value db = tb ? product(b, dc, a, true, ta) : product(b, a, dc, !ta, false);
  return SmallVector<Value>{da, db};
}

Gradients CrossEntropyOp::buildAdjoint(OpBuilder &builder,
                                       ArrayRef<Value> resultGradients) {
  Value dloss = resultGradients[0];
  if (auto fill = dloss.getDefiningOp<FillOp>();
      fill && fill.getValue().isExactlyValue(1.0))
    dloss = Value();
  return SmallVector<Value>{
      CrossEntropyGradOp::create(builder, getLoc(), getLogits().getType(),
                                 getLogits(), getLabels(), getWeights(), dloss),
      Value(), Value()};
}

//===----------------------------------------------------------------------===//
// Mixers
//===----------------------------------------------------------------------===//

Gradients ShortConvOp::buildAdjoint(OpBuilder &builder,
                                    ArrayRef<Value> resultGradients) {
  if (getState())
    return emitOpError() << "with a state has no adjoint; differentiate a "
                            "function without states";
  auto back = ShortConvGradOp::create(builder, getLoc(), getX(), getWeight(),
                                      getSegments(), resultGradients[0]);
  return SmallVector<Value>{back.getDx(), back.getDweight(), Value()};
}

Gradients AttentionOp::buildAdjoint(OpBuilder &builder,
                                    ArrayRef<Value> resultGradients) {
  if (resultGradients[1])
    return emitOpError()
           << "has no adjoint for log_sum_exp; only o may be used by what is "
              "differentiated";
  auto back =
      AttentionGradOp::create(builder, getLoc(), getQ(), getK(), getV(), getO(),
                              getLogSumExp(), resultGradients[0], getSegments(),
                              getScaleAttr(), getWindowsAttr(), getSinksAttr());
  return SmallVector<Value>{back.getDq(), back.getDk(), back.getDv(), Value()};
}

Gradients RecurrenceOp::buildAdjoint(OpBuilder &builder,
                                     ArrayRef<Value> resultGradients) {
  Value dout = resultGradients[0];
  if (!dout)
    dout = createZeros(builder, getLoc(), getO().getType());
  Value dfinal = getInitial() ? resultGradients[1] : Value();
  auto back = RecurrenceGradOp::create(
      builder, getLoc(), getUpdateAttr(), getQ(), getK(), getV(), getSegments(),
      dout, getDecay(), getBeta(), getInitial(), dfinal, getScaleAttr(),
      getWindowAttr(), getStrideAttr());
  SmallVector<Value> gradients = {back.getDq(), back.getDk(), back.getDv(),
                                  Value()};
  llvm::append_range(gradients, back.getOptionalGradients());
  return gradients;
}
