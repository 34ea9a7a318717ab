//===- LossHead.cpp - logits in pieces of rows -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Logits are the largest tensor of a model in training, [tokens, vocab], and
// nothing but the loss and its adjoint reads them. Every row of them is of one
// token, so the product that makes them, the loss, its adjoint and the products
// with the adjoint run for some rows at a time (docs/rationale/loss-head.md).
//
//===----------------------------------------------------------------------===//

#include "Scheduler.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace hybrid;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// A tensor with one row per token.
static bool isStream(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && !type.getEncoding() && type.getRank() > 0 &&
         type.isDynamicDim(0);
}

namespace {

/// The operations around one loss that see logits or their gradient.
class LossHead {
public:
  explicit LossHead(CrossEntropyOp loss) : loss(loss) {}

  /// Finds them all. Fails where one of them needs all rows at once.
  LogicalResult find();
  PiecesOp cut(int64_t rows);

private:
  LogicalResult addGradient(CrossEntropyGradOp gradient);
  LogicalResult addReader(Operation *reader, Value dlogits);
  bool isAvailable(Value value);

  CrossEntropyOp loss;
  ProductOp logits;
  /// In the order of the function, which is that of their uses.
  llvm::SetVector<Operation *> operations;
  /// Products that are summed over the pieces, in the order of `sums`.
  SmallVector<AddOp> sums;
};

} // namespace

/// Whether an operand exists where the head begins.
bool LossHead::isAvailable(Value value) {
  Operation *op = value.getDefiningOp();
  return !op || op->isBeforeInBlock(logits);
}

LogicalResult LossHead::find() {
  logits = loss.getLogits().getDefiningOp<ProductOp>();
  if (!logits || logits.getTransposeA() || !isStream(logits.getA()) ||
      !typeOf(logits.getB()).hasStaticShape())
    return failure();
  operations.insert(logits);
  operations.insert(loss);
  for (Operation *reader : logits->getUsers()) {
    if (reader == loss)
      continue;
    auto gradient = dyn_cast<CrossEntropyGradOp>(reader);
    if (!gradient || failed(addGradient(gradient)))
      return failure();
  }
  SmallVector<Operation *> ordered = operations.takeVector();
  llvm::sort(ordered,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  operations.insert_range(ordered);
  return success(llvm::all_of(operations, [&](Operation *op) {
    return llvm::all_of(op->getOperands(), [&](Value value) {
      return operations.contains(value.getDefiningOp()) || isAvailable(value);
    });
  }));
}

LogicalResult LossHead::addGradient(CrossEntropyGradOp gradient) {
  operations.insert(gradient);
  for (Operation *reader : gradient->getUsers())
    if (failed(addReader(reader, gradient.getDlogits())))
      return failure();
  return success();
}

/// A product of rows gives rows; one over the rows is summed over the pieces
/// where it is added to a gradient in any case.
LogicalResult LossHead::addReader(Operation *reader, Value dlogits) {
  auto product = dyn_cast<ProductOp>(reader);
  if (!product || product.getA() != dlogits)
    return failure();
  operations.insert(product);
  if (!product.getTransposeA())
    return success(typeOf(product.getB()).hasStaticShape());
  if (!isStream(product.getB()) || !isAccumulated(product))
    return failure();
  auto sum = cast<AddOp>(*product->getUsers().begin());
  operations.insert(sum);
  sums.push_back(sum);
  return success();
}

PiecesOp LossHead::cut(int64_t rows) {
  llvm::SetVector<Value> streams;
  SmallVector<Value> carried, outputs;
  for (AddOp sum : sums)
    carried.push_back(sum.getA());
  for (Operation *op : operations) {
    for (Value value : op->getOperands())
      if (!operations.contains(value.getDefiningOp()) && isStream(value))
        streams.insert(value);
    bool isRead = llvm::any_of(op->getUsers(), [&](Operation *user) {
      return !operations.contains(user);
    });
    if (isRead && !isa<AddOp>(op))
      outputs.push_back(op->getResult(0));
  }
  for (AddOp sum : sums)
    outputs.push_back(sum);

  OpBuilder builder(logits);
  SmallVector<Value> operands = streams.takeVector();
  size_t numStreams = operands.size();
  llvm::append_range(operands, carried);
  auto pieces =
      PiecesOp::create(builder, loss.getLoc(), TypeRange(ValueRange(outputs)),
                       rows, ValueRange(operands).take_front(numStreams),
                       ValueRange(operands).drop_front(numStreams));
  SmallVector<Location> locations(operands.size(), loss.getLoc());
  Block *body = builder.createBlock(&pieces.getBody(), {},
                                    TypeRange(ValueRange(operands)), locations);
  for (auto [output, result] : llvm::zip_equal(outputs, pieces.getResults()))
    output.replaceUsesWithIf(result, [&](OpOperand &use) {
      return !operations.contains(use.getOwner());
    });
  for (auto [operand, argument] :
       llvm::zip_equal(operands, body->getArguments()))
    operand.replaceUsesWithIf(argument, [&](OpOperand &use) {
      return operations.contains(use.getOwner());
    });
  for (Operation *op : operations)
    op->moveBefore(body, body->end());
  builder.setInsertionPointToEnd(body);
  YieldOp::create(builder, loss.getLoc(), outputs);
  return pieces;
}

/// Pieces of few rows make products inefficient, and small logits need no more
/// than one.
static int64_t rowsOf(CrossEntropyOp loss, const TargetTraits &target) {
  int64_t vocab = typeOf(loss.getLogits()).getDimSize(1);
  return std::max<int64_t>(
      llvm::bit_floor<uint64_t>(target.pieceElements / vocab),
      target.leastPieceRows);
}

void hybrid::cutLossHeads(Scheduler &scheduler, func::FuncOp function) {
  SmallVector<CrossEntropyOp> losses(function.getOps<CrossEntropyOp>());
  for (CrossEntropyOp loss : losses) {
    LossHead head(loss);
    if (failed(head.find()))
      continue;
    int64_t rows = scheduler.pieceRows ? scheduler.pieceRows
                                       : rowsOf(loss, scheduler.target);
    scheduler.chose(loss, "HYB-S509", "in pieces of " + Twine(rows) + " rows",
                    "logits of all rows never exist");
    head.cut(rows);
    ++scheduler.numPieces;
  }
}
