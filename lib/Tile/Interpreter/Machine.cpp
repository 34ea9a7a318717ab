//===- Machine.cpp - grid, control flow, dispatch -------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace hybrid::tile;

//===----------------------------------------------------------------------===//
// HostBuffer
//===----------------------------------------------------------------------===//

/// Two rows of the widest tile of any test lie in it.
static constexpr size_t kTail = 4096;

HostBuffer::HostBuffer(ArrayRef<int64_t> sizes, double fill)
    : sizes(sizes.begin(), sizes.end()) {
  count = 1;
  for (int64_t size : sizes)
    count *= size;
  memory.assign(count + kTail, std::numeric_limits<double>::quiet_NaN());
  std::fill_n(memory.begin(), count, fill);
}

static size_t rowMajor(ArrayRef<int64_t> index, ArrayRef<int64_t> sizes) {
  size_t offset = 0;
  for (auto [i, size] : llvm::zip_equal(index, sizes))
    offset = offset * size + i;
  return offset;
}

double &HostBuffer::operator()(ArrayRef<int64_t> index) {
  return memory[rowMajor(index, sizes)];
}
double HostBuffer::operator()(ArrayRef<int64_t> index) const {
  return memory[rowMajor(index, sizes)];
}

HostView HostBuffer::view() {
  HostView view;
  view.memory = memory;
  view.sizes.assign(sizes.begin(), sizes.end());
  view.strides.assign(sizes.size(), 1);
  for (int64_t d = static_cast<int64_t>(sizes.size()) - 2; d >= 0; --d)
    view.strides[d] = view.strides[d + 1] * sizes[d + 1];
  return view;
}

bool HostBuffer::tailIsIntact() const {
  return std::all_of(memory.begin() + count, memory.end(),
                     [](double value) { return std::isnan(value); });
}

//===----------------------------------------------------------------------===//
// The grid
//===----------------------------------------------------------------------===//

bool hybrid::tile::nextIndex(MutableArrayRef<int64_t> index,
                             ArrayRef<int64_t> shape) {
  for (size_t d = index.size(); d-- > 0;) {
    if (++index[d] < shape[d])
      return true;
    index[d] = 0;
  }
  return false;
}

Machine::Machine(ProgramOp program, ArrayRef<HostView> views,
                 const InterpreterOptions &options)
    : program(program), options(options) {
  llvm::DenseMap<const double *, std::shared_ptr<Touches>> touched;
  for (auto [argument, view] : llvm::zip(program.getViews(), views)) {
    std::shared_ptr<Touches> &touches = touched[view.memory.data()];
    if (options.checkRaces && !touches)
      touches = std::make_shared<Touches>(view.memory.size());
    memories[argument] = {view, touches};
  }
}

LogicalResult Machine::checkViews(ArrayRef<HostView> views) {
  if (views.size() != program.getViews().size())
    return program.emitOpError("takes ")
           << program.getViews().size() << " views, got " << views.size();
  for (auto [argument, view] : llvm::zip_equal(program.getViews(), views)) {
    auto type = cast<ViewType>(argument.getType());
    bool fits = static_cast<size_t>(type.getRank()) == view.sizes.size() &&
                view.sizes.size() == view.strides.size();
    for (int64_t d = 0; fits && d < type.getRank(); ++d)
      fits = (ShapedType::isDynamic(type.getShape()[d]) ||
              type.getShape()[d] == view.sizes[d]) &&
             (ShapedType::isDynamic(type.getStrides()[d]) ||
              type.getStrides()[d] == view.strides[d] || view.sizes[d] <= 1);
    if (!fits)
      return program.emitOpError("argument ")
             << argument.getArgNumber() << " is " << type << ", which sizes ["
             << view.sizes << "] and strides [" << view.strides
             << "] do not fit";
  }
  return success();
}

LogicalResult Machine::runGrid(ArrayRef<int64_t> symbols) {
  SmallVector<HostView> views;
  for (Value argument : program.getViews())
    if (auto it = memories.find(argument); it != memories.end())
      views.push_back(it->second.view);
  if (failed(checkViews(views)))
    return failure();

  SmallVector<Attribute> operands, folded;
  Builder builder(program.getContext());
  for (int64_t symbol : symbols)
    operands.push_back(builder.getIndexAttr(symbol));
  if (symbols.size() != ProgramOp::kNumSymbols ||
      // A map without results has nothing to fold, which upstream calls a
      // failure.
      (program.getGridRank() > 0 &&
       failed(program.getGrid().constantFold(operands, folded))))
    return program.emitOpError("grid cannot be evaluated for symbols [")
           << symbols << "]";

  // Parallel dims outside, ordered dims inside: the order of the CPU.
  SmallVector<unsigned> dims;
  for (Order order : {Order::parallel, Order::ordered})
    for (unsigned d = 0; d < program.getGridRank(); ++d)
      if (program.getOrderOf(d) == order)
        dims.push_back(d);
  SmallVector<int64_t> sizes;
  int64_t total = 1, turns = 1;
  for (unsigned d : dims) {
    sizes.push_back(cast<IntegerAttr>(folded[d]).getInt());
    if (sizes.back() < 0)
      return program.emitOpError("grid dim ")
             << d << " has size " << sizes.back() << " for symbols [" << symbols
             << "]; a size is at least 0";
    total *= sizes.back();
    if (program.getOrderOf(d) == Order::ordered)
      turns *= sizes.back();
  }
  if (total == 0)
    return success();

  point.assign(dims.size(), 0);
  SmallVector<int64_t> at(dims.size(), 0);
  for (int64_t n = 0; n < total; ++n, nextIndex(at, sizes)) {
    for (auto [d, i] : llvm::zip_equal(dims, at))
      point[d] = i;
    parallelPoint = static_cast<int32_t>(n / turns);
    if (failed(runBlock(program.getBlock())))
      return failure();
  }
  return success();
}

