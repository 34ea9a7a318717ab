//===- Dispatches.h - runs the dispatches of a function -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TEST_TOOLS_TILE_AGAINST_ORACLE_DISPATCHES_H
#define HYBRID_TEST_TOOLS_TILE_AGAINST_ORACLE_DISPATCHES_H

#include "hybrid/Hybrid/HybridOps.h"
#include "hybrid/Oracle/Oracle.h"
#include "hybrid/Tile/Interpreter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <functional>
#include <memory>

namespace hybrid {

/// The six symbols of a call, in their order.
llvm::SmallVector<int64_t> symbolsOf(const oracle::Call &call);

/// Sizes of a graph tensor in a call.
llvm::SmallVector<int64_t> sizesOf(mlir::RankedTensorType type,
                                   llvm::ArrayRef<int64_t> symbols);

/// Runs one program over its grid: the interpreter, or machine code.
using RunProgram = std::function<llvm::LogicalResult(
    tile::ProgramOp program, llvm::ArrayRef<tile::HostView> views,
    llvm::ArrayRef<int64_t> symbols)>;

/// Runs a function whose body holds dispatches, alternatives of them, pieces of
/// rows with them, and the views around them (reshape, slice, concat). Results
/// start as NaN, and so does the memory past the end of every buffer.
class DispatchRunner {
public:
  DispatchRunner(const oracle::Call &call, RunProgram runProgram);

  /// `arguments` are those that the function had before it was scheduled.
  mlir::FailureOr<std::vector<oracle::Tensor>>
  run(mlir::func::FuncOp function, llvm::ArrayRef<oracle::Tensor> arguments);

private:
  struct Array {
    std::shared_ptr<tile::HostBuffer> buffer;
    llvm::SmallVector<int64_t> sizes;
    tile::HostView view() const;
  };

  llvm::LogicalResult runBlock(mlir::Block &block);
  llvm::LogicalResult runOp(mlir::Operation &op);
  llvm::LogicalResult runDispatch(DispatchOp op);
  llvm::LogicalResult runAlternatives(AlternativesOp op);
  llvm::LogicalResult runPieces(PiecesOp op);
  /// Fills `to`, element by element, with the element of `from` that `index`
  /// of `to` comes from.
  void copyPart(const Array &from, const Array &to, int64_t dim,
                int64_t fromOffset, int64_t toOffset, int64_t size);
  Array make(mlir::Type type) const;

  oracle::Call call;
  llvm::SmallVector<int64_t> symbols;
  RunProgram runProgram;
  tile::HostBuffer table, tokenSegment;
  llvm::DenseMap<mlir::Value, Array> arrays;
};

} // namespace hybrid

#endif // HYBRID_TEST_TOOLS_TILE_AGAINST_ORACLE_DISPATCHES_H
