//===- MathTest.cpp - accuracy and special values of expanded math -------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelHarness.h"

using namespace mlir;
using namespace hybrid::cpu;
using namespace hybrid::tile;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class MathTest : public KernelTest {
protected:
  /// y = body(x) for one row of 16 values at a time.
  ProgramOp unary(StringRef body) {
    std::string text = R"mlir(
      tile.program @unary(%in: !tile.view<?x16xf32>, %out: !tile.view<?x16xf32>)
          grid affine_map<()[t, s, l, n, c, d] -> (t)> order [parallel] {
        %c0 = arith.constant 0 : index
        %row = tile.id 0
        %x = tile.load %in[%row, %c0] dims [1] : !tile.view<?x16xf32> -> tensor<16xf32>
        BODY
        tile.store %y, %out[%row, %c0] dims [1] : tensor<16xf32>, !tile.view<?x16xf32>
        tile.return
      })mlir";
    text.replace(text.find("BODY"), 4, body.str());
    return parse(text);
  }

  std::vector<double> evaluate(ProgramOp program, std::vector<double> values,
                               Level level) {
    int64_t rows = llvm::divideCeil(values.size(), 16);
    HostBuffer in({rows, 16}, 1.0), out({rows, 16}, kNaN);
    llvm::copy(values, in.elements().begin());
    HostView views[] = {in.view(), out.view()};
    EXPECT_TRUE(
        succeeded(runCompiled(program, views, {rows, 1, rows, 0, 0, 0}, level)))
        << reported;
    ArrayRef<double> results = out.elements();
    return {results.begin(), results.begin() + values.size()};
  }

  /// The distance to the next f32 number.
  static double ulp(double x) {
    return std::ldexp(1.0,
                      std::max(std::ilogb(std::fabs(x) + 1e-300), -126) - 23);
  }

  /// Evenly spaced arguments, or evenly spaced in the exponent for ranges > 0.
  static std::vector<double> range(double from, double to,
                                   bool logarithmic = false) {
    std::vector<double> values;
    constexpr int kCount = 20000;
    for (int n = 0; n <= kCount; ++n) {
      double part = double(n) / kCount;
      values.push_back(float(logarithmic ? from * std::pow(to / from, part)
                                         : from + part * (to - from)));
    }
    return values;
  }

  void accurate(StringRef op, double (*reference)(double),
                std::vector<double> arguments, double ulps) {
    std::string body = (op + " %x : tensor<16xf32>").str();
    ProgramOp program = unary("%y = " + body);
    for (Level level : levelsHere()) {
      std::vector<double> results = evaluate(program, arguments, level);
      double worst = 0, where = 0;
      for (auto [x, y] : llvm::zip_equal(arguments, results)) {
        double expected = reference(x);
        double error = std::fabs(y - expected) / ulp(expected);
        if (!(error <= worst))
          worst = error, where = x;
      }
      EXPECT_LE(worst, ulps) << op.str() << " of " << where << " at "
                             << traitsOf(level).name.str();
    }
  }

  /// Exact results for exact arguments.
  void gives(StringRef body, std::vector<double> arguments,
             std::vector<double> expected) {
    ProgramOp program = unary(body);
    for (Level level : levelsHere()) {
      std::vector<double> results = evaluate(program, arguments, level);
      for (auto [x, y, want] : llvm::zip_equal(arguments, results, expected)) {
        bool same = std::isnan(want)
                        ? std::isnan(y)
                        : y == want && std::signbit(y) == std::signbit(want);
        EXPECT_TRUE(same) << body.str() << ": " << x << " gives " << y
                          << ", not " << want << " at "
                          << traitsOf(level).name.str();
      }
    }
  }
};

} // namespace

TEST_F(MathTest, Exponentials) {
  accurate("math.exp", std::exp, range(-103, 88.7), 2);
  accurate("math.exp", std::exp, range(1e-10, 1, true), 2);
  accurate("math.exp2", std::exp2, range(-149, 127.9), 2);
  accurate("math.expm1", std::expm1, range(-20, 88.7), 4);
  accurate("math.expm1", std::expm1, range(1e-10, 1, true), 4);
}

TEST_F(MathTest, ExponentialsOfGatesAreRelativelyExact) {
  // A decay is a product of such factors: 1e-7 relative on [-87, 0].
  std::vector<double> arguments = range(-87, 0);
  ProgramOp program = unary("%y = math.exp %x : tensor<16xf32>");
  for (Level level : levelsHere()) {
    std::vector<double> results = evaluate(program, arguments, level);
    for (auto [x, y] : llvm::zip_equal(arguments, results))
      ASSERT_NEAR(y / std::exp(x), 1.0, 1.2e-7) << x;
  }
}

TEST_F(MathTest, Logarithms) {
  accurate("math.log", std::log, range(1e-44, 3e38, true), 2);
  accurate("math.log", std::log, range(0.5, 2.0), 2);
  accurate("math.log1p", std::log1p, range(-0.99999, 10), 4);
  accurate("math.log1p", std::log1p, range(1e-30, 1e30, true), 4);
}

