//===- GpuAccesses.cpp - loads and stores of one thread -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Elements travel as whole words: several of 8 or 16 bits in one of 32, one of
// 64 bits in two.
//
//===----------------------------------------------------------------------===//

#include "GpuBuilder.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::nvptx;

Value GpuBuilder::address(Value base, Value bytes) {
  return LLVM::GEPOp::create(*this, base.getType(), getI8Type(), base, bytes);
}

Value GpuBuilder::address(Value base, int64_t bytes) {
  if (bytes == 0)
    return base;
  return LLVM::GEPOp::create(*this, base.getType(), getI8Type(), base,
                             ArrayRef<LLVM::GEPArg>{int32_t(bytes)});
}

/// An access of some elements as whole words: 8, 16, 32 or 64 bits each.
static std::pair<int64_t, int64_t> wordsOf(int64_t bytes) {
  int64_t word = bytes <= 4 ? bytes : 4;
  return {word, bytes / word};
}

GpuBuilder::Values GpuBuilder::unpack(ValueRange words, Type element,
                                      int64_t count) {
  Type stored = storedType(element);
  int64_t bits = stored.getIntOrFloatBitWidth();
  Values elements;
  auto finish = [&](Value value) {
    value = bitcast(value, stored);
    if (stored != element)
      value = arith::TruncIOp::create(*this, element, value);
    elements.push_back(value);
  };
  int64_t wordBits = words.front().getType().getIntOrFloatBitWidth();
  if (bits == 64) {
    for (size_t n = 0; n < words.size(); n += 2) {
      Value low = arith::ExtUIOp::create(*this, getI64Type(), words[n]);
      Value high = arith::ExtUIOp::create(*this, getI64Type(), words[n + 1]);
      high = arith::ShLIOp::create(*this, high, i64(32));
      finish(arith::OrIOp::create(*this, low, high));
    }
    return elements;
  }
  for (Value word : words)
    for (int64_t at = 0; at < wordBits; at += bits) {
      Value part = word;
      if (at != 0)
        part = arith::ShRUIOp::create(*this, part, i32(at));
      if (bits != wordBits)
        part = arith::TruncIOp::create(*this, getIntegerType(bits), part);
      finish(part);
    }
  return elements;
}

/// Two f32 that were rounded to 16 bits, as one word by one instruction; null
/// where they are something else.
Value GpuBuilder::roundedPair(Value low, Value high) {
  auto lowCast = low.getDefiningOp<arith::TruncFOp>(),
       highCast = high.getDefiningOp<arith::TruncFOp>();
  if (!lowCast || !highCast || !lowCast.getIn().getType().isF32() ||
      !highCast.getIn().getType().isF32())
    return {};
  StringRef name = low.getType().isBF16() ? "llvm.nvvm.ff2bf16x2.rn"
                                          : "llvm.nvvm.ff2f16x2.rn";
  Value pair = intrinsic(name, VectorType::get({2}, low.getType()),
                         {highCast.getIn(), lowCast.getIn()});
  return bitcast(pair, getI32Type());
}

GpuBuilder::Values GpuBuilder::pack(ValueRange elements) {
  Type stored = storedType(elements.front().getType());
  int64_t bits = stored.getIntOrFloatBitWidth();
  if ((stored.isBF16() || stored.isF16()) && elements.size() % 2 == 0) {
    Values pairs;
    for (size_t n = 0; n < elements.size(); n += 2)
      if (Value pair = roundedPair(elements[n], elements[n + 1]))
        pairs.push_back(pair);
    if (2 * pairs.size() == elements.size())
      return pairs;
  }
  Values parts, words;
  for (Value element : elements) {
    if (stored != element.getType())
      element = arith::ExtUIOp::create(*this, stored, element);
    parts.push_back(bitcast(element, getIntegerType(bits)));
  }
  if (bits == 64) {
    for (Value part : parts) {
      words.push_back(arith::TruncIOp::create(*this, getI32Type(), part));
      part = arith::ShRUIOp::create(*this, part, i64(32));
      words.push_back(arith::TruncIOp::create(*this, getI32Type(), part));
    }
    return words;
  }
  auto [word, count] = wordsOf(bits / 8 * int64_t(parts.size()));
  int64_t perWord = word * 8 / bits;
  if (perWord == 1)
    return parts;
  Type wordType = getIntegerType(word * 8);
  for (int64_t n = 0; n < count; ++n) {
    Value sum;
    for (int64_t part = 0; part < perWord; ++part) {
      Value wide =
          arith::ExtUIOp::create(*this, wordType, parts[n * perWord + part]);
      if (part != 0) {
        Value shift = arith::ConstantOp::create(
            *this, getIntegerAttr(wordType, part * bits));
        wide = arith::ShLIOp::create(*this, wide, shift);
      }
      sum = sum ? arith::OrIOp::create(*this, sum, wide).getResult() : wide;
    }
    words.push_back(sum);
  }
  return words;
}

