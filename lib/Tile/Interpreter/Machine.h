//===- Machine.h - state of the tile interpreter -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_TILE_INTERPRETER_MACHINE_H
#define HYBRID_LIB_TILE_INTERPRETER_MACHINE_H

#include "hybrid/Tile/Interpreter.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"
#include <memory>

namespace hybrid::tile {

/// A scalar or a tile at run time. Tiles are immutable and shared.
struct Datum {
  using Shape = llvm::SmallVector<int64_t, 3>;

  Datum() = default;
  Datum(double scalar) : scalar(scalar) {}
  Datum(llvm::ArrayRef<int64_t> shape, std::vector<double> elements)
      : shape(shape.begin(), shape.end()),
        tile(std::make_shared<const std::vector<double>>(std::move(elements))) {
  }

  bool isTile() const { return tile != nullptr; }
  size_t size() const { return tile ? tile->size() : 1; }
  double operator[](size_t i) const { return tile ? (*tile)[i] : scalar; }
  int64_t asIndex() const { return static_cast<int64_t>(scalar); }

  double scalar = 0.0;
  Shape shape;
  std::shared_ptr<const std::vector<double>> tile;
};

/// Who touched the elements of a memory: the number of the parallel point, or
/// one of the marks below.
struct Touches {
  static constexpr int32_t kNobody = -1, kSeveral = -2;
  explicit Touches(size_t elements)
      : writer(elements, kNobody), reader(elements, kNobody) {}
  std::vector<int32_t> writer, reader;
};

/// A view argument. Views of one memory share its touches.
struct Memory {
  HostView view;
  std::shared_ptr<Touches> touches;
};

class Machine {
public:
  Machine(ProgramOp program, llvm::ArrayRef<HostView> views,
          const InterpreterOptions &options);

  llvm::LogicalResult runGrid(llvm::ArrayRef<int64_t> symbols);

private:
  // Machine.cpp: control.
  llvm::LogicalResult checkViews(llvm::ArrayRef<HostView> views);
  llvm::LogicalResult runBlock(mlir::Block &block);
  llvm::LogicalResult runOp(mlir::Operation &op);
  llvm::LogicalResult runFor(mlir::scf::ForOp loop);
  llvm::LogicalResult runIf(mlir::scf::IfOp op);
  void yieldTo(mlir::Block &block, mlir::ValueRange targets);

  const Datum &get(mlir::Value value) const {
    return values.find(value)->second;
  }
  int64_t getIndex(mlir::Value value) const { return get(value).asIndex(); }
  void set(mlir::Value value, Datum datum) { values[value] = std::move(datum); }
  llvm::SmallVector<int64_t, 4> getIndices(mlir::ValueRange range) const;

  /// `value` as an element of `type` would hold it.
  double round(mlir::Type type, double value) const;
  bool isF32() const {
    return options.arithmetic == InterpreterOptions::Arithmetic::f32;
  }

  // Elementwise.cpp: arith and math.
  llvm::LogicalResult runElementwise(mlir::Operation &op);
  llvm::LogicalResult runConstant(mlir::Operation &op);

  // Access.cpp: global memory.
  template <typename BlockOp, typename Visit>
  llvm::LogicalResult visitBlock(BlockOp op, Visit visit);
  template <typename RowsOp, typename Visit>
  llvm::LogicalResult visitRows(RowsOp op, Visit visit);
  llvm::LogicalResult checkedOffset(mlir::Operation *op, const Memory &memory,
                                    llvm::ArrayRef<int64_t> index,
                                    int64_t &offset) const;
  llvm::LogicalResult read(mlir::Operation *op, mlir::Value view,
                           llvm::ArrayRef<int64_t> index, double &value);
  llvm::LogicalResult write(mlir::Operation *op, mlir::Value view,
                            llvm::ArrayRef<int64_t> index, double value);
  llvm::LogicalResult reportRace(mlir::Operation *op, llvm::StringRef what,
                                 llvm::ArrayRef<int64_t> index,
                                 int32_t other) const;
  llvm::LogicalResult load(LoadOp op);
  llvm::LogicalResult store(StoreOp op);
  llvm::LogicalResult accumulate(AccumulateOp op);
  llvm::LogicalResult loadRows(LoadRowsOp op);
  llvm::LogicalResult storeRows(StoreRowsOp op);

  // Tiles.cpp: whole tiles and shapes.
  void dot(DotOp op);
  void reduce(ReduceOp op);
  void prefixSum(PrefixSumOp op);
  void unitLowerInverse(UnitLowerInverseOp op);
  void iota(IotaOp op);
  void broadcast(BroadcastOp op);
  void transpose(TransposeOp op);
  void slice(SliceOp op);
  void concat(ConcatOp op);

  ProgramOp program;
  InterpreterOptions options;
  llvm::DenseMap<mlir::Value, Datum> values;
  llvm::DenseMap<mlir::Value, Memory> memories;
  llvm::SmallVector<int64_t, 4> point;
  int32_t parallelPoint = 0;
};

/// Steps a row-major index; false after the last one.
bool nextIndex(llvm::MutableArrayRef<int64_t> index,
               llvm::ArrayRef<int64_t> shape);

} // namespace hybrid::tile

#endif // HYBRID_LIB_TILE_INTERPRETER_MACHINE_H
