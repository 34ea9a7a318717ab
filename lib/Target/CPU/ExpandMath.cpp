//===- ExpandMath.cpp - elementary functions without a library -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel calls nothing, so every function that LLVM would turn into a call of
// libm becomes arithmetic here. Polynomials are those of the Cephes single
// precision library (S. Moshier) unless a comment names another source. NaN
// comes out of every function that it goes into, and infinities are kept: no
// operation carries a flag that would let LLVM assume their absence.
//
//===----------------------------------------------------------------------===//

#include "hybrid/Target/CPU/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/TypeSwitch.h"

namespace hybrid {
#define GEN_PASS_DEF_HYBRIDCPUEXPANDMATH
#include "hybrid/Target/CPU/Passes.h.inc"
} // namespace hybrid

using namespace mlir;

namespace {

/// Builds f32 functions on values of one type, `f32` or a vector of it.
class MathBuilder {
public:
  MathBuilder(OpBuilder &builder, Location loc, Type type)
      : b(loc, builder), type(type) {}

  Value exp(Value x);
  Value exp2(Value x);
  Value expm1(Value x);
  Value log(Value x);
  Value log1p(Value x);
  Value tanh(Value x);
  Value erf(Value x);
  Value sine(Value x, bool cosine);
  Value rsqrt(Value x);
  /// Toward negative infinity; the instruction exists from SSE4.1 on only.
  Value floor(Value x);

private:
  using Float = arith::CmpFPredicate;

  Type like(Type element) const {
    auto vector = dyn_cast<VectorType>(type);
    return vector ? vector.clone(element) : element;
  }
  Value constant(Type element, Attribute value) {
    Type shaped = like(element);
    if (auto vector = dyn_cast<VectorType>(shaped))
      value = DenseElementsAttr::get(vector, value);
    return arith::ConstantOp::create(b, cast<TypedAttr>(value));
  }
  Value f32(double value) {
    return constant(b.getF32Type(), b.getF32FloatAttr(value));
  }
  Value f64(double value) {
    return constant(b.getF64Type(), b.getF64FloatAttr(value));
  }
  Value i32(int32_t value) {
    return constant(b.getI32Type(), b.getI32IntegerAttr(value));
  }
  Value infinity() { return f32(std::numeric_limits<float>::infinity()); }
  Value nan() { return f32(std::numeric_limits<float>::quiet_NaN()); }

  Value add(Value x, Value y) { return arith::AddFOp::create(b, x, y); }
  Value sub(Value x, Value y) { return arith::SubFOp::create(b, x, y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, x, y); }
  Value div(Value x, Value y) { return arith::DivFOp::create(b, x, y); }
  Value neg(Value x) { return arith::NegFOp::create(b, x); }
  Value abs(Value x) { return math::AbsFOp::create(b, x); }
  /// Fused where the level has the instruction, two roundings elsewhere.
  Value mulAdd(Value x, Value y, Value z) {
    return LLVM::FMulAddOp::create(b, x.getType(), x, y, z);
  }
  Value is(Float predicate, Value x, Value y) {
    return arith::CmpFOp::create(b, predicate, x, y);
  }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, condition, x, y);
  }
  Value bitsOf(Value x) {
    return arith::BitcastOp::create(b, like(b.getI32Type()), x);
  }
  Value fromBits(Value x) {
    return arith::BitcastOp::create(b, like(b.getF32Type()), x);
  }

  /// Coefficients run from the highest power to the constant.
  Value polynomial(Value x, ArrayRef<double> coefficients);
  /// `x`, or the bound it is past; NaN stays.
  Value clamp(Value x, double low, double high);
  /// 2^n for an integer n in [-252, 254], times `x`, in two exact steps so that
  /// a denormal result is rounded once.
  Value scaleByPowerOfTwo(Value x, Value n);
  /// The integer next to `x` (|x| < 2^22), and the same as i32.
  std::pair<Value, Value> roundToInteger(Value x);
  /// e^r - 1 for |r| <= ln(2)/2.
  Value expm1Reduced(Value r);
  /// e^x as (e^r - 1, n) with e^x = e^r 2^n.
  std::pair<Value, Value> expParts(Value x);
  /// log(x 2^power) for a positive normal number `x`; without `power` it is 0.
  Value logOfNormal(Value x, Value power = {});

  ImplicitLocOpBuilder b;
  Type type;
};

Value MathBuilder::polynomial(Value x, ArrayRef<double> coefficients) {
  Value sum = f32(coefficients.front());
  for (double coefficient : coefficients.drop_front())
    sum = mulAdd(sum, x, f32(coefficient));
  return sum;
}