GpuBuilder::Values GpuBuilder::load(Type element, int64_t count, Value address,
                                    bool invariant) {
  int64_t bytes = storedBytes(element) * count;
  auto [word, words] = wordsOf(bytes);
  Type wordType = getIntegerType(word * 8);
  Type type = words == 1 ? wordType : Type(VectorType::get({words}, wordType));
  auto loaded = LLVM::LoadOp::create(*this, type, address,
                                     unsigned(std::min<int64_t>(bytes, 16)));
  loaded.setInvariant(invariant);
  Values values;
  for (int64_t n = 0; n < words; ++n)
    values.push_back(words == 1 ? loaded.getResult()
                                : LLVM::ExtractElementOp::create(
                                      *this, loaded.getResult(), i32(n))
                                      .getResult());
  return unpack(values, element, count);
}

void GpuBuilder::store(ValueRange elements, Value address) {
  int64_t bytes =
      storedBytes(elements.front().getType()) * int64_t(elements.size());
  Values words = pack(elements);
  Value value = words.front();
  if (words.size() > 1) {
    Type type = VectorType::get({int64_t(words.size())}, value.getType());
    value = LLVM::UndefOp::create(*this, type);
    for (auto [n, word] : llvm::enumerate(words))
      value = LLVM::InsertElementOp::create(*this, value, word, i32(n));
  }
  LLVM::StoreOp::create(*this, value, address,
                        unsigned(std::min<int64_t>(bytes, 16)));
}

/// `.v4.b32` and the like.
static std::string accessOf(int64_t word, int64_t words) {
  std::string vector = words == 1 ? "" : ".v" + std::to_string(words);
  return vector + ".b" + std::to_string(word * 8);
}

/// `$0` or `{$0, $1}`.
static std::string operandList(int64_t first, int64_t count) {
  std::string list = "$" + std::to_string(first);
  for (int64_t n = 1; n < count; ++n)
    list += ", $" + std::to_string(first + n);
  return count == 1 ? list : "{" + list + "}";
}

/// A register of inline PTX: 16 bits or 32.
static StringRef constraintOf(int64_t word) { return word <= 2 ? "h" : "r"; }

GpuBuilder::Values GpuBuilder::loadIf(Value condition, Type element,
                                      int64_t count, Value address,
                                      bool invariant) {
  auto [word, words] = wordsOf(storedBytes(element) * count);
  Type wordType = getIntegerType(std::max<int64_t>(word * 8, 16));
  std::string text = "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, $" +
                     std::to_string(words + 1) + ", 0;\n";
  std::string constraints;
  for (int64_t n = 0; n < words; ++n) {
    text += "\tmov.b" + std::to_string(std::max<int64_t>(word * 8, 16)) + " $" +
            std::to_string(n) + ", 0;\n";
    constraints += ("=&" + constraintOf(word) + ",").str();
  }
  text += std::string("\t@p ld.global") + (invariant ? ".nc" : "") +
          accessOf(word, words) + " " + operandList(0, words) + ", [$" +
          std::to_string(words) + "];\n}";
  constraints += "l,r";
  Type result = wordType;
  if (words > 1)
    result = LLVM::LLVMStructType::getLiteral(
        getContext(), SmallVector<Type>(words, wordType));
  Value wanted = arith::ExtUIOp::create(*this, getI32Type(), condition);
  Value load = assembly(text, constraints, {address, wanted}, result);
  Values values;
  for (int64_t n = 0; n < words; ++n) {
    Value value = words == 1 ? load : field(load, n);
    if (word == 1)
      value = arith::TruncIOp::create(*this, getI8Type(), value);
    values.push_back(value);
  }
  return unpack(values, element, count);
}

void GpuBuilder::storeIf(Value condition, ValueRange elements, Value address) {
  Values words = pack(elements);
  int64_t word = words.front().getType().getIntOrFloatBitWidth() / 8;
  if (word == 1)
    for (Value &value : words)
      value = arith::ExtUIOp::create(*this, getI16Type(), value);
  int64_t count = words.size();
  std::string text = "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, $1, 0;\n\t@p st"
                     ".global" +
                     accessOf(word, count) + " [$0], " + operandList(2, count) +
                     ";\n}";
  std::string constraints = "l,r";
  for (int64_t n = 0; n < count; ++n)
    constraints += ("," + constraintOf(word)).str();
  constraints += ",~{memory}";
  Values operands{address,
                  arith::ExtUIOp::create(*this, getI32Type(), condition)};
  llvm::append_range(operands, words);
  assembly(text, constraints, operands);
}