TEST_F(MathTest, HyperbolicAndErrorFunctions) {
  accurate("math.tanh", std::tanh, range(-12, 12), 4);
  accurate("math.tanh", std::tanh, range(1e-20, 1, true), 4);
  accurate("math.erf", std::erf, range(-5, 5), 6);
}

TEST_F(MathTest, RootsAndFloors) {
  accurate(
      "math.rsqrt", [](double x) { return 1 / std::sqrt(x); },
      range(1e-37, 1e37, true), 1.5);
  accurate("math.sqrt", std::sqrt, range(1e-37, 1e37, true), 0.5);
  gives("%y = math.floor %x : tensor<16xf32>",
        {-2.5, -2.0, -0.0, 0.0, 2.5, 1e20, -kInfinity},
        {-3.0, -2.0, -0.0, 0.0, 2.0, double(1e20f), -kInfinity});
}

TEST_F(MathTest, RotaryAngles) {
  // Absolute error: rotations multiply by these. Positions of 100k tokens.
  for (auto [op, reference] :
       {std::pair<const char *, double (*)(double)>{"sin", std::sin},
        {"cos", std::cos}}) {
    ProgramOp program =
        unary(std::string("%y = math.") + op + " %x : tensor<16xf32>");
    for (Level level : levelsHere()) {
      std::vector<double> arguments = range(-1e5, 1e5);
      std::vector<double> results = evaluate(program, arguments, level);
      for (auto [x, y] : llvm::zip_equal(arguments, results))
        ASSERT_NEAR(y, reference(x), 2e-7) << op << " of " << x;
    }
  }
}

TEST_F(MathTest, SpecialValues) {
  gives("%y = math.exp %x : tensor<16xf32>",
        {-kInfinity, kInfinity, kNaN, 0, 89, -104},
        {0, kInfinity, kNaN, 1, kInfinity, 0});
  gives("%y = math.log %x : tensor<16xf32>", {0, -0.0, kInfinity, -1, kNaN, 1},
        {-kInfinity, -kInfinity, kInfinity, kNaN, kNaN, 0});
  gives("%y = math.log1p %x : tensor<16xf32>",
        {-1, kInfinity, -2, kNaN, 0, -0.0},
        {-kInfinity, kInfinity, kNaN, kNaN, 0, -0.0});
  gives("%y = math.tanh %x : tensor<16xf32>",
        {-kInfinity, kInfinity, kNaN, 0, -0.0}, {-1, 1, kNaN, 0, -0.0});
  gives("%y = math.rsqrt %x : tensor<16xf32>", {0, kInfinity, kNaN, -1, 4},
        {kInfinity, 0, kNaN, kNaN, 0.5});
  gives("%y = math.sin %x : tensor<16xf32>", {kInfinity, kNaN, 0},
        {kNaN, kNaN, 0});
}

// A state that decays by e each step ends in denormals, which are kept.
TEST_F(MathTest, GEN17_DenormalsAreNotFlushed) {
  gives("%t = arith.constant dense<0.5> : tensor<16xf32>\n"
        "%y = arith.mulf %x, %t : tensor<16xf32>",
        {0x1p-126, 0x1p-148, 0x1p-149}, {0x1p-127, 0x1p-149, 0.0});
  accurate("math.exp", std::exp, range(-103.9, -87), 1);
}

TEST_F(MathTest, GEN07_MaximumKeepsNaNAndSigns) {
  ProgramOp program = parse(R"mlir(
    tile.program @pairs(%in: !tile.view<?x2xf32>, %out: !tile.view<?xf32>)
        grid affine_map<()[t, s, l, n, c, d] -> (t)> order [parallel] {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %row = tile.id 0
      %x = tile.load_scalar %in[%row, %c0] : !tile.view<?x2xf32>
      %y = tile.load_scalar %in[%row, %c1] : !tile.view<?x2xf32>
      %m = arith.maximumf %x, %y : f32
      tile.store_scalar %m, %out[%row] : !tile.view<?xf32>
      tile.return
    })mlir");
  HostBuffer in({4, 2}, 0.0), out({4}, 7.0);
  llvm::copy(std::vector<double>{kNaN, -1, -1, kNaN, -0.0, 0.0, -1, -2},
             in.elements().begin());
  for (Level level : levelsHere()) {
    HostView views[] = {in.view(), out.view()};
    ASSERT_TRUE(
        succeeded(runCompiled(program, views, {4, 1, 4, 0, 0, 0}, level)));
    EXPECT_TRUE(std::isnan(out({0})) && std::isnan(out({1})));
    EXPECT_TRUE(out({2}) == 0.0 && !std::signbit(out({2})));
    EXPECT_EQ(out({3}), -1.0);
  }
}

