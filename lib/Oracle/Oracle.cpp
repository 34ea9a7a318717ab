//===- Oracle.cpp - graph functions evaluated in fp64 -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Oracle/Oracle.h"

#include "Definitions.h"
#include "hybrid/Hybrid/GraphShapes.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::oracle;

//===----------------------------------------------------------------------===//
// Tensors and calls
//===----------------------------------------------------------------------===//

static int64_t product(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

Tensor::Tensor(ArrayRef<int64_t> shape)
    : shape(shape), data(product(shape), 0.0) {}

Tensor::Tensor(ArrayRef<int64_t> shape, std::vector<double> data)
    : shape(shape), data(std::move(data)) {
  assert(size() == product(shape) && "as many elements as the shape says");
}

int64_t Call::longest() const {
  int64_t longest = 0;
  for (const Segment &segment : segments)
    longest = std::max(longest, segment.length());
  return longest;
}

Call Call::packed(ArrayRef<int64_t> lengths) {
  Call call;
  for (int64_t length : lengths) {
    int64_t begin = call.tokens();
    call.segments.push_back(
        {begin, begin + length, static_cast<int64_t>(call.segments.size()), 0});
  }
  call.slots = lengths.size();
  return call;
}

/// Segments cut the stream without gaps, and each has a slot of its own.
static LogicalResult verifyCall(func::FuncOp function, const Call &call) {
  int64_t expected = 0;
  llvm::SmallDenseSet<int64_t> slots;
  for (auto [index, segment] : llvm::enumerate(call.segments)) {
    if (segment.begin != expected)
      return function.emitError()
             << "segment " << index << " begins at " << segment.begin
             << " but the one before ends at " << expected;
    if (segment.end < segment.begin)
      return function.emitError()
             << "segment " << index << " ends at " << segment.end
             << ", before its begin " << segment.begin;
    if (segment.position < 0)
      return function.emitError()
             << "segment " << index << " starts at position "
             << segment.position << " but positions count from 0";
    if (call.slots > 0 && (segment.slot < 0 || segment.slot >= call.slots))
      return function.emitError()
             << "segment " << index << " has slot " << segment.slot
             << " but there are " << call.slots << " slots";
    if (call.slots > 0 && !slots.insert(segment.slot).second)
      return function.emitError()
             << "segment " << index << " has slot " << segment.slot
             << ", which an earlier segment has";
    expected = segment.end;
  }
  return success();
}

SmallVector<int64_t> oracle::getShape(RankedTensorType type, const Call &call) {
  bool isState = isa_and_nonnull<SlotsAttr>(type.getEncoding());
  std::array<int64_t, numCallSymbols> symbols = {
      call.tokens(),
      static_cast<int64_t>(call.segments.size()),
      isState && call.chunk ? call.chunk : call.longest(),
      call.slots,
      call.context,
      call.depth};
  SmallVector<int64_t> shape;
  for (AffineExpr size : getSizes(type).getResults()) {
    SmallVector<AffineExpr> constants;
    for (int64_t symbol : symbols)
      constants.push_back(getAffineConstantExpr(symbol, type.getContext()));
    shape.push_back(
        cast<AffineConstantExpr>(size.replaceSymbols(constants)).getValue());
  }
  return shape;
}

Tensor oracle::roundTo(Tensor tensor, RankedTensorType type) {
  const llvm::fltSemantics &semantics =
      cast<FloatType>(type.getElementType()).getFloatSemantics();
  for (double &value : tensor.data) {
    APFloat number(value);
    bool losesInfo = false;
    number.convert(semantics, APFloat::rmNearestTiesToEven, &losesInfo);
    number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                   &losesInfo);
    value = number.convertToDouble();
  }
  return tensor;
}

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

namespace {
/// Values of one function, or of the row-wise region in it.
class Evaluation {
public:
  explicit Evaluation(const Call &call) : call(call) {}

  void set(Value value, Tensor tensor) { values[value] = std::move(tensor); }
  const Tensor &get(Value value) const { return values.find(value)->second; }

  /// Evaluates all but the terminator.
  LogicalResult run(Block &block) {
    for (Operation &op : block.without_terminator())
      if (failed(evaluateOp(&op)))
        return failure();
    return success();
  }

  /// The results of an operation outside the function's values.
  LogicalResult evaluateOp(Operation *op, Operands operands, Results &results);

private:
  LogicalResult evaluateOp(Operation *op);
  LogicalResult define(Operation *op, Operands operands, Results &results);

  const Call &call;
  llvm::DenseMap<Value, Tensor> values;
};
} // namespace

