//===- GpuBuilder.cpp - building the body of one kernel -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GpuBuilder.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::nvptx;

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

Value GpuBuilder::i32(int64_t value) {
  return arith::ConstantOp::create(*this, getI32IntegerAttr(int32_t(value)));
}
Value GpuBuilder::i64(int64_t value) {
  return arith::ConstantOp::create(*this, getI64IntegerAttr(value));
}
Value GpuBuilder::truth(bool value) {
  return arith::ConstantOp::create(*this, getBoolAttr(value));
}
Value GpuBuilder::add(Value x, Value y) {
  return createOrFold<arith::AddIOp>(x, y);
}
Value GpuBuilder::mul(Value x, Value y) {
  return createOrFold<arith::MulIOp>(x, y);
}
Value GpuBuilder::both(Value x, Value y) {
  if (!x || !y)
    return x ? x : y;
  return createOrFold<arith::AndIOp>(x, y);
}
Value GpuBuilder::less(Value x, Value y) {
  return createOrFold<arith::CmpIOp>(arith::CmpIPredicate::slt, x, y);
}
Value GpuBuilder::select(Value condition, Value x, Value y) {
  return createOrFold<arith::SelectOp>(condition, x, y);
}
Value GpuBuilder::zero(Type type) {
  return arith::ConstantOp::create(*this, getZeroAttr(type));
}
Value GpuBuilder::fromIndex(Value index) {
  return createOrFold<arith::IndexCastOp>(getI64Type(), index);
}
Value GpuBuilder::toIndex(Value integer) {
  return createOrFold<arith::IndexCastOp>(getIndexType(), integer);
}
Value GpuBuilder::widen(Value value) {
  return createOrFold<arith::ExtSIOp>(getI64Type(), value);
}

Value GpuBuilder::bitcast(Value value, Type type) {
  return value.getType() == type
             ? value
             : LLVM::BitcastOp::create(*this, type, value).getResult();
}

Value GpuBuilder::widenBF16(Value value) {
  Value bits = bitcast(value, getIntegerType(16));
  Value wide = arith::ExtUIOp::create(*this, getI32Type(), bits);
  return bitcast(arith::ShLIOp::create(*this, wide, i32(16)), getF32Type());
}

Value GpuBuilder::intrinsic(StringRef name, Type result, ValueRange operands) {
  auto call = LLVM::CallIntrinsicOp::create(
      *this, result ? TypeRange(result) : TypeRange(), getStringAttr(name),
      operands, LLVM::FastmathFlagsAttr());
  return result ? call->getResult(0) : Value();
}

Value GpuBuilder::maximum(Value x, Value y) {
  if (x.getType().isF32())
    return intrinsic("llvm.nvvm.fmax.nan.f", getF32Type(), {x, y});
  return arith::MaximumFOp::create(*this, x, y);
}

Value GpuBuilder::field(Value structure, int64_t position) {
  return LLVM::ExtractValueOp::create(*this, structure, position);
}

//===----------------------------------------------------------------------===//
// Place in the block
//===----------------------------------------------------------------------===//

void GpuBuilder::readThread() {
  auto special = [&](StringRef name) {
    return intrinsic(("llvm.nvvm.read.ptx.sreg." + name).str(), getI32Type());
  };
  threadNumber = special("tid.x");
  blockNumber = special("ctaid.x");
  laneNumber = arith::AndIOp::create(*this, threadNumber, i32(kLanes - 1));
  warpNumber = arith::ShRUIOp::create(*this, threadNumber, i32(5));
}

/// The digit of `number` that has `weight` and `size`, both powers of two.
static Value digit(GpuBuilder &b, Value number, int64_t weight, int64_t size,
                   int64_t count) {
  if (weight > 1)
    number = arith::ShRUIOp::create(b, number, b.i32(llvm::Log2_64(weight)));
  if (weight * size < count)
    number = arith::AndIOp::create(b, number, b.i32(size - 1));
  return number;
}

static int64_t sizeOf(ArrayRef<Factor> factors) {
  int64_t size = 1;
  for (const Factor &factor : factors)
    size *= factor.size;
  return size;
}

