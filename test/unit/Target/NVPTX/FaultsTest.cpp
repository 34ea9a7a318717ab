//===- FaultsTest.cpp - public faults of GPU code, without a GPU ----------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the text of the code decides; values are compared on a card (test/gpu).
//
//===----------------------------------------------------------------------===//

#include "../../Tile/SoftmaxReference.h"
#include "../FastMath.h"
#include "hybrid/Target/NVPTX/Compile.h"
#include "hybrid/Target/NVPTX/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/Regex.h"
#include <cmath>

using namespace mlir;
using namespace hybrid;
using namespace hybrid::tile;

namespace {

class GpuFaults : public ProgramTest {
protected:
  std::string ptxOf(ProgramOp program, StringRef chip = "sm_90a") {
    auto code = nvptx::compile(*module, program.getSymName(), chip);
    EXPECT_TRUE(succeeded(code)) << reported;
    return succeeded(code) ? code->ptx : "";
  }

  /// y = body(x) for rows of 64.
  ProgramOp rowwise(StringRef body) {
    std::string text = R"mlir(
      tile.program @rowwise(%in: !tile.view<?x64xf32>, %out: !tile.view<?x64xf32>)
          grid affine_map<()[t, s, l, n, c, d] -> (t)> order [parallel] {
        %c0 = arith.constant 0 : index
        %row = tile.id 0
        %x = tile.load %in[%row, %c0] dims [1] : !tile.view<?x64xf32> -> tensor<64xf32>
        BODY
        tile.store %y, %out[%row, %c0] dims [1] : tensor<64xf32>, !tile.view<?x64xf32>
        tile.return
      })mlir";
    text.replace(text.find("BODY"), 4, body.str());
    return parse(text);
  }
};

bool has(StringRef text, StringRef pattern) {
  return llvm::Regex(pattern).match(text);
}

} // namespace

/// Code for "sm_90" has none of the instructions that are for "sm_90a" alone.
TEST_F(GpuFaults, GEN_04_targets_of_one_chip) {
  OpBuilder b = builder();
  SoftmaxShape shape = softmaxShape(4, 2, 64, 64, {0, 128}, {0, 4}, 64, 64);
  ProgramOp program = buildSoftmaxForward(b, b.getUnknownLoc(), shape);
  EXPECT_TRUE(has(ptxOf(program, "sm_90a"), "\\.target sm_90a"));
  std::string plain = ptxOf(program, "sm_90");
  EXPECT_TRUE(has(plain, "\\.target sm_90\n"));
  EXPECT_FALSE(has(plain, "wgmma|setmaxnreg")) << plain;
}

/// A maximum passes NaN on, and starts from -inf: 0 in place of a row that is
/// masked as a whole is the program's business.
TEST_F(GpuFaults, GEN_05_GEN_07_maximum) {
  std::string ptx = ptxOf(rowwise(R"mlir(
    %r = tile.reshape %x : tensor<64xf32> to tensor<1x64xf32>
    %m = tile.reduce max %r dim 1 : tensor<1x64xf32>
    %w = tile.broadcast %m : tensor<1x1xf32> to tensor<1x64xf32>
    %y = tile.reshape %w : tensor<1x64xf32> to tensor<64xf32>
  )mlir"));
  EXPECT_TRUE(has(ptx, "max\\.NaN\\.f32")) << ptx;
  EXPECT_FALSE(has(ptx, "max\\.f32|max\\.ftz")) << ptx;
}

TEST_F(GpuFaults, GEN_06_no_assumptions) {
  OpBuilder b = builder();
  SoftmaxShape shape = softmaxShape(4, 2, 64, 64, {0, 128}, {0, 4}, 64, 64);
  buildSoftmaxForward(b, b.getUnknownLoc(), shape);
  PassManager passes(&context);
  passes.addPass(createHybridNVPTXLowerPrograms({"sm_90a"}));
  ASSERT_TRUE(succeeded(passes.run(*module))) << reported;
  hybrid::test::expectNoAssumptions(*module);
}

/// Denormals are kept, in the functions too.
TEST_F(GpuFaults, GEN_17_nothing_is_flushed) {
  std::string ptx = ptxOf(rowwise(R"mlir(
    %e = math.exp %x : tensor<64xf32>
    %f = math.exp2 %e : tensor<64xf32>
    %g = math.log %f : tensor<64xf32>
    %h = math.rsqrt %g : tensor<64xf32>
    %i = math.sqrt %h : tensor<64xf32>
    %j = math.tanh %i : tensor<64xf32>
    %k = arith.divf %j, %x : tensor<64xf32>
    %y = arith.mulf %k, %e : tensor<64xf32>
  )mlir"));
  EXPECT_TRUE(has(ptx, "ex2\\.approx\\.f32"));
  EXPECT_FALSE(has(ptx, "\\.ftz")) << ptx;
}

/// In a sigmoid what is below the smallest normal number is 0, and its divisor
/// is never near the largest: one instruction each.
TEST_F(GpuFaults, GEN_17_but_in_a_sigmoid) {
  std::string ptx = ptxOf(rowwise(R"mlir(
    %one = arith.constant dense<1.0> : tensor<64xf32>
    %e = math.exp %x : tensor<64xf32>
    %s = arith.addf %one, %e : tensor<64xf32>
    %y = arith.divf %e, %s : tensor<64xf32>
  )mlir"));
  EXPECT_TRUE(has(ptx, "ex2\\.approx\\.ftz\\.f32")) << ptx;
  EXPECT_TRUE(has(ptx, "rcp\\.approx\\.ftz\\.f32")) << ptx;
  EXPECT_FALSE(has(ptx, "div\\.")) << ptx;
}

/// e^x is 2^(x log2 e) by one product and one instruction of 2 units in the
/// last place (PTX ISA, ex2). The bound holds down to -80.
TEST_F(GpuFaults, GEN_23_exponential) {
  std::string ptx = ptxOf(rowwise("%y = math.exp %x : tensor<64xf32>"));
  // The bits of log2 e in f32.
  EXPECT_TRUE(has(ptx, "mul(\\.rn)?\\.f32.*0f3FB8AA3B")) << ptx;
  EXPECT_TRUE(has(ptx, "ex2\\.approx\\.f32"));
  const float log2e = 1.44269504f;
  double worst = 0;
  for (int n = 0; n <= 1 << 20; ++n) {
    float x = -80.0f * float(n) / float(1 << 20);
    float exponent = x * log2e;
    double made = std::exp2(double(exponent)) * (1 + 0x1p-22);
    worst = std::max(worst, std::fabs(made / std::exp(double(x)) - 1));
  }
  EXPECT_LT(worst, 1e-5);
  // 2^x itself is the instruction alone.
  ptx = ptxOf(rowwise("%y = math.exp2 %x : tensor<64xf32>"));
  EXPECT_FALSE(has(ptx, "mul(\\.rn)?\\.f32")) << ptx;
}

/// A row whose number comes from an i32 is widened before it is multiplied.
TEST_F(GpuFaults, GEN_21_addresses) {
  std::string ptx = ptxOf(parse(R"mlir(
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
    })mlir"));
  SmallVector<StringRef> found;
  // Loaded with its sign into 64 bits, and multiplied there.
  ASSERT_TRUE(llvm::Regex("ld\\.global[a-z.]*\\.s32[ \t]+(%rd[0-9]+)")
                  .match(ptx, &found))
      << ptx;
  EXPECT_TRUE(has(ptx, "(mul|mad)\\.lo\\.s64[ \t]+%rd[0-9]+, %rd[0-9]+, " +
                           found[1].str() + "[,;]"))
      << ptx;
}
