//===- KernelLowering.h - one program as the code of one thread -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile exists in versions: distributed over the registers of the block in one
// layout or another, or in shared memory. `get` gives it in the layout that a
// use asks for, by what is cheapest: a version that is there, computing it
// again, moving registers, reading global memory again, or shared memory.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_TARGET_NVPTX_KERNELLOWERING_H
#define HYBRID_LIB_TARGET_NVPTX_KERNELLOWERING_H

#include "GpuViews.h"
#include "Propagate.h"
#include "SharedMemory.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

namespace hybrid::nvptx {

/// What a kernel may use.
struct KernelBudget {
  /// Shared memory of a block, in bytes.
  int64_t sharedBytes;
  /// Copies of an operand that a loop may keep in flight; 1: none ahead.
  int64_t stages;
  /// Whether the chip has kernels that begin before the one in front has ended.
  bool overlap;
  /// Whether it has bulk copies.
  bool bulk;
};

/// Elements of 16 bits in 128 bytes.
inline constexpr int64_t kSwizzledRow = 64;

/// Of the element at `offset` from the thread's `base`.
mlir::Value addressIn(GpuBuilder &b, const SharedTile &tile,
                      mlir::ValueRange base, const Coordinates &offset);

class KernelLowering {
public:
  using Values = GpuBuilder::Values;

  KernelLowering(tile::ProgramOp program, const KernelBudget &budget);

  /// Makes a `func.func` before the program.
  mlir::FailureOr<mlir::func::FuncOp> run();
  int64_t numThreads() const { return plan.numWarps() * kLanes; }
  int64_t sharedBytes() const { return usedShared; }
  /// Whether the kernel waits for the one in front of it by itself.
  bool overlaps() const { return isOverlapping; }
  /// Blocks that registers leave room for on a multiprocessor, at least.
  int64_t blocks() const;

private:
  /// One argument of the program, read from its `hyb_view`.
  struct View {
    mlir::Value base;
    /// Run-time values, i64.
    llvm::SmallVector<mlir::Value, 4> sizes, strides;
    /// What the type knows of the strides.
    llvm::SmallVector<int64_t, 4> known;
    mlir::Type element;
    bool isWritten;
    /// Whether it may be read before the kernel in front has ended.
    bool isReady;
    /// Whether nothing writes it while the kernel is there.
    bool isConstant;
    /// Whether 16-byte accesses are possible, by the strides of this launch,
    /// and where that is needed; null where the type says so.
    mlir::Value isAlignedHere, isAligned;
  };
  struct Distributed {
    Layout layout;
    Values registers;
  };
  struct Versions {
    llvm::SmallVector<Distributed, 2> distributed;
    std::optional<SharedTile> shared;
  };
  /// A block of a view as one layout sees it.
  struct Access {
    Layout layout;
    mlir::Type element;
    /// Address of this thread's first register.
    mlir::Value address;
    /// Strides of the tile's dims in elements: known, or else a value.
    llvm::SmallVector<int64_t, 3> known;
    Values strides;
    /// Thread's coordinates, and per dim what they must stay below (i32), or
    /// null.
    Values base, left;
    mlir::Value owns;
    /// Elements of one access, where `isAligned` holds or is null.
    int64_t vector = 1;
    mlir::Value isAligned;
    /// Rows that lie anywhere: per offset along dim 0, the index and the mask.
    llvm::SmallVector<mlir::Value> rows, masks;
    bool invariant = false;
  };

