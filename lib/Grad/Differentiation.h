//===- Differentiation.h - reverse mode on one graph function -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_GRAD_DIFFERENTIATION_H
#define HYBRID_LIB_GRAD_DIFFERENTIATION_H

#include "hybrid/Grad/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

namespace hybrid {

/// A backward function under construction, behind the function it is of. Who
/// makes one adds the arguments, names what is differentiated and what comes
/// back, and returns the results; what lies between is the same for all.
class Differentiation {
public:
  Differentiation(mlir::func::FuncOp forward, llvm::StringRef entry,
                  Recompute recompute);

  // Before `run`.

  /// Adds an argument with the type of `like`, and with the attributes.
  mlir::Value addArgument(mlir::Value like, mlir::DictionaryAttr attributes);
  /// Adds an argument for an argument of the forward function, with its
  /// attributes.
  mlir::Value addArgument(mlir::BlockArgument argument);
  /// Gradients are wanted of `argument`, one of the backward function's.
  void activate(mlir::Value argument) { active.insert(argument); }
  /// The function will do without `argument` if nobody uses it.
  void makeOptional(mlir::Value argument) { optional.insert(argument); }

  /// Repeats the forward operations; after it `lookup` knows their values.
  void repeatForward();
  /// Something comes back to `target`, a value of the backward function.
  void accumulate(mlir::Value target, mlir::Value gradient, mlir::Location loc);
  /// Passes gradients back from the values that have one.
  mlir::LogicalResult passBack();
  /// Returns `results` and removes what nobody uses.
  void finish(mlir::ValueRange results,
              llvm::ArrayRef<mlir::Attribute> attributes);

  /// The value of the backward function for one of the forward function.
  mlir::Value lookup(mlir::Value value) const { return mapping.lookup(value); }

  mlir::func::FuncOp backward;
  mlir::OpBuilder builder;
  /// What has come back to a value of the backward function so far. A value
  /// that is in here before `passBack` is added to.
  llvm::DenseMap<mlir::Value, mlir::Value> gradients;
  /// Of values of narrower types: the sum in f32, once there are two terms.
  llvm::DenseMap<mlir::Value, mlir::Value> wideSums;
  unsigned numAdjoints = 0;
  unsigned numRecomputed = 0;

private:
  llvm::SmallVector<mlir::Operation *>
  repeatLayer(llvm::ArrayRef<mlir::Operation *> layer);
  mlir::LogicalResult passBack(llvm::ArrayRef<mlir::Operation *> layer);
  mlir::LogicalResult passBack(mlir::Operation *forward,
                               mlir::Operation *values);

  void repeatRowwise();

  bool isActive(mlir::Value value) const { return active.contains(value); }

  mlir::func::FuncOp source;
  Recompute recompute;
  /// From values of the forward function to those of the backward function.
  mlir::IRMapping mapping;
  llvm::SmallVector<mlir::Operation *> forward;
  /// Values that depend on an argument of which gradients are wanted.
  llvm::DenseSet<mlir::Value> active;
  llvm::DenseSet<mlir::Value> optional;
  llvm::SmallVector<mlir::Attribute> argumentAttributes;
};

/// Makes `backward` of `loss`: the gradient of the summed loss is added to an
/// argument for each parameter.
mlir::LogicalResult differentiateLoss(Differentiation &differentiation,
                                      mlir::func::FuncOp loss);

/// Makes `<entry>_backward` of a function with named inputs and outputs.
mlir::LogicalResult differentiateFunction(Differentiation &differentiation,
                                          mlir::func::FuncOp function);

} // namespace hybrid

#endif // HYBRID_LIB_GRAD_DIFFERENTIATION_H