Value MathBuilder::clamp(Value x, double low, double high) {
  Value lowest = f32(low), highest = f32(high);
  x = select(is(Float::OLT, x, lowest), lowest, x);
  return select(is(Float::OGT, x, highest), highest, x);
}

Value MathBuilder::scaleByPowerOfTwo(Value x, Value n) {
  Value half = arith::ShRSIOp::create(b, n, i32(1));
  Value rest = arith::SubIOp::create(b, n, half);
  for (Value part : {half, rest}) {
    Value biased = arith::AddIOp::create(b, part, i32(127));
    x = mul(x, fromBits(arith::ShLIOp::create(b, biased, i32(23))));
  }
  return x;
}

std::pair<Value, Value> MathBuilder::roundToInteger(Value x) {
  // Adding 1.5 * 2^23 leaves the integer in the low bits of the significand.
  // Unlike a conversion it is defined for NaN too.
  Value shift = f32(12582912.0);
  Value shifted = add(x, shift);
  Value integer = arith::SubIOp::create(b, bitsOf(shifted), i32(0x4B400000));
  return {sub(shifted, shift), integer};
}

Value MathBuilder::expm1Reduced(Value r) {
  Value p = polynomial(r, {1.9875691500E-4, 1.3981999507E-3, 8.3334519073E-3,
                           4.1665795894E-2, 1.6666665459E-1, 5.0000001201E-1});
  return mulAdd(mul(r, r), p, r);
}

std::pair<Value, Value> MathBuilder::expParts(Value x) {
  auto [whole, n] = roundToInteger(mul(x, f32(1.44269504088896341)));
  // ln 2 in two parts; the first has few enough bits for an exact product.
  Value r = mulAdd(whole, f32(-0.693359375), x);
  r = mulAdd(whole, f32(2.12194440e-4), r);
  return {expm1Reduced(r), n};
}

Value MathBuilder::exp(Value x) {
  // Past these bounds the result is 0 or infinite in f32.
  auto [fraction, n] = expParts(clamp(x, -104.0, 89.0));
  return scaleByPowerOfTwo(add(fraction, f32(1.0)), n);
}

Value MathBuilder::exp2(Value x) {
  x = clamp(x, -151.0, 129.0);
  auto [whole, n] = roundToInteger(x);
  Value r = mul(sub(x, whole), f32(0.69314718055994531));
  return scaleByPowerOfTwo(add(expm1Reduced(r), f32(1.0)), n);
}

Value MathBuilder::expm1(Value x) {
  // e^x - 1 = (e^r - 1) 2^n + (2^n - 1), where the second term is exact. At
  // n = 128 it would be infinite for a finite result; there 1 does not count.
  Value clamped = clamp(x, -104.0, 89.0);
  auto [fraction, n] = expParts(clamped);
  Value power = scaleByPowerOfTwo(f32(1.0), n);
  Value small = mulAdd(fraction, power, sub(power, f32(1.0)));
  return select(is(Float::OGT, clamped, f32(80.0)),
                scaleByPowerOfTwo(add(fraction, f32(1.0)), n), small);
}

Value MathBuilder::logOfNormal(Value x, Value power) {
  Value bits = bitsOf(x);
  // x = m 2^e with m in [sqrt(1/2), sqrt(2)).
  Value shifted = arith::SubIOp::create(b, bits, i32(0x3F3504F3));
  Value exponent = arith::ShRSIOp::create(b, shifted, i32(23));
  Value significand = arith::SubIOp::create(
      b, bits, arith::ShLIOp::create(b, exponent, i32(23)));
  Value e = arith::SIToFPOp::create(b, type, exponent);
  if (power)
    e = add(e, power);
  Value f = sub(fromBits(significand), f32(1.0));

  Value square = mul(f, f);
  Value p = polynomial(f, {7.0376836292E-2, -1.1514610310E-1, 1.1676998740E-1,
                           -1.2420140846E-1, 1.4249322787E-1, -1.6668057665E-1,
                           2.0000714765E-1, -2.4999993993E-1, 3.3333331174E-1});
  Value y = mul(mul(p, f), square);
  y = mulAdd(e, f32(-2.12194440e-4), y);
  y = mulAdd(square, f32(-0.5), y);
  return mulAdd(e, f32(0.693359375), add(f, y));
}

