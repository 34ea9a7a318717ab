//===- Chips.h - what the targets can do -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_TARGET_NVPTX_CHIPS_H
#define HYBRID_LIB_TARGET_NVPTX_CHIPS_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Target/TargetMachine.h"
#include <memory>

namespace hybrid::nvptx {

/// A chip, the oldest PTX version that has it (ten times the version), and the
/// most shared memory of a block (CUDA C++ Programming Guide, technical
/// specifications; PTX ISA, release notes).
struct Chip {
  llvm::StringLiteral name;
  int64_t oldestPtx;
  int64_t sharedBytes;
  /// Whether a kernel can wait for the one in front of it by itself.
  bool overlaps;
  /// Whether it copies any number of bytes to shared memory by itself, and has
  /// barriers that count them (PTX 8.0).
  bool copiesInBulk;
};

/// An error that a block needs more shared memory than the chip has, with the
/// way out: smaller heads, or a chip where it fits. Marks the module.
mlir::InFlightDiagnostic refuseSize(mlir::Operation *op, int64_t bytes,
                                    const Chip &chip);

/// Of a module with a program that was refused for its size.
inline constexpr llvm::StringLiteral kTooLargeAttr = "hybrid.too_large";

/// The chip of that name; an error at `op` that lists all of them.
mlir::FailureOr<Chip> findChip(mlir::Operation *op, llvm::StringRef name);

/// LLVM's target for a chip. A pair of chip and PTX version that LLVM does not
/// know ends the process, so the pair is checked here first.
mlir::FailureOr<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(mlir::Operation *op, const Chip &chip, int64_t newestPtx);

} // namespace hybrid::nvptx

#endif // HYBRID_LIB_TARGET_NVPTX_CHIPS_H
