//===- Simulator.h - runs hopper kernels on the host -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread block as a few agents: one per warpgroup, or the single thread of a
// role. Copies and products are events that happen some time after they were
// started. Only one agent runs at a time; at every op that others can notice, a
// policy chooses who goes on and whether an event happens. So a run is
// repeatable, and orders that hardware rarely shows can be had.
//
// Faults are: nobody can go on (deadlock); a product that starts on a copy of a
// buffer of which its warpgroup does not know that it has arrived; a copy over
// what a product reads, unless the loader knows that it has ended; rows cleared
// by others without a barrier between; more arrivals than a phase has; a
// product without a fence after its registers were written; a result used in
// flight; copies that still run when the block ends.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TEST_UNIT_TARGET_NVPTX_HOPPER_SIMULATOR_H
#define HYBRID_TEST_UNIT_TARGET_NVPTX_HOPPER_SIMULATOR_H

#include "hybrid/Target/NVPTX/Hopper/HopperOps.h"
#include "hybrid/Tile/Interpreter.h"

namespace hybrid::hopper::sim {

struct Policy {
  /// Which agent goes on among those that can.
  enum class Choice { FirstRole, LastRole, Random } choice = Choice::Random;
  /// When copies and products that were started happen: as late as possible, at
  /// once, or some time.
  enum class Events { Late, Early, Random } events = Events::Random;
  unsigned seed = 1;
};

/// Runs all blocks; the text is empty, or the first fault in words.
std::string simulate(KernelOp kernel, llvm::ArrayRef<tile::HostView> views,
                     llvm::ArrayRef<int64_t> symbols, const Policy &policy);

/// The point of the grid that block `task` takes.
llvm::SmallVector<int64_t, 4>
pointOf(KernelOp kernel, llvm::ArrayRef<int64_t> sizes, int64_t task);

} // namespace hybrid::hopper::sim

#endif // HYBRID_TEST_UNIT_TARGET_NVPTX_HOPPER_SIMULATOR_H