  // Frame (KernelLowering.cpp).
  mlir::LogicalResult lowerGrid(mlir::Value grid);
  mlir::LogicalResult lowerOrdered(unsigned dim, mlir::Value grid);
  void readViews(mlir::Value arguments);
  void finishEarly();
  void waitForPredecessor();
  bool readsPredecessor(mlir::Operation *op);
  mlir::LogicalResult lowerBlock(mlir::Block &block);
  mlir::LogicalResult lower(mlir::Operation *op);
  /// What no tile op is: scalars, and elementwise ops on tiles.
  mlir::LogicalResult lowerOther(mlir::Operation *op);
  void lowerLoadScalar(tile::LoadScalarOp load);
  void lowerStoreScalar(tile::StoreScalarOp store);
  mlir::Value scalar(mlir::Value value) {
    return mapping.lookupOrDefault(value);
  }
  void lowerExtract(mlir::tensor::ExtractOp extract);

  // Versions of tiles (Versions.cpp).
  Values get(mlir::Value tile, const Layout &layout);
  Values compute(mlir::Value tile, const Layout &layout);
  Values computeElementwise(mlir::Operation *op, const Layout &layout);
  std::optional<Values> byRegisters(mlir::Value tile, const Layout &layout);
  void remember(mlir::Value tile, const Layout &layout, Values registers);
  void remember(mlir::Value tile, const SharedTile &shared);
  /// The tile in shared memory.
  SharedTile staged(mlir::Value tile);
  SharedTile allocateFor(mlir::Value tile, llvm::ArrayRef<int64_t> extents);
  /// Bytes that the whole tile takes there.
  int64_t stagedBytes(mlir::Value tile);
  std::pair<int64_t, int64_t> operandExtents(mlir::Value tile,
                                             llvm::ArrayRef<int64_t> extents);
  SharedTile allocateRowMajor(mlir::Type element,
                              llvm::ArrayRef<int64_t> shape);
  /// Of warps that hold copies in `owners`, which is `layout` unless given, the
  /// first one writes.
  void write(const Layout &layout, mlir::ValueRange registers,
             const SharedTile &to, const Layout *owners = nullptr);
  /// The same without a look at who else accesses the buffer.
  void writeUnordered(const Layout &layout, mlir::ValueRange registers,
                      const SharedTile &to, const Layout *owners = nullptr);
  Values read(const SharedTile &from, const Layout &layout);
  mlir::Value constantTable(mlir::arith::ConstantOp constant);
  Values readTable(mlir::arith::ConstantOp constant, const Layout &layout);
  size_t enterScope() { return log.size(); }
  void leaveScope(size_t mark);
  /// The thread's coordinates in a layout, computed once at the kernel's start.
  Values threadBase(const Layout &layout);

  // Global memory (Copies.cpp).
  /// What nothing in the program writes needs no barrier.
  void readsView(mlir::Value view) {
    if (views[view].isWritten)
      shared.readsView(view);
  }
  Access access(mlir::Value view, mlir::ValueRange indices,
                mlir::ValueRange limits, llvm::ArrayRef<int64_t> dims,
                const Layout &layout, mlir::IRMapping &scalars);
  void addRows(Access &access, mlir::Value rows, mlir::Value mask,
               mlir::Value view, int64_t dim);
  mlir::Value addressAt(const Access &access, const Coordinates &offset);
  mlir::Value insideAt(const Access &access, const Coordinates &offset);
  Values loadAll(const Access &access, int64_t vector);
  Values loadAll(const Access &access);
  void storeAll(const Access &access, mlir::ValueRange registers,
                llvm::function_ref<Values(mlir::ValueRange, mlir::Value address,
                                          mlir::Value inside)>
                    combine = nullptr);
  Values loadFromView(tile::LoadOp load, const Layout &layout);
  void lowerLoad(tile::LoadOp load);
  void lowerStore(tile::StoreOp store);
  void lowerAccumulate(tile::AccumulateOp accumulate);
  void lowerLoadRows(tile::LoadRowsOp load);
  void lowerStoreRows(tile::StoreRowsOp store);
  mlir::Value scalarAddress(mlir::Value view, mlir::ValueRange indices);
  void copyToShared(tile::LoadOp load, const SharedTile &to,
                    mlir::IRMapping &scalars);
  int64_t divisibility(mlir::Value index, unsigned depth = 0);
  bool isAskedEarly(mlir::Value tile);
  SharedTile placeOf(mlir::Value tile);
  bool comesInBulk(mlir::Value tile);
  SharedTile placeForBulk(mlir::Value tile);
  void clearRows(const SharedTile &to, mlir::Value first);
  void copyInBulk(tile::LoadOp load, const SharedTile &to);

