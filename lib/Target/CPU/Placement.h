//===- Placement.h - which tiles get memory, and where -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_TARGET_CPU_PLACEMENT_H
#define HYBRID_LIB_TARGET_CPU_PLACEMENT_H

#include "hybrid/Target/CPU/Level.h"
#include "hybrid/Tile/TileOps.h"

namespace hybrid::cpu {

/// What becomes of a tile.
enum class Home : uint8_t {
  /// Computed inside the loop nest of its consumer.
  Fused,
  /// Other strides over the memory of the tile it is made from.
  Alias,
  /// Read from the view it was loaded from when the block lies inside its
  /// limits, and copied into its own buffer otherwise.
  InView,
  /// Data of the program.
  Constant,
  /// A buffer in scratch.
  Buffer,
};

llvm::StringRef nameOf(Home home);

/// Gives every tile of a program a home, and every buffer an offset in scratch.
/// Buffers whose lives do not overlap share memory; the result of an
/// elementwise op, the result of a product and its accumulator, and what a loop
/// carries take over the buffer of an operand that ends there.
class Placement {
public:
  Placement(tile::ProgramOp program, const LevelTraits &traits);

  Home homeOf(mlir::Value tile) const { return homes.lookup(tile); }
  /// In bytes from the start of scratch; of a Buffer or an InView tile.
  int64_t offsetOf(mlir::Value tile) const;
  /// Whether two tiles are the same buffer.
  bool sharesBuffer(mlir::Value a, mlir::Value b) const;
  /// Scratch that an op needs while it runs, such as the panel of a product.
  int64_t workspaceOf(mlir::Operation *op) const;
  int64_t getScratchBytes() const { return scratchBytes; }

private:
  using Position = int64_t;
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

  // Homes.
  void number(mlir::Block &block);
  void chooseHomes();
  Home chooseHome(mlir::Value tile);
  Home chooseElementwiseHome(mlir::Value tile);
  Home chooseShapeHome(mlir::Operation *op, mlir::Value input);
  bool usersCanFuse(mlir::Value tile) const;
  /// The ops whose nests read the tile, seen through fused and alias tiles.
  void collectReaders(mlir::Value tile,
                      llvm::SetVector<mlir::Operation *> &readers) const;
  bool mustCopyOut(tile::LoadOp load) const;

  // Lives.
  void createStorages();
  Position lastRead(mlir::Value tile) const;
  Position readPosition(mlir::Operation *reader, mlir::Value tile) const;
  StorageId addStorage(int64_t bytes, Position first, Position last);
  StorageId find(StorageId id) const;
  bool reaches(mlir::Value from, mlir::Value tile) const;
  bool readsInOrder(mlir::Value expression, mlir::Value tile) const;
  void collectHandovers();
  void collectInPlace(mlir::Operation *op);
  void collectCarried(mlir::Operation *op);
  void merge(const Handover &handover);
  void assignOffsets();

  tile::ProgramOp program;
  LevelTraits traits;
  llvm::DenseMap<mlir::Value, Home> homes;
  /// In the order of the program, so that the layout is a function of it.
  llvm::SmallVector<mlir::Value> tiles;
  llvm::SmallVector<mlir::Operation *> ops;
  llvm::DenseMap<mlir::Operation *, Position> begins, ends;
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

/// Whether the op computes each element of its result from one element of each
/// operand.
bool isElementwise(mlir::Operation *op);

/// Whether the value is a tile, and not a scalar or a view.
inline bool isTile(mlir::Value value) {
  return llvm::isa<mlir::RankedTensorType>(value.getType());
}

inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value tile) {
  return llvm::cast<mlir::RankedTensorType>(tile.getType()).getShape();
}

} // namespace hybrid::cpu

#endif // HYBRID_LIB_TARGET_CPU_PLACEMENT_H
