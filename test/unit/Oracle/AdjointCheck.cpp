//===- AdjointCheck.cpp - an adjoint against finite differences -----------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AdjointCheck.h"

#include "hybrid/Hybrid/HybridOps.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace mlir;
using namespace hybrid;
using namespace hybrid::oracle;

double AdjointCheck::loss(Program &program,
                          const std::vector<Tensor> &at) const {
  double sum = 0;
  std::vector<Tensor> results = program.evaluate(at, call);
  for (auto [result, cotangent] : llvm::zip(results, cotangents))
    for (auto [x, dx] : llvm::zip(result.data, cotangent.data))
      sum += x * dx;
  return sum;
}

std::vector<Tensor> AdjointCheck::adjoint() const {
  Program program(text);
  func::FuncOp main = program.main();
  Operation *op = &main.getBody().front().front();
  std::vector<Tensor> inputs = arguments;
  SmallVector<Value> resultGradients;
  for (auto [result, cotangent] : llvm::zip(op->getResults(), cotangents)) {
    if (cotangent.shape.empty()) {
      resultGradients.push_back(Value());
      continue;
    }
    main.getBody().front().addArgument(result.getType(), op->getLoc());
    resultGradients.push_back(main.getBody().front().getArguments().back());
    inputs.push_back(cotangent);
  }

  Operation *end = main.getBody().front().getTerminator();
  OpBuilder builder(end);
  FailureOr<SmallVector<Value>> gradients =
      cast<DifferentiableOpInterface>(op).buildAdjoint(builder,
                                                       resultGradients);
  EXPECT_TRUE(succeeded(gradients));
  SmallVector<Value> present;
  for (Value gradient : *gradients)
    if (gradient)
      present.push_back(gradient);
  end->setOperands(present);
  main.setFunctionType(FunctionType::get(
      main.getContext(), main.getBody().front().getArgumentTypes(),
      TypeRange(ValueRange(present))));
  std::vector<Tensor> results = program.evaluate(inputs, call), all;
  size_t next = 0;
  for (Value gradient : *gradients)
    all.push_back(gradient ? results[next++] : Tensor());
  return all;
}

void AdjointCheck::run() const {
  Program program(text);
  // Operands are the arguments in the order of the operation.
  Operation *op = &program.main().getBody().front().front();
  std::vector<Tensor> gradients = adjoint();
  ASSERT_EQ(gradients.size(), op->getNumOperands());
  const double step = 1e-5;
  for (auto [operand, gradient] : llvm::zip(op->getOperands(), gradients)) {
    if (gradient.shape.empty())
      continue;
    unsigned index = cast<BlockArgument>(operand).getArgNumber();
    ASSERT_EQ(gradient.shape, arguments[index].shape)
        << "operand of argument " << index;
    for (int64_t i = 0; i < gradient.size(); ++i) {
      std::vector<Tensor> up = arguments, down = arguments;
      up[index].data[i] += step;
      down[index].data[i] -= step;
      double difference =
          (loss(program, up) - loss(program, down)) / (2 * step);
      EXPECT_NEAR(gradient.data[i], difference,
                  1e-7 * (1 + std::abs(difference)))
          << "argument " << index << ", element " << i;
    }
  }
}
