//===- CompiledFunction.h - a graph function as machine code -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TEST_UNIT_ENDTOEND_COMPILEDFUNCTION_H
#define HYBRID_TEST_UNIT_ENDTOEND_COMPILEDFUNCTION_H

#include "../Target/CPU/KernelHarness.h"
#include "Cases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <map>

namespace hybrid::test {

/// @main of a module of graph functions: fused, scheduled and compiled for one
/// level of the CPU as the driver does it, and as it was, for the oracle.
class CompiledFunction {
public:
  CompiledFunction(const std::string &text, cpu::Level level);

  /// Results of @main; a failure fails the test and gives no results.
  std::vector<cases::Tensor> evaluate(llvm::ArrayRef<cases::Tensor> arguments,
                                      const cases::Call &call);
  /// What the oracle gives.
  std::vector<cases::Tensor> oracle(llvm::ArrayRef<cases::Tensor> arguments,
                                    const cases::Call &call);
  mlir::func::FuncOp main() { return find(*graph); }

  /// Runs a program in place of its kernel, when set.
  std::function<llvm::LogicalResult(const cpu::LoadedKernel &, tile::ProgramOp,
                                    llvm::ArrayRef<tile::HostView>,
                                    llvm::ArrayRef<int64_t>)>
      runKernel = cpu::runLoaded;

private:
  static mlir::func::FuncOp find(mlir::ModuleOp module);
  void load(cpu::Level level);

  std::string reported;
  mlir::MLIRContext context;
  mlir::ScopedDiagnosticHandler handler;
  mlir::OwningOpRef<mlir::ModuleOp> graph, scheduled;
  std::map<std::string, std::unique_ptr<cpu::LoadedKernel>> kernels;
};

} // namespace hybrid::test

#endif // HYBRID_TEST_UNIT_ENDTOEND_COMPILEDFUNCTION_H
