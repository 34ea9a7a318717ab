//===- Passes.h - passes of the NVPTX target -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TARGET_NVPTX_PASSES_H
#define HYBRID_TARGET_NVPTX_PASSES_H

#include "hybrid/Hybrid/Counter.h"
#include "hybrid/Target/NVPTX/Hopper/HopperOps.h"
#include "mlir/Pass/Pass.h"

namespace hybrid {

#define GEN_PASS_DECL
#include "hybrid/Target/NVPTX/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "hybrid/Target/NVPTX/Passes.h.inc"

} // namespace hybrid

#endif // HYBRID_TARGET_NVPTX_PASSES_H
