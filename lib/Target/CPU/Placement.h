//===- Placement.h - where in scratch each tile lies -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_TARGET_CPU_PLACEMENT_H
#define HYBRID_LIB_TARGET_CPU_PLACEMENT_H

#include "Homes.h"
#include "hybrid/Target/CPU/Level.h"
#include "llvm/ADT/DenseSet.h"

namespace hybrid::cpu {

/// Gives every tile that has memory of its own an offset in scratch.
/// Buffers whose lives do not overlap share memory; the result of an
/// elementwise op, the result of a product and its accumulator, and what a loop
/// carries take over the buffer of an operand that ends there.
class Placement {
public:
  Placement(tile::ProgramOp program, const LevelTraits &traits);

  Home homeOf(mlir::Value tile) const { return homes.of(tile); }
  /// In bytes from the start of scratch; of a Buffer or an InView tile.
  int64_t offsetOf(mlir::Value tile) const;
  /// Whether two tiles are the same buffer.
  bool sharesBuffer(mlir::Value a, mlir::Value b) const;
  /// Scratch that an op needs while it runs, such as the panel of a product.
  int64_t workspaceOf(mlir::Operation *op) const;
  int64_t getScratchBytes() const { return scratchBytes; }

private:
  using Position = Homes::Position;
  using StorageId = unsigned;
  struct Segment {
    Position first, last;
    /// The tile that lives here, as the storage made for it.
    StorageId tile;
  };
  /// Memory with one life; the tiles of a web are kept in one buffer.
  struct Storage {
    int64_t bytes;
    llvm::SmallVector<Segment, 2> life;
    int64_t offset = 0;
  };
  /// At `position` one tile ends and the other, which may overwrite it, begins.
  struct Handover {
    mlir::Value from, to;
    Position position;
  };

  void createStorages();
  StorageId addStorage(int64_t bytes, Position first, Position last);
  StorageId find(StorageId id) const;
  void collectHandovers();
  void collectInPlace(mlir::Operation *op);
  void collectCarried(mlir::Operation *op);
  void merge(const Handover &handover);
  void assignOffsets();

  Homes homes;
  LevelTraits traits;
  llvm::DenseMap<mlir::Value, StorageId> storageOf;
  llvm::DenseMap<mlir::Operation *, StorageId> workspaces;
  llvm::SmallVector<Storage> storages;
  /// In the order in which they are tried.
  llvm::SmallVector<Handover> handovers;
  llvm::DenseSet<std::tuple<StorageId, StorageId, Position>> handoverAt;
  /// Union-find over storages.
  mutable llvm::SmallVector<StorageId> parents;
  int64_t scratchBytes = 0;
};

} // namespace hybrid::cpu

#endif // HYBRID_LIB_TARGET_CPU_PLACEMENT_H
