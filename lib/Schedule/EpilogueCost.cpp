//===- EpilogueCost.cpp - whether an epilogue pays ------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProductEpilogue.h"

using namespace mlir;
using namespace hybrid;

static int64_t rowBytes(Value value) {
  if (!hasRows(value))
    return 0;
  return rowWidth(value) *
         (getElementTypeOrSelf(value).getIntOrFloatBitWidth() / 8);
}

/// Bytes of a row that are not read and written any more.
int64_t Folding::savedBytes() const {
  int64_t saved = 0;
  for (unsigned n = 0; n < products.size(); ++n)
    saved += rowBytes(products[n]->getResult(0)) *
             (llvm::is_contained(kept, n) ? 1 : 2);
  if (isWhole())
    return saved;
  // The rest reads what it has not made, and no more what only members read.
  llvm::SetVector<Value> given;
  for (Operation *op : members)
    for (Value operand : op->getOperands())
      if (isa<BlockArgument>(operand) && !isSum(operand))
        given.insert(operand);
  for (Value argument : given) {
    bool restReads = llvm::any_of(argument.getUsers(), [&](Operation *user) {
      return !members.contains(user) ||
             (!dependent.contains(user) &&
              llvm::any_of(user->getUsers(), [&](Operation *other) {
                return !members.contains(other);
              }));
    });
    if (restReads)
      saved -= rowBytes(argument);
  }
  for (Value output : outputs) {
    auto readers = output.getUsers();
    if (llvm::any_of(readers, [&](Operation *user) {
          return !members.contains(user) && !isa<YieldOp>(user);
        }))
      saved -= rowBytes(output);
    if (llvm::none_of(readers, llvm::IsaPred<YieldOp>))
      saved -= rowBytes(output);
  }
  return saved;
}

/// What the sums' registers are kept for, as bytes that memory moves in that
/// time, measured (docs/rationale/hopper.md): meanwhile nothing is multiplied.
/// An exponential with a quotient takes as long as two bytes an element, and
/// half of what is loaded is waited for.
int64_t Folding::costBytes() const {
  constexpr int64_t kExponentialBytes = 2;
  int64_t cost = 0;
  llvm::SmallPtrSet<Value, 4> loaded;
  for (Operation *op : members) {
    if (isa<SiluOp, SigmoidOp, hybrid::ExpOp, SiluGradOp>(op))
      cost += kExponentialBytes * rowWidth(op->getResult(0));
    for (Value operand : op->getOperands())
      if (isa<BlockArgument>(operand) && !isSum(operand) && hasRows(operand) &&
          loaded.insert(operand).second)
        cost += rowBytes(operand) / 2;
  }
  return cost;
}

bool Folding::isWorthIt() const { return savedBytes() > costBytes(); }
