//===- WarpgroupRecord.h - schedule records for sm_90a -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TILE_FAMILIES_WARPGROUPRECORD_H
#define HYBRID_TILE_FAMILIES_WARPGROUPRECORD_H

#include "hybrid/Tile/TileOps.h"
#include "mlir/IR/Builders.h"

namespace hybrid::tile {

/// Writes the `tile.schedule` of a program whose operands one thread copies
/// while warpgroups multiply (docs/rationale/hopper.md). Entries name ops of
/// the program by their `tile.name`.
class WarpgroupRecord {
public:
  /// `warpgroups` multiply, with so many registers per thread.
  WarpgroupRecord(ProgramOp program, int64_t warpgroups, int64_t registers);

  /// A load through `buffers` copies in shared memory.
  WarpgroupRecord &load(llvm::StringRef name, int64_t buffers);

  struct Fields {
    /// A loop's ops of stage 1 run one iteration behind those of stage 0, ops
    /// of a time step in the order of `issue`.
    std::optional<int64_t> stage = {}, issue = {};
    /// Products that may still run when this one starts.
    std::optional<int64_t> wait = {};
    /// Whether warpgroups issue it one after the other.
    bool takesTurns = false;
  };
  /// An op of the warpgroups that multiply.
  WarpgroupRecord &multiply(llvm::StringRef name, const Fields &fields);

  /// Grid dims from the slowest to the fastest; of the fastest, `group` points
  /// stay together for all points of the one before it.
  WarpgroupRecord &traverse(llvm::ArrayRef<int64_t> dims, int64_t group = 1);
  /// Blocks take several points, and copy for the next one while they store
  /// what the last one gave.
  WarpgroupRecord &persist();
  /// Grid dims that run from the last point to the first.
  WarpgroupRecord &descend(llvm::ArrayRef<int64_t> dims);

  /// Puts the record behind its program, where `ProgramTable` finds it.
  ScheduleOp write();

private:
  ProgramOp program;
  mlir::Builder builder;
  mlir::NamedAttrList roles, ops, traversal;
};

} // namespace hybrid::tile

#endif // HYBRID_TILE_FAMILIES_WARPGROUPRECORD_H
