//===- ReproducerTest.cpp - what is left of an internal error -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Driver/Compile.h"
#include "hybrid/Driver/Register.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include <gtest/gtest.h>

TEST(Reproducer, HoldsModuleAndPipeline) {
  mlir::DialectRegistry registry;
  hybrid::registerAllHybridDialects(registry);
  hybrid::registerAllHybridPasses();
  mlir::MLIRContext context(registry);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      "hybrid.model @m vocab(256) width(64) layers(2) {\n"
      "  hybrid.softmax heads(4) head_dim(16) position(nope)\n"
      "}\n",
      &context);
  ASSERT_TRUE(module);

  std::string path = hybrid::writeReproducer(*module, "hybrid-expand-stack");
  auto file = llvm::MemoryBuffer::getFile(path);
  EXPECT_FALSE(llvm::sys::fs::remove(path));
  ASSERT_TRUE(bool(file)) << path;
  llvm::StringRef text = (*file)->getBuffer();
  EXPECT_TRUE(text.contains("hybrid.model @m"));
  EXPECT_TRUE(text.contains("mlir_reproducer"));
  EXPECT_TRUE(text.contains("hybrid-expand-stack"));
}
