//===- Harness.cpp - evaluating functions given as text -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Harness.h"

#include "hybrid/Hybrid/HybridDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace mlir;
using namespace hybrid;
using namespace hybrid::oracle;

static void load(MLIRContext &context) {
  context.loadDialect<func::FuncDialect, HybridDialect>();
}

Program::Program(const std::string &text) {
  load(context);
  parsed = parseSourceString<ModuleOp>(text, &context);
  EXPECT_TRUE(parsed) << text;
}

func::FuncOp Program::main() {
  return parsed->lookupSymbol<func::FuncOp>("main");
}

std::vector<Tensor> Program::evaluate(ArrayRef<Tensor> arguments,
                                      const Call &call) {
  if (!parsed)
    return {};
  FailureOr<std::vector<Tensor>> results =
      oracle::evaluate(main(), arguments, call);
  EXPECT_TRUE(succeeded(results));
  return succeeded(results) ? *results : std::vector<Tensor>();
}

std::string Program::evaluateError(ArrayRef<Tensor> arguments,
                                   const Call &call) {
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    message += diagnostic.str();
    return success();
  });
  EXPECT_TRUE(failed(oracle::evaluate(main(), arguments, call)));
  return message;
}

std::string oracle::parseError(const std::string &text) {
  MLIRContext context;
  load(context);
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    message += diagnostic.str();
    return success();
  });
  EXPECT_FALSE(parseSourceString<ModuleOp>(text, &context));
  return message;
}

void oracle::expectNear(ArrayRef<double> found, ArrayRef<double> expected,
                        double tolerance, const std::string &what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (size_t i = 0; i < found.size(); ++i) {
    if (std::isnan(expected[i]))
      EXPECT_TRUE(std::isnan(found[i]))
          << what << ", element " << i << " is " << found[i];
    else
      EXPECT_NEAR(found[i], expected[i], tolerance)
          << what << ", element " << i;
  }
}
