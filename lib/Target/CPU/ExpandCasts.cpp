//===- ExpandCasts.cpp - f16 without instructions for it -----------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// x86-64 has no conversion between f16 and f32, and LLVM would call a library
// that no kernel may call. The two conversions here are those of F. Giesen
// (https://gist.github.com/rygorous/2156668), on scalars and vectors alike:
// integer arithmetic, and one floating-point addition for denormal numbers.
//
//===----------------------------------------------------------------------===//

#include "hybrid/Target/CPU/Level.h"
#include "hybrid/Target/CPU/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"

namespace hybrid {
#define GEN_PASS_DEF_HYBRIDCPUEXPANDCASTS
#include "hybrid/Target/CPU/Passes.h.inc"
} // namespace hybrid

using namespace mlir;

namespace {

/// Builds on values of one shape: a scalar, or a vector of some width.
class CastBuilder {
public:
  CastBuilder(OpBuilder &builder, Location loc, Type shape)
      : b(loc, builder), vector(dyn_cast<VectorType>(shape)) {}

  Value toF32(Value half);
  Value toF16(Value single);

private:
  Type like(Type element) {
    return vector ? Type(vector.clone(element)) : element;
  }
  Type i32() { return like(b.getI32Type()); }
  Type i16() { return like(b.getI16Type()); }
  Value number(uint32_t bits) {
    auto scalar = b.getI32IntegerAttr(static_cast<int32_t>(bits));
    return arith::ConstantOp::create(
        b, vector ? TypedAttr(DenseElementsAttr::get(cast<ShapedType>(i32()),
                                                     scalar.getValue()))
                  : TypedAttr(scalar));
  }
  Value both(Value x, uint32_t mask) {
    return arith::AndIOp::create(b, x, number(mask));
  }
  Value add(Value x, uint32_t bits) {
    return arith::AddIOp::create(b, x, number(bits));
  }
  Value right(Value x, uint32_t bits) {
    return arith::ShRUIOp::create(b, x, number(bits));
  }
  Value left(Value x, uint32_t bits) {
    return arith::ShLIOp::create(b, x, number(bits));
  }
  Value isAtLeast(Value x, uint32_t bits) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::uge, x, number(bits));
  }
  Value select(Value mask, Value x, Value y) {
    return arith::SelectOp::create(b, mask, x, y);
  }
  Value real(Value bits) {
    return arith::BitcastOp::create(b, like(b.getF32Type()), bits);
  }
  Value bitsOf(Value real) { return arith::BitcastOp::create(b, i32(), real); }

  ImplicitLocOpBuilder b;
  VectorType vector;
};

/// Bits of 2⁻¹⁴, the smallest normal f16, and of one half.
constexpr uint32_t kSmallestNormal = 113u << 23, kHalf = 126u << 23;
/// What the exponents of the two formats differ by.
constexpr uint32_t kRebias = 112u << 23;

Value CastBuilder::toF32(Value half) {
  Value bits = arith::ExtUIOp::create(b, i32(),
                                      arith::BitcastOp::create(b, i16(), half));
  Value size = left(both(bits, 0x7fff), 13);
  Value normal = add(size, kRebias);
  // The exponent of infinity and NaN is all ones in either format.
  Value special = add(normal, kRebias);
  Value denormal = bitsOf(arith::SubFOp::create(
      b, real(add(size, kSmallestNormal)), real(number(kSmallestNormal))));
  Value result = select(isAtLeast(size, 0x7c00u << 13), special, normal);
  result = select(isAtLeast(size, 0x0400u << 13), result, denormal);
  Value sign = left(both(bits, 0x8000), 16);
  return real(arith::OrIOp::create(b, result, sign));
}

Value CastBuilder::toF16(Value single) {
  Value bits = bitsOf(single), size = both(bits, 0x7fffffff);
  // Halfway cases go to the even neighbour; a carry reaches the exponent, and
  // from the largest number infinity.
  Value odd = both(right(size, 13), 1);
  Value normal =
      right(arith::AddIOp::create(b, add(size, 0u - kRebias + 0xfff), odd), 13);
  // The addition to one half rounds to multiples of the smallest denormal.
  Value denormal =
      add(bitsOf(arith::AddFOp::create(b, real(size), real(number(kHalf)))),
          0u - kHalf);
  Value result = select(isAtLeast(size, kSmallestNormal), normal, denormal);
  result = select(isAtLeast(size, 0x47800000), number(0x7c00), result);
  result = select(isAtLeast(size, 0x7f800001), number(0x7e00), result);
  Value sign = right(both(bits, 0x80000000), 16);
  Value low =
      arith::TruncIOp::create(b, i16(), arith::OrIOp::create(b, result, sign));
  return arith::BitcastOp::create(b, like(b.getF16Type()), low);
}

struct ExpandCasts : hybrid::impl::HybridCPUExpandCastsBase<ExpandCasts> {
  using HybridCPUExpandCastsBase::HybridCPUExpandCastsBase;

  void runOnOperation() override {
    auto known = hybrid::cpu::levelNamed(level);
    if (!known) {
      getOperation()->emitError("level '")
          << level << "' is not one of x86-64, x86-64-v3 and x86-64-v4";
      return signalPassFailure();
    }
    if (*known != hybrid::cpu::Level::Base)
      return; // F16C
    auto isHalf = [](Value value) {
      return getElementTypeOrSelf(value).isF16();
    };
    getOperation()->walk([&](Operation *op) {
      OpBuilder builder(op);
      Value value;
      if (auto widened = dyn_cast<arith::ExtFOp>(op);
          widened && isHalf(widened.getIn()))
        value = CastBuilder(builder, op->getLoc(), widened.getType())
                    .toF32(widened.getIn());
      else if (auto rounded = dyn_cast<arith::TruncFOp>(op);
               rounded && isHalf(rounded.getOut()))
        value = CastBuilder(builder, op->getLoc(), rounded.getType())
                    .toF16(rounded.getIn());
      if (!value)
        return;
      op->getResult(0).replaceAllUsesWith(value);
      op->erase();
      ++expanded;
    });
  }
};

} // namespace
