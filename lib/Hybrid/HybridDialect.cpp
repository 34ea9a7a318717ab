//===- HybridDialect.cpp - the hybrid dialect -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Hybrid/HybridOps.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace hybrid;

#include "hybrid/Hybrid/HybridDialect.cpp.inc"

#include "hybrid/Hybrid/HybridEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "hybrid/Hybrid/HybridAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "hybrid/Hybrid/HybridTypes.cpp.inc"

void HybridDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "hybrid/Hybrid/HybridAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "hybrid/Hybrid/HybridTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "hybrid/Hybrid/SpecOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "hybrid/Hybrid/StackOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "hybrid/Hybrid/GraphOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "hybrid/Hybrid/DispatchOps.cpp.inc"
      >();
}
