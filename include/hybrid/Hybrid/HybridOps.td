//===- HybridOps.td - the whole hybrid dialect -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All operations in one table, in the order of the phases; the dialect
// reference is written from it.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_HYBRID_HYBRID_OPS_TD
#define HYBRID_HYBRID_HYBRID_OPS_TD

include "hybrid/Hybrid/SpecOps.td"
include "hybrid/Hybrid/StackOps.td"
include "hybrid/Hybrid/GraphOps.td"
include "hybrid/Hybrid/DispatchOps.td"

#endif // HYBRID_HYBRID_HYBRID_OPS_TD
