//===- Record.h - a schedule record and what it asks of a program -*- C++
//-*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_TARGET_NVPTX_HOPPER_RECORD_H
#define HYBRID_LIB_TARGET_NVPTX_HOPPER_RECORD_H

#include "hybrid/Target/NVPTX/Hopper/HopperOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace hybrid::hopper {

inline constexpr llvm::StringLiteral kTarget = "sm_90a";

/// One role of the record.
struct RoleSize {
  mlir::StringAttr name;
  int64_t warpgroups = 0, registers = 0;
};

/// A schedule for `sm_90a`, checked against its program: a role that loads, one
/// that multiplies, and an entry per named op.
class Record {
public:
  static mlir::FailureOr<Record> read(tile::ProgramOp program,
                                      tile::ScheduleOp schedule);

  const RoleSize &loader() const { return loads; }
  const RoleSize &worker() const { return works; }
  /// Rows of a tile: 64 for each warpgroup that works.
  int64_t rows() const { return kRows * works.warpgroups; }
  /// Loads of the first role, in the order of the program.
  llvm::ArrayRef<tile::LoadOp> getLoads() const { return loadOps; }
  bool isLoad(mlir::Operation *op) const;

  bool isNamed(mlir::Operation *op) const { return entryOf(op) != nullptr; }
  int64_t number(mlir::Operation *op, llvm::StringRef key,
                 int64_t otherwise) const;
  bool takesTurns(mlir::Operation *op) const;

  mlir::SmallVector<int64_t> traversal() const;
  mlir::SmallVector<int64_t> descending() const;
  int64_t group() const;
  /// Whether blocks take several points of the grid.
  bool isPersistent() const;

private:
  mlir::DictionaryAttr entryOf(mlir::Operation *op) const;
  mlir::LogicalResult findRoles();
  mlir::LogicalResult checkProgram();
  mlir::LogicalResult checkPersistent();

  mutable tile::ProgramOp program;
  mutable tile::ScheduleOp schedule;
  RoleSize loads, works;
  mlir::SmallVector<tile::LoadOp> loadOps;
};

inline bool isTile(mlir::Value value) {
  return mlir::isa<mlir::RankedTensorType>(value.getType());
}

} // namespace hybrid::hopper

#endif // HYBRID_LIB_TARGET_NVPTX_HOPPER_RECORD_H
