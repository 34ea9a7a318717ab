//===- EpiloguesTest.cpp - products that take what follows them -----------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Graph functions as `hybrid-schedule` makes one launch of them, run on the
// host beside the tile interpreter, and assembled.
//
//===----------------------------------------------------------------------===//

#include "KernelsFixture.h"

#include "hybrid/Hybrid/HybridDialect.h"
#include "hybrid/Hybrid/HybridOps.h"
#include "hybrid/Schedule/Passes.h"
#include "hybrid/Target/NVPTX/Compile.h"
#include "hybrid/Tile/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::hopper;
using hybrid::tile::HostBuffer;

namespace {

class HopperEpilogues : public KernelsFixture {
protected:
  static std::string tensor(int64_t columns, StringRef element = "bf16") {
    return llvm::formatv("tensor<?x{0}x{1}>", columns, element).str();
  }
  static std::string matrix(int64_t rows, int64_t columns) {
    return llvm::formatv("tensor<{0}x{1}xbf16>", rows, columns).str();
  }

  /// Schedules a function, whose one product launch is then `scheduled()`.
  void build(StringRef signature, StringRef body) {
    context.loadDialect<HybridDialect, func::FuncDialect, HopperDialect>();
    std::string text = llvm::formatv("func.func @f({0} attributes {{"
                                     "hybrid.entry = \"f\"} {{\n{1}}\n",
                                     signature, body)
                           .str();
    programs = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(programs) << text << reported;
    HybridScheduleOptions options;
    options.target = "cuda:sm_90a";
    options.epilogues = true;
    PassManager passes(&context);
    passes.addPass(createHybridSchedule(options));
    OpPassManager &nested = passes.nest<tile::ProgramOp>();
    nested.addPass(createHybridNarrowProducts());
    nested.addPass(createCanonicalizerPass());
    nested.addPass(createCSEPass());
    ASSERT_TRUE(succeeded(passes.run(*programs))) << reported;
    int64_t products = 0;
    programs->walk([&](DispatchOp dispatch) {
      products += dispatch.getProgram().starts_with("product");
    });
    EXPECT_EQ(products, 1);
    makeKernel();
  }

  /// SwiGLU of two products, which are results too if they are kept.
  void buildSwiglu(int64_t columns, int64_t depth, bool isKept) {
    std::string x = tensor(depth), w = matrix(columns, depth),
                h = tensor(columns), wide = tensor(columns, "f32");
    std::string results = isKept ? h + ", " + h + ", " + h : h;
    build("%x: " + x + ", %wg: " + w + ", %wu: " + w + ") -> (" + results + ")",
          llvm::formatv(R"(
  %g = hybrid.product %x, %wg transpose_b : ({0}, {1}) -> {2}
  %u = hybrid.product %x, %wu transpose_b : ({0}, {1}) -> {2}
  %h = hybrid.rowwise (%a = %g : {2}, %b = %u : {2}) -> {2} {{
    %1 = hybrid.cast %a : {2} to {3}
    %2 = hybrid.silu %1 : {3}
    %3 = hybrid.cast %b : {2} to {3}
    %4 = hybrid.mul %2, %3 : {3}, {3}
    %5 = hybrid.cast %4 : {3} to {2}
    hybrid.yield %5 : {2}
  }
  return {4} : {5}
)",
                        x, w, h, wide, isKept ? "%h, %g, %u" : "%h", results)
              .str());
  }

  /// The adjoint of a product of two tensors, on the matrix product that gives
  /// its cotangent: two operands and two results beside the sums.
  void buildGatedGrad(int64_t columns, int64_t depth) {
    std::string dy = tensor(depth), w = matrix(depth, columns),
                h = tensor(columns), wide = tensor(columns, "f32");
    build("%dy: " + dy + ", %w: " + w + ", %g: " + h + ", %u: " + h + ") -> (" +
              h + ", " + h + ")",
          llvm::formatv(R"(
  %dh = hybrid.product %dy, %w : ({0}, {1}) -> {2}
  %d:2 = hybrid.rowwise (%a = %dh : {2}, %b = %u : {2}, %c = %g : {2}) -> ({2}, {2}) {{
    %1 = hybrid.cast %a : {2} to {3}
    %2 = hybrid.cast %b : {2} to {3}
    %3 = hybrid.mul %1, %2 : {3}, {3}
    %4 = hybrid.cast %c : {2} to {3}
    %5 = hybrid.mul %1, %4 : {3}, {3}
    %6 = hybrid.cast %3 : {3} to {2}
    %7 = hybrid.cast %5 : {3} to {2}
    hybrid.yield %6, %7 : {2}, {2}
  }
  return %d#0, %d#1 : {2}, {2}
)",
                        dy, w, h, wide)
              .str());
  }

