//===- Passes.td - passes of the phase 'grad' -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_GRAD_PASSES_TD
#define HYBRID_GRAD_PASSES_TD

include "mlir/Pass/PassBase.td"

#endif // HYBRID_GRAD_PASSES_TD
