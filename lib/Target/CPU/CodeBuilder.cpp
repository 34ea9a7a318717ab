//===- CodeBuilder.cpp - building the body of one kernel -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CodeBuilder.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::cpu;

Value CodeBuilder::i64(int64_t value) {
  return arith::ConstantOp::create(*this, getI64IntegerAttr(value));
}

Value CodeBuilder::valueOf(Int value) {
  return value.isKnown() ? i64(value.getKnown()) : value.getDynamic();
}

Int CodeBuilder::add(Int x, Int y) {
  if (x.is(0))
    return y;
  if (y.is(0))
    return x;
  if (x.isKnown() && y.isKnown())
    return x.getKnown() + y.getKnown();
  return Value(arith::AddIOp::create(*this, valueOf(x), valueOf(y)));
}

Int CodeBuilder::mul(Int x, Int y) {
  if (x.is(0) || y.is(0))
    return 0;
  if (x.is(1))
    return y;
  if (y.is(1))
    return x;
  if (x.isKnown() && y.isKnown())
    return x.getKnown() * y.getKnown();
  return Value(arith::MulIOp::create(*this, valueOf(x), valueOf(y)));
}

Value CodeBuilder::clampToSize(Value x, int64_t size) {
  Value low = arith::MaxSIOp::create(*this, x, i64(0));
  return arith::MinSIOp::create(*this, low, i64(size));
}

Value CodeBuilder::fromIndex(Value index) {
  return arith::IndexCastOp::create(*this, getI64Type(), index);
}

Value CodeBuilder::toIndex(Value integer) {
  return arith::IndexCastOp::create(*this, getIndexType(), integer);
}

Value CodeBuilder::address(Value base, Int offset, Type element) {
  if (offset.is(0))
    return base;
  auto pointer = LLVM::LLVMPointerType::get(getContext());
  return LLVM::GEPOp::create(*this, pointer, storedType(element), base,
                             valueOf(offset));
}

/// What code loads and stores: of floats of two bytes their bits, because LLVM
/// would carry such floats as f32 and round them with a library.
static Type bitsOf(Type stored) {
  bool isNarrow = isa<FloatType>(stored) && stored.getIntOrFloatBitWidth() < 32;
  return isNarrow ? IntegerType::get(stored.getContext(), 16) : stored;
}

static Type likeType(Type type, Type element) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? Type(vector.clone(element)) : element;
}

Value CodeBuilder::load(Type type, Value address) {
  Type element = getElementTypeOrSelf(type);
  Type stored = storedType(element), bits = bitsOf(stored);
  Value value = LLVM::LoadOp::create(*this, likeType(type, bits), address,
                                     storedBytes(element));
  if (bits != stored)
    return arith::BitcastOp::create(*this, type, value);
  return stored == element ? value
                           : arith::TruncIOp::create(*this, type, value);
}

void CodeBuilder::store(Value value, Value address) {
  Type type = value.getType();
  Type element = getElementTypeOrSelf(type);
  Type stored = storedType(element), bits = bitsOf(stored);
  if (stored != element)
    value = arith::ExtUIOp::create(*this, likeType(type, stored), value);
  else if (bits != stored)
    value = arith::BitcastOp::create(*this, likeType(type, bits), value);
  LLVM::StoreOp::create(*this, value, address, storedBytes(element));
}

Type CodeBuilder::widened(Type type, int64_t width) {
  return width == 1 ? type : VectorType::get({width}, type);
}

Value CodeBuilder::broadcast(Value scalar, int64_t width) {
  if (width == 1)
    return scalar;
  return vector::BroadcastOp::create(
      *this, VectorType::get({width}, scalar.getType()), scalar);
}

Value CodeBuilder::zero(Type type) {
  return arith::ConstantOp::create(*this, getZeroAttr(type));
}

Value CodeBuilder::mulAdd(Value x, Value y, Value z) {
  return LLVM::FMulAddOp::create(*this, x.getType(), x, y, z);
}

void CodeBuilder::loop(Int from, Int to, int64_t step,
                       function_ref<void(Value)> body) {
  loop(from, to, step, {}, [&](Value iv, ValueRange) {
    body(iv);
    return SmallVector<Value>();
  });
}

SmallVector<Value> CodeBuilder::loop(Int from, Int to, int64_t step,
                                     ValueRange inits, CarriedBody body) {
  auto op =
      scf::ForOp::create(*this, valueOf(from), valueOf(to), i64(step), inits);
  OpBuilder::InsertionGuard guard(*this);
  // Without carried values the builder has made the terminator.
  if (inits.empty())
    setInsertionPoint(op.getBody()->getTerminator());
  else
    setInsertionPointToEnd(op.getBody());
  SmallVector<Value> next = body(op.getInductionVar(), op.getRegionIterArgs());
  if (!inits.empty())
    scf::YieldOp::create(*this, next);
  return SmallVector<Value>(op.getResults());
}

void CodeBuilder::forEachVector(int64_t size,
                                function_ref<void(Int, int64_t)> body) {
  int64_t lanes = traits.lanes;
  int64_t full = size / lanes * lanes;
  if (full == lanes)
    body(0, lanes);
  else if (full != 0)
    loop(0, full, lanes, [&](Value start) { body(start, lanes); });
  for (int64_t start = full, width = lanes / 2; start < size; width /= 2) {
    if (start + width > size)
      continue;
    body(start, width);
    start += width;
  }
}

Value CodeBuilder::reduceLanes(Value vector,
                               function_ref<Value(Value, Value)> combine) {
  for (int64_t lanes = cast<VectorType>(vector.getType()).getNumElements();
       lanes > 1; lanes /= 2) {
    auto half = [&](int64_t start) -> Value {
      return vector::ExtractStridedSliceOp::create(
          *this, vector, ArrayRef<int64_t>{start}, ArrayRef<int64_t>{lanes / 2},
          ArrayRef<int64_t>{1});
    };
    vector = combine(half(0), half(lanes / 2));
  }
  return vector::ExtractOp::create(*this, vector, ArrayRef<int64_t>{0});
}

SmallVector<Value> CodeBuilder::transpose(SmallVector<Value> rows) {
  // Swaps the off-diagonal blocks of size 1, 2, 4, ... (J. O. Eklundh).
  int64_t lanes = rows.size();
  for (int64_t block = 1; block < lanes; block *= 2) {
    SmallVector<int64_t> upper, lower;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      upper.push_back(lane & block ? lanes + lane - block : lane);
      lower.push_back(lane & block ? lanes + lane : lane + block);
    }
    for (int64_t row = 0; row < lanes; ++row) {
      if (row & block)
        continue;
      Value x = rows[row], y = rows[row + block];
      rows[row] = vector::ShuffleOp::create(*this, x, y, upper);
      rows[row + block] = vector::ShuffleOp::create(*this, x, y, lower);
    }
  }
  return rows;
}
