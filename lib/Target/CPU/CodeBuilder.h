//===- CodeBuilder.h - building the body of one kernel -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel is built in `arith`, `scf` and one-dimensional `vector` ops over
// plain pointers: addresses are computed in i64 and every access states its own
// type, so that no memref descriptor has to be folded away again.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_TARGET_CPU_CODEBUILDER_H
#define HYBRID_LIB_TARGET_CPU_CODEBUILDER_H

#include "hybrid/Target/CPU/Level.h"
#include "hybrid/Target/Storage.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace hybrid::cpu {

/// A 64-bit integer that is known now or when the kernel runs.
class Int {
public:
  Int(int64_t known) : known(known) {}
  Int(mlir::Value dynamic) : dynamic(dynamic) {}
  bool isKnown() const { return !dynamic; }
  bool is(int64_t value) const { return isKnown() && known == value; }
  int64_t getKnown() const { return known; }
  mlir::Value getDynamic() const { return dynamic; }

private:
  int64_t known = 0;
  mlir::Value dynamic;
};

class CodeBuilder : public mlir::ImplicitLocOpBuilder {
public:
  CodeBuilder(mlir::Location loc, mlir::OpBuilder &builder,
              const LevelTraits &traits)
      : ImplicitLocOpBuilder(loc, builder), traits(traits) {}

  const LevelTraits &getTraits() const { return traits; }

  mlir::Value i64(int64_t value);
  mlir::Value valueOf(Int value);
  Int add(Int x, Int y);
  Int mul(Int x, Int y);
  /// The smaller of a run-time value and a constant, but not below 0.
  mlir::Value clampToSize(mlir::Value x, int64_t size);
  /// A value of type `index` as i64, and the other way.
  mlir::Value fromIndex(mlir::Value index);
  mlir::Value toIndex(mlir::Value integer);

  /// The address `offset` elements past `base`.
  mlir::Value address(mlir::Value base, Int offset, mlir::Type element);
  /// A scalar or vector at an address that is aligned to its element only. i1
  /// is kept as a byte.
  mlir::Value load(mlir::Type type, mlir::Value address);
  void store(mlir::Value value, mlir::Value address);

  /// `type`, or a vector of it when `width` is more than 1.
  static mlir::Type widened(mlir::Type type, int64_t width);
  mlir::Value broadcast(mlir::Value scalar, int64_t width);
  mlir::Value zero(mlir::Type type);
  /// x * y + z, one rounding where the level has the instruction.
  mlir::Value mulAdd(mlir::Value x, mlir::Value y, mlir::Value z);

  /// Lanes of a vector, halves combined with halves, down to a scalar.
  mlir::Value reduceLanes(
      mlir::Value vector,
      llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> combine);
  /// Transposes the square matrix whose rows are vectors of as many lanes.
  llvm::SmallVector<mlir::Value> transpose(llvm::SmallVector<mlir::Value> rows);

  /// for (iv = from; iv < to; iv += step) body(iv)
  void loop(Int from, Int to, int64_t step,
            llvm::function_ref<void(mlir::Value)> body);
  /// The same with values carried from iteration to iteration.
  using CarriedBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      mlir::Value iv, mlir::ValueRange carried)>;
  llvm::SmallVector<mlir::Value> loop(Int from, Int to, int64_t step,
                                      mlir::ValueRange inits, CarriedBody body);

  /// Splits `size` columns into the widths of vector registers: calls `body`
  /// with a start and a width for a loop of full registers, then for the powers
  /// of two that are left.
  void forEachVector(int64_t size,
                     llvm::function_ref<void(Int start, int64_t width)> body);

private:
  LevelTraits traits;
};

} // namespace hybrid::cpu

#endif // HYBRID_LIB_TARGET_CPU_CODEBUILDER_H
