//===- LowerMemory.cpp - blocks of views -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LowerPrograms.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::cpu;

Place ProgramLowering::placeInView(Value view, ValueRange indices,
                                   ArrayRef<int64_t> dims,
                                   ArrayRef<int64_t> shape) {
  const View &memory = views[view];
  Place place{memory.base, 0, {}, {}, memory.element};
  for (auto [index, stride] : llvm::zip_equal(indices, memory.strides))
    place.offset = b.add(place.offset, b.mul(integer(index), stride));
  for (auto [dim, size] : llvm::zip_equal(dims, shape)) {
    place.shape.push_back(size);
    place.strides.push_back(size == 1 ? Int(0) : memory.strides[dim]);
  }
  return place;
}

SmallVector<Value> ProgramLowering::extents(ValueRange limits,
                                            ValueRange indices,
                                            ArrayRef<int64_t> dims,
                                            ArrayRef<int64_t> shape) {
  SmallVector<Value> result;
  for (auto [dim, limit] : llvm::enumerate(limits)) {
    Value left = arith::SubIOp::create(b, b.fromIndex(scalar(limit)),
                                       b.fromIndex(scalar(indices[dims[dim]])));
    result.push_back(b.clampToSize(left, shape[dim]));
  }
  return result;
}

void ProgramLowering::fillZero(const Place &to) {
  Nest nest(b, to.shape);
  nest.emitStore(nest.scalar(b.zero(to.element)), to);
}

void ProgramLowering::copyInside(const Place &from, const Place &to,
                                 ArrayRef<Value> extents) {
  Nest nest(b, to.shape);
  for (auto [dim, extent] : llvm::enumerate(extents))
    nest.limit(dim, extent);
  nest.emitStore(nest.read(from, Nest::identity(from.rank())), to);
}

void ProgramLowering::lowerLoad(tile::LoadOp load) {
  Value tile = load.getTile();
  ArrayRef<int64_t> shape = shapeOf(tile);
  Place inView =
      placeInView(load.getView(), load.getIndices(), load.getDims(), shape);
  bool copied = placement.homeOf(tile) == Home::Buffer;
  if (load.getLimits().empty()) {
    if (copied)
      copyInside(inView, bufferOf(tile), {});
    else
      places[tile] = inView;
    return;
  }

  SmallVector<Value> inside =
      extents(load.getLimits(), load.getIndices(), load.getDims(), shape);
  Value ragged;
  for (auto [extent, size] : llvm::zip(inside, shape)) {
    Value cut =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ne, extent, b.i64(size));
    ragged = ragged ? arith::OrIOp::create(b, ragged, cut) : cut;
  }
  Place buffer = bufferOf(tile);
  auto branch = scf::IfOp::create(b, ragged, /*withElseRegion=*/false);
  Block *outer = b.getInsertionBlock();
  b.setInsertionPoint(branch.thenBlock()->getTerminator());
  fillZero(buffer);
  if (!copied)
    copyInside(inView, buffer, inside);
  b.setInsertionPoint(outer, std::next(Block::iterator(branch)));
  if (copied) {
    copyInside(inView, buffer, inside);
    return;
  }
  // A ragged block is read from its copy.
  auto choose = [&](Value copy, Value original) -> Value {
    return arith::SelectOp::create(b, ragged, copy, original);
  };
  Place place = buffer;
  place.base = choose(buffer.base,
                      b.address(inView.base, inView.offset, inView.element));
  for (auto [stride, original] :
       llvm::zip_equal(place.strides, inView.strides)) {
    bool same = stride.isKnown() && original.is(stride.getKnown());
    if (!same && !original.is(0))
      stride = choose(b.valueOf(stride), b.valueOf(original));
  }
  places[tile] = place;
}

void ProgramLowering::lowerStore(tile::StoreOp store) {
  ArrayRef<int64_t> shape = shapeOf(store.getTile());
  Place to =
      placeInView(store.getView(), store.getIndices(), store.getDims(), shape);
  Nest nest(b, shape);
  for (auto [dim, extent] : llvm::enumerate(extents(
           store.getLimits(), store.getIndices(), store.getDims(), shape)))
    nest.limit(dim, extent);
  nest.emitStore(nodeFor(nest, store.getTile(), Nest::identity(shape.size())),
                 to);
}

