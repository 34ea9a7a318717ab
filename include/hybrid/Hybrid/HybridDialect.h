//===- HybridDialect.h - the hybrid dialect -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_HYBRID_HYBRIDDIALECT_H
#define HYBRID_HYBRID_HYBRIDDIALECT_H

#include "mlir/IR/Dialect.h"

#include "hybrid/Hybrid/HybridDialect.h.inc"

#endif // HYBRID_HYBRID_HYBRIDDIALECT_H