// The row maximum starts from -inf and passes NaN on; a row of -inf is a row of
// 0 once the program guards it, which needs the infinities kept.
TEST_F(MathTest, GEN05_GEN06_SoftmaxRows) {
  ProgramOp program = parse(R"mlir(
    tile.program @softmax(%in: !tile.view<?x3xf32>, %out: !tile.view<?x3xf32>)
        grid affine_map<()[t, s, l, n, c, d] -> (t)> order [parallel] {
      %c0 = arith.constant 0 : index
      %row = tile.id 0
      %x = tile.load %in[%row, %c0] dims [0, 1] : !tile.view<?x3xf32> -> tensor<1x3xf32>
      %m = tile.reduce max %x dim 1 : tensor<1x3xf32>
      %lowest = arith.constant dense<0xFF800000> : tensor<1x1xf32>
      %zero = arith.constant dense<0.0> : tensor<1x1xf32>
      %empty = arith.cmpf oeq, %m, %lowest : tensor<1x1xf32>
      %safe = arith.select %empty, %zero, %m : tensor<1x1xi1>, tensor<1x1xf32>
      %wide = tile.broadcast %safe : tensor<1x1xf32> to tensor<1x3xf32>
      %d = arith.subf %x, %wide : tensor<1x3xf32>
      %p = math.exp %d : tensor<1x3xf32>
      %l = tile.reduce sum %p dim 1 : tensor<1x3xf32>
      %one = arith.constant dense<1.0> : tensor<1x1xf32>
      %n = arith.select %empty, %one, %l : tensor<1x1xi1>, tensor<1x1xf32>
      %total = tile.broadcast %n : tensor<1x1xf32> to tensor<1x3xf32>
      %y = arith.divf %p, %total : tensor<1x3xf32>
      tile.store %y, %out[%row, %c0] dims [0, 1] : tensor<1x3xf32>, !tile.view<?x3xf32>
      tile.return
    })mlir");
  HostBuffer in({5, 3}, 0.0), out({5, 3}, 7.0);
  std::vector<double> rows{
      -kInfinity, 0,          3,          88,         89,   90, -1e30, -1e30,
      -kInfinity, -kInfinity, -kInfinity, -kInfinity, kNaN, 1,  2};
  llvm::copy(rows, in.elements().begin());
  const double expected[] = {0,        0.047426, 0.952574, 0.090031,
                             0.244728, 0.665241, 0.5,      0.5,
                             0,        0,        0,        0};
  for (Level level : levelsHere()) {
    HostView views[] = {in.view(), out.view()};
    ASSERT_TRUE(
        succeeded(runCompiled(program, views, {5, 1, 5, 0, 0, 0}, level)))
        << reported;
    for (auto [want, got] : llvm::zip(expected, out.elements()))
      EXPECT_NEAR(got, want, 1e-6);
    for (int64_t c = 0; c < 3; ++c)
      EXPECT_TRUE(std::isnan(out({4, c})));
  }
}

// Every number of the type comes back, and what lies between two of them goes
// to the nearer, halfway to the even one. At x86-64 f16 is integer arithmetic.
TEST_F(MathTest, NarrowTypesRoundToNearestEven) {
  const std::pair<const char *, const llvm::fltSemantics *> types[] = {
      {"bf16", &APFloat::BFloat()}, {"f16", &APFloat::IEEEhalf()}};
  for (auto [name, semantics] : types) {
    std::vector<double> arguments;
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
      APFloat number(*semantics, APInt(16, bits));
      if (number.isNaN())
        continue;
      double x = APFloat(number).convertToDouble();
      arguments.push_back(x);
      APFloat above(number);
      above.next(/*nextDown=*/false);
      if (!number.isFinite() || !above.isFinite())
        continue;
      float half = static_cast<float>((x + above.convertToDouble()) / 2);
      for (float y : {half, std::nextafterf(half, -INFINITY),
                      std::nextafterf(half, INFINITY)})
        arguments.push_back(y);
    }
    // Past the largest number.
    for (float y : {65519.99f, 65520.0f, 1e6f, 3.39e38f, 3.4e38f})
      for (float sign : {1.0f, -1.0f})
        arguments.push_back(sign * y);
    std::string type = std::string("tensor<16x") + name + ">";
    ProgramOp program =
        unary("%h = arith.truncf %x : tensor<16xf32> to " + type +
              "\n%y = arith.extf %h : " + type + " to tensor<16xf32>");
    for (Level level : levelsHere()) {
      std::vector<double> results = evaluate(program, arguments, level);
      size_t wrong = 0;
      for (auto [x, y] : llvm::zip_equal(arguments, results)) {
        APFloat expected(x);
        bool losesInfo = false;
        expected.convert(*semantics, APFloat::rmNearestTiesToEven, &losesInfo);
        double rounded = expected.convertToDouble();
        bool same = y == rounded && std::signbit(y) == std::signbit(rounded);
        if (!same && ++wrong < 5)
          ADD_FAILURE() << x << " in " << name << " gives " << y
                        << ", expected " << rounded << ", at "
                        << traitsOf(level).name.str();
      }
      EXPECT_EQ(wrong, 0u);
      EXPECT_TRUE(std::isnan(evaluate(program, {kNaN}, level).front()));
    }
  }
}
