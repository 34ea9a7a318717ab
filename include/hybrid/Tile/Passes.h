//===- Passes.h - passes of the phase 'tile' -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TILE_PASSES_H
#define HYBRID_TILE_PASSES_H

#include "hybrid/Hybrid/Counter.h"
#include "mlir/Pass/Pass.h"

namespace hybrid {

#define GEN_PASS_DECL
#include "hybrid/Tile/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "hybrid/Tile/Passes.h.inc"

} // namespace hybrid

#endif // HYBRID_TILE_PASSES_H
