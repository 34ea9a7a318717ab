//===- Register.h - what the tools know -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_DRIVER_REGISTER_H
#define HYBRID_DRIVER_REGISTER_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace hybrid {

/// Registers the dialects of hybridc, the upstream dialects, and the interface
/// implementations that either needs from the other.
void registerAllHybridDialects(mlir::DialectRegistry &registry);

/// Registers the passes of every phase with the global pass registry, for tools
/// that take a pass pipeline as text.
void registerAllHybridPasses();

} // namespace hybrid

#endif // HYBRID_DRIVER_REGISTER_H
