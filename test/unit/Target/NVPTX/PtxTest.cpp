//===- PtxTest.cpp - programs as PTX, assembled -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../../Tile/SoftmaxReference.h"
#include "hybrid/Target/NVPTX/Compile.h"
#include "hybrid/Tile/Families/Recurrence.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::tile;

namespace {

/// The assembler of the CUDA toolkit, where there is one.
std::optional<std::string> findPtxas() {
  SmallVector<std::string> places;
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char *root = std::getenv(variable))
      places.push_back(std::string(root) + "/bin");
  places.push_back("/usr/local/cuda/bin");
  SmallVector<StringRef> paths(places.begin(), places.end());
  if (auto found = llvm::sys::findProgramByName("ptxas", paths))
    return *found;
  if (auto found = llvm::sys::findProgramByName("ptxas"))
    return *found;
  return std::nullopt;
}

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
    // Nothing is left to a library.
    EXPECT_EQ(code->ptx.find("call.uni"), std::string::npos);
    return code->ptx;
  }

  void assemble(StringRef ptx, StringRef chip) {
    std::optional<std::string> ptxas = findPtxas();
    if (!ptxas)
      GTEST_SKIP() << "no ptxas";
    SmallString<128> source, object, log;
    for (auto [path, suffix] :
         {std::pair(&source, "ptx"), {&object, "cubin"}, {&log, "log"}})
      ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("hybrid", suffix, *path));
    llvm::FileRemover removeSource(source), removeObject(object),
        removeLog(log);
    std::error_code error;
    llvm::raw_fd_ostream(source, error) << ptx;
    std::string arch = ("-arch=" + chip).str();
    StringRef arguments[] = {*ptxas, arch, "-o", object, source};
    std::optional<StringRef> redirects[] = {StringRef(), StringRef(log),
                                            StringRef(log)};
    int status =
        llvm::sys::ExecuteAndWait(*ptxas, arguments, std::nullopt, redirects);
    auto text = llvm::MemoryBuffer::getFile(log);
    EXPECT_EQ(status, 0) << (text ? (*text)->getBuffer().str() : "");
  }

  void check(ProgramOp program) {
    for (StringRef chip : {"sm_80", "sm_90a"})
      assemble(compile(program, chip), chip);
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
  OpBuilder b = builder();
  check(buildRecurrenceForward(b, b.getUnknownLoc(), s));
}

TEST_F(PtxTest, UnknownChipIsRefusedByName) {
  SoftmaxShape s = softmaxShape(1, 1, 16, 16);
  OpBuilder b = builder();
  ProgramOp program = buildSoftmaxForward(b, b.getUnknownLoc(), s);
  EXPECT_TRUE(failed(nvptx::compile(*module, program.getSymName(), "sm_70")));
  EXPECT_NE(reported.find("no code for GPU 'sm_70'; use one of sm_80"),
            std::string::npos);
}

TEST_F(PtxTest, TilesThatDoNotFitAreAnError) {
  SoftmaxShape s = softmaxShape(1, 1, 256, 256, {}, {}, 128, 128);
  OpBuilder b = builder();
  ProgramOp program = buildSoftmaxForward(b, b.getUnknownLoc(), s);
  EXPECT_TRUE(failed(nvptx::compile(*module, program.getSymName(), "sm_80")));
  EXPECT_NE(
      reported.find("a block of sm_80 has at most 166912; use smaller tiles"),
      std::string::npos)
      << reported;
}
