//===- KernelsFixture.h - kernels beside the tile interpreter -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TEST_UNIT_TARGET_NVPTX_HOPPER_KERNELSFIXTURE_H
#define HYBRID_TEST_UNIT_TARGET_NVPTX_HOPPER_KERNELSFIXTURE_H

#include "Simulator.h"
#include "ThreadBlock.h"

#include "../../../Tile/ProgramTest.h"
#include "hybrid/Target/NVPTX/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace hybrid::hopper {

/// A program with a record, and the kernel that is made of both.
class KernelsFixture : public tile::ProgramTest {
protected:
  using Choice = sim::Policy::Choice;
  using Events = sim::Policy::Events;

  void makeKernel() {
    kernels = programs->clone();
    mlir::PassManager passes(&context);
    passes.addPass(createHybridHopperApplySchedules());
    passes.addPass(mlir::createCanonicalizerPass());
    passes.addPass(mlir::createCSEPass());
    ASSERT_TRUE(mlir::succeeded(passes.run(*kernels))) << reported;
  }

  KernelOp kernel() { return *kernels->getOps<KernelOp>().begin(); }
  tile::ProgramOp scheduled() {
    return *programs->getOps<tile::ProgramOp>().begin();
  }

  /// Bf16 numbers in [-1, 1], the same for a seed; whole ones in [-3, 3] on
  /// request.
  static void fill(tile::HostBuffer &buffer, unsigned seed,
                   bool whole = false) {
    std::mt19937 random(seed);
    for (double &x : buffer.elements()) {
      double number = double(random() % 2001) / 1000.0 - 1.0;
      x = whole ? double(random() % 7) - 3.0 : std::round(number * 128) / 128;
    }
  }

  /// Runs the kernel with one policy and compares the buffer `output` with the
  /// interpreter's.
  void compare(llvm::ArrayRef<tile::HostBuffer *> buffers,
               llvm::ArrayRef<int64_t> symbols,
               llvm::ArrayRef<unsigned> outputs, double tolerance) {
    std::vector<tile::HostBuffer> expected;
    for (tile::HostBuffer *buffer : buffers)
      expected.push_back(*buffer);
    std::vector<tile::HostBuffer *> pointers;
    for (tile::HostBuffer &buffer : expected)
      pointers.push_back(&buffer);
    run(scheduled(), pointers, symbols);
    const sim::Policy policies[] = {
        {Choice::FirstRole, Events::Late, 1},
        {Choice::FirstRole, Events::Early, 1},
        {Choice::LastRole, Events::Late, 1},
        {Choice::LastRole, Events::Early, 1},
        {Choice::Random, Events::Random, 1},
        {Choice::Random, Events::Random, 1000},
        {Choice::Random, Events::Late, 2000},
    };
    for (const sim::Policy &policy : policies) {
      std::vector<tile::HostBuffer> own;
      std::vector<tile::HostView> views;
      for (tile::HostBuffer *buffer : buffers)
        own.push_back(*buffer);
      for (tile::HostBuffer &buffer : own)
        views.push_back(buffer.view());
      ASSERT_EQ(sim::simulate(kernel(), views, symbols, policy), "");
      for (unsigned output : outputs) {
        EXPECT_TRUE(own[output].tailIsIntact());
        for (auto [got, wanted] : llvm::zip_equal(own[output].elements(),
                                                  expected[output].elements()))
          ASSERT_NEAR(got, wanted, tolerance) << "output " << output;
      }
    }
  }

  mlir::OwningOpRef<mlir::ModuleOp> programs, kernels;
};

} // namespace hybrid::hopper

#endif // HYBRID_TEST_UNIT_TARGET_NVPTX_HOPPER_KERNELSFIXTURE_H