  // Loops that copy ahead (Pipeline.cpp).
  struct Pipeline {
    llvm::SmallVector<tile::LoadOp> loads;
    llvm::SmallVector<SharedTile> buffers;
    llvm::SmallVector<int64_t> bytes;
    int64_t stages = 1;
    /// Of tiles that nothing writes: it may begin before the kernel waits.
    bool isStream = false;
    /// Whether every thread reads the pieces that it copied itself: then
    /// threads do not meet, and a stage is filled again as soon as it is read.
    bool isOwn = false;

    /// Iterations whose copies are on their way while one waits.
    int64_t ahead() const { return isOwn ? stages : stages - 1; }
    bool copiesAhead() const { return stages > 1; }
  };
  bool isStreamed(tile::LoadOp load);
  bool readsOwnPieces(tile::LoadOp load);
  bool mayCopyAhead(tile::LoadOp load, mlir::scf::ForOp loop);
  llvm::SmallVector<tile::LoadOp> loadsToCopyAhead(mlir::scf::ForOp loop);
  Pipeline planPipeline(mlir::scf::ForOp loop);
  void issueFirstCopies(Pipeline &pipeline, mlir::scf::ForOp loop);
  void beginStreams(mlir::Operation *op);
  void issueCopies(Pipeline &pipeline, mlir::scf::ForOp loop, mlir::Value index,
                   mlir::Value upper, mlir::Value slot);
  void stageInvariants(mlir::scf::ForOp loop);

  // Loops and branches (ControlFlow.cpp).
  struct Bounds {
    mlir::Value upper, step;
  };
  /// One turn of a loop that copies ahead: its stage and the next turn's, and
  /// the index of the turn whose copies are asked for now.
  struct Turn {
    mlir::Value slot, nextSlot, later;
  };
  mlir::LogicalResult lowerFor(mlir::scf::ForOp loop);
  mlir::LogicalResult lowerBody(mlir::scf::ForOp loop, mlir::scf::ForOp made,
                                const Bounds &bounds, Pipeline &pipeline);
  void beginTurn(Turn &turn, const Bounds &bounds, Pipeline &pipeline,
                 mlir::scf::ForOp loop);
  mlir::LogicalResult lowerIf(mlir::scf::IfOp branch);
  mlir::LogicalResult lowerBranch(mlir::Block &block, mlir::ValueRange results);
  void appendCarried(mlir::ValueRange values, mlir::ValueRange like,
                     Values &flat);
  void bindCarried(mlir::ValueRange targets, mlir::ValueRange flat);

  // Products (Mma.cpp).
  /// The left or right operand of a product: in shared memory, where its index
  /// (row of the left, column of the right) and the depth have strides, or in
  /// the registers of an accumulator.
  struct Operand {
    std::optional<SharedTile> tile;
    int64_t indexStride = 0, depthStride = 0;
    Layout layout;
    Values registers;
  };
  class Product;
  mlir::LogicalResult lowerDot(tile::DotOp dot);
  void readOperands(const Operand &left, const Operand &right, int64_t depth,
                    const Accumulator &shape);
  Values multiplyApart(const Operand &left, const Operand &right, int64_t depth,
                       const Accumulator &shape, tile::Precision precision,
                       Values sums);
  /// sums + left · right.
  Values multiply(const Operand &left, const Operand &right, int64_t depth,
                  const Accumulator &shape, tile::Precision precision,
                  Values sums);
  std::optional<Operand> leftInRegisters(mlir::Value a,
                                         const Accumulator &shape);
  static Operand inShared(const SharedTile &tile, bool depthFirst);
  // Products of one row (RowProduct.cpp).
  class RowProduct;
  void lowerRowProduct(tile::DotOp dot);

