//===- GraphMixerOps.cpp - verifiers of the operations in GraphMixerOps.td ===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Hybrid/HybridOps.h"

#include <limits>

using namespace mlir;
using namespace hybrid;

using MaybeLocation = std::optional<Location>;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// `role` must have the shape `expected`; `because` says where that comes from.
static LogicalResult checkShape(MaybeLocation location, StringRef op,
                                StringRef role, Value value,
                                ArrayRef<int64_t> expected, StringRef because) {
  RankedTensorType type = typeOf(value);
  if (type.getShape() == expected)
    return success();
  return emitOptionalError(
      location, op, ": ", role, " is ", type, " but must be ",
      RankedTensorType::get(expected, type.getElementType()), " because ",
      because);
}

/// `value` has the element type of what it meets, `reference`.
static LogicalResult checkElement(MaybeLocation location, StringRef op,
                                  StringRef role, Value value,
                                  StringRef referenceRole, Value reference) {
  Type element = typeOf(value).getElementType(),
       expected = typeOf(reference).getElementType();
  if (element == expected)
    return success();
  return emitOptionalError(location, op, ": ", role, " has elements of type ",
                           element, " and ", referenceRole, " of type ",
                           expected,
                           "; put a hybrid.cast in front of one of them");
}

//===----------------------------------------------------------------------===//
// Short convolution
//===----------------------------------------------------------------------===//

static LogicalResult checkShortConv(MaybeLocation location, Value x,
                                    Value weight) {
  int64_t channels = typeOf(x).getDimSize(1),
          kernel = typeOf(weight).getDimSize(1);
  if (ShapedType::isDynamic(kernel) || kernel < 1)
    return emitOptionalError(location, "short_conv: weight ", typeOf(weight),
                             " needs a static kernel of at least 1");
  return checkShape(location, "short_conv", "weight", weight,
                    {channels, kernel}, "x has that many channels");
}

LogicalResult ShortConvOp::inferReturnTypes(MLIRContext *,
                                            MaybeLocation location,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &results) {
  Value x = adaptor.getX(), weight = adaptor.getWeight();
  if (failed(checkShortConv(location, x, weight)))
    return failure();
  results.push_back(x.getType());
  Value state = adaptor.getState();
  if (!state)
    return success();
  int64_t channels = typeOf(x).getDimSize(1),
          kernel = typeOf(weight).getDimSize(1);
  results.push_back(state.getType());
  if (failed(checkElement(location, "short_conv", "state", state, "x", x)))
    return failure();
  return checkShape(location, "short_conv", "state", state,
                    {typeOf(state).getDimSize(0), kernel - 1, channels},
                    "a slot holds kernel - 1 earlier rows of x");
}

LogicalResult
ShortConvGradOp::inferReturnTypes(MLIRContext *, MaybeLocation location,
                                  Adaptor adaptor,
                                  SmallVectorImpl<Type> &results) {
  results.assign({adaptor.getX().getType(), adaptor.getWeight().getType()});
  if (failed(checkShortConv(location, adaptor.getX(), adaptor.getWeight())))
    return failure();
  if (failed(checkElement(location, "short_conv_grad", "dy", adaptor.getDy(),
                          "x", adaptor.getX())))
    return failure();
  return checkShape(location, "short_conv_grad", "dy", adaptor.getDy(),
                    typeOf(adaptor.getX()).getShape(),
                    "the result has the shape of x");
}

//===----------------------------------------------------------------------===//
// Softmax attention
//===----------------------------------------------------------------------===//

