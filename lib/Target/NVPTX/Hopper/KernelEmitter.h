//===- KernelEmitter.h - a hopper kernel as the code of one thread -*- C++
//-*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_TARGET_NVPTX_HOPPER_KERNELEMITTER_H
#define HYBRID_LIB_TARGET_NVPTX_HOPPER_KERNELEMITTER_H

#include "../GpuViews.h"
#include "hybrid/Target/NVPTX/Hopper/HopperOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace hybrid::hopper {

/// Where the registers of a warpgroup have the elements of a tile of 64 rows:
/// the accumulator of `wgmma.mma_async` m64nNk16 (PTX ISA, "Register Fragments
/// for wgmma.mma_async.m64nNk16"). Of tiles of one row or one column, what such
/// a tile needs for its broadcast.
nvptx::Layout fragmentLayout(llvm::ArrayRef<int64_t> shape);

/// The 64 bits by which an instruction finds an operand in shared memory (PTX
/// ISA, "Matrix Descriptor"), without the address: distances in bytes, and the
/// 128-byte swizzle.
int64_t descriptorBits(int64_t leadingBytes, int64_t strideBytes);

/// How one product walks through an operand in shared memory.
struct OperandWalk {
  int64_t leadingBytes, strideBytes;
  /// Whether the depth runs along the rows in memory.
  bool isTransposed;
  /// Bytes from the operand's start to step `step`, of 16 of the depth.
  int64_t stepOffset(int64_t step) const;

  int64_t panelBytes;
  static OperandWalk of(int64_t panelRows, bool depthAlongRows);
};

inline bool isHalf(mlir::Type type) {
  mlir::Type element = mlir::getElementTypeOrSelf(type);
  return element.isBF16() || element.isF16();
}

class KernelEmitter {
public:
  using Values = nvptx::GpuBuilder::Values;

  explicit KernelEmitter(KernelOp kernel);
  /// Makes a `func.func` before the kernel, with its attributes.
  mlir::FailureOr<mlir::func::FuncOp> run();

private:
  struct View {
    mlir::Value base;
    mlir::SmallVector<mlir::Value, 4> sizes, strides; // i64
    mlir::Type element;
  };

  // Frame (KernelEmitter.cpp).
  void placeShared();
  void makeFunction();
  void readViews();
  mlir::Value viewAddress(mlir::Value view, mlir::ValueRange indices);
  void readGrid();
  Values placesOf(mlir::Value task);
  void initBarriers();
  mlir::LogicalResult emitRoles(RolesOp roles, unsigned role, int64_t first);
  mlir::LogicalResult emitBlock(mlir::Block &block);
  mlir::LogicalResult emitOp(mlir::Operation *op);
  mlir::LogicalResult emitFor(mlir::scf::ForOp loop);
  mlir::LogicalResult emitIf(mlir::scf::IfOp branch);
  void appendValues(mlir::ValueRange values, Values &flat);
  void bindValues(mlir::ValueRange values, mlir::ValueRange flat);

  // Barriers and copies (SharedAccess.cpp).
  mlir::Value barrierAddress(mlir::Value barriers, mlir::Value index);
  mlir::Value copyAddress(mlir::TypedValue<BufferType> buffer,
                          mlir::Value copy);
  mlir::LogicalResult emitShared(mlir::Operation *op);
  void emitTensorLoad(TensorLoadOp load);
  void emitClearRows(ClearRowsOp clear);

  // Products (Products.cpp).
  void emitProduct(ProductOp product);
  void emitProductWait(ProductWaitOp wait);
  mlir::Value descriptor(mlir::Value address, const OperandWalk &walk);

  // Tiles (Fragments.cpp).
  mlir::LogicalResult emitTile(mlir::Operation *op);
  mlir::LogicalResult emitElementwise(mlir::Operation *op);
  mlir::LogicalResult emitConversion(mlir::Operation *op);
  void emitWidening(mlir::arith::ExtFOp op);
  Values readTable(mlir::arith::ConstantOp constant);
  void emitReduce(tile::ReduceOp reduce);

  // From memory to registers (Loads.cpp).
  struct Access;
  template <typename Op> Access accessOf(Op op);
  void emitLoad(tile::LoadOp load);
  void loadElements(tile::LoadOp load);
  Values loadRows(const Access &s);
  Values loadHalves(const Access &s);
  void emitGather(tile::LoadRowsOp load);

  // Stores (Stores.cpp).
  mlir::LogicalResult emitStore(mlir::Operation *op);
  void storeRows(const Access &s);
  void storeQuads(const Access &s);
  void storeElements(const Access &s);
  mlir::Value isInside(const Access &s, mlir::Value row, mlir::Value column);
  mlir::Value isAligned(const Access &s, int64_t bytes);
  void put(const Access &s, mlir::Value inside, mlir::ValueRange elements,
           mlir::Value at);
  Values swapInQuads(mlir::ValueRange words);

  KernelOp kernel;
  mlir::OpBuilder builder;
  nvptx::GpuBuilder b;
  mlir::func::FuncOp function;
  llvm::DenseMap<mlir::Value, View> views;
  llvm::SmallVector<mlir::Value> gridSizes;     // i32
  llvm::SmallVector<mlir::Value> ids;           // of the block's point
  llvm::DenseMap<mlir::Value, int64_t> offsets; // in shared memory
  llvm::DenseMap<mlir::Value, mlir::Value> maps;
  llvm::DenseMap<mlir::Value, Values> tiles;
  mlir::IRMapping mapping;
  unsigned numTables = 0;
  int64_t sharedBytes = 0, firstWarpgroup = 0, roleThreads = 0;
  mlir::Value sharedBase, warpgroup; // i32
  /// Row and column of this thread's first register in a tile of 64 rows, i32.
  mlir::Value threadRow, threadColumn;
};

} // namespace hybrid::hopper

#endif // HYBRID_LIB_TARGET_NVPTX_HOPPER_KERNELEMITTER_H