  void buildRotary(int64_t heads, int64_t dim, int64_t rotaryDim, int64_t depth,
                   bool isInverse) {
    int64_t columns = heads * dim;
    std::string x = tensor(depth), w = matrix(columns, depth),
                y = tensor(columns),
                q = llvm::formatv("tensor<?x{0}x{1}xbf16>", heads, dim).str(),
                wide = llvm::formatv("tensor<?x{0}x{1}xf32>", heads, dim).str();
    build("%x: " + x + ", %w: " + w + ", %s: !hybrid.segments) -> " + q,
          llvm::formatv(R"(
  %y = hybrid.product %x, %w transpose_b : ({0}, {1}) -> {2}
  %heads = hybrid.reshape %y : {2} -> {3}
  %r = hybrid.rowwise (%a = %heads : {3}, %b = %s : !hybrid.segments) -> {3} {{
    %1 = hybrid.cast %a : {3} to {4}
    %2 = hybrid.rotary %1, %b base 1.000000e+04 dim {5} {6} : {4}
    %3 = hybrid.cast %2 : {4} to {3}
    hybrid.yield %3 : {3}
  }
  return %r : {3}
)",
                        x, w, y, q, wide, rotaryDim, isInverse ? "inverse" : "")
              .str());
  }

  /// A residual sum in front of a norm, which stays a launch of its own, or a
  /// bias.
  void buildResidual(int64_t columns, int64_t depth) {
    std::string x = tensor(depth), w = matrix(columns, depth),
                y = tensor(columns), wide = tensor(columns, "f32");
    build("%x: " + x + ", %w: " + w + ", %old: " + y + ") -> (" + y + ", " + y +
              ")",
          llvm::formatv(R"(
  %y = hybrid.product %x, %w transpose_b : ({0}, {1}) -> {2}
  %d:2 = hybrid.rowwise (%a = %old : {2}, %b = %y : {2}) -> ({2}, {2}) {{
    %1 = hybrid.cast %a : {2} to {3}
    %2 = hybrid.cast %b : {2} to {3}
    %3 = hybrid.add %1, %2 : {3}, {3}
    %4 = hybrid.cast %3 : {3} to {2}
    %5 = hybrid.cast %4 : {2} to {3}
    %6 = hybrid.normalize rms %5 epsilon 1.0e-05 : {3}
    %7 = hybrid.cast %6 : {3} to {2}
    hybrid.yield %4, %7 : {2}, {2}
  }
  return %d#0, %d#1 : {2}, {2}
)",
                        x, w, y, wide)
              .str());
  }

  void buildBias(int64_t columns, int64_t depth) {
    std::string x = tensor(depth), w = matrix(columns, depth),
                y = tensor(columns), wide = tensor(columns, "f32"),
                row = llvm::formatv("tensor<{0}xf32>", columns).str();
    build("%x: " + x + ", %w: " + w + ", %bias: " + row + ") -> " + y,
          llvm::formatv(R"(
  %y = hybrid.product %x, %w transpose_b : ({0}, {1}) -> {2}
  %r = hybrid.rowwise (%a = %y : {2}, %b = %bias : {4}) -> {2} {{
    %1 = hybrid.cast %a : {2} to {3}
    %2 = hybrid.add %1, %b : {3}, {4}
    %3 = hybrid.cast %2 : {3} to {2}
    hybrid.yield %3 : {2}
  }
  return %r : {2}
)",
                        x, w, y, wide, row)
              .str());
  }

  HostBuffer filled(SmallVector<int64_t> shape, unsigned seed) {
    HostBuffer buffer(shape, 0);
    fill(buffer, seed);
    return buffer;
  }
  /// Weights, so that sums are of the size of their operands.
  HostBuffer weights(SmallVector<int64_t> shape, unsigned seed) {
    HostBuffer buffer = filled(shape, seed);
    for (double &x : buffer.elements())
      x /= 8;
    return buffer;
  }

  /// Assembled without spills, stack or notices.
  void expectNoSpills(StringRef what) {
    if (nvptx::findAssembler().empty())
      GTEST_SKIP() << "no ptxas";
    auto code = nvptx::compile(*programs, scheduled().getSymName(), "sm_90a");
    ASSERT_TRUE(succeeded(code)) << reported;
    auto made = nvptx::assemble(UnknownLoc::get(&context), code->ptx, "sm_90a");
    ASSERT_TRUE(succeeded(made)) << reported;
    const nvptx::KernelResources &used = made->kernels.front();
    EXPECT_EQ(used.spillStores + used.spillLoads, 0) << what.str();
    EXPECT_EQ(used.stack, 0) << what.str();
    EXPECT_TRUE(used.notices.empty()) << what.str() << used.notices.front();
  }
};

/// Results below 16, rounded to bf16 once by each of the two.
constexpr double kNarrow = 0.0626;

} // namespace