/// Head counts and widths that the three forms of attention share.
static LogicalResult checkHeads(MaybeLocation location, StringRef op, Value q,
                                Value k, Value v) {
  int64_t tokens = typeOf(q).getDimSize(0), heads = typeOf(q).getDimSize(1),
          dim = typeOf(q).getDimSize(2);
  int64_t kvHeads = typeOf(k).getDimSize(1), valueDim = typeOf(v).getDimSize(2);
  if (heads < 1 || kvHeads < 1 || dim < 1 || valueDim < 1)
    return emitOptionalError(location, op, ": q ", typeOf(q), ", k ", typeOf(k),
                             " and v ", typeOf(v),
                             " need static heads and widths of at least 1");
  if (heads % kvHeads != 0)
    return emitOptionalError(
        location, op, ": ", heads, " query heads cannot share ", kvHeads,
        " key and value heads evenly; make the first a multiple of the "
        "second");
  if (failed(checkShape(location, op, "k", k, {tokens, kvHeads, dim},
                        "q has that width")) ||
      failed(checkElement(location, op, "k", k, "q", q)) ||
      failed(checkElement(location, op, "v", v, "q", q)))
    return failure();
  return checkShape(location, op, "v", v, {tokens, kvHeads, valueDim},
                    "k has those heads");
}

static RankedTensorType outputType(Value q, Value v) {
  RankedTensorType type = typeOf(q);
  return type.clone(
      {type.getDimSize(0), type.getDimSize(1), typeOf(v).getDimSize(2)});
}

static RankedTensorType perHeadType(Value q) {
  RankedTensorType type = typeOf(q);
  return type.clone(type.getShape().drop_back(),
                    Float32Type::get(type.getContext()));
}

LogicalResult AttentionOp::inferReturnTypes(MLIRContext *,
                                            MaybeLocation location,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &results) {
  Value q = adaptor.getQ(), k = adaptor.getK(), v = adaptor.getV();
  if (failed(checkHeads(location, "attention", q, k, v)))
    return failure();
  results.assign({outputType(q, v), perHeadType(q)});
  return success();
}

LogicalResult
AttentionGradOp::inferReturnTypes(MLIRContext *, MaybeLocation location,
                                  Adaptor adaptor,
                                  SmallVectorImpl<Type> &results) {
  Value q = adaptor.getQ(), k = adaptor.getK(), v = adaptor.getV();
  if (failed(checkHeads(location, "attention_grad", q, k, v)))
    return failure();
  results.assign({q.getType(), k.getType(), v.getType()});
  ArrayRef<int64_t> output = outputType(q, v).getShape();
  StringRef because = "q has those heads and v that width";
  if (failed(checkShape(location, "attention_grad", "o", adaptor.getO(), output,
                        because)) ||
      failed(checkShape(location, "attention_grad", "dout", adaptor.getDout(),
                        output, because)) ||
      failed(checkElement(location, "attention_grad", "o", adaptor.getO(), "q",
                          q)) ||
      failed(checkElement(location, "attention_grad", "dout", adaptor.getDout(),
                          "q", q)))
    return failure();
  return checkShape(location, "attention_grad", "log_sum_exp",
                    adaptor.getLogSumExp(), perHeadType(q).getShape(),
                    "q has those heads");
}

LogicalResult
AttentionCachedOp::inferReturnTypes(MLIRContext *, MaybeLocation location,
                                    Adaptor adaptor,
                                    SmallVectorImpl<Type> &results) {
  Value q = adaptor.getQ(), k = adaptor.getK(), v = adaptor.getV();
  if (failed(checkHeads(location, "attention_cached", q, k, v)))
    return failure();
  Value kCache = adaptor.getKCache(), vCache = adaptor.getVCache();
  results.assign({outputType(q, v), kCache.getType(), vCache.getType()});
  int64_t slots = typeOf(kCache).getDimSize(0),
          rows = typeOf(kCache).getDimSize(2);
  if (failed(checkShape(
          location, "attention_cached", "k_cache", kCache,
          {slots, typeOf(k).getDimSize(1), rows, typeOf(k).getDimSize(2)},
          "k has those heads and that width")) ||
      failed(checkElement(location, "attention_cached", "k_cache", kCache, "k",
                          k)) ||
      failed(checkElement(location, "attention_cached", "v_cache", vCache, "v",
                          v)))
    return failure();
  return checkShape(
      location, "attention_cached", "v_cache", vCache,
      {slots, typeOf(v).getDimSize(1), rows, typeOf(v).getDimSize(2)},
      "v has those heads and that width, and k_cache those rows");
}

