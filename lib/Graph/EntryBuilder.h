//===- EntryBuilder.h - one entry point under construction -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parameters and states become arguments of the function where the model first
// uses them, so that a layer is written once and its parameter table cannot
// disagree with it.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_GRAPH_ENTRYBUILDER_H
#define HYBRID_LIB_GRAPH_ENTRYBUILDER_H

#include "hybrid/Graph/ModelTables.h"
#include "hybrid/Hybrid/GraphShapes.h"
#include "hybrid/Hybrid/HybridOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace hybrid {

class EntryBuilder {
public:
  /// A function `name` at the end of `module`. `cached`: mixers read and write
  /// states.
  EntryBuilder(mlir::ModuleOp module, StackOp stack, llvm::StringRef name,
               bool cached);

  StackOp stack;
  mlir::OpBuilder builder;
  /// Place in the spec of what is being built; see `at`.
  mlir::Location specLoc;
  /// Place in the model, `layers.3.mixer.`: in front of paths and names.
  std::string prefix;
  /// Share of the elements that `dropout` leaves out: of the stack in training,
  /// else none.
  double dropoutRate = 0;

  bool isCached() const { return cached; }

  //===--------------------------------------------------------------------===//
  // Arguments and results
  //===--------------------------------------------------------------------===//

  /// The next argument after the parameters.
  mlir::Value input(llvm::StringRef role, mlir::Type type);
  mlir::Value segments();

  /// The parameter `prefix + name`.
  mlir::Value param(llvm::StringRef name, llvm::ArrayRef<int64_t> shape,
                    std::string init, bool decay);
  mlir::Value matrix(llvm::StringRef name, int64_t rows, int64_t columns,
                     double std);

  /// The state `prefix + name` with `slots` in front of `shape`. `rows` gives
  /// the size that is dynamic in `shape`.
  mlir::Value state(llvm::StringRef name, llvm::StringRef kind,
                    mlir::Type element, llvm::ArrayRef<int64_t> shape,
                    mlir::AffineExpr rows = mlir::AffineExpr());
  /// What the last requested state is at the end of the call.
  void setNewState(llvm::StringRef name, mlir::Value value);

  /// Ends the function: `result` under `role`, then the states.
  void finish(llvm::StringRef role, mlir::Value result);

  /// The tables that this entry used.
  const std::vector<ParameterRow> &getParams() const { return params; }
  const std::vector<StateRow> &getStates() const { return states; }

  //===--------------------------------------------------------------------===//
  // Pieces of a layer
  //===--------------------------------------------------------------------===//

  /// The location of the part `prefix + name` of the model.
  mlir::Location at(llvm::StringRef name);
  mlir::RankedTensorType tensor(llvm::ArrayRef<int64_t> shape,
                                mlir::Type element);

  /// What products and mixers take and give (docs/rationale/precision.md).
  mlir::Type computeType() { return stack.getComputeType(); }
  mlir::Type f32() { return builder.getF32Type(); }
  /// x in the type that products and mixers read, or that row-wise operations
  /// work in.
  mlir::Value narrow(mlir::Value x) { return castTo(x, computeType()); }
  mlir::Value widen(mlir::Value x) { return castTo(x, f32()); }

  /// x · Wᵀ with W = `name`.weight, [width, channels of x].
  mlir::Value linear(llvm::StringRef name, mlir::Value x, int64_t width,
                     double std, mlir::Type result);
  mlir::Value linear(llvm::StringRef name, mlir::Value x, int64_t width,
                     double std) {
    return linear(name, x, width, std, computeType());
  }
  mlir::Value linear(llvm::StringRef name, mlir::Value x, int64_t width) {
    return linear(name, x, width, stack.getInitStd());
  }
  /// The same with the sums as they are: what gates are made of.
  mlir::Value linearF32(llvm::StringRef name, mlir::Value x, int64_t width) {
    return linear(name, x, width, stack.getInitStd(), f32());
  }
  /// A projection back to the residual stream; its first weights are smaller by
  /// sqrt(2 · layers), so that the sum over layers starts at unit size.
  mlir::Value project(llvm::StringRef name, mlir::Value x);
  /// RMS norm over the last dimension, times `name`.weight; f32.
  mlir::Value rmsNorm(llvm::StringRef name, mlir::Value x);
  /// x, in f32 with elements left out if this entry leaves any out; `name` and
  /// the prefix say where, which the key of the call depends on.
  mlir::Value dropout(llvm::StringRef name, mlir::Value x);
  /// [tokens, heads · dim] to [tokens, heads, dim] and back.
  mlir::Value splitHeads(llvm::StringRef name, mlir::Value x, int64_t heads);
  mlir::Value joinHeads(llvm::StringRef name, mlir::Value x);

private:
  mlir::Value castTo(mlir::Value x, mlir::Type element);
  mlir::Value addArgument(unsigned index, llvm::StringRef role, mlir::Type type,
                          mlir::Location loc);

  mlir::func::FuncOp function;
  mlir::Block *body;
  bool cached;
  unsigned inputs = 0;
  mlir::Value segmentsValue;
  /// What is narrowed already: casts up are free for whoever reads, casts down
  /// are stored.
  llvm::DenseMap<mlir::Value, mlir::Value> narrowed;
  std::vector<ParameterRow> params;
  std::vector<StateRow> states;
  llvm::SmallVector<mlir::Value> newStates;
  llvm::SmallVector<llvm::SmallVector<mlir::NamedAttribute>> argumentAttributes;
};

} // namespace hybrid

#endif // HYBRID_LIB_GRAPH_ENTRYBUILDER_H
