//===- LowerPrograms.cpp - programs as the code of one thread -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LowerPrograms.h"

#include "KernelLowering.h"
#include "hybrid/Target/NVPTX/Passes.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace hybrid {
#define GEN_PASS_DEF_HYBRIDNVPTXANNOTATELAYOUTS
#define GEN_PASS_DEF_HYBRIDNVPTXLOWERPROGRAMS
#include "hybrid/Target/NVPTX/Passes.h.inc"
} // namespace hybrid

using namespace mlir;
using namespace hybrid;
using namespace hybrid::nvptx;

/// Lowers with as many stages as fit.
static LogicalResult lowerProgram(tile::ProgramOp program, const Chip &chip) {
  // Names are for schedules; scalar copies of named ops leave the program.
  program.walk([](Operation *op) {
    op->removeDiscardableAttr(tile::TileDialect::kNameAttr);
  });
  for (int64_t stages = kMostStages;; --stages) {
    Operation *before = program->getPrevNode();
    KernelLowering lowering(
        program, {chip.sharedBytes, stages, chip.overlaps, chip.copiesInBulk});
    FailureOr<func::FuncOp> kernel = lowering.run();
    if (failed(kernel))
      return failure();
    int64_t bytes = lowering.sharedBytes();
    if (bytes <= chip.sharedBytes) {
      Builder builder(program.getContext());
      (*kernel)->setAttr(kSharedBytesAttr, builder.getI64IntegerAttr(bytes));
      (*kernel)->setAttr(kThreadsAttr,
                         builder.getI64IntegerAttr(lowering.numThreads()));
      if (int64_t blocks = lowering.blocks(); blocks > 1)
        (*kernel)->setAttr(kBlocksAttr, builder.getI64IntegerAttr(blocks));
      if (lowering.overlaps())
        (*kernel)->setAttr(kOverlapsAttr, builder.getUnitAttr());
      program.erase();
      return success();
    }
    if (stages == 1)
      return refuseSize(program, bytes, chip);
    while (program->getPrevNode() != before)
      program->getPrevNode()->erase();
  }
}

LogicalResult hybrid::nvptx::lowerPrograms(ModuleOp module, const Chip &chip,
                                           unsigned &count) {
  for (auto program :
       llvm::make_early_inc_range(module.getOps<tile::ProgramOp>())) {
    if (failed(lowerProgram(program, chip)))
      return failure();
    ++count;
  }
  for (auto schedule :
       llvm::make_early_inc_range(module.getOps<tile::ScheduleOp>()))
    schedule.erase();
  return success();
}

namespace {

struct AnnotateLayouts
    : hybrid::impl::HybridNVPTXAnnotateLayoutsBase<AnnotateLayouts> {
  void runOnOperation() override {
    Builder builder(&getContext());
    for (auto program : getOperation().getOps<tile::ProgramOp>()) {
      LayoutPlan plan(program);
      program.getBody().walk([&](Operation *op) {
        SmallVector<Attribute> layouts;
        for (Value result : op->getResults()) {
          if (!isTile(result))
            continue;
          std::string text;
          llvm::raw_string_ostream stream(text);
          if (plan.isCheap(result) || isa<tile::BroadcastOp>(op))
            stream << "where used";
          else
            plan.layoutOf(result).print(stream);
          layouts.push_back(builder.getStringAttr(text));
        }
        if (!layouts.empty())
          op->setAttr("gpu.layout", builder.getArrayAttr(layouts));
      });
    }
  }
};

struct LowerPrograms
    : hybrid::impl::HybridNVPTXLowerProgramsBase<LowerPrograms> {
  using Base::Base;

  void runOnOperation() override {
    FailureOr<Chip> known = findChip(getOperation(), chip);
    unsigned count = 0;
    if (failed(known) || failed(lowerPrograms(getOperation(), *known, count)))
      return signalPassFailure();
    lowered += count;
  }
};

} // namespace