LogicalResult hybrid::tile::interpret(ProgramOp program,
                                      ArrayRef<HostView> views,
                                      ArrayRef<int64_t> symbols,
                                      const InterpreterOptions &options) {
  if (views.size() != program.getViews().size())
    return program.emitOpError("takes ")
           << program.getViews().size() << " views, got " << views.size();
  return Machine(program, views, options).runGrid(symbols);
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

SmallVector<int64_t, 4> Machine::getIndices(ValueRange range) const {
  SmallVector<int64_t, 4> indices;
  for (Value value : range)
    indices.push_back(getIndex(value));
  return indices;
}

LogicalResult Machine::runBlock(Block &block) {
  for (Operation &op : block)
    if (failed(runOp(op)))
      return failure();
  return success();
}

/// All are read before any is set: a loop may swap what it carries.
void Machine::yieldTo(Block &block, ValueRange targets) {
  SmallVector<Datum> yielded;
  for (Value value : block.getTerminator()->getOperands())
    yielded.push_back(get(value));
  for (auto [target, datum] : llvm::zip_equal(targets, yielded))
    set(target, datum);
}

LogicalResult Machine::runFor(scf::ForOp loop) {
  int64_t lower = getIndex(loop.getLowerBound()),
          upper = getIndex(loop.getUpperBound());
  int64_t step = getIndex(loop.getStep());
  if (step <= 0)
    return loop.emitOpError("has the step ") << step << "; it must be positive";
  for (auto [carried, init] :
       llvm::zip_equal(loop.getRegionIterArgs(), loop.getInitArgs()))
    set(carried, get(init));
  for (int64_t i = lower; i < upper; i += step) {
    set(loop.getInductionVar(), static_cast<double>(i));
    if (failed(runBlock(*loop.getBody())))
      return failure();
    yieldTo(*loop.getBody(), loop.getRegionIterArgs());
  }
  for (auto [result, carried] :
       llvm::zip_equal(loop.getResults(), loop.getRegionIterArgs()))
    set(result, get(carried));
  return success();
}

LogicalResult Machine::runIf(scf::IfOp op) {
  Block *block =
      get(op.getCondition()).scalar != 0.0 ? op.thenBlock() : op.elseBlock();
  if (!block)
    return success();
  if (failed(runBlock(*block)))
    return failure();
  yieldTo(*block, op.getResults());
  return success();
}

LogicalResult Machine::runOp(Operation &op) {
  if (isa<arith::ArithDialect, math::MathDialect>(op.getDialect()))
    return runElementwise(op);
  return TypeSwitch<Operation *, LogicalResult>(&op)
      .Case([&](scf::ForOp loop) { return runFor(loop); })
      .Case([&](scf::IfOp branch) { return runIf(branch); })
      .Case<scf::YieldOp, ReturnOp>([](Operation *) { return success(); })
      .Case([&](tensor::ExtractOp extract) -> LogicalResult {
        const Datum &tile = get(extract.getTensor());
        SmallVector<int64_t, 4> index = getIndices(extract.getIndices());
        for (auto [i, size] : llvm::zip_equal(index, tile.shape))
          if (i < 0 || i >= size)
            return extract.emitOpError("takes element [")
                   << index << "] of a tile of shape [" << tile.shape << "]";
        set(extract, tile[rowMajor(index, tile.shape)]);
        return success();
      })
      .Case([&](IdOp id) {
        return set(id, static_cast<double>(point[id.getDim()])), success();
      })
      .Case([&](DimOp dim) {
        return set(dim, static_cast<double>(
                            memories[dim.getView()].view.sizes[dim.getDim()])),
               success();
      })
      .Case([&](LoadOp o) { return load(o); })
      .Case([&](StoreOp o) { return store(o); })
      .Case([&](AccumulateOp o) { return accumulate(o); })
      .Case([&](LoadRowsOp o) { return loadRows(o); })
      .Case([&](StoreRowsOp o) { return storeRows(o); })
      .Case([&](LoadScalarOp o) {
        double value = 0.0;
        if (failed(read(o, o.getView(), getIndices(o.getIndices()), value)))
          return failure();
        return set(o, round(o.getType(), value)), success();
      })
      .Case([&](StoreScalarOp o) {
        return write(o, o.getView(), getIndices(o.getIndices()),
                     get(o.getValue()).scalar);
      })
      .Case([&](SplatOp o) {
        RankedTensorType type = o.getType();
        double scalar = get(o.getScalar()).scalar;
        set(o, {type.getShape(),
                std::vector<double>(type.getNumElements(), scalar)});
        return success();
      })
      .Case([&](ReshapeOp o) {
        set(o, {o.getType().getShape(), *get(o.getInput()).tile});
        return success();
      })
      .Case([&](DotOp o) { return dot(o), success(); })
      .Case([&](ReduceOp o) { return reduce(o), success(); })
      .Case([&](PrefixSumOp o) { return prefixSum(o), success(); })
      .Case(
          [&](UnitLowerInverseOp o) { return unitLowerInverse(o), success(); })
      .Case([&](IotaOp o) { return iota(o), success(); })
      .Case([&](BroadcastOp o) { return broadcast(o), success(); })
      .Case([&](TransposeOp o) { return transpose(o), success(); })
      .Case([&](SliceOp o) { return slice(o), success(); })
      .Case([&](ConcatOp o) { return concat(o), success(); })
      .Default([](Operation *o) {
        return o->emitOpError("is not known to the tile interpreter");
      });
}