GpuBuilder::Values GpuBuilder::threadBase(const Layout &layout) {
  Values base(layout.getShape().size(), i32(0));
  for (auto [factors, number] : {std::pair(layout.getLanes(), laneNumber),
                                 {layout.getWarps(), warpNumber}}) {
    int64_t weight = 1, count = sizeOf(factors);
    for (const Factor &factor : factors) {
      if (factor.dim != kCopies) {
        Value value = digit(*this, number, weight, factor.size, count);
        base[factor.dim] =
            add(base[factor.dim], mul(value, i32(factor.stride)));
      }
      weight *= factor.size;
    }
  }
  return base;
}

/// Whether the digits of `number` that count copies are 0; null without any.
static Value isFirst(GpuBuilder &b, ArrayRef<Factor> factors, Value number) {
  int64_t weight = 1, mask = 0;
  for (const Factor &factor : factors) {
    if (factor.dim == kCopies)
      mask |= weight * (factor.size - 1);
    weight *= factor.size;
  }
  if (mask == 0)
    return {};
  Value digits = arith::AndIOp::create(b, number, b.i32(mask));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, digits, b.i32(0));
}

Value GpuBuilder::isFirstWarp(const Layout &layout) {
  return isFirst(*this, layout.getWarps(), warpNumber);
}

Value GpuBuilder::isFirstCopy(const Layout &layout) {
  return both(isFirst(*this, layout.getLanes(), laneNumber),
              isFirstWarp(layout));
}

//===----------------------------------------------------------------------===//
// Exchange
//===----------------------------------------------------------------------===//

Value GpuBuilder::assembly(StringRef text, StringRef constraints,
                           ValueRange operands, Type result) {
  auto made = LLVM::InlineAsmOp::create(
      *this, result ? TypeRange(result) : TypeRange(), operands, text,
      constraints, /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr());
  return result ? made.getResult(0) : Value();
}

/// The instruction has no operands; no access to memory is moved past it.
static void control(GpuBuilder &b, StringRef text) {
  b.assembly(text, "~{memory}", {});
}

void GpuBuilder::waitForPredecessor() {
  control(*this, "griddepcontrol.wait;");
}

Value GpuBuilder::madeHere(Value value) {
  return assembly("mov.b32 $0, $1;", "=f,f", value, value.getType());
}

void GpuBuilder::releaseSuccessor() {
  control(*this, "griddepcontrol.launch_dependents;");
}

void GpuBuilder::barrier() {
  intrinsic("llvm.nvvm.barrier.cta.sync.aligned.all", Type(), i32(0));
}

Value GpuBuilder::shuffle(StringRef kind, Value value, int64_t distance,
                          int64_t clamp) {
  Type type = value.getType(), word = getI32Type();
  int64_t bits = type.getIntOrFloatBitWidth();
  if (bits == 64) {
    auto pair = VectorType::get({2}, word);
    Value words = bitcast(value, pair);
    Value result = zero(pair);
    for (int64_t half : {0, 1}) {
      Value part = LLVM::ExtractElementOp::create(*this, words, i32(half));
      result = LLVM::InsertElementOp::create(
          *this, result, shuffle(kind, part, distance, clamp), i32(half));
    }
    return bitcast(result, type);
  }
  Value sent = bitcast(value, getIntegerType(bits));
  if (bits < 32)
    sent = arith::ExtUIOp::create(*this, word, sent);
  Value got = intrinsic(("llvm.nvvm.shfl.sync." + kind + ".i32").str(), word,
                        {i32(-1), sent, i32(distance), i32(clamp)});
  if (bits < 32)
    got = arith::TruncIOp::create(*this, getIntegerType(bits), got);
  return bitcast(got, type);
}

Value GpuBuilder::shuffleXor(Value value, int64_t mask) {
  return shuffle("bfly", value, mask, kLanes - 1);
}
Value GpuBuilder::shuffleUp(Value value, int64_t distance) {
  return shuffle("up", value, distance, 0);
}
Value GpuBuilder::shuffleDown(Value value, int64_t distance) {
  return shuffle("down", value, distance, kLanes - 1);
}

//===----------------------------------------------------------------------===//
// Matrix units
//===----------------------------------------------------------------------===//

