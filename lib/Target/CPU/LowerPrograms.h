//===- LowerPrograms.h - the body of a program as loops -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_TARGET_CPU_LOWERPROGRAMS_H
#define HYBRID_LIB_TARGET_CPU_LOWERPROGRAMS_H

#include "Dot.h"
#include "Nest.h"
#include "Placement.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

namespace hybrid::cpu {

/// Turns one program into one function of the kernel border.
class ProgramLowering {
public:
  ProgramLowering(tile::ProgramOp program, const LevelTraits &traits,
                  DotFunctions &dots);

  mlir::LogicalResult run();

private:
  /// One argument of the program, read from its `hyb_view`.
  struct View {
    mlir::Value base;
    llvm::SmallVector<Int, 4> sizes, strides;
    mlir::Type element;
  };

  // Frame.
  void readViews(mlir::Value views);
  mlir::LogicalResult lowerGrid(mlir::Value grid, mlir::Value task);
  mlir::LogicalResult lowerOrdered(unsigned dim, mlir::Value grid);
  mlir::LogicalResult lowerBlock(mlir::Block &block);
  mlir::LogicalResult lower(mlir::Operation *op);

  // Control flow.
  mlir::LogicalResult lowerFor(mlir::scf::ForOp loop);
  mlir::LogicalResult lowerIf(mlir::scf::IfOp branch);
  void copyCarried(mlir::ValueRange from, mlir::ValueRange to);
  llvm::SmallVector<mlir::Value> scalarsOf(mlir::ValueRange values);

  // Memory.
  void lowerLoad(tile::LoadOp load);
  void lowerStore(tile::StoreOp store);
  void lowerAccumulate(tile::AccumulateOp accumulate);
  void lowerLoadRows(tile::LoadRowsOp load);
  void lowerStoreRows(tile::StoreRowsOp store);
  void lowerConstant(mlir::arith::ConstantOp constant);
  Place placeInView(mlir::Value view, mlir::ValueRange indices,
                    llvm::ArrayRef<int64_t> dims,
                    llvm::ArrayRef<int64_t> shape);
  /// The number of indices along each limited dim that lie inside.
  llvm::SmallVector<mlir::Value> extents(mlir::ValueRange limits,
                                         mlir::ValueRange indices,
                                         llvm::ArrayRef<int64_t> dims,
                                         llvm::ArrayRef<int64_t> shape);
  void copyInside(const Place &from, const Place &to,
                  llvm::ArrayRef<mlir::Value> extents);
  void fillZero(const Place &to);

  // Whole tiles.
  void lowerDot(tile::DotOp dot);
  void lowerReduce(tile::ReduceOp reduce);
  void lowerPrefixSum(tile::PrefixSumOp prefix);
  void lowerInverse(tile::UnitLowerInverseOp inverse);
  void lowerConcat(tile::ConcatOp concat);
  void lowerTranspose(tile::TransposeOp transpose);
  void lowerReshape(tile::ReshapeOp reshape);
  void lowerExtract(mlir::tensor::ExtractOp extract);

  // Tiles.
  /// Computes a tile of which every element is an expression, into its buffer.
  void evaluate(mlir::Value tile);
  /// Writes a tile, fused or in memory, to another place.
  void storeTile(mlir::Value tile, const Place &to);
  /// What a nest reads for a tile, and how it computes one that is fused.
  Nest::Node nodeFor(Nest &nest, mlir::Value tile, const Nest::Map &map);
  Nest::Node definitionOf(Nest &nest, mlir::Value tile, const Nest::Map &map);
  /// Memory of a tile that is not fused.
  Place placeOf(mlir::Value tile);
  Place bufferOf(mlir::Value tile);
  mlir::Value scratchAt(int64_t offset);
  mlir::Value scalar(mlir::Value value) {
    return mapping.lookupOrDefault(value);
  }
  Int integer(mlir::Value index) { return b.fromIndex(scalar(index)); }

  tile::ProgramOp program;
  DotFunctions &dots;
  Placement placement;
  mlir::OpBuilder builder;
  CodeBuilder b;
  llvm::DenseMap<mlir::Value, View> views;
  llvm::SmallVector<mlir::Value, 4> ids;
  mlir::IRMapping mapping;
  /// Of tiles that lie in a view or in constant data.
  llvm::DenseMap<mlir::Value, Place> places;
  mlir::Value scratch;
  unsigned constants = 0;
};

} // namespace hybrid::cpu

#endif // HYBRID_LIB_TARGET_CPU_LOWERPROGRAMS_H
