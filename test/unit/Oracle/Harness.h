//===- Harness.h - evaluating functions given as text -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TEST_UNIT_ORACLE_HARNESS_H
#define HYBRID_TEST_UNIT_ORACLE_HARNESS_H

#include "Cases.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace hybrid::oracle {

/// A parsed module with the function @main.
class Program {
public:
  explicit Program(const std::string &text);

  mlir::func::FuncOp main();
  mlir::ModuleOp module() { return *parsed; }

  /// Results of @main; a failure fails the test and gives no results.
  std::vector<Tensor> evaluate(llvm::ArrayRef<Tensor> arguments,
                               const Call &call);
  /// The errors of evaluating @main, which has to fail.
  std::string evaluateError(llvm::ArrayRef<Tensor> arguments, const Call &call);

private:
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> parsed;
};

/// The error of parsing and verifying `text`, which has to fail.
std::string parseError(const std::string &text);

/// Fails the test where `found` misses `expected` by more than `tolerance`; NaN
/// is expected where `expected` is NaN.
void expectNear(llvm::ArrayRef<double> found, llvm::ArrayRef<double> expected,
                double tolerance, const std::string &what);

} // namespace hybrid::oracle

#endif // HYBRID_TEST_UNIT_ORACLE_HARNESS_H
