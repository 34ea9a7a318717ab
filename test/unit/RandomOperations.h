//===- RandomOperations.h - single operations of random shape -*- C++ -*---===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One number is a function with one operation and a call of it, chosen to be
// awkward: segments of 0, 1 and a tile more or less, windows around the length,
// more sinks than window, widths that are no power of two, logits of 10⁴,
// decays of 0 and -10³, keys of no length, states and caches with NaN where
// nothing may look. A failing test prints the number, which repeats it.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TEST_UNIT_RANDOMOPERATIONS_H
#define HYBRID_TEST_UNIT_RANDOMOPERATIONS_H

#include "Cases.h"

namespace hybrid::cases {

struct RandomOperation {
  /// What it is, in a few words.
  std::string name;
  /// A function @main with one argument per tensor, whose body is the
  /// operation.
  std::string text;
  Call call;
  std::vector<Tensor> arguments;
  /// Whether its adjoint is wanted too.
  bool adjoint = false;
  /// Of the new state, an entry per slot and ring place that holds nothing: its
  /// window ended with the call, and the next has not begun.
  std::vector<int64_t> deadEntries;
  /// Puts 0 into them.
  void forget(std::vector<Tensor> &results) const;
  /// Size of the numbers whose rounding f32 results carry, such as logits.
  double magnitude = 1;
};

RandomOperation makeRandomOperation(uint64_t seed);

struct AppendedAdjoint {
  /// Types of the arguments that were added, the cotangents.
  std::vector<mlir::RankedTensorType> cotangents;
  /// Results in front of the gradients.
  unsigned forwardResults;
};

/// Gives the function one argument per result of its operation and makes it
/// return the operation's gradients behind its results (instead of them where a
/// result overwrites what the adjoint reads).
mlir::FailureOr<AppendedAdjoint> appendAdjoint(mlir::func::FuncOp function);

} // namespace hybrid::cases

#endif // HYBRID_TEST_UNIT_RANDOMOPERATIONS_H
