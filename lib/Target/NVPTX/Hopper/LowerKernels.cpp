//===- LowerKernels.cpp - hopper kernels as functions ---------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelEmitter.h"

#include "../LowerPrograms.h"
#include "hybrid/Target/NVPTX/Passes.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace hybrid {
#define GEN_PASS_DEF_HYBRIDHOPPERLOWERKERNELS
#include "hybrid/Target/NVPTX/Passes.h.inc"
} // namespace hybrid

using namespace mlir;
using namespace hybrid;
using namespace hybrid::nvptx;

namespace {
struct LowerKernels : hybrid::impl::HybridHopperLowerKernelsBase<LowerKernels> {
  using Base::Base;

  LogicalResult lower(hopper::KernelOp kernel) {
    FailureOr<Chip> known = findChip(kernel, chip);
    if (failed(known))
      return failure();
    if (known->name != "sm_90a")
      return kernel.emitError("uses what only sm_90a has, the chip is ")
             << known->name << "; leave out its schedule";
    auto function = hopper::KernelEmitter(kernel).run();
    if (failed(function))
      return failure();
    int64_t bytes =
        (*function)->getAttrOfType<IntegerAttr>(kSharedBytesAttr).getInt();
    if (bytes > known->sharedBytes)
      return refuseSize(kernel, bytes, *known);
    kernel.erase();
    ++lowered;
    return success();
  }

  void runOnOperation() override {
    for (auto kernel :
         llvm::make_early_inc_range(getOperation().getOps<hopper::KernelOp>()))
      if (failed(lower(kernel)))
        return signalPassFailure();
  }
};
} // namespace
