//===- Dot.h - products in register blocks -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_TARGET_CPU_DOT_H
#define HYBRID_LIB_TARGET_CPU_DOT_H

#include "Place.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace hybrid::cpu {

/// One product c = a b + (zero ? 0 : c) with a : [rows, depth],
/// b : [depth, columns], c : [rows, columns]; a transposed operand is a place
/// with its strides exchanged. The last dim of c is contiguous.
struct Dot {
  Place a, b, c;
  bool zero = false;

  int64_t rows() const { return c.shape[0]; }
  int64_t columns() const { return c.shape[1]; }
  int64_t depth() const { return a.shape[1]; }
};

/// Scratch that a product of this shape may need for one panel of b.
int64_t panelBytes(const LevelTraits &traits, int64_t depth);

/// Makes the functions that products call: one per shape and static strides, so
/// that a program with many equal products stays small.
class DotFunctions {
public:
  explicit DotFunctions(mlir::ModuleOp module) : module(module) {}

  /// `panel` is scratch of `panelBytes`. Threads that share the work do so in
  /// place, a small block of the result each, without a function.
  void call(CodeBuilder &b, Dot dot, mlir::Value panel);

private:
  mlir::func::FuncOp functionFor(CodeBuilder &b, const Dot &dot);

  mlir::ModuleOp module;
  llvm::StringMap<mlir::func::FuncOp> functions;
};

} // namespace hybrid::cpu

#endif // HYBRID_LIB_TARGET_CPU_DOT_H
