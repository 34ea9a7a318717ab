//===- LowerPrograms.cpp - programs that a block of threads shares -------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Target/CPU/Lower.h"
#include "hybrid/Target/NVPTX/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace hybrid {
#define GEN_PASS_DEF_HYBRIDNVPTXLOWERPROGRAMS
#include "hybrid/Target/NVPTX/Passes.h.inc"
} // namespace hybrid

using namespace mlir;
using namespace hybrid;

namespace {

struct LowerPrograms
    : hybrid::impl::HybridNVPTXLowerProgramsBase<LowerPrograms> {
  void runOnOperation() override {
    // Scalars, and blocks of 4 x 4 results per thread.
    cpu::LevelTraits traits{"nvptx", 1, 4, 4, 128};
    FailureOr<unsigned> count = cpu::lowerPrograms(getOperation(), traits);
    if (failed(count))
      return signalPassFailure();
    lowered += *count;
  }
};

} // namespace
