//===- Elementwise.cpp - arith and math in the tile interpreter -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringMap.h"
#include <cmath>

using namespace mlir;
using namespace hybrid::tile;

using Unary = double (*)(double);
using Binary = double (*)(double, double);

/// maximumf and minimumf pass NaN on; std::fmax would drop it.
static double maximum(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? std::nan("") : std::fmax(a, b);
}
static double minimum(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? std::nan("") : std::fmin(a, b);
}

/// NaN and what is no 64-bit number become 0, where a cast may trap.
static int64_t whole(double x) {
  return std::fabs(x) < 0x1p63 ? static_cast<int64_t>(x) : 0;
}
static double truncatedDiv(double a, double b) {
  int64_t quotient = whole(a) / whole(b);
  return double(quotient);
}
static double floorDiv(double a, double b) {
  int64_t q = whole(a) / whole(b), r = whole(a) % whole(b);
  return static_cast<double>(r != 0 && (r < 0) != (b < 0) ? q - 1 : q);
}
static double identity(double x) { return x; }
/// An i32 as it is stored.
static uint32_t bitsOf(double x) { return static_cast<uint32_t>(whole(x)); }

static const llvm::StringMap<Unary> &unaryTable() {
  static const llvm::StringMap<Unary> table = {
      {"arith.negf", [](double x) { return -x; }},
      {"arith.index_cast", identity},
      {"arith.index_castui", identity},
      {"arith.sitofp", identity},
      {"arith.extf", identity},
      {"arith.truncf", identity},
      {"arith.trunci", identity},
      {"arith.extsi", identity},
      // i1 is held as 0 or 1, so widening it unsigned keeps the number.
      {"arith.extui", identity},
      {"arith.uitofp", identity},
      {"arith.fptosi", [](double x) { return std::trunc(x); }},
      {"math.absf", [](double x) { return std::fabs(x); }},
      {"math.ceil", [](double x) { return std::ceil(x); }},
      {"math.cos", [](double x) { return std::cos(x); }},
      {"math.erf", [](double x) { return std::erf(x); }},
      {"math.exp", [](double x) { return std::exp(x); }},
      {"math.exp2", [](double x) { return std::exp2(x); }},
      {"math.expm1", [](double x) { return std::expm1(x); }},
      {"math.floor", [](double x) { return std::floor(x); }},
      {"math.isfinite", [](double x) { return std::isfinite(x) ? 1.0 : 0.0; }},
      {"math.isnan", [](double x) { return std::isnan(x) ? 1.0 : 0.0; }},
      {"math.log", [](double x) { return std::log(x); }},
      {"math.log1p", [](double x) { return std::log1p(x); }},
      {"math.log2", [](double x) { return std::log2(x); }},
      {"math.rsqrt", [](double x) { return 1.0 / std::sqrt(x); }},
      {"math.sin", [](double x) { return std::sin(x); }},
      {"math.sqrt", [](double x) { return std::sqrt(x); }},
      {"math.tanh", [](double x) { return std::tanh(x); }},
  };
  return table;
}

static const llvm::StringMap<Binary> &binaryTable() {
  static const llvm::StringMap<Binary> table = {
      {"arith.addf", [](double a, double b) { return a + b; }},
      {"arith.subf", [](double a, double b) { return a - b; }},
      {"arith.mulf", [](double a, double b) { return a * b; }},
      {"arith.divf", [](double a, double b) { return a / b; }},
      {"arith.maximumf", maximum},
      {"arith.minimumf", minimum},
      {"arith.maxnumf", [](double a, double b) { return std::fmax(a, b); }},
      {"arith.minnumf", [](double a, double b) { return std::fmin(a, b); }},
      {"arith.addi", [](double a, double b) { return a + b; }},
      {"arith.subi", [](double a, double b) { return a - b; }},
      {"arith.muli", [](double a, double b) { return a * b; }},
      {"arith.divsi", truncatedDiv},
      {"arith.divui", truncatedDiv},
      {"arith.floordivsi", floorDiv},
      {"arith.ceildivsi", [](double a, double b) { return -floorDiv(-a, b); }},
      {"arith.ceildivui", [](double a, double b) { return -floorDiv(-a, b); }},
      {"arith.remsi",
       [](double a, double b) { return double(whole(a) % whole(b)); }},
      {"arith.remui",
       [](double a, double b) { return double(whole(a) % whole(b)); }},
      {"arith.minsi", [](double a, double b) { return std::min(a, b); }},
      {"arith.maxsi", [](double a, double b) { return std::max(a, b); }},
      {"arith.minui", [](double a, double b) { return std::min(a, b); }},
      {"arith.maxui", [](double a, double b) { return std::max(a, b); }},
      {"arith.andi",
       [](double a, double b) { return double(whole(a) & whole(b)); }},
      {"arith.ori",
       [](double a, double b) { return double(whole(a) | whole(b)); }},
      {"arith.xori",
       [](double a, double b) { return double(whole(a) ^ whole(b)); }},
      {"math.powf", [](double a, double b) { return std::pow(a, b); }},
  };
  return table;
}

/// The comparison `a predicate b`; unsigned predicates are for non-negative
/// operands, which is all that programs compare.
static double compare(arith::CmpIPredicate predicate, double a, double b) {
  using P = arith::CmpIPredicate;
  switch (predicate) {
  case P::eq:
    return a == b;
  case P::ne:
    return a != b;
  case P::slt:
  case P::ult:
    return a < b;
  case P::sle:
  case P::ule:
    return a <= b;
  case P::sgt:
  case P::ugt:
    return a > b;
  case P::sge:
  case P::uge:
    return a >= b;
  }
  return 0.0;
}

