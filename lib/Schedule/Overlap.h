//===- Overlap.h - launches that begin early -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_SCHEDULE_OVERLAP_H
#define HYBRID_LIB_SCHEDULE_OVERLAP_H

#include "mlir/IR/BuiltinOps.h"

namespace hybrid {

/// Marks the programs of every decoding step with `tile.overlap`: their
/// launches may begin before the launch in front of them has ended, and read
/// the views it lists at once. Returns how many programs were marked.
unsigned markOverlap(mlir::ModuleOp module);

} // namespace hybrid

#endif // HYBRID_LIB_SCHEDULE_OVERLAP_H
