//===- FaultsTest.cpp - public faults of code generation ------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../../Tile/SoftmaxReference.h"
#include "../FastMath.h"
#include "KernelHarness.h"

#include "hybrid/Target/CPU/Passes.h"
#include "hybrid/Tile/Families/Softmax.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/Support/FormatVariadic.h"
#include <sys/mman.h>

using namespace mlir;
using namespace hybrid::cpu;
using namespace hybrid::tile;

namespace {

class KernelFaults : public KernelTest {
protected:
  /// Runs `text` on one buffer for each view at every level and gives what the
  /// last one holds to `check`.
  void forEachLevel(ProgramOp program, ArrayRef<HostBuffer> buffers,
                    ArrayRef<int64_t> symbols,
                    llvm::function_ref<void(const HostBuffer &)> check) {
    for (Level level : levelsHere()) {
      SCOPED_TRACE(traitsOf(level).name.str());
      SmallVector<HostBuffer> copies(buffers.begin(), buffers.end());
      SmallVector<HostView> views;
      for (HostBuffer &buffer : copies)
        views.push_back(buffer.view());
      ASSERT_TRUE(succeeded(runCompiled(program, views, symbols, level)))
          << reported;
      check(copies.back());
    }
  }

  /// y = op(x) elementwise for one row of 4.
  ProgramOp unary(StringRef body) {
    std::string text = R"mlir(
      tile.program @unary(%in: !tile.view<4xf32>, %out: !tile.view<4xf32>)
          grid affine_map<()[t, s, l, n, c, d] -> (t)> order [parallel] {
        %c0 = arith.constant 0 : index
        %x = tile.load %in[%c0] dims [0] : !tile.view<4xf32> -> tensor<4xf32>
        %one = arith.constant dense<1.0> : tensor<4xf32>
        BODY
        tile.store %y, %out[%c0] dims [0] : tensor<4xf32>, !tile.view<4xf32>
        tile.return
      })mlir";
    text.replace(text.find("BODY"), 4, body.str());
    return parse(text);
  }
};

/// The value rounded once, to nearest even, to a narrower type.
double rounded(double x, const llvm::fltSemantics &type) {
  llvm::APFloat value(x);
  bool losesInfo;
  value.convert(type, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven,
                &losesInfo);
  return value.convertToDouble();
}

/// The distance to the next number of the type above |x|.
double ulp(double x, const llvm::fltSemantics &type) {
  llvm::APFloat value(rounded(std::fabs(x), type));
  bool losesInfo;
  value.convert(type, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  llvm::APFloat next = value;
  next.next(/*nextDown=*/false);
  next.subtract(value, llvm::APFloat::rmNearestTiesToEven);
  return next.convertToDouble();
}

} // namespace

/// The inverse of 1 on the diagonal and c below it, through the products of the
/// compiled program. Nothing is clipped, however it grows.
TEST_F(KernelFaults, LIN_07) {
  for (int64_t n : {16, 32, 64})
    for (double c : {1.0, 1.9, 3.0}) {
      SCOPED_TRACE(testing::Message() << "n = " << n << ", c = " << c);
      std::string text = llvm::formatv(R"mlir(
        tile.program @invert(%in: !tile.view<{0}x{0}xf32>, %out: !tile.view<{0}x{0}xf32>)
            grid affine_map<()[t, s, l, n, c, d] -> (t)> order [parallel] {{
          %c0 = arith.constant 0 : index
          %x = tile.load %in[%c0, %c0] dims [0, 1] : !tile.view<{0}x{0}xf32> -> tensor<{0}x{0}xf32>
          %y = tile.unit_lower_inverse %x : tensor<{0}x{0}xf32>
          tile.store %y, %out[%c0, %c0] dims [0, 1] : tensor<{0}x{0}xf32>, !tile.view<{0}x{0}xf32>
          tile.return
        })mlir",
                                       n);
      HostBuffer x({n, n}, 0.0), y({n, n}, kNaN);
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j <= i; ++j)
          x({i, j}) = i == j ? 1.0 : c;
      forEachLevel(parse(text), {x, y}, {1, 1, 1, 0, 0, 0},
                   [&](const HostBuffer &inverse) {
                     for (int64_t i = 0; i < n; ++i)
                       for (int64_t j = 0; j < i; ++j) {
                         double want = -c * std::pow(1 - c, i - j - 1);
                         double got = inverse({i, j});
                         // Terms as large as the whole cancel where c is 1.9.
                         double rounding = c == 1.0 ? 0.0
                                           : c < 2  ? 1e-5
                                                    : 1e-4 * std::fabs(want);
                         ASSERT_NEAR(got, want, rounding) << i << ", " << j;
                       }
                     if (c == 1.9 && n == 64)
                       EXPECT_NEAR(inverse({63, 0}), -0.00276560, 1e-5);
                     if (c == 3.0 && n == 64) {
                       EXPECT_EQ(inverse({5, 0}), -48.0);
                       EXPECT_NEAR(inverse({63, 0}) / -1.3835e19, 1, 1e-4);
                     }
                   });
    }
}

