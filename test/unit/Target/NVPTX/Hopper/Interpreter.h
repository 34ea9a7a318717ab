//===- Interpreter.h - the ops of one agent -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TEST_UNIT_TARGET_NVPTX_HOPPER_INTERPRETER_H
#define HYBRID_TEST_UNIT_TARGET_NVPTX_HOPPER_INTERPRETER_H

#include "ThreadBlock.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace hybrid::hopper::sim {

class Interpreter {
public:
  Interpreter(ThreadBlock &block, Agent &agent) : block(block), agent(agent) {}
  void run() { runBlock(*agent.body); }

private:
  bool runBlock(mlir::Block &ops);
  bool runOp(mlir::Operation *op);
  bool runShared(mlir::Operation *op);
  bool runFor(mlir::scf::ForOp loop);
  bool runIf(mlir::scf::IfOp branch);
  bool runTile(mlir::Operation *op);
  void runElementwise(mlir::Operation *op);
  /// Memory of an element of a block; null past a limit.
  double *elementAt(mlir::Operation *op, tile::HostView &view,
                    mlir::ValueRange indices, llvm::ArrayRef<int64_t> dims,
                    mlir::ValueRange limits, llvm::ArrayRef<int64_t> at);
  void load(tile::LoadOp load);
  std::vector<double> gathered(tile::LoadRowsOp load);
  template <typename Store> void store(Store store);
  bool syncAt(mlir::Operation *op, int64_t number, int64_t threads, bool waits);
  /// A copy: a new value may move the others.
  Datum get(mlir::Value value) { return agent.values[value]; }
  void set(mlir::Value value, Datum datum);
  bool yield() {
    return block.pass(agent, [] { return true; });
  }

  ThreadBlock &block;
  Agent &agent;
};

/// The result of an elementwise op of `arith` or `math` on numbers, not
/// rounded.
std::optional<double> evaluate(mlir::Operation *op,
                               llvm::ArrayRef<double> operands);

} // namespace hybrid::hopper::sim

#endif // HYBRID_TEST_UNIT_TARGET_NVPTX_HOPPER_INTERPRETER_H