LogicalResult Evaluation::evaluateOp(Operation *op, Operands operands,
                                     Results &results) {
  auto rowwise = dyn_cast<RowwiseOp>(op);
  if (!rowwise)
    return define(op, operands, results);
  // Values of its own: `operands` point into the function's, which move when
  // one is added.
  Evaluation inside(call);
  Block &body = rowwise.getBody().front();
  for (auto [argument, input] : llvm::zip(body.getArguments(), operands))
    if (input)
      inside.set(argument, *input);
  if (failed(inside.run(body)))
    return failure();
  for (Value yielded : body.getTerminator()->getOperands())
    results.push_back(inside.get(yielded));
  return success();
}

LogicalResult Evaluation::evaluateOp(Operation *op) {
  SmallVector<const Tensor *> operands;
  for (Value operand : op->getOperands()) {
    auto found = values.find(operand);
    operands.push_back(found == values.end() ? nullptr : &found->second);
  }
  Results results;
  if (failed(evaluateOp(op, operands, results)))
    return failure();
  for (auto [value, tensor] : llvm::zip_equal(op->getResults(), results)) {
    assert(ArrayRef<int64_t>(tensor.shape) ==
               ArrayRef<int64_t>(
                   getShape(cast<RankedTensorType>(value.getType()), call)) &&
           "a definition gives the shape of its type");
    set(value, std::move(tensor));
  }
  return success();
}

LogicalResult Evaluation::define(Operation *op, Operands operands,
                                 Results &results) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<SiluOp, SigmoidOp, LogSigmoidOp, SoftplusOp, ExpOp, NegOp>(
          [&](auto unary) { return defineUnary(unary, operands, results); })
      .Case<AddOp, SubOp, MulOp, SiluGradOp, SigmoidGradOp, LogSigmoidGradOp,
            SoftplusGradOp>(
          [&](auto binary) { return defineBinary(binary, operands, results); })
      .Case<FillOp>([&](FillOp fill) {
        Tensor value(getShape(fill.getResult().getType(), call));
        std::fill(value.data.begin(), value.data.end(),
                  fill.getValue().convertToDouble());
        results.push_back(std::move(value));
        return success();
      })
      .Case<CastOp>([&](CastOp cast) {
        // What a copy of a parameter holds is rounded, as what a caller gives
        // is; between operations nothing is.
        results.push_back(cast.isParameterCopy()
                              ? roundTo(*operands[0], cast.getType())
                              : *operands[0]);
        return success();
      })
      .Case<ScaleOp, NormalizeOp, NormalizeGradOp, RotaryOp, LogNScaleOp,
            DropoutOp, ReduceTokensOp, ReduceDimOp, ReshapeOp, SliceOp,
            ConcatOp, EmbedOp, EmbedGradOp, ProductOp, CrossEntropyOp,
            CrossEntropyGradOp, LastRowsOp, AttentionOp, AttentionGradOp,
            AttentionCachedOp, ShortConvOp, ShortConvGradOp, RecurrenceOp,
            RecurrenceGradOp>([&](auto graphOp) {
        return oracle::define(graphOp, operands, results, call);
      })
      .Default([](Operation *other) {
        return other->emitOpError()
               << "has no definition in the oracle, which evaluates graph "
                  "operations only";
      });
}

FailureOr<std::vector<Tensor>> oracle::evaluate(func::FuncOp function,
                                                ArrayRef<Tensor> arguments,
                                                const Call &call) {
  if (failed(verifyCall(function, call)))
    return failure();
  if (arguments.size() != function.getNumArguments())
    return function.emitError()
           << "takes " << function.getNumArguments() << " arguments but "
           << arguments.size() << " tensors were given";
  if (!function.getBody().hasOneBlock())
    return function.emitError()
           << "has " << function.getBody().getBlocks().size()
           << " blocks but a graph function has 1";

  Evaluation evaluation(call);
  for (auto [index, argument, tensor] :
       llvm::enumerate(function.getArguments(), arguments)) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type)
      continue;
    SmallVector<int64_t> shape = getShape(type, call);
    if (tensor.shape != shape) {
      InFlightDiagnostic error = function.emitError()
                                 << "argument " << index << " has the shape [";
      llvm::interleaveComma(tensor.shape, error);
      error << "] but this call needs [";
      llvm::interleaveComma(shape, error);
      return error << "]";
    }
    evaluation.set(argument, tensor);
  }
  Block &body = function.getBody().front();
  if (failed(evaluation.run(body)))
    return failure();
  std::vector<Tensor> results;
  for (Value result : body.getTerminator()->getOperands())
    results.push_back(evaluation.get(result));
  return results;
}

FailureOr<std::vector<Tensor>>
oracle::evaluate(Operation *op, ArrayRef<const Tensor *> operands,
                 const Call &call) {
  std::vector<Tensor> results;
  if (failed(Evaluation(call).evaluateOp(op, operands, results)))
    return failure();
  return results;
}