template <typename Op> static LogicalResult verifyVisibility(Op op) {
  int64_t heads = op.getQ().getType().getDimSize(1);
  auto verifyEntries = [&](StringRef name,
                           ArrayRef<int64_t> entries) -> LogicalResult {
    // A dynamic number is refused where results are inferred.
    if (!ShapedType::isDynamic(heads) &&
        static_cast<int64_t>(entries.size()) != heads)
      return op.emitOpError()
             << name << " has " << entries.size() << " entries for " << heads
             << " query heads; give one per head, 0 for none";
    for (auto [head, entry] : llvm::enumerate(entries)) {
      if (entry < 0)
        return op.emitOpError()
               << name << " of head " << head << " is " << entry
               << " but must be positive, or 0 for none";
      // Programs compare positions in 32 bits.
      if (entry > std::numeric_limits<int32_t>::max())
        return op.emitOpError() << name << " of head " << head << " is "
                                << entry << " but positions end at "
                                << std::numeric_limits<int32_t>::max()
                                << "; write 0 for a head without a window";
    }
    return success();
  };
  if (failed(verifyEntries("windows", op.getWindows())) ||
      failed(verifyEntries("sinks", op.getSinks())))
    return failure();
  for (auto [head, window, sinks] :
       llvm::enumerate(op.getWindows(), op.getSinks()))
    if (window == 0 && sinks != 0)
      return op.emitOpError()
             << "head " << head << " has " << sinks
             << " sink tokens but no window, so that they change nothing; give "
                "it a window or no sinks";
  if (!op.getScale().isFinite())
    return op.emitOpError() << "scale is " << op.getScale().convertToDouble()
                            << " but must be finite";
  return success();
}

LogicalResult AttentionOp::verify() { return verifyVisibility(*this); }
LogicalResult AttentionGradOp::verify() { return verifyVisibility(*this); }

LogicalResult AttentionCachedOp::verify() {
  for (Value cache : {getKCache(), getVCache()}) {
    auto slots = dyn_cast_or_null<SlotsAttr>(typeOf(cache).getEncoding());
    if (!slots || !slots.getRows())
      return emitOpError() << "cache of type " << typeOf(cache)
                           << " does not say its rows; give it the encoding "
                              "#hybrid.slots<rows = "
                              "...>";
  }
  return verifyVisibility(*this);
}

//===----------------------------------------------------------------------===//
// Recurrences
//===----------------------------------------------------------------------===//

/// Shapes that a recurrence and its adjoint share. A state has the shape
/// `[slots, (W/S,) heads, K, V]`.
template <typename Adaptor>
static LogicalResult checkRecurrence(MaybeLocation location, StringRef op,
                                     Adaptor adaptor) {
  Value q = adaptor.getQ(), k = adaptor.getK(), v = adaptor.getV();
  if (failed(checkHeads(location, op, q, k, v)))
    return failure();
  int64_t tokens = typeOf(q).getDimSize(0), heads = typeOf(q).getDimSize(1),
          keyDim = typeOf(q).getDimSize(2), valueDim = typeOf(v).getDimSize(2);

  if (Value decay = adaptor.getDecay())
    if (typeOf(decay).getShape() != ArrayRef<int64_t>({tokens, heads, 1}) &&
        failed(checkShape(
            location, op, "decay", decay, {tokens, heads, keyDim},
            "q has those heads and channels (or 1 for a decay per head)")))
      return failure();
  if (Value beta = adaptor.getBeta())
    if (failed(checkShape(location, op, "beta", beta, {tokens, heads},
                          "q has those heads")))
      return failure();

  std::optional<uint64_t> window = adaptor.getWindow(),
                          stride = adaptor.getStride();
  if (window.has_value() != stride.has_value())
    return emitOptionalError(location, op, ": has ",
                             window ? "a window but no stride"
                                    : "a stride but no window",
                             "; a bounded history needs both");
  if (window) {
    int64_t windowSize = *window, strideSize = *stride;
    if (windowSize < 1 || strideSize < 1)
      return emitOptionalError(location, op, ": window is ", windowSize,
                               " and stride ", strideSize,
                               " but both must be at least 1");
    if (windowSize % strideSize != 0)
      return emitOptionalError(location, op, ": stride ", strideSize,
                               " does not divide the window ", windowSize,
                               "; choose a divisor of the window");
  }

  Value initial = adaptor.getInitial();
  if (!initial)
    return success();
  SmallVector<int64_t> state = {heads, keyDim, valueDim};
  if (window)
    state.insert(state.begin(), static_cast<int64_t>(*window / *stride));
  RankedTensorType type = typeOf(initial);
  state.insert(state.begin(),
               type.getRank() > 0 ? type.getDimSize(0) : ShapedType::kDynamic);
  return checkShape(location, op, "initial", initial, state,
                    window ? "a slot holds window / stride states per head"
                           : "a slot holds one state per head");
}

