//===- Passes.td - passes of the CPU target -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TARGET_CPU_PASSES_TD
#define HYBRID_TARGET_CPU_PASSES_TD

include "mlir/Pass/PassBase.td"

#endif // HYBRID_TARGET_CPU_PASSES_TD
