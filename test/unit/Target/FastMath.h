//===- FastMath.h - what lowered code may assume of floats -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TEST_UNIT_TARGET_FASTMATH_H
#define HYBRID_TEST_UNIT_TARGET_FASTMATH_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "gtest/gtest.h"

namespace hybrid::test {

/// Of the relaxations of floating point only fused products are allowed: masks
/// rely on infinities and NaN.
inline void expectNoAssumptions(mlir::ModuleOp module) {
  using mlir::arith::FastMathFlags;
  unsigned count = 0;
  module.walk([&](mlir::arith::ArithFastMathInterface op) {
    FastMathFlags flags = op.getFastMathFlagsAttr()
                              ? op.getFastMathFlagsAttr().getValue()
                              : FastMathFlags::none;
    EXPECT_TRUE((flags | FastMathFlags::contract) == FastMathFlags::contract)
        << op->getName().getStringRef().str();
    ++count;
  });
  EXPECT_GT(count, 0u);
}

} // namespace hybrid::test

#endif // HYBRID_TEST_UNIT_TARGET_FASTMATH_H