void ProgramLowering::lowerAccumulate(tile::AccumulateOp accumulate) {
  ArrayRef<int64_t> shape = shapeOf(accumulate.getTile());
  Place to = placeInView(accumulate.getView(), accumulate.getIndices(),
                         accumulate.getDims(), shape);
  Nest nest(b, shape);
  for (auto [dim, extent] :
       llvm::enumerate(extents(accumulate.getLimits(), accumulate.getIndices(),
                               accumulate.getDims(), shape)))
    nest.limit(dim, extent);
  Value first = accumulate.getFirst() ? scalar(accumulate.getFirst()) : Value();
  nest.emitAccumulate(
      nodeFor(nest, accumulate.getTile(), Nest::identity(shape.size())), to,
      first);
}

namespace {

/// Row `row` of a place, without its first dim.
Place rowOf(CodeBuilder &b, Place place, Int row) {
  place.offset = b.add(place.offset, b.mul(row, place.strides.front()));
  place.shape.erase(place.shape.begin());
  place.strides.erase(place.strides.begin());
  return place;
}

} // namespace

void ProgramLowering::lowerLoadRows(tile::LoadRowsOp load) {
  ArrayRef<int64_t> shape = shapeOf(load.getTile());
  Place rows = placeOf(load.getRows()), mask = placeOf(load.getMask());
  Place from =
      placeInView(load.getView(), load.getIndices(), load.getDims(), shape);
  from.strides.front() = views[load.getView()].strides[load.getDims().front()];
  Place to = bufferOf(load.getTile());
  b.loop(0, shape.front(), 1, [&](Value row) {
    Value wanted = b.load(mask.element, mask.addressOf(b, {row}));
    auto branch = scf::IfOp::create(b, wanted, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(branch.thenBlock()->getTerminator());
    Value index = b.load(rows.element, rows.addressOf(b, {row}));
    index = arith::ExtSIOp::create(b, b.getI64Type(), index);
    copyInside(rowOf(b, from, index), rowOf(b, to, row), {});
    b.setInsertionPoint(branch.elseBlock()->getTerminator());
    fillZero(rowOf(b, to, row));
  });
}

void ProgramLowering::lowerStoreRows(tile::StoreRowsOp store) {
  ArrayRef<int64_t> shape = shapeOf(store.getTile());
  Place rows = placeOf(store.getRows()), mask = placeOf(store.getMask());
  Place from = placeOf(store.getTile());
  Place to =
      placeInView(store.getView(), store.getIndices(), store.getDims(), shape);
  to.strides.front() = views[store.getView()].strides[store.getDims().front()];
  b.loop(0, shape.front(), 1, [&](Value row) {
    Value wanted = b.load(mask.element, mask.addressOf(b, {row}));
    auto branch = scf::IfOp::create(b, wanted, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(branch.thenBlock()->getTerminator());
    Value index = b.load(rows.element, rows.addressOf(b, {row}));
    index = arith::ExtSIOp::create(b, b.getI64Type(), index);
    copyInside(rowOf(b, from, row), rowOf(b, to, index), {});
  });
}

void ProgramLowering::lowerConstant(arith::ConstantOp constant) {
  auto values = cast<DenseElementsAttr>(constant.getValue());
  Type element = values.getElementType(), stored = storedType(element);
  if (stored != element) {
    SmallVector<Attribute> bytes;
    for (bool bit : values.getValues<bool>())
      bytes.push_back(b.getIntegerAttr(stored, bit));
    values = DenseElementsAttr::get(values.getType().clone(stored), bytes);
  }
  values =
      values.reshape(RankedTensorType::get({values.getNumElements()}, stored));
  std::string name =
      (program.getSymName() + "_constant_" + llvm::Twine(constants++)).str();
  auto type = LLVM::LLVMArrayType::get(stored, values.getNumElements());
  LLVM::GlobalOp global;
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(program);
    global = LLVM::GlobalOp::create(b, type, /*isConstant=*/true,
                                    LLVM::Linkage::Internal, name, values,
                                    /*alignment=*/64);
  }
  ArrayRef<int64_t> shape = shapeOf(constant.getResult());
  places[constant.getResult()] =
      Place{LLVM::AddressOfOp::create(b, global), 0,
            SmallVector<int64_t, 3>(shape), Place::rowMajor(shape), element};
}