  // Whole tiles (LowerTiles.cpp).
  Values maskPadding(const Layout &layout, unsigned dim, Values registers,
                     double identity);
  void lowerReduce(tile::ReduceOp reduce);
  /// A sum or maximum of which every warp has left its part in shared memory.
  struct LeftParts {
    tile::ReduceOp reduce;
    SharedTile first;
    int64_t count, bytes;
  };
  bool usesLeftParts(mlir::Operation *op);
  void finishReductions();
  mlir::Value combine(tile::ReduceKind kind, mlir::Value x, mlir::Value y);
  Values acrossLanes(const Layout &layout, unsigned dim, tile::ReduceKind kind,
                     Values registers);
  LeftParts leaveParts(tile::ReduceOp reduce, const Layout &layout,
                       Values registers);
  void scanLanes(const Layout &layout, unsigned dim, bool reverse,
                 Values &registers);
  void lowerPrefixSum(tile::PrefixSumOp prefix);
  void lowerSlice(tile::SliceOp slice);
  std::optional<Values> concatRegisters(tile::ConcatOp concat,
                                        const Layout &layout);
  void lowerConcat(tile::ConcatOp concat);
  void lowerReshape(tile::ReshapeOp reshape);
  void reshapeInMemory(tile::ReshapeOp reshape);
  // The triangular inverse (Inverse.cpp).
  void lowerInverse(tile::UnitLowerInverseOp inverse);
  void fillZero(const SharedTile &to);
  void copyStrictLower(mlir::Value matrix, const SharedTile &to);
  void invertDiagonal(const SharedTile &matrix, const SharedTile &inverse,
                      int64_t size);
  void mergeInverses(const SharedTile &matrix, const SharedTile &inverse,
                     int64_t size, int64_t block);
  SharedTile part(const SharedTile &tile, int64_t row, int64_t column,
                  int64_t rows, int64_t columns);

  tile::ProgramOp program;
  KernelBudget budget;
  LayoutPlan plan;
  mlir::OpBuilder builder;
  GpuBuilder b;
  SharedMemory shared;
  int64_t usedShared = 0, overshoot = 0;
  /// Of matrices that the copy engine brings.
  int64_t bulkBytes = 0;
  /// Most fragments of a matrix that a warp loads for a product of one row.
  int64_t rowFragments = 0;
  /// Begins early, and has not waited yet.
  bool isOverlapping = false, mustWait = false;
  mlir::Operation *entryEnd = nullptr;
  llvm::DenseMap<mlir::Value, View> views;
  llvm::SmallVector<mlir::Value, 4> ids;
  mlir::IRMapping mapping;
  /// In the order of the program.
  llvm::SmallVector<LeftParts> leftParts;
  llvm::DenseMap<mlir::Value, Versions> versions;
  /// What was remembered, in order; a region forgets its own when it ends.
  llvm::SmallVector<std::pair<mlir::Value, bool>> log;
  std::vector<std::pair<Layout, Values>> bases;
  llvm::DenseMap<mlir::Operation *, SharedTile> copiedAhead;
  /// Loops whose first copies have begun.
  llvm::DenseMap<mlir::Operation *, Pipeline> begun;
  /// Where tiles that are asked for early are put.
  llvm::DenseMap<mlir::Value, SharedTile> places;
  llvm::DenseMap<mlir::Operation *, mlir::Value> tables;
  unsigned numTables = 0;
};

/// The scalar op that `op` is on each element, with what the GPU has its own
/// instructions for.
mlir::Value scalarOp(GpuBuilder &b, mlir::Operation *op,
                     mlir::ValueRange operands);

} // namespace hybrid::nvptx

#endif // HYBRID_LIB_TARGET_NVPTX_KERNELLOWERING_H
