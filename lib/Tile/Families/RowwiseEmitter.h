//===- RowwiseEmitter.h - one block of rows of a row-wise program --------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_TILE_FAMILIES_ROWWISEEMITTER_H
#define HYBRID_LIB_TILE_FAMILIES_ROWWISEEMITTER_H

#include "hybrid/Hybrid/HybridOps.h"
#include "hybrid/Tile/Families/KernelBuilder.h"

namespace hybrid::tile {

/// Which values of a program have rows, and how many rows a point works on.
struct RowBlock {
  /// Type of a result. Where its rows are dynamic, dynamic values have rows; a
  /// program over static tensors takes values of this rank and leading size.
  mlir::RankedTensorType rowType;
  int64_t rows = 1;
  /// Whether a block of one row may be without it.
  bool mayLackRows = false;
  /// Of [rows, heads, width]: how many heads it works on; 0 is all of them.
  int64_t heads = 0;

  bool hasRows(mlir::Type type) const;
  bool hasHeads(mlir::Type type) const;
  llvm::SmallVector<int64_t> tileShape(mlir::Type type) const;
};

/// What the emission of an operation may use: the tiles of its operands, and
/// where its rows are.
class RowwiseEmitter {
public:
  using Shape = KernelBuilder::Shape;

  /// `firstHead` where the block is of some heads alone.
  RowwiseEmitter(KernelBuilder &k, const RowBlock &block, mlir::Value firstRow,
                 mlir::Value numRows, mlir::Value firstHead = {})
      : k(k), block(block), firstRow(firstRow), numRows(numRows),
        firstHead(firstHead) {}

  /// The tile of `value`: [rows, ...] for what has rows, the whole otherwise.
  mlir::Value tileOf(mlir::Value value) const { return tiles.lookup(value); }
  void setTile(mlir::Value value, mlir::Value tile) { tiles[value] = tile; }

  /// Views of a value of type `!hybrid.segments`: table, token segments.
  void setSegments(mlir::Value segments, mlir::Value table,
                   mlir::Value tokenSegment);
  /// All rows are of this segment: no table is read.
  void setSegment(const Segment &all) { segment = all; }
  bool knowsSegment() const { return segment.has_value(); }

  /// The shape of the tile that a value of this type becomes.
  llvm::SmallVector<int64_t> tileShape(mlir::Type type) const {
    return block.tileShape(type);
  }

  /// `tile` stretched to `shape`: its dims are matched with the last ones.
  mlir::Value stretch(mlir::Value tile, Shape shape);

  /// Index of each row in the leading dim, [rows, 1] of i32.
  mlir::Value rowNumbers();
  /// Position in its segment of each row, [rows, 1] of i32.
  mlir::Value positions(mlir::Value segments);
  /// Positions of each row's segment up to the end of this call, [rows, 1] of
  /// i32.
  mlir::Value positionsEnd(mlir::Value segments);

  /// Cosines and sines of a rotation's angles, [rows, frequencies]; made once
  /// where they are asked for before the rotation.
  std::pair<mlir::Value, mlir::Value> rotaryFactors(RotaryOp op);

  /// The first element of a block of this type in each dim of its view.
  llvm::SmallVector<mlir::Value> blockIndices(mlir::Type type);

  KernelBuilder &k;

private:
  mlir::Value segmentColumn(mlir::Value segments, int64_t column);

  RowBlock block;
  mlir::Value firstRow, numRows, firstHead; // index
  std::optional<Segment> segment;
  llvm::DenseMap<mlir::Value, mlir::Value> tiles;
  llvm::DenseMap<mlir::Operation *, std::pair<mlir::Value, mlir::Value>>
      rotations;
  struct SegmentViews {
    mlir::Value table, tokenSegment;
    mlir::Value rows; // [rows, 4] of i32, loaded on first use
  };
  llvm::DenseMap<mlir::Value, SegmentViews> segmentViews;
};

/// What is emitted, the operations of a region or one operation by itself, and
/// how it is part of a program.
struct RowwiseBody {
  explicit RowwiseBody(mlir::Operation *op);

  /// An error at the operation for shapes that tiles cannot have.
  mlir::LogicalResult check() const;
  /// Whether each head of a result [rows, heads, width] depends on that head
  /// of the operands alone, so that blocks may be of some heads.
  bool keepsHeads() const;
  /// Rows of a point: see buildRowwise.
  void chooseRows(int64_t blockElements, int64_t mostRows);

  /// The views of the operands, which are the program's from `firstView` on;
  /// those of segments are left out where the emitter knows the segment.
  void appendOperandViews(llvm::SmallVectorImpl<mlir::Type> &types,
                          bool withSegments = true) const;
  mlir::Type resultView(unsigned n) const;

  /// Loads every operand once; those with rows and the others may be loaded
  /// apart.
  void load(RowwiseEmitter &e, mlir::Value firstRow, mlir::Value numRows,
            bool withRows = true, bool withoutRows = true) const;
  /// Makes what depends on the rows' positions alone.
  void prepare(RowwiseEmitter &e) const;
  void emit(RowwiseEmitter &e) const;
  void store(RowwiseEmitter &e, unsigned n, mlir::Value view,
             mlir::Value firstRow, mlir::Value numRows) const;

  mlir::Operation *op;
  llvm::SmallVector<mlir::Operation *> body;
  llvm::SmallVector<mlir::Value> operands; // as the body names them
  llvm::SmallVector<mlir::Value> results;
  RowBlock block;
  unsigned firstView = 0;

private:
  /// Where a block must stop; none where every block is full.
  llvm::SmallVector<mlir::Value> rowLimit(mlir::Value numRows) const;
};

/// Of each frequency of a rotation, the turns per position as a fixed-point
/// number of 32 bits behind the point.
llvm::SmallVector<int32_t> rotaryTurns(RotaryOp op);
/// Fractions of a turn of that form as angles in (-π, π].
mlir::Value rotaryAngles(KernelBuilder &k, mlir::Value fraction);

/// Emits the tile operations of `op` and returns the tile of its result.
using RowwiseEmission = mlir::Value (*)(RowwiseEmitter &e, mlir::Operation *op);

/// The emission of `op`, or null.
RowwiseEmission lookupRowwiseEmission(mlir::Operation *op);

} // namespace hybrid::tile

#endif // HYBRID_LIB_TILE_FAMILIES_ROWWISEEMITTER_H