Value MathBuilder::log(Value x) {
  // A denormal is scaled by 2^23 first.
  Value denormal = is(Float::OLT, x, f32(1.17549435e-38));
  Value y = logOfNormal(select(denormal, mul(x, f32(8388608.0)), x),
                        select(denormal, f32(-23.0), f32(0.0)));
  y = select(is(Float::OEQ, x, f32(0.0)), neg(infinity()), y);
  y = select(is(Float::OEQ, x, infinity()), x, y);
  return select(is(Float::UGE, x, f32(0.0)), select(is(Float::UNO, x, x), x, y),
                nan());
}

Value MathBuilder::log1p(Value x) {
  // log(1 + x) = log(u) + (x - (u - 1)) / u, u the rounded sum (W. Kahan),
  // which is never a denormal. The correction is small, so that a few bits of
  // it do: where a quotient to nearest is a call, this one is an instruction or
  // two.
  Value one = f32(1.0);
  Value u = add(x, one);
  Value lost = sub(x, sub(u, one));
  Value correction =
      arith::DivFOp::create(b, lost, u, arith::FastMathFlags::afn);
  Value y = add(logOfNormal(u), correction);
  y = select(is(Float::OLE, u, f32(0.0)),
             select(is(Float::OEQ, u, f32(0.0)), neg(infinity()), nan()), y);
  // Keeps -0 and the smallest numbers, whose correction underflows, infinity
  // and what is not a number.
  Value keeps = arith::OrIOp::create(b, is(Float::OEQ, u, one),
                                     is(Float::UEQ, x, infinity()));
  return select(keeps, x, y);
}

Value MathBuilder::tanh(Value x) {
  Value square = mul(x, x);
  Value p = polynomial(square,
                       {-5.70498872745E-3, 2.06390887954E-2, -5.37397155531E-2,
                        1.33314422036E-1, -3.33332819422E-1});
  Value small = mulAdd(mul(p, square), x, x);
  Value size = abs(x);
  Value power = exp(add(size, size));
  Value large = sub(f32(1.0), div(f32(2.0), add(power, f32(1.0))));
  Value y = select(is(Float::OLT, size, f32(0.625)), small, large);
  return math::CopySignOp::create(b, y, x);
}

Value MathBuilder::erf(Value x) {
  // Rational approximation of Eigen's generic_fast_erf; |erf| is 1 in f32 past
  // the bounds.
  x = clamp(x, -3.7439211627767994, 3.7439211627767994);
  Value square = mul(x, x);
  Value p = polynomial(square, {0.00022905065861350646, 0.0034082910107109506,
                                0.050955695062380861, 0.18520832239976145,
                                1.128379143519084});
  Value q = polynomial(square, {-1.1791602954361697e-7, 0.000023547966471313185,
                                0.0010179625278914885, 0.014070470171167667,
                                0.11098505178285362, 0.49746925110067538, 1.0});
  return div(mul(x, p), q);
}

Value MathBuilder::sine(Value x, bool cosine) {
  // Rotary angles reach the position itself, so the quarter turns are taken
  // off in f64: the remainder is good to 1e-10 up to |x| = 1e6, on any level.
  Type wide = like(b.getF64Type());
  Value angle = arith::ExtFOp::create(b, wide, x);
  Value shift = f64(6755399441055744.0); // 1.5 * 2^52
  Value shifted = arith::AddFOp::create(
      b, arith::MulFOp::create(b, angle, f64(0.63661977236758134308)), shift);
  Value whole = arith::SubFOp::create(b, shifted, shift);
  auto lessMultiple = [&](Value from, double part) -> Value {
    return arith::SubFOp::create(b, from,
                                 arith::MulFOp::create(b, whole, f64(part)));
  };
  Value rest = lessMultiple(lessMultiple(angle, 1.57079632679489655800),
                            6.12323399573676603587e-17);
  Value r = arith::TruncFOp::create(b, type, rest);
  Value bits = arith::BitcastOp::create(b, like(b.getI64Type()), shifted);
  Value quarter = arith::TruncIOp::create(b, like(b.getI32Type()), bits);
  if (cosine)
    quarter = arith::AddIOp::create(b, quarter, i32(1));

  Value square = mul(r, r);
  Value s =
      polynomial(square, {-1.9515295891E-4, 8.3321608736E-3, -1.6666654611E-1});
  s = mulAdd(mul(s, square), r, r);
  Value c = polynomial(square, {2.443315711809948E-5, -1.388731625493765E-3,
                                4.166664568298827E-2});
  c = mulAdd(mul(c, square), square, mulAdd(square, f32(-0.5), f32(1.0)));

  auto bit = [&](int32_t mask) -> Value {
    return arith::AndIOp::create(b, quarter, i32(mask));
  };
  Value odd =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ne, bit(1), i32(0));
  Value y = select(odd, c, s);
  Value sign = arith::ShLIOp::create(b, bit(2), i32(30));
  return fromBits(arith::XOrIOp::create(b, bitsOf(y), sign));
}

