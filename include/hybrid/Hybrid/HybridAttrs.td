//===- HybridAttrs.td - attributes and enumerations of the hybrid dialect -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_HYBRID_ATTRS_TD
#define HYBRID_HYBRID_ATTRS_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "hybrid/Hybrid/GraphAttrs.td"
include "hybrid/Hybrid/HybridDialect.td"
include "hybrid/Hybrid/SpecAttrs.td"

#endif // HYBRID_HYBRID_ATTRS_TD
