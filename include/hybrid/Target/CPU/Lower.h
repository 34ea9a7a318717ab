//===- Lower.h - tile programs as loops -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TARGET_CPU_LOWER_H
#define HYBRID_TARGET_CPU_LOWER_H

#include "hybrid/Target/CPU/Level.h"
#include "mlir/IR/BuiltinOps.h"

namespace hybrid::cpu {

/// On each function made from a program: the scratch it needs.
inline constexpr llvm::StringLiteral kScratchBytesAttr = "hybrid.scratch_bytes";

/// Turns every `tile.program` of the module into a function of loops and
/// returns how many there were.
mlir::FailureOr<unsigned> lowerPrograms(mlir::ModuleOp module,
                                        const LevelTraits &traits);

} // namespace hybrid::cpu

#endif // HYBRID_TARGET_CPU_LOWER_H
