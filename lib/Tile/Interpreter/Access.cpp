//===- Access.cpp - global memory in the tile interpreter -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine.h"

using namespace mlir;
using namespace hybrid::tile;

//===----------------------------------------------------------------------===//
// One element
//===----------------------------------------------------------------------===//

LogicalResult Machine::checkedOffset(Operation *op, const Memory &memory,
                                     ArrayRef<int64_t> index,
                                     int64_t &offset) const {
  const HostView &view = memory.view;
  offset = view.offset;
  for (size_t d = 0; d < index.size(); ++d) {
    if (index[d] < 0 || index[d] >= view.sizes[d])
      return op->emitOpError("touches index ")
             << index[d] << " of dim " << d << ", which has size "
             << view.sizes[d] << " (element [" << index << "] at grid point ["
             << point << "])";
    offset += index[d] * view.strides[d];
  }
  if (offset < 0 || offset >= static_cast<int64_t>(view.memory.size()))
    return op->emitOpError("element [")
           << index << "] lies at offset " << offset << " of a buffer of "
           << view.memory.size();
  return success();
}

LogicalResult Machine::reportRace(Operation *op, StringRef what,
                                  ArrayRef<int64_t> index,
                                  int32_t other) const {
  return op->emitOpError(what)
         << " element [" << index << "], which another parallel point"
         << (other >= 0 ? " (number " + Twine(other) + ")" : Twine()).str()
         << " also touches; points of parallel dims are independent";
}

LogicalResult Machine::read(Operation *op, Value view, ArrayRef<int64_t> index,
                            double &value) {
  Memory &memory = memories[view];
  int64_t offset = 0;
  if (failed(checkedOffset(op, memory, index, offset)))
    return failure();
  if (options.checkRaces) {
    int32_t writer = memory.touches->writer[offset];
    if (writer != Touches::kNobody && writer != parallelPoint)
      return reportRace(op, "reads", index, writer);
    int32_t &reader = memory.touches->reader[offset];
    reader = reader == Touches::kNobody || reader == parallelPoint
                 ? parallelPoint
                 : Touches::kSeveral;
  }
  value = memory.view.memory[offset];
  return success();
}

LogicalResult Machine::write(Operation *op, Value view, ArrayRef<int64_t> index,
                             double value) {
  Memory &memory = memories[view];
  int64_t offset = 0;
  if (failed(checkedOffset(op, memory, index, offset)))
    return failure();
  if (options.checkRaces) {
    int32_t &writer = memory.touches->writer[offset];
    for (int32_t other : {writer, memory.touches->reader[offset]})
      if (other != Touches::kNobody && other != parallelPoint)
        return reportRace(op, "writes", index, other);
    writer = parallelPoint;
  }
  memory.view.memory[offset] = value;
  return success();
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// Calls `visit(i, index)` for every element i of the tile that lies inside the
/// limits.
template <typename BlockOp, typename Visit>
LogicalResult Machine::visitBlock(BlockOp op, Visit visit) {
  SmallVector<int64_t, 4> base = getIndices(op.getIndices());
  SmallVector<int64_t, 4> limits = getIndices(op.getLimits());
  ArrayRef<int64_t> shape = op.getTile().getType().getShape(),
                    dims = op.getDims();
  SmallVector<int64_t, 4> at(shape.size(), 0);
  size_t i = 0;
  do {
    SmallVector<int64_t, 4> index(base);
    bool inside = true;
    for (size_t d = 0; d < at.size(); ++d) {
      index[dims[d]] += at[d];
      inside &= d >= limits.size() || index[dims[d]] < limits[d];
    }
    if (inside && failed(visit(i, index)))
      return failure();
    ++i;
  } while (nextIndex(at, shape));
  return success();
}

LogicalResult Machine::load(LoadOp op) {
  RankedTensorType type = op.getType();
  std::vector<double> tile(type.getNumElements(), 0.0);
  if (failed(visitBlock(op, [&](size_t i, ArrayRef<int64_t> index) {
        return read(op, op.getView(), index, tile[i]);
      })))
    return failure();
  for (double &value : tile)
    value = round(type.getElementType(), value);
  set(op, {type.getShape(), std::move(tile)});
  return success();
}

LogicalResult Machine::store(StoreOp op) {
  Datum tile = get(op.getTile());
  return visitBlock(op, [&](size_t i, ArrayRef<int64_t> index) {
    return write(op, op.getView(), index, tile[i]);
  });
}

LogicalResult Machine::accumulate(AccumulateOp op) {
  Datum tile = get(op.getTile());
  bool first = op.getFirst() && get(op.getFirst()).scalar != 0.0;
  Type element = op.getTile().getType().getElementType();
  return visitBlock(
      op, [&](size_t i, ArrayRef<int64_t> index) -> LogicalResult {
        double before = 0.0;
        if (!first && failed(read(op, op.getView(), index, before)))
          return failure();
        return write(op, op.getView(), index, round(element, before + tile[i]));
      });
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// Calls `visit(i, index)` for every element i of an unmasked row.
template <typename RowsOp, typename Visit>
LogicalResult Machine::visitRows(RowsOp op, Visit visit) {
  SmallVector<int64_t, 4> base = getIndices(op.getIndices());
  Datum rows = get(op.getRows()), mask = get(op.getMask());
  ArrayRef<int64_t> shape = op.getTile().getType().getShape(),
                    dims = op.getDims();
  SmallVector<int64_t, 4> at(shape.size(), 0);
  size_t i = 0;
  do {
    SmallVector<int64_t, 4> index(base);
    index[dims[0]] += static_cast<int64_t>(rows[at[0]]);
    for (size_t d = 1; d < at.size(); ++d)
      index[dims[d]] += at[d];
    if (mask[at[0]] != 0.0 && failed(visit(i, index)))
      return failure();
    ++i;
  } while (nextIndex(at, shape));
  return success();
}

LogicalResult Machine::loadRows(LoadRowsOp op) {
  RankedTensorType type = op.getType();
  std::vector<double> tile(type.getNumElements(), 0.0);
  if (failed(visitRows(op, [&](size_t i, ArrayRef<int64_t> index) {
        return read(op, op.getView(), index, tile[i]);
      })))
    return failure();
  for (double &value : tile)
    value = round(type.getElementType(), value);
  set(op, {type.getShape(), std::move(tile)});
  return success();
}

LogicalResult Machine::storeRows(StoreRowsOp op) {
  Datum tile = get(op.getTile()), rows = get(op.getRows()),
        mask = get(op.getMask());
  llvm::DenseSet<int64_t> seen;
  for (size_t r = 0; r < rows.size(); ++r)
    if (mask[r] != 0.0 && !seen.insert(static_cast<int64_t>(rows[r])).second)
      return op.emitOpError("writes row ")
             << static_cast<int64_t>(rows[r])
             << " twice; unmasked rows must differ";
  return visitRows(op, [&](size_t i, ArrayRef<int64_t> index) {
    return write(op, op.getView(), index, tile[i]);
  });
}
