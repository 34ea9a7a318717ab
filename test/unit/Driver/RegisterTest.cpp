//===- RegisterTest.cpp - the tools know our dialects -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Driver/Register.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include <gtest/gtest.h>

TEST(Register, LoadsOwnDialects) {
  mlir::DialectRegistry registry;
  hybrid::registerAllHybridDialects(registry);
  mlir::MLIRContext context(registry);
  EXPECT_NE(context.getOrLoadDialect("hybrid"), nullptr);
  EXPECT_NE(context.getOrLoadDialect("tile"), nullptr);
}