/// Functions are computed in f32; rounded once, they are the rounded value of a
/// narrower type or its neighbour.
TEST_F(KernelFaults, GEN_12) {
  const std::vector<double> arguments = {0x1p-14, 0.03f, 1, 10};
  struct Function {
    const char *body;
    double (*reference)(double);
  };
  const Function functions[] = {
      {"%y = math.exp %x : tensor<4xf32>", std::exp},
      {"%y = math.log %x : tensor<4xf32>", std::log},
      {"%e = math.exp %x : tensor<4xf32>\n"
       "%y = math.log1p %e : tensor<4xf32>",
       [](double x) { return std::log1p(std::exp(x)); }},
      {"%n = arith.negf %x : tensor<4xf32>\n"
       "%e = math.exp %n : tensor<4xf32>\n"
       "%s = arith.addf %e, %one : tensor<4xf32>\n"
       "%y = arith.divf %one, %s : tensor<4xf32>",
       [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"%y = math.rsqrt %x : tensor<4xf32>",
       [](double x) { return 1 / std::sqrt(x); }}};
  for (const Function &function : functions) {
    SCOPED_TRACE(function.body);
    HostBuffer x({4}, 0.0), y({4}, kNaN);
    llvm::copy(arguments, x.elements().begin());
    forEachLevel(
        unary(function.body), {x, y}, {1, 1, 1, 0, 0, 0},
        [&](const HostBuffer &results) {
          for (const llvm::fltSemantics *type :
               {&llvm::APFloat::IEEEhalf(), &llvm::APFloat::BFloat()})
            for (auto [x, got] : llvm::zip(arguments, results.elements())) {
              double want = rounded(function.reference(x), *type);
              EXPECT_LE(std::fabs(rounded(got, *type) - want), ulp(want, *type))
                  << "of " << x;
            }
        });
  }
}

/// Arithmetic of bf16 and f16 is that of f32, rounded once an operation: each
/// kind that a program can have, at every level, without a library.
TEST_F(KernelFaults, GEN_18) {
  struct Case {
    const char *body;
    double (*reference)(double x, double y);
  };
  // What %z is of %a and %b, which are x and y in the type T.
  const Case cases[] = {
      {"%z = arith.addf %a, %b : tensor<4xT>",
       [](double x, double y) { return x + y; }},
      {"%z = arith.subf %a, %b : tensor<4xT>",
       [](double x, double y) { return x - y; }},
      {"%z = arith.mulf %a, %b : tensor<4xT>",
       [](double x, double y) { return x * y; }},
      {"%z = arith.divf %a, %b : tensor<4xT>",
       [](double x, double y) { return double(float(x) / float(y)); }},
      {"%z = arith.negf %a : tensor<4xT>", [](double x, double) { return -x; }},
      {"%z = arith.maximumf %a, %b : tensor<4xT>",
       [](double x, double y) { return std::max(x, y); }},
      {"%z = math.fma %a, %a, %b : tensor<4xT>",
       [](double x, double y) { return x * x + y; }},
      {"%z = math.exp %a : tensor<4xT>",
       [](double x, double) { return std::exp(x); }},
      {"%z = math.absf %a : tensor<4xT>",
       [](double x, double) { return std::fabs(x); }},
      {"%c = arith.cmpf olt, %a, %b : tensor<4xT>\n"
       "%z = arith.select %c, %b, %a : tensor<4xi1>, tensor<4xT>",
       [](double x, double y) { return x < y ? y : x; }},
      {"%i = tile.iota dim 0 : tensor<4xi32>\n"
       "%f = arith.sitofp %i : tensor<4xi32> to tensor<4xT>\n"
       "%h = arith.subf %f, %f : tensor<4xT>\n"
       "%z = arith.addf %h, %a : tensor<4xT>",
       [](double x, double) { return x; }},
      {"%s = tile.reduce sum %a dim 0 : tensor<4xT>\n"
       "%m = tile.reduce max %a dim 0 : tensor<4xT>\n"
       "%d = arith.subf %s, %s : tensor<1xT>\n"
       "%e = arith.subf %m, %m : tensor<1xT>\n"
       "%g = arith.addf %d, %e : tensor<1xT>\n"
       "%w = tile.broadcast %g : tensor<1xT> to tensor<4xT>\n"
       "%z = arith.addf %w, %a : tensor<4xT>",
       [](double x, double) { return x; }},
      {"%c1 = arith.constant 1 : index\n%c3 = arith.constant 3 : index\n"
       "%z = scf.for %k = %c0 to %c3 step %c1 iter_args(%s = %b) -> "
       "(tensor<4xT>) {\n"
       "  %p = arith.addf %s, %a : tensor<4xT>\n"
       "  scf.yield %p : tensor<4xT>\n}",
       nullptr}};
  const std::pair<const char *, const llvm::fltSemantics &> types[] = {
      {"bf16", llvm::APFloat::BFloat()}, {"f16", llvm::APFloat::IEEEhalf()}};
  for (const auto &type : types)
    for (const Case &one : cases) {
      std::string text = std::string("%a = arith.truncf %x : tensor<4xf32> "
                                     "to tensor<4xT>\n"
                                     "%r = arith.addf %x, %one : "
                                     "tensor<4xf32>\n"
                                     "%b = arith.truncf %r : tensor<4xf32> to "
                                     "tensor<4xT>\n") +
                         one.body +
                         "\n%y = arith.extf %z : tensor<4xT> to "
                         "tensor<4xf32>";
      for (size_t at; (at = text.find("xT>")) != std::string::npos;)
        text.replace(at + 1, 1, type.first);
      SCOPED_TRACE(text);
      HostBuffer in({4}, 0.0), out({4}, kNaN);
      llvm::copy(std::vector<double>{0.3f, -1.7f, 2.3f, -0.01f},
                 in.elements().begin());
      auto narrow = [&](double x) { return rounded(x, type.second); };
      forEachLevel(unary(text), {in, out}, {1, 1, 1, 0, 0, 0},
                   [&](const HostBuffer &results) {
                     for (auto [given, got] :
                          llvm::zip(in.elements(), results.elements())) {
                       double x = narrow(given),
                              y = narrow(float(given) + 1.0f);
                       double want =
                           one.reference
                               ? narrow(one.reference(x, y))
                               : narrow(narrow(narrow(y + x) + x) + x);
                       EXPECT_EQ(got, want) << "of " << given;
                     }
                   });
    }
}

/// f32 becomes bf16 by rounding to nearest even; a NaN stays one though its
/// leading bits are those of infinity.
TEST_F(KernelFaults, GEN_19_bits) {
  auto real = [](uint32_t bits) { return double(llvm::bit_cast<float>(bits)); };
  const std::vector<std::pair<uint32_t, uint32_t>> cases = {
      {0x3F808000, 0x3F80}, {0x3F818000, 0x3F82}, {0x3F808001, 0x3F81},
      {0x7F800001, 0x7FC0}, {0x7F7FFFFF, 0x7F80}, {0xFF800000, 0xFF80},
      {0x80000001, 0x8000}, {0x00018000, 0x0002}};
  ProgramOp program =
      unary("%n = arith.truncf %x : tensor<4xf32> to tensor<4xbf16>\n"
            "%y = arith.extf %n : tensor<4xbf16> to tensor<4xf32>");
  for (size_t first = 0; first < cases.size(); first += 4) {
    HostBuffer x({4}, 0.0), y({4}, 7.0);
    for (size_t i = 0; i < 4; ++i)
      x.elements()[i] = real(cases[first + i].first);
    forEachLevel(
        program, {x, y}, {1, 1, 1, 0, 0, 0}, [&](const HostBuffer &results) {
          for (size_t i = 0; i < 4; ++i) {
            auto [bits, narrow] = cases[first + i];
            double want = real(narrow << 16);
            double got = results.elements()[i];
            EXPECT_TRUE(std::isnan(want) ? std::isnan(got) : got == want)
                << std::hex << bits << " gives " << got;
          }
        });
  }
}

/// Products of bf16 numbers, 2^16 pairs of them, which f32 holds exactly.
TEST_F(KernelFaults, GEN_19_products) {
  constexpr int64_t rows = 4096;
  ProgramOp program = parse(R"mlir(
    tile.program @products(%a: !tile.view<?x16xf32>, %b: !tile.view<?x16xf32>,
                           %out: !tile.view<?x16xf32>)
        grid affine_map<()[t, s, l, n, c, d] -> (t)> order [parallel] {
      %c0 = arith.constant 0 : index
      %row = tile.id 0
      %x = tile.load %a[%row, %c0] dims [1] : !tile.view<?x16xf32> -> tensor<16xf32>
      %y = tile.load %b[%row, %c0] dims [1] : !tile.view<?x16xf32> -> tensor<16xf32>
      %p = arith.mulf %x, %y : tensor<16xf32>
      %r = arith.truncf %p : tensor<16xf32> to tensor<16xbf16>
      %w = arith.extf %r : tensor<16xbf16> to tensor<16xf32>
      tile.store %w, %out[%row, %c0] dims [1] : tensor<16xf32>, !tile.view<?x16xf32>
      tile.return
    })mlir");
  HostBuffer a = random({rows, 16}), b = random({rows, 16}),
             out({rows, 16}, kNaN);
  for (HostBuffer *factors : {&a, &b})
    for (double &x : factors->elements())
      x = rounded(x, llvm::APFloat::BFloat());
  forEachLevel(program, {a, b, out}, {rows, 1, rows, 0, 0, 0},
               [&](const HostBuffer &results) {
                 for (auto [x, y, got] :
                      llvm::zip(a.elements(), b.elements(), results.elements()))
                   ASSERT_EQ(got, rounded(x * y, llvm::APFloat::BFloat()))
                       << x << " times " << y;
               });
}

TEST_F(KernelFaults, GEN_06_no_assumptions) {
  OpBuilder b = builder();
  SoftmaxShape shape = softmaxShape(4, 2, 64, 64, {0, 128}, {0, 4}, 64, 64);
  buildSoftmaxForward(b, b.getUnknownLoc(), shape);
  PassManager passes(&context);
  passes.addPass(
      hybrid::createHybridCPULowerPrograms({traitsOf(Level::V3).name.str()}));
  ASSERT_TRUE(succeeded(passes.run(*module))) << reported;
  hybrid::test::expectNoAssumptions(*module);
}

/// The last row lies past 2^31 elements, and its index comes from an i32.
TEST_F(KernelFaults, GEN_21) {
  parse(R"mlir(
    tile.program @scatter(%rows: !tile.view<?xi32>,
                          %out: !tile.view<?x16xf32, strides = [?, 1]>)
        grid affine_map<()[t, s, l, n, c, d] -> (t)> order [parallel] {
      %c0 = arith.constant 0 : index
      %t = tile.id 0
      %row = tile.load_scalar %rows[%t] : !tile.view<?xi32>
      %i = arith.index_cast %row : i32 to index
      %value = arith.constant dense<42.0> : tensor<16xf32>
      tile.store %value, %out[%i, %c0] dims [1] : tensor<16xf32>, !tile.view<?x16xf32, strides = [?, 1]>
      tile.return
    })mlir");
  // Byte 3,000,000,000 and element 2^31 + 16 are among the rows written.
  constexpr int64_t stride = 16, count = (int64_t(1) << 27) + 2;
  constexpr size_t bytes = count * stride * 4;
  auto *memory = static_cast<float *>(
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  int32_t rows[] = {46875000, count - 1};
  for (Level level : levelsHere()) {
    auto code = compile(*module, {"scatter"}, level);
    ASSERT_TRUE(succeeded(code)) << reported;
    LoadedKernel kernel(*code, "scatter");
    KernelView views[] = {{rows, {2}, {1}}, {memory, {count, 16}, {stride, 1}}};
    kernel.run(views, {2}, {true});
    for (int32_t row : rows) {
      float *line = memory + row * stride;
      EXPECT_EQ(line[-1], 0.0f);
      for (int i = 0; i < 16; ++i)
        EXPECT_EQ(std::exchange(line[i], 0.0f), 42.0f);
    }
  }
  munmap(memory, bytes);
}
