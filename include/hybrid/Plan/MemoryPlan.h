//===- MemoryPlan.h - bytes a plan takes for given capacities -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_PLAN_MEMORYPLAN_H
#define HYBRID_PLAN_MEMORYPLAN_H

#include "hybrid/Plan/Plan.h"
#include "llvm/Support/Error.h"
#include <array>

namespace hybrid {

/// Values of the six symbols, in their order.
using SymbolValues = std::array<int64_t, 6>;

/// The value of `expr`; nothing when it overflows or divides by zero.
std::optional<int64_t> evaluate(mlir::AffineExpr expr,
                                const SymbolValues &symbols);

/// A launch of a call, which pieces may run several times.
struct PlanRun {
  unsigned launch;
  const PlanAlternative *chosen;
  uint64_t times;
  /// Rows of the stream each time.
  int64_t tokens;
};

/// The launches that run at these capacities, each with the alternative that
/// the runtime chooses. Pieces that choose unlike ones are several runs.
std::vector<PlanRun> listRuns(const PlanEntry &entry,
                              const SymbolValues &symbols);

struct EntryMemory {
  struct Buffer {
    const PlanBuffer *buffer;
    uint64_t bytes, offset;
  };
  /// Launches that run at these capacities.
  uint64_t launches = 0;
  /// Every arena buffer that they use, largest first.
  std::vector<Buffer> buffers;
  /// Size of the arena: what the runtime allocates for the entry.
  uint64_t arena = 0;
  /// Sum over the arena's buffers: what it would be without reuse.
  uint64_t withoutReuse = 0;
  /// Buffers of the caller that the entry touches, by kind.
  std::vector<std::pair<BufferKind, uint64_t>> bound;
  /// The most scratch memory that one of its tasks needs; 0 before the target's
  /// code generation has said.
  uint64_t scratch = 0;
  /// Scratch of all threads, and what they count tasks with.
  uint64_t workspace = 0;
  /// What a call takes beside that on a GPU where the runtime gives products to
  /// a library; 0 where none of them is one that it could.
  uint64_t productWorkspace = 0;
};

/// The memory of one entry, by the algorithm the runtime uses. `threads` is 0
/// where scratch is no memory, as on a GPU.
llvm::Expected<EntryMemory> planMemory(const Plan &plan, const PlanEntry &entry,
                                       const SymbolValues &symbols,
                                       unsigned threads = 0);

/// Prints the memory of every entry as a table, with the largest buffers.
llvm::Error printMemoryPlan(const Plan &plan, const SymbolValues &symbols,
                            unsigned threads, llvm::raw_ostream &os);

} // namespace hybrid

#endif // HYBRID_PLAN_MEMORYPLAN_H