/// A float predicate is a set of {less, equal, greater, unordered}.
static double compare(arith::CmpFPredicate predicate, double a, double b) {
  auto bits = static_cast<uint64_t>(predicate);
  unsigned outcome = std::isnan(a) || std::isnan(b) ? 8
                     : a == b                       ? 1
                     : a > b                        ? 2
                                                    : 4;
  return (bits & outcome) != 0;
}

double Machine::round(Type type, double value) const {
  if (type.isIndex())
    return value;
  if (type.isInteger(1))
    return whole(value) & 1;
  if (type.isInteger(32))
    return static_cast<int32_t>(static_cast<uint32_t>(whole(value)));
  if (!isF32() || !std::isfinite(value))
    return value;
  if (type.isF32())
    return static_cast<float>(value);
  APFloat narrow(value);
  bool losesInfo = false;
  narrow.convert(cast<FloatType>(type).getFloatSemantics(),
                 APFloat::rmNearestTiesToEven, &losesInfo);
  return narrow.convertToDouble();
}

/// A true i1 is all ones as a signed number; it is held as 1.
static double numberOf(const APInt &value) {
  if (value.getBitWidth() == 1)
    return value.isOne();
  return static_cast<double>(value.getSExtValue());
}

LogicalResult Machine::runConstant(Operation &op) {
  Attribute attr = cast<arith::ConstantOp>(op).getValue();
  Value result = op.getResult(0);
  if (auto integer = dyn_cast<IntegerAttr>(attr)) {
    set(result, numberOf(integer.getValue()));
    return success();
  }
  if (auto real = dyn_cast<FloatAttr>(attr)) {
    set(result, real.getValueAsDouble());
    return success();
  }
  auto dense = dyn_cast<DenseElementsAttr>(attr);
  if (!dense)
    return op.emitOpError("holds ")
           << attr << ", which the tile interpreter cannot read";
  auto type = cast<RankedTensorType>(result.getType());
  std::vector<double> elements;
  elements.reserve(type.getNumElements());
  if (isa<FloatType>(type.getElementType())) {
    for (APFloat value : dense.getValues<APFloat>()) {
      bool losesInfo = false;
      value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                    &losesInfo);
      elements.push_back(value.convertToDouble());
    }
  } else {
    for (const APInt &value : dense.getValues<APInt>())
      elements.push_back(numberOf(value));
  }
  set(result, {type.getShape(), std::move(elements)});
  return success();
}

/// Whether the divisor of an integer division is 0 anywhere.
static bool dividesByZero(Operation &op, const Datum &divisor) {
  if (!isa<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp,
           arith::CeilDivSIOp, arith::CeilDivUIOp, arith::RemSIOp,
           arith::RemUIOp>(op))
    return false;
  for (size_t i = 0; i < divisor.size(); ++i)
    if (divisor[i] == 0.0)
      return true;
  return false;
}

LogicalResult Machine::runElementwise(Operation &op) {
  if (isa<arith::ConstantOp>(op))
    return runConstant(op);
  Type type = op.getResult(0).getType(), element = getElementTypeOrSelf(type);
  SmallVector<Datum, 3> in;
  for (Value operand : op.getOperands())
    in.push_back(get(operand));
  auto apply = [&](auto function) {
    auto tile = dyn_cast<RankedTensorType>(type);
    if (!tile)
      return set(op.getResult(0), round(element, function(0)));
    std::vector<double> out(tile.getNumElements());
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = round(element, function(i));
    set(op.getResult(0), {tile.getShape(), std::move(out)});
  };

  // A true i1 is held as 1, and is -1 as a signed number.
  if (isa<arith::ExtSIOp, arith::SIToFPOp, arith::IndexCastOp>(op) &&
      getElementTypeOrSelf(op.getOperand(0).getType()).isInteger(1)) {
    apply([&](size_t i) { return -in[0][i]; });
    return success();
  }
  // The low bits of a product of i32 are beyond what a double holds.
  if (isa<arith::MulIOp, arith::ShRUIOp>(op) && element.isInteger(32)) {
    bool isShift = isa<arith::ShRUIOp>(op);
    apply([&](size_t i) {
      uint32_t a = bitsOf(in[0][i]), b = bitsOf(in[1][i]);
      return double(isShift ? (b < 32 ? a >> b : 0) : a * b);
    });
    return success();
  }
  StringRef name = op.getName().getStringRef();
  if (auto it = unaryTable().find(name); it != unaryTable().end()) {
    apply([&, f = it->second](size_t i) { return f(in[0][i]); });
    return success();
  }
  if (auto it = binaryTable().find(name); it != binaryTable().end()) {
    if (dividesByZero(op, in[1]))
      return op.emitOpError("divides by zero");
    apply([&, f = it->second](size_t i) { return f(in[0][i], in[1][i]); });
    return success();
  }
  if (auto cmp = dyn_cast<arith::CmpIOp>(op)) {
    apply([&](size_t i) {
      return compare(cmp.getPredicate(), in[0][i], in[1][i]);
    });
    return success();
  }
  if (auto cmp = dyn_cast<arith::CmpFOp>(op)) {
    apply([&](size_t i) {
      return compare(cmp.getPredicate(), in[0][i], in[1][i]);
    });
    return success();
  }
  if (isa<arith::SelectOp>(op)) {
    apply([&](size_t i) { return in[0][i] != 0.0 ? in[1][i] : in[2][i]; });
    return success();
  }
  if (isa<math::FmaOp>(op)) {
    apply([&](size_t i) { return std::fma(in[0][i], in[1][i], in[2][i]); });
    return success();
  }
  return op.emitOpError("is not known to the tile interpreter");
}
