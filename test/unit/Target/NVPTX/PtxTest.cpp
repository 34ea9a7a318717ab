//===- PtxTest.cpp - programs as PTX, assembled -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../../Tile/SoftmaxReference.h"
#include "hybrid/Target/NVPTX/Compile.h"
#include "hybrid/Tile/Families/Recurrence.h"
#include "hybrid/Tile/Families/RowProducts.h"
#include "hybrid/Tile/Passes.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::tile;

namespace {

class PtxTest : public ProgramTest {
protected:
  std::string compile(ProgramOp program, StringRef chip) {
    auto code = nvptx::compile(*module, program.getSymName(), chip);
    if (failed(code)) {
      ADD_FAILURE() << reported;
      return "";
    }
    EXPECT_GT(code->kernels.front().sharedBytes, 0);
    std::string entry = (".visible .entry " + program.getSymName()).str();
    EXPECT_NE(code->ptx.find(entry), std::string::npos);
    EXPECT_NE(code->ptx.find((".target " + chip).str()), std::string::npos);
    EXPECT_NE(code->ptx.find("bar.sync"), std::string::npos);
    std::string parameter =
        ".param .align 8 .b8 " + program.getSymName().str() + "_param_0[" +
        std::to_string(72 * program.getViews().size() + 32) + "]";
    EXPECT_NE(code->ptx.find(parameter), std::string::npos) << code->ptx;
    // Nothing is left to a library.
    EXPECT_EQ(code->ptx.find("call.uni"), std::string::npos);
    return code->ptx;
  }

  void assemble(StringRef ptx, StringRef chip) {
    if (nvptx::findAssembler().empty())
      GTEST_SKIP() << "no ptxas";
    auto code = nvptx::assemble(UnknownLoc::get(&context), ptx, chip);
    ASSERT_TRUE(succeeded(code)) << reported;
    EXPECT_EQ(code->cubin.substr(1, 3), "ELF");
    ASSERT_EQ(code->kernels.size(), 1u);
    EXPECT_GT(code->kernels.front().registers, 0);
  }

  void check(ProgramOp program) {
    for (StringRef chip : {"sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a"}) {
      std::string ptx = compile(program, chip);
      if (!ptx.empty())
        assemble(ptx, chip);
    }
  }
};

} // namespace

TEST_F(PtxTest, SoftmaxForward) {
  SoftmaxShape s = softmaxShape(4, 2, 64, 64, {0, 128}, {0, 4}, 64, 64);
  OpBuilder b = builder();
  check(buildSoftmaxForward(b, b.getUnknownLoc(), s));
}

TEST_F(PtxTest, DeltaRuleForward) {
  RecurrenceShape s;
  s.update = RecurrenceUpdate::Delta;
  s.decay = RecurrenceDecay::PerHead;
  s.heads = 2;
  s.hasState = true;
  // What fits the 99 KiB of sm_89 and sm_120a.
  s.chunk = 32;
  OpBuilder b = builder();
  check(buildRecurrenceForward(b, b.getUnknownLoc(), s));
}

// Tensor cores multiply a decoding step's row in 16 bits; in f32 they would
// give it other bits. Where a warp loads many fragments, 5 tiles of columns by
// 4 steps, its registers leave room for three more blocks.
TEST_F(PtxTest, RowsThatReadMatrices) {
  MLIRContext *c = &context;
  Type bf16 = BFloat16Type::get(c), f16 = Float16Type::get(c),
       f32 = Float32Type::get(c);
  for (auto [element, columns] :
       {std::pair<Type, int64_t>{bf16, 12}, {bf16, 40}, {f16, 40}, {f32, 12}}) {
    module = ModuleOp::create(UnknownLoc::get(c));
    RowProductsShape s;
    s.depth = 1024;
    s.columnTile = columns;
    s.element = element;
    s.matrices = {{96, element}, {30, element}};
    OpBuilder b = builder();
    FailureOr<ProgramOp> program = buildRowProducts(b, b.getUnknownLoc(), s);
    ASSERT_TRUE(succeeded(program));
    (*program)->setAttr(TileDialect::kOverlapAttr,
                        b.getDenseI64ArrayAttr({1, 2}));
    PassManager passes(c);
    passes.nest<ProgramOp>().addPass(createHybridNarrowProducts());
    ASSERT_TRUE(succeeded(passes.run(*module))) << reported;
    // Kernels of sm_80 do not begin early.
    for (StringRef chip : {"sm_80", "sm_90a"}) {
      std::string ptx = compile(*program, chip);
      EXPECT_EQ(ptx.find("mma.sync") != std::string::npos, element != f32);
      EXPECT_EQ(ptx.find(".minnctapersm 4") != std::string::npos,
                columns == 40 && chip == "sm_90a");
      assemble(ptx, chip);
    }
  }
}

TEST_F(PtxTest, UnknownChipIsRefusedByName) {
  SoftmaxShape s = softmaxShape(1, 1, 16, 16);
  OpBuilder b = builder();
  ProgramOp program = buildSoftmaxForward(b, b.getUnknownLoc(), s);
  EXPECT_TRUE(failed(nvptx::compile(*module, program.getSymName(), "sm_70")));
  EXPECT_NE(reported.find("no code for GPU 'sm_70'; use one of sm_80"),
            std::string::npos);
}

TEST_F(PtxTest, TooOldPtxIsRefusedBeforeLLVM) {
  SoftmaxShape s = softmaxShape(1, 1, 16, 16);
  OpBuilder b = builder();
  ProgramOp program = buildSoftmaxForward(b, b.getUnknownLoc(), s);
  EXPECT_TRUE(
      failed(nvptx::compile(*module, program.getSymName(), "sm_120a", {85})));
  EXPECT_NE(reported.find(
                "code for sm_120a needs PTX 8.7, the newest allowed is 8.5"),
            std::string::npos)
      << reported;
}

TEST_F(PtxTest, MissingAssemblerIsAnError) {
  EXPECT_TRUE(failed(nvptx::assemble(UnknownLoc::get(&context), "", "sm_80",
                                     {"/nowhere/ptxas"})));
  EXPECT_NE(reported.find("no assembler at '/nowhere/ptxas'"),
            std::string::npos);
}

TEST_F(PtxTest, RefusedTextIsAnErrorWithTheReason) {
  if (nvptx::findAssembler().empty())
    GTEST_SKIP() << "no ptxas";
  EXPECT_TRUE(
      failed(nvptx::assemble(UnknownLoc::get(&context), "not PTX", "sm_80")));
  EXPECT_NE(reported.find("ptxas refuses the code for sm_80"),
            std::string::npos);
}

TEST_F(PtxTest, TilesThatDoNotFitAreAnError) {
  SoftmaxShape s = softmaxShape(1, 1, 256, 256, {}, {}, 128, 128);
  OpBuilder b = builder();
  ProgramOp program = buildSoftmaxForward(b, b.getUnknownLoc(), s);
  EXPECT_TRUE(failed(nvptx::compile(*module, program.getSymName(), "sm_80")));
  EXPECT_NE(
      reported.find("a block of sm_80 has at most 166912; use smaller heads"),
      std::string::npos)
      << reported;
}