/// The results of an intrinsic that gives `count` of a type.
static GpuBuilder::Values severalOf(GpuBuilder &b, StringRef name, Type type,
                                    int64_t count, ValueRange operands) {
  Type result = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(count, type));
  Value packed = b.intrinsic(name, result, operands);
  GpuBuilder::Values values;
  for (int64_t n = 0; n < count; ++n)
    values.push_back(b.field(packed, n));
  return values;
}

GpuBuilder::Values GpuBuilder::loadMatrices(Value address, int64_t count,
                                            bool isTransposed) {
  std::string name = "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x" +
                     std::to_string(count) +
                     (isTransposed ? ".trans.b16" : ".b16");
  return severalOf(*this, name, getI32Type(), count, address);
}

GpuBuilder::Values GpuBuilder::multiplyMatrices(Type element, ValueRange a,
                                                ValueRange right,
                                                ValueRange sums) {
  Values operands;
  for (ValueRange words : {a, right})
    for (Value word : words)
      operands.push_back(element.isF16()
                             ? bitcast(word, VectorType::get({2}, element))
                             : word);
  llvm::append_range(operands, sums);
  StringRef name = element.isF16()   ? "llvm.nvvm.mma.m16n8k16.row.col.f32.f32"
                   : element.isF32() ? "llvm.nvvm.mma.m16n8k8.row.col.tf32"
                                     : "llvm.nvvm.mma.m16n8k16.row.col.bf16";
  return severalOf(*this, name, getF32Type(), 4, operands);
}

//===----------------------------------------------------------------------===//
// Copies to shared memory
//===----------------------------------------------------------------------===//

void GpuBuilder::copyAsync(Value shared, Value global, int64_t bytes,
                           Value inside) {
  // Copies of 16 bytes pass by the first-level cache.
  std::string name = "llvm.nvvm.cp.async." +
                     std::string(bytes == 16 ? "cg" : "ca") +
                     ".shared.global." + std::to_string(bytes);
  Values operands{shared, global};
  if (inside) {
    name += ".s";
    operands.push_back(inside);
  }
  intrinsic(name, Type(), operands);
}

void GpuBuilder::commitCopies() {
  intrinsic("llvm.nvvm.cp.async.commit.group", Type());
}

void GpuBuilder::waitForCopies(int64_t pending) {
  intrinsic("llvm.nvvm.cp.async.wait.group", Type(), i32(pending));
}

/// The instruction's operands in shared memory are 32-bit numbers there.
static void sharedAssembly(GpuBuilder &b, const Twine &text,
                           StringRef constraints, ValueRange operands) {
  GpuBuilder::Values values;
  for (Value operand : operands) {
    auto pointer = dyn_cast<LLVM::LLVMPointerType>(operand.getType());
    bool isShared = pointer && pointer.getAddressSpace() == kSharedSpace;
    values.push_back(isShared
                         ? LLVM::PtrToIntOp::create(b, b.getI32Type(), operand)
                         : operand);
  }
  b.assembly(text.str(), (constraints + ",~{memory}").str(), values);
}

void GpuBuilder::initArrivals(Value barrier, int64_t arrivals) {
  sharedAssembly(*this,
                 "mbarrier.init.shared::cta.b64 [$0], " + Twine(arrivals) + ";",
                 "r", barrier);
}

void GpuBuilder::showArrivals() {
  control(*this, "fence.mbarrier_init.release.cluster;");
}

void GpuBuilder::expectBytes(Value barrier, Value bytes) {
  sharedAssembly(*this,
                 "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;",
                 "r,r", {barrier, bytes});
}

void GpuBuilder::copyInBulk(Value shared, Value global, int64_t bytes,
                            Value barrier) {
  sharedAssembly(
      *this,
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[$0], [$1], $2, [$3];",
      "r,l,r,r", {shared, global, i32(bytes), barrier});
}

void GpuBuilder::waitForArrivals(Value barrier, Value parity) {
  sharedAssembly(*this,
                 "{\n\t.reg .pred over;\nHYB_WAIT_${:uid}:\n\t"
                 "mbarrier.try_wait.parity.shared::cta.b64 over, [$0], $1;\n\t"
                 "@!over bra HYB_WAIT_${:uid};\n}",
                 "r,r", {barrier, parity});
}
