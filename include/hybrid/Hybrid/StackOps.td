//===- StackOps.td - every layer and head group explicit -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_HYBRID_STACK_OPS_TD
#define HYBRID_HYBRID_STACK_OPS_TD

include "hybrid/Hybrid/HybridAttrs.td"
include "hybrid/Hybrid/HybridTypes.td"

#endif // HYBRID_HYBRID_STACK_OPS_TD
