//===- Passes.h - passes of the phase 'grad' -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_GRAD_PASSES_H
#define HYBRID_GRAD_PASSES_H

#include "hybrid/Hybrid/Counter.h"
#include "mlir/Pass/Pass.h"

namespace hybrid {

/// What `backward` computes again instead of keeping it from the forward:
/// nothing, each layer, or what is cheap of each layer.
enum class Recompute { none, layer, selective };

#define GEN_PASS_DECL
#include "hybrid/Grad/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "hybrid/Grad/Passes.h.inc"

} // namespace hybrid

#endif // HYBRID_GRAD_PASSES_H
