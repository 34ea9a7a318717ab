//===- MergeLaunches.h - independent launches as one -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_SCHEDULE_MERGELAUNCHES_H
#define HYBRID_LIB_SCHEDULE_MERGELAUNCHES_H

#include "ProgramTable.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace hybrid {

/// Makes one launch of launches that do not need each other and have one grid:
/// its first grid dim says whose point a point is. Only of programs without
/// matrix products and records, whose points are small, and of launches of one
/// algorithm. Returns how many launches are gone.
unsigned mergeLaunches(mlir::func::FuncOp function, ProgramTable &programs);

/// Erases programs that nothing launches any more.
void eraseUnlaunched(mlir::ModuleOp module);

} // namespace hybrid

#endif // HYBRID_LIB_SCHEDULE_MERGELAUNCHES_H