TEST_F(HopperEpilogues, SwigluIsOneLaunchOfTwoProducts) {
  // Columns that do not fill the last tile.
  buildSwiglu(136, 200, /*isKept=*/false);
  for (int64_t tokens : {1, 130}) {
    HostBuffer x = filled({tokens, 200}, 1), gate = weights({136, 200}, 2),
               up = weights({136, 200}, 3), h({tokens, 136}, NAN);
    compare({&x, &gate, &up, &h}, {tokens, 1, tokens, 1, 0, 0}, {3}, kNarrow);
  }
}

TEST_F(HopperEpilogues, SwigluKeepsItsProductsForTheAdjoint) {
  buildSwiglu(128, 448, /*isKept=*/true);
  // Points one after another.
  int64_t tokens = 300;
  HostBuffer x = filled({tokens, 448}, 1), gate = weights({128, 448}, 2),
             up = weights({128, 448}, 3), h({tokens, 128}, NAN), g = h, u = h;
  compare({&x, &gate, &up, &h, &g, &u}, {tokens, 1, tokens, 1, 0, 0}, {3, 4, 5},
          kNarrow);
}

TEST_F(HopperEpilogues, AdjointReadsBesideTheSums) {
  buildGatedGrad(136, 72);
  for (int64_t tokens : {1, 130}) {
    HostBuffer dy = filled({tokens, 72}, 1), w = weights({72, 136}, 2),
               g = filled({tokens, 136}, 3), u = filled({tokens, 136}, 4),
               dg({tokens, 136}, NAN), du = dg;
    // Operands in the order in which the region reads them.
    compare({&dy, &w, &u, &g, &dg, &du}, {tokens, 1, tokens, 1, 0, 0}, {4, 5},
            kNarrow);
  }
}

TEST_F(HopperEpilogues, RotaryTurnsTheHeadsOfATile) {
  struct Case {
    int64_t heads, dim, rotaryDim;
    bool isInverse;
  } cases[] = {{2, 128, 128, false}, {3, 64, 64, true}, {3, 64, 32, false}};
  for (auto [heads, dim, rotaryDim, isInverse] : cases) {
    buildRotary(heads, dim, rotaryDim, 64, isInverse);
    int64_t tokens = 150, columns = heads * dim;
    HostBuffer x = filled({tokens, 64}, 1), w = weights({columns, 64}, 2),
               table({2, 4}, 0), owner({tokens}, 0), q({tokens, columns}, NAN);
    // The second sequence has positions in front of this call.
    int64_t rows[] = {0, 100, 0, 0, 100, 150, 1, 1000};
    for (auto [n, entry] : llvm::enumerate(table.elements()))
      entry = double(rows[n]);
    for (auto [n, entry] : llvm::enumerate(owner.elements()))
      entry = n < 100 ? 0 : 1;
    compare({&x, &w, &table, &owner, &q}, {tokens, 2, 100, 2, 0, 0}, {4},
            kNarrow);
  }
}

TEST_F(HopperEpilogues, ResidualIsAddedInFrontOfANorm) {
  buildResidual(136, 72);
  for (int64_t tokens : {1, 130}) {
    HostBuffer x = filled({tokens, 72}, 1), w = weights({136, 72}, 2),
               old = filled({tokens, 136}, 3), sum({tokens, 136}, NAN);
    compare({&x, &w, &old, &sum}, {tokens, 1, tokens, 1, 0, 0}, {3}, kNarrow);
  }
}

TEST_F(HopperEpilogues, BiasIsARowForAll) {
  buildBias(136, 72);
  HostBuffer x = filled({70, 72}, 1), w = weights({136, 72}, 2),
             bias = filled({1, 136}, 3), y({70, 136}, NAN);
  compare({&x, &w, &bias, &y}, {70, 1, 70, 1, 0, 0}, {3}, kNarrow);
}

TEST_F(HopperEpilogues, CodeHasNoSpillsAndNothingIsSerialised) {
  buildSwiglu(3584, 1024, /*isKept=*/false);
  expectNoSpills("swiglu");
  buildSwiglu(1000, 1024, /*isKept=*/true);
  expectNoSpills("swiglu, kept");
  buildGatedGrad(3584, 1024);
  expectNoSpills("adjoint");
  buildRotary(8, 128, 128, 1024, /*isInverse=*/false);
  expectNoSpills("rotary");
  buildRotary(12, 64, 64, 768, /*isInverse=*/true);
  expectNoSpills("rotary, heads of 64");
  buildResidual(1024, 3584);
  expectNoSpills("residual");
  buildBias(1000, 1024);
  expectNoSpills("bias");
}