LogicalResult RecurrenceOp::inferReturnTypes(MLIRContext *,
                                             MaybeLocation location,
                                             Adaptor adaptor,
                                             SmallVectorImpl<Type> &results) {
  if (failed(checkRecurrence(location, "recurrence", adaptor)))
    return failure();
  results.push_back(outputType(adaptor.getQ(), adaptor.getV()));
  if (Value initial = adaptor.getInitial())
    results.push_back(initial.getType());
  return success();
}

LogicalResult
RecurrenceGradOp::inferReturnTypes(MLIRContext *, MaybeLocation location,
                                   Adaptor adaptor,
                                   SmallVectorImpl<Type> &results) {
  if (failed(checkRecurrence(location, "recurrence_grad", adaptor)))
    return failure();
  Value q = adaptor.getQ(), v = adaptor.getV();
  if (failed(checkShape(location, "recurrence_grad", "dout", adaptor.getDout(),
                        outputType(q, v).getShape(),
                        "q has those heads and v that width")) ||
      failed(checkElement(location, "recurrence_grad", "dout",
                          adaptor.getDout(), "q", q)))
    return failure();
  Value initial = adaptor.getInitial(), dfinal = adaptor.getDfinal();
  if (dfinal && !initial)
    return emitOptionalError(
        location, "recurrence_grad: has dfinal but no initial; a final state "
                  "comes back only where an initial one went in");
  if (dfinal && dfinal.getType() != initial.getType())
    return emitOptionalError(location, "recurrence_grad: dfinal is ",
                             dfinal.getType(), " but initial is ",
                             initial.getType());
  results.assign({q.getType(), adaptor.getK().getType(), v.getType()});
  for (Value operand : {adaptor.getDecay(), adaptor.getBeta(), initial})
    if (operand)
      results.push_back(operand.getType());
  return success();
}

template <typename Op> static LogicalResult verifyRecurrence(Op op) {
  if (op.getUpdate() == UpdateRule::additive && op.getBeta())
    return op.emitOpError()
           << "has beta, which the additive update does not use; drop it or "
              "write delta";
  if (!op.getScale().isFinite())
    return op.emitOpError() << "scale is " << op.getScale().convertToDouble()
                            << " but must be finite";
  return success();
}

LogicalResult RecurrenceOp::verify() { return verifyRecurrence(*this); }
LogicalResult RecurrenceGradOp::verify() { return verifyRecurrence(*this); }

Value RecurrenceGradOp::getDdecay() {
  return getDecay() ? getOptionalGradients().front() : Value();
}

Value RecurrenceGradOp::getDbeta() {
  return getBeta() ? getOptionalGradients()[getDecay() ? 1 : 0] : Value();
}

Value RecurrenceGradOp::getDinitial() {
  return getInitial() ? getOptionalGradients().back() : Value();
}
