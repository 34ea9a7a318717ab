//===- Passes.td - passes of the phase 'stack' -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_STACK_PASSES_TD
#define HYBRID_STACK_PASSES_TD

include "mlir/Pass/PassBase.td"

#endif // HYBRID_STACK_PASSES_TD
