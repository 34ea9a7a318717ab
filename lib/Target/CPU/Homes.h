//===- Homes.h - which tiles get memory -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_TARGET_CPU_HOMES_H
#define HYBRID_LIB_TARGET_CPU_HOMES_H

#include "hybrid/Tile/TileOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

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

/// Gives every tile of a program a home, and says who reads it until when.
class Homes {
public:
  /// A place in the program: ops are numbered in their order, and an op with
  /// regions has one number where it begins and one where it ends.
  using Position = int64_t;

  explicit Homes(tile::ProgramOp program);

  Home of(mlir::Value tile) const { return homes.lookup(tile); }
  /// In the order of the program.
  llvm::ArrayRef<mlir::Value> getTiles() const { return tiles; }
  llvm::ArrayRef<mlir::Operation *> getOps() const { return ops; }
  Position beginOf(mlir::Operation *op) const { return begins.lookup(op); }
  Position endOf(mlir::Operation *op) const { return ends.lookup(op); }

  Position lastRead(mlir::Value tile) const;
  /// Whether an expression inside a nest reads the tile.
  bool reaches(mlir::Value from, mlir::Value tile) const;
  /// Whether each element of the expression reads no other element of the tile
  /// than that of the same index.
  bool readsInOrder(mlir::Value expression, mlir::Value tile) const;

private:
  void number(mlir::Block &block);
  void chooseHomes();
  Home chooseHome(mlir::Value tile);
  Home chooseElementwiseHome(mlir::Value tile);
  Home chooseShapeHome(mlir::Operation *op, mlir::Value input);
  bool usersCanFuse(mlir::Value tile) const;
  /// The ops whose nests read the tile, seen through fused and alias tiles.
  void collectReaders(mlir::Value tile,
                      llvm::SetVector<mlir::Operation *> &readers) const;
  Position readPosition(mlir::Operation *reader, mlir::Value tile) const;
  bool mustCopyOut(tile::LoadOp load) const;

  tile::ProgramOp program;
  llvm::DenseMap<mlir::Value, Home> homes;
  llvm::SmallVector<mlir::Value> tiles;
  llvm::SmallVector<mlir::Operation *> ops;
  llvm::DenseMap<mlir::Operation *, Position> begins, ends;
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

#endif // HYBRID_LIB_TARGET_CPU_HOMES_H
