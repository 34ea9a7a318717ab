//===- AdjointCheck.h - an adjoint against finite differences -------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TEST_UNIT_ORACLE_ADJOINTCHECK_H
#define HYBRID_TEST_UNIT_ORACLE_ADJOINTCHECK_H

#include "Harness.h"

namespace hybrid::oracle {

/// One operation with cotangents for its results; an empty cotangent means that
/// nothing flows back from that result.
struct AdjointCheck {
  std::string text;
  Call call;
  std::vector<Tensor> arguments;
  std::vector<Tensor> cotangents;

  /// Σ result · cotangent at these arguments.
  double loss(Program &program, const std::vector<Tensor> &at) const;

  /// Gradients by the operation's rule, one per operand (empty for none).
  std::vector<Tensor> adjoint() const;
  /// Compares all of them with central differences.
  void run() const;
};

} // namespace hybrid::oracle

#endif // HYBRID_TEST_UNIT_ORACLE_ADJOINTCHECK_H
