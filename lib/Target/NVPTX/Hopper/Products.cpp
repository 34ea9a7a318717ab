//===- Products.cpp - warpgroup products as PTX ---------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelEmitter.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::hopper;

int64_t hybrid::hopper::descriptorBits(int64_t leadingBytes,
                                       int64_t strideBytes) {
  // Bits 16 to 29 and 32 to 45, in units of 16 bytes; 62 and 63: 1 is the
  // 128-byte swizzle.
  return (leadingBytes >> 4) << 16 | (strideBytes >> 4) << 32 |
         int64_t(1) << 62;
}

/// Eight rows of 128 bytes are one block of the swizzle. Where the depth runs
/// along the columns in memory, blocks follow each other along the rows, and
/// the other distance is not used. Where it runs along the rows, the index
/// crosses from one panel to the next.
OperandWalk OperandWalk::of(int64_t panelRows, bool depthAlongRows) {
  constexpr int64_t kRowBytes = 2 * BufferType::kPanelColumns;
  OperandWalk walk;
  walk.panelBytes = panelRows * kRowBytes;
  walk.isTransposed = depthAlongRows;
  walk.leadingBytes = depthAlongRows ? walk.panelBytes : 16;
  walk.strideBytes = 8 * kRowBytes;
  return walk;
}

int64_t OperandWalk::stepOffset(int64_t step) const {
  constexpr int64_t kRowBytes = 2 * BufferType::kPanelColumns;
  int64_t depth = step * kStepDepth;
  if (isTransposed)
    return depth * kRowBytes;
  return depth / BufferType::kPanelColumns * panelBytes +
         depth % BufferType::kPanelColumns * 2;
}

Value KernelEmitter::descriptor(Value address, const OperandWalk &walk) {
  Value units = arith::ShRUIOp::create(b, address, b.i32(4));
  units = arith::AndIOp::create(b, units, b.i32(0x3fff));
  Value wide = arith::ExtUIOp::create(b, b.getI64Type(), units);
  return arith::OrIOp::create(
      b, wide, b.i64(descriptorBits(walk.leadingBytes, walk.strideBytes)));
}

/// `{$first, ...}`.
static std::string registerList(int64_t first, int64_t count) {
  std::string list = "{";
  for (int64_t n = 0; n < count; ++n)
    list += (n ? ", $" : "$") + std::to_string(first + n);
  return list + "}";
}

/// All steps over the depth are one piece of PTX: nothing may come between
/// them.
void KernelEmitter::emitProduct(ProductOp product) {
  FlightType type = product.getResult().getType();
  int64_t columns = type.getShape()[1], sums = columns / 2;
  MatrixType right = product.getB().getType();
  OperandWalk rightWalk =
      OperandWalk::of(right.getPanelRows(), !product.getTransposeB());
  int64_t depth =
      product.getTransposeB() ? right.getColumns() : right.getRows();
  Values operands;
  std::string constraints, ties;
  for (int64_t n = 0; n < sums; ++n)
    constraints += n ? ",=f" : "=f";
  int64_t next = sums;
  if (product.getAcc()) {
    llvm::append_range(operands, tiles[product.getAcc()]);
    for (int64_t n = 0; n < sums; ++n)
      constraints += "," + std::to_string(n);
    next += sums;
  }
  operands.push_back(
      descriptor(mapping.lookupOrDefault(product.getB()), rightWalk));
  constraints += ",l";
  std::string rightAt = "$" + std::to_string(next++);
  auto leftMatrix = dyn_cast<MatrixType>(product.getA().getType());
  OperandWalk leftWalk{};
  int64_t leftFirst = next;
  if (leftMatrix) {
    leftWalk =
        OperandWalk::of(leftMatrix.getPanelRows(), product.getTransposeA());
    operands.push_back(
        descriptor(mapping.lookupOrDefault(product.getA()), leftWalk));
    constraints += ",l";
  } else {
    for (Value word : tiles[product.getA()]) {
      operands.push_back(word);
      constraints += ",r";
    }
  }
  std::string element = right.getElementType().isBF16() ? "bf16" : "f16";
  std::string text = "{\n\t.reg .pred adds;\n\t.reg .b32 one;\n\t"
                     ".reg .b64 left, right;\n\tmov.b32 one, 1;\n\t";
  text += product.getAcc() ? "setp.ne.b32 adds, one, 0;\n"
                           : "setp.eq.b32 adds, one, 0;\n";
  for (int64_t step = 0; step < depth / kStepDepth; ++step) {
    if (step == 1 && !product.getAcc())
      text += "\tsetp.ne.b32 adds, one, 0;\n";
    text += "\tadd.s64 right, " + rightAt + ", " +
            std::to_string(rightWalk.stepOffset(step) >> 4) + ";\n";
    std::string left = "left";
    if (leftMatrix)
      text += "\tadd.s64 left, $" + std::to_string(leftFirst) + ", " +
              std::to_string(leftWalk.stepOffset(step) >> 4) + ";\n";
    else
      left = registerList(leftFirst + 4 * step, 4);
    text += "\twgmma.mma_async.sync.aligned.m64n" + std::to_string(columns) +
            "k16.f32." + element + "." + element + " " + registerList(0, sums) +
            ", " + left + ", right, adds, 1, 1, " +
            (!leftMatrix             ? ""
             : leftWalk.isTransposed ? "1, "
                                     : "0, ") +
            (rightWalk.isTransposed ? "1" : "0") + ";\n";
  }
  text += "}";
  Type result = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(sums, b.getF32Type()));
  Value made = b.assembly(text, constraints + ",~{memory}", operands, result);
  Values &registers = tiles[product.getResult()];
  for (int64_t n = 0; n < sums; ++n)
    registers.push_back(b.field(made, n));
}

/// Results go through the piece of PTX, so that nothing reads them before it.
void KernelEmitter::emitProductWait(ProductWaitOp wait) {
  std::string text = "wgmma.wait_group.sync.aligned " +
                     std::to_string(wait.getPending()) + ";";
  Values operands;
  appendValues(wait.getFlights(), operands);
  if (operands.empty()) {
    b.assembly(text, "~{memory}", {});
    return;
  }
  std::string outputs, ties;
  for (size_t n = 0; n < operands.size(); ++n) {
    outputs += "=f,";
    ties += std::to_string(n) + ",";
  }
  Type result = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(operands.size(), b.getF32Type()));
  Value made = b.assembly(text, outputs + ties + "~{memory}", operands, result);
  Values settled;
  for (size_t n = 0; n < operands.size(); ++n)
    settled.push_back(operands.size() == 1 ? made : b.field(made, n));
  bindValues(wait.getTiles(), settled);
}
