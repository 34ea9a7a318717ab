//===- Views.h - values that are parts of other values -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_SCHEDULE_VIEWS_H
#define HYBRID_LIB_SCHEDULE_VIEWS_H

#include "ProgramTable.h"
#include "hybrid/Hybrid/HybridOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace hybrid {

/// Puts a copy (a `hybrid.rowwise` that yields its input) wherever a value
/// would have to be made in two places at once: an argument or a slice that is
/// part of a concatenation or a result, a value that is part of two. Returns
/// the number of copies.
unsigned insertCopies(mlir::func::FuncOp function);

/// Puts a copy in front of every launch that would overwrite an input of the
/// caller, which reads it alone. Returns the copies, which are not scheduled.
mlir::FailureOr<llvm::SmallVector<RowwiseOp>>
copyOverwrittenInputs(mlir::func::FuncOp function);

/// Gives every dispatch that reads a slice or writes a part of a concatenation
/// the form of its program that takes strides at run time.
void relaxStrides(mlir::func::FuncOp function, ProgramTable &programs);

} // namespace hybrid

#endif // HYBRID_LIB_SCHEDULE_VIEWS_H