Value MathBuilder::rsqrt(Value x) {
  return div(f32(1.0), math::SqrtOp::create(b, x));
}

Value MathBuilder::floor(Value x) {
  // From 2^23 on every number is an integer.
  Value fits = is(Float::OLT, abs(x), f32(8388608.0));
  Value safe = select(fits, x, f32(0.0));
  Value integer = arith::FPToSIOp::create(b, like(b.getI32Type()), safe);
  Value whole = arith::SIToFPOp::create(b, type, integer);
  Value above = is(Float::OGT, whole, safe);
  whole = math::CopySignOp::create(
      b, sub(whole, select(above, f32(1.0), f32(0.0))), x);
  return select(fits, whole, x);
}

/// The replacement of `op`, or null where the instruction set has it.
Value expand(OpBuilder &builder, Operation *op) {
  MathBuilder m(builder, op->getLoc(), op->getResult(0).getType());
  Value x = op->getOperand(0);
  return TypeSwitch<Operation *, Value>(op)
      .Case<math::ExpOp>([&](auto) { return m.exp(x); })
      .Case<math::Exp2Op>([&](auto) { return m.exp2(x); })
      .Case<math::ExpM1Op>([&](auto) { return m.expm1(x); })
      .Case<math::LogOp>([&](auto) { return m.log(x); })
      .Case<math::Log1pOp>([&](auto) { return m.log1p(x); })
      .Case<math::TanhOp>([&](auto) { return m.tanh(x); })
      .Case<math::ErfOp>([&](auto) { return m.erf(x); })
      .Case<math::SinOp>([&](auto) { return m.sine(x, /*cosine=*/false); })
      .Case<math::CosOp>([&](auto) { return m.sine(x, /*cosine=*/true); })
      .Case<math::RsqrtOp>([&](auto) { return m.rsqrt(x); })
      .Case<math::FloorOp>([&](auto) { return m.floor(x); })
      .Case<math::FmaOp>([&](math::FmaOp fma) -> Value {
        return LLVM::FMulAddOp::create(builder, op->getLoc(), fma.getType(),
                                       fma.getA(), fma.getB(), fma.getC());
      })
      .Default([](Operation *) { return Value(); });
}

/// A function of narrower floats is that of f32, rounded once: the op in f32
/// that takes the place of `op`, or `op`.
Operation *widened(Operation *op) {
  Type type = op->getResult(0).getType();
  if (!getElementTypeOrSelf(type).isF16() &&
      !getElementTypeOrSelf(type).isBF16())
    return op;
  OpBuilder builder(op);
  auto wide = [&](Type narrow) -> Type {
    auto vector = dyn_cast<VectorType>(narrow);
    return vector ? Type(vector.clone(builder.getF32Type()))
                  : builder.getF32Type();
  };
  Operation *made = op->clone();
  for (OpOperand &operand : made->getOpOperands())
    if (isa<FloatType>(getElementTypeOrSelf(operand.get())))
      operand.set(arith::ExtFOp::create(
          builder, op->getLoc(), wide(operand.get().getType()), operand.get()));
  made->getResult(0).setType(wide(type));
  builder.insert(made);
  op->getResult(0).replaceAllUsesWith(
      arith::TruncFOp::create(builder, op->getLoc(), type, made->getResult(0)));
  op->erase();
  return made;
}

struct ExpandMath : hybrid::impl::HybridCPUExpandMathBase<ExpandMath> {
  void runOnOperation() override {
    SmallVector<Operation *> found;
    getOperation()->walk([&](Operation *op) {
      if (isa<math::MathDialect>(op->getDialect()))
        found.push_back(op);
    });
    for (Operation *op : found) {
      op = widened(op);
      if (isa<math::SqrtOp, math::AbsFOp, math::CopySignOp, math::AbsIOp>(op))
        continue;
      OpBuilder builder(op);
      bool single = getElementTypeOrSelf(op->getResult(0).getType()).isF32();
      Value value = single ? expand(builder, op) : Value();
      if (!value) {
        op->emitOpError("has no expansion for ")
            << op->getResult(0).getType()
            << " on the CPU; write it with exp, log and arithmetic on f32";
        return signalPassFailure();
      }
      op->getResult(0).replaceAllUsesWith(value);
      op->erase();
      ++expanded;
    }
  }
};

} // namespace
