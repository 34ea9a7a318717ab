//===- Evaluate.cpp - an entry's graph, value by value -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Evaluate.h"

#include <cmath>

using namespace mlir;
using namespace hybrid;
using oracle::Tensor;

namespace {

class GraphEvaluation {
public:
  GraphEvaluation(const oracle::Call &call, MakeArgument makeArgument,
                  Visit visit)
      : call(call), makeArgument(makeArgument), visit(visit) {}

  LogicalResult run(Operation *op);
  const Tensor *get(Value value);

private:
  void release(Value value);

  const oracle::Call &call;
  MakeArgument makeArgument;
  Visit visit;
  DenseMap<Value, std::unique_ptr<Tensor>> values;
  DenseMap<Value, unsigned> reads;
};

} // namespace

const Tensor *GraphEvaluation::get(Value value) {
  if (!isa<RankedTensorType>(value.getType()))
    return nullptr;
  std::unique_ptr<Tensor> &tensor = values[value];
  if (!tensor)
    tensor = std::make_unique<Tensor>(makeArgument(cast<BlockArgument>(value)));
  return tensor.get();
}

/// Counts one read of `value`.
void GraphEvaluation::release(Value value) {
  auto uses = value.getUses();
  if (++reads[value] == std::distance(uses.begin(), uses.end()))
    values.erase(value);
}

LogicalResult GraphEvaluation::run(Operation *op) {
  SmallVector<const Tensor *> operands;
  for (Value operand : op->getOperands())
    operands.push_back(get(operand));
  FailureOr<std::vector<Tensor>> results = oracle::evaluate(op, operands, call);
  if (failed(results))
    return failure();
  visit(op, *results);
  for (auto [value, tensor] : llvm::zip_equal(op->getResults(), *results))
    if (!value.use_empty())
      values[value] = std::make_unique<Tensor>(std::move(tensor));
  for (Value operand : op->getOperands())
    release(operand);
  return success();
}

FailureOr<std::vector<Tensor>> hybrid::evaluateGraph(func::FuncOp function,
                                                     const oracle::Call &call,
                                                     MakeArgument makeArgument,
                                                     Visit visit) {
  GraphEvaluation evaluation(call, makeArgument, visit);
  Block &body = function.getBody().front();
  for (Operation &op : body.without_terminator())
    if (failed(evaluation.run(&op)))
      return failure();
  std::vector<Tensor> results;
  for (Value result : body.getTerminator()->getOperands())
    results.push_back(*evaluation.get(result));
  return results;
}

/// Below this fraction of the results beside it, a result is rounding alone.
static constexpr double kCancelled = 0x1p-18, kBeside = 0.1;

double hybrid::largestOf(const Tensor &tensor) {
  double largest = 0;
  for (double value : tensor.data)
    if (std::isfinite(value))
      largest = std::max(largest, std::abs(value));
  return largest;
}

double hybrid::relativeError(const Tensor &found, const Tensor &expected,
                             double beside) {
  if (found.data.size() != expected.data.size())
    return std::numeric_limits<double>::infinity();
  double difference = 0;
  for (auto [x, y] : llvm::zip_equal(found.data, expected.data)) {
    if (x == y)
      continue;
    double distance = std::abs(x - y);
    if (std::isnan(distance))
      return std::numeric_limits<double>::infinity();
    difference = std::max(difference, distance);
  }
  double largest =
      std::max<double>(largestOf(expected), std::numeric_limits<float>::min());
  if (largest < kCancelled * beside)
    largest = kBeside * beside;
  return difference / largest;
}
