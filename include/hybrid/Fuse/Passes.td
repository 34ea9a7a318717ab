//===- Passes.td - passes of the phase 'fuse' -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_FUSE_PASSES_TD
#define HYBRID_FUSE_PASSES_TD

include "mlir/Pass/PassBase.td"

#endif // HYBRID_FUSE_PASSES_TD
