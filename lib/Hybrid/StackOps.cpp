//===- StackOps.cpp - verifiers and syntax of StackOps.td -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Hybrid/HybridOps.h"

using namespace mlir;
using namespace hybrid;

#define GET_OP_CLASSES
#include "hybrid/Hybrid/StackOps.cpp.inc"
