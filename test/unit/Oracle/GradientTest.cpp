//===- GradientTest.cpp - adjoint operations against finite differences --===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each differentiable operation stands alone in a function. Its rule builds the
// adjoint, the oracle evaluates it, and central differences of the forward
// operation say whether both are right.
//
//===----------------------------------------------------------------------===//

#include "AdjointCheck.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace hybrid;
using namespace hybrid::cases;
using namespace hybrid::oracle;

//===----------------------------------------------------------------------===//
// Row operations, products, loss
//===----------------------------------------------------------------------===//

static void checkUnary(const std::string &op) {
  AdjointCheck{"func.func @main(%x: tensor<?x2x4xf32>) -> tensor<?x2x4xf32> "
               "{\n  %y = hybrid." +
                   op +
                   " : tensor<?x2x4xf32>\n  return %y : tensor<?x2x4xf32>\n}\n",
               Call::packed({3}),
               {gen(0.3, {3, 2, 4})},
               {gen(1.9, {3, 2, 4})}}
      .run();
}

TEST(Gradient, Silu) { checkUnary("silu %x"); }
TEST(Gradient, Sigmoid) { checkUnary("sigmoid %x"); }
TEST(Gradient, LogSigmoid) { checkUnary("log_sigmoid %x"); }
TEST(Gradient, Softplus) { checkUnary("softplus %x"); }
TEST(Gradient, Exp) { checkUnary("exp %x"); }
TEST(Gradient, Neg) { checkUnary("neg %x"); }
TEST(Gradient, Scale) { checkUnary("scale %x by -2.5"); }
TEST(Gradient, NormalizeRms) { checkUnary("normalize rms %x epsilon 1.0e-3"); }
TEST(Gradient, NormalizeL2) { checkUnary("normalize l2 %x epsilon 1.0e-3"); }

static void checkBinary(const std::string &op, const std::string &type,
                        ArrayRef<int64_t> shape) {
  AdjointCheck{"func.func @main(%a: tensor<?x2x4xf32>, %b: " + type +
                   ") -> tensor<?x2x4xf32> {\n  %y = hybrid." + op +
                   " %a, %b : tensor<?x2x4xf32>, " + type +
                   "\n  return %y : tensor<?x2x4xf32>\n}\n",
               Call::packed({3}),
               {gen(0.3, {3, 2, 4}), gen(0.8, shape)},
               {gen(1.9, {3, 2, 4})}}
      .run();
}

TEST(Gradient, BinaryStretched) {
  for (const char *op : {"add", "sub", "mul"}) {
    checkBinary(op, "tensor<?x2x4xf32>", {3, 2, 4});
    checkBinary(op, "tensor<?x2x1xf32>", {3, 2, 1});
    checkBinary(op, "tensor<2x4xf32>", {2, 4});
    checkBinary(op, "tensor<2x1xf32>", {2, 1});
    checkBinary(op, "tensor<4xf32>", {4});
    checkBinary(op, "tensor<1x4xf32>", {1, 4});
    checkBinary(op, "tensor<1xf32>", {1});
    checkBinary(op, "tensor<f32>", {});
  }
}

static void checkPositional(const std::string &op) {
  AdjointCheck{
      "func.func @main(%x: tensor<?x2x4xf32>, %s: !hybrid.segments) -> "
      "tensor<?x2x4xf32> {\n  %y = hybrid." +
          op + " : tensor<?x2x4xf32>\n  return %y : tensor<?x2x4xf32>\n}\n",
      Call::packed({2, 0, 3}),
      {gen(0.3, {5, 2, 4}), Tensor()},
      {gen(1.9, {5, 2, 4})}}
      .run();
}

TEST(Gradient, Rotary) {
  checkPositional("rotary %x, %s base 100.0 dim 4");
  checkPositional("rotary %x, %s base 100.0 dim 2");
  checkPositional("rotary %x, %s base 100.0 dim 4 ntk 2.0 original 2 inverse");
}
TEST(Gradient, LogNScale) { checkPositional("log_n_scale %x, %s trained 2"); }

TEST(Gradient, Shapes) {
  AdjointCheck{R"(
func.func @main(%x: tensor<?x8xf32>) -> tensor<?x2x4xf32> {
  %y = hybrid.reshape %x : tensor<?x8xf32> -> tensor<?x2x4xf32>
  return %y : tensor<?x2x4xf32>
})",
               Call::packed({3}),
               {gen(0.3, {3, 8})},
               {gen(1.9, {3, 2, 4})}}
      .run();
  AdjointCheck{R"(
func.func @main(%x: tensor<?x5x2xf32>) -> tensor<?x2x2xf32> {
  %y = hybrid.slice %x dim 1 from 1 size 2 : tensor<?x5x2xf32> -> tensor<?x2x2xf32>
  return %y : tensor<?x2x2xf32>
})",
               Call::packed({3}),
               {gen(0.3, {3, 5, 2})},
               {gen(1.9, {3, 2, 2})}}
      .run();
  AdjointCheck{R"(
func.func @main(%a: tensor<?x2x2xf32>, %b: tensor<?x3x2xf32>) -> tensor<?x5x2xf32> {
  %y = hybrid.concat %a, %b dim 1 : (tensor<?x2x2xf32>, tensor<?x3x2xf32>) -> tensor<?x5x2xf32>
  return %y : tensor<?x5x2xf32>
})",
               Call::packed({3}),
               {gen(0.3, {3, 2, 2}), gen(0.4, {3, 3, 2})},
               {gen(1.9, {3, 5, 2})}}
      .run();
}

TEST(Gradient, Product) {
  for (bool transposeA : {false, true})
    for (bool transposeB : {false, true}) {
      std::string a = transposeA ? "tensor<3x4xf32>" : "tensor<4x3xf32>";
      std::string b = transposeB ? "tensor<2x3xf32>" : "tensor<3x2xf32>";
      AdjointCheck{
          "func.func @main(%a: " + a + ", %b: " + b +
              ") -> tensor<4x2xf32> {\n  %y = hybrid.product %a, %b " +
              (transposeA ? "transpose_a " : "") +
              (transposeB ? "transpose_b " : "") + ": (" + a + ", " + b +
              ") -> tensor<4x2xf32>\n  return %y : tensor<4x2xf32>\n}\n",
          Call::packed({1}),
          {gen(0.3,
               transposeA ? ArrayRef<int64_t>{3, 4} : ArrayRef<int64_t>{4, 3}),
           gen(0.4,
               transposeB ? ArrayRef<int64_t>{2, 3} : ArrayRef<int64_t>{3, 2})},
          {gen(1.9, {4, 2})}}
          .run();
    }
}

TEST(Gradient, Embed) {
  AdjointCheck{R"(
func.func @main(%ids: tensor<?xi32>, %table: tensor<3x2xf32>) -> tensor<?x2xf32> {
  %y = hybrid.embed %ids, %table : (tensor<?xi32>, tensor<3x2xf32>) -> tensor<?x2xf32>
  return %y : tensor<?x2xf32>
})",
               Call::packed({4}),
               {Tensor({4}, {2, 0, 2, 2}), gen(0.3, {3, 2})},
               {gen(1.9, {4, 2})}}
      .run();
}

TEST(Gradient, CrossEntropy) {
  AdjointCheck{R"(
func.func @main(%x: tensor<?x3xf32>, %labels: tensor<?xi32>, %w: tensor<?xf32>) -> tensor<?xf32> {
  %y = hybrid.cross_entropy %x, %labels, %w : (tensor<?x3xf32>, tensor<?xi32>, tensor<?xf32>) -> tensor<?xf32>
  return %y : tensor<?xf32>
})",
               Call::packed({4}),
               {gen(0.3, {4, 3}), Tensor({4}, {2, -100, 0, 1}), gen(0.5, {4})},
               {gen(1.9, {4})}}
      .run();
}

//===----------------------------------------------------------------------===//
// Mixers
//===----------------------------------------------------------------------===//

TEST(Gradient, ShortConvolution) {
  AdjointCheck{shortConvText(3, 4, false),
               Call::packed({2, 0, 6, 1}),
               {gen(0.3, {9, 3}), gen(0.4, {3, 4}), Tensor()},
               {gen(1.9, {9, 3})}}
      .run();
}

TEST(Gradient, Attention) {
  for (std::vector<int64_t> windows :
       {std::vector<int64_t>{0, 0, 0, 0}, {0, 3, 2, 1}}) {
    AttentionShape shape;
    shape.heads = 4;
    shape.kvHeads = 2;
    shape.dim = 3;
    shape.windows = windows;
    shape.sinks = {0, windows[1] ? 1 : 0, windows[2] ? 2 : 0, 0};
    shape.scale = 0.7;
    AdjointCheck{shape.text(),
                 Call::packed({3, 0, 6, 1}),
                 {gen(0.3, {10, 4, 3}), gen(0.4, {10, 2, 3}),
                  gen(0.5, {10, 2, 2}), Tensor()},
                 {gen(1.9, {10, 4, 2}), Tensor()}}
        .run();
  }
}

/// A recurrence over lengths 4, 0, 1 and 7 with every optional operand as the
/// shape says.
static AdjointCheck recurrenceCheck(const RecurrenceShape &shape) {
  const int64_t tokens = 12;
  AdjointCheck check{shape.text(), Call::packed({4, 0, 1, 7}), {}, {}};
  check.arguments = {gen(0.1, {tokens, shape.heads, shape.keyDim}),
                     l2norm(gen(0.2, {tokens, shape.kvHeads, shape.keyDim})),
                     gen(0.3, {tokens, shape.kvHeads, shape.valueDim})};
  if (shape.decayDim)
    check.arguments.push_back(
        map(gen(0.4, {tokens, shape.heads, shape.decayDim}),
            [](double x) { return -softplus(x); }));
  if (shape.beta)
    check.arguments.push_back(map(gen(0.5, {tokens, shape.heads}), sigmoid));
  check.arguments.push_back(Tensor());
  check.cotangents = {gen(1.9, {tokens, shape.heads, shape.valueDim})};
  if (shape.state) {
    check.arguments.push_back(gen(0.8, shape.stateShape(4)));
    check.cotangents.push_back(gen(1.1, shape.stateShape(4)));
  }
  return check;
}

TEST(Gradient, Recurrence) {
  for (const char *update : {"additive", "delta"})
    for (int64_t decayDim : {0, 1, 3})
      for (bool state : {false, true})
        for (int64_t window : {0, 4}) {
          SCOPED_TRACE(testing::Message()
                       << update << ", decay " << decayDim << ", state "
                       << state << ", window " << window);
          RecurrenceShape shape;
          shape.update = update;
          shape.heads = 2;
          shape.keyDim = 3;
          shape.decayDim = decayDim;
          shape.beta = update == std::string("delta");
          shape.state = state;
          shape.scale = 0.6;
          shape.window = window;
          shape.stride = window / 2;
          recurrenceCheck(shape).run();
        }
}

/// The window of a continued sequence starts in the middle of a stride.
TEST(Gradient, RecurrenceContinuedWindow) {
  RecurrenceShape shape;
  shape.update = "delta";
  shape.keyDim = shape.decayDim = 3;
  shape.beta = shape.state = true;
  shape.window = 6;
  shape.stride = 2;
  AdjointCheck check = recurrenceCheck(shape);
  for (auto [segment, position] :
       llvm::zip(check.call.segments, ArrayRef<int64_t>{5, 3, 7, 2}))
    segment.position = position;
  check.run();
}

TEST(Gradient, RecurrenceFinalStateOnly) {
  RecurrenceShape shape;
  shape.update = "delta";
  shape.state = shape.beta = true;
  shape.keyDim = 3;
  AdjointCheck check = recurrenceCheck(shape);
  check.cotangents[0] = Tensor();
  check.run();
}

//===----------------------------------------------------------------------===//
// Faults
//===----------------------------------------------------------------------===//

static AdjointCheck gdnCheck(bool gated, bool state) {
  GdnFixture f;
  RecurrenceShape shape;
  shape.update = "delta";
  shape.keyDim = 3;
  shape.decayDim = gated ? 1 : 0;
  shape.beta = true;
  shape.state = state;
  AdjointCheck check{
      shape.text(), Call::packed({5}), {f.q, f.k, f.v}, {gen(0.9, {5, 1, 2})}};
  if (gated)
    check.arguments.push_back(f.decay);
  check.arguments.push_back(f.beta);
  check.arguments.push_back(Tensor());
  if (state) {
    check.arguments.push_back(gen(0.8, {1, 1, 3, 2}));
    check.cotangents.push_back(Tensor());
  }
  return check;
}

TEST(Gradient, LIN_11) {
  AdjointCheck absent = gdnCheck(false, false), zero = gdnCheck(true, false);
  zero.arguments[3] = Tensor({5, 1, 1});
  std::vector<Tensor> gradients = absent.adjoint(), gated = zero.adjoint();
  const Tensor &dk = gradients[1], &dbeta = gradients[4];
  expectNear({&dk.data[0], 3}, {0.235505, 0.580378, 0.652291}, 1e-4, "dk_1");
  expectNear({&dk.data[12], 3}, {-0.328170, 0.014652, 0.350582}, 1e-4, "dk_5");
  expectNear(dbeta.data, {1.452914, 1.691005, -0.358575, 1.516038, -0.427853},
             1e-4, "dbeta");
  expectNear(gated[1].data, dk.data, 1e-14, "dk with a gate of 0");
  expectNear(gated[5].data, dbeta.data, 1e-14, "dbeta with a gate of 0");
}

TEST(Gradient, LIN_13) {
  AdjointCheck check = gdnCheck(true, true);
  std::vector<Tensor> a = check.adjoint();
  expectNear(a[4].data, {-0.088727, 0.059358, 0.079759, 0.036573, 0.026154},
             1e-5, "dg of A");
  expectNear({&a[6].data[0], 2}, {0.019274, 0.001402}, 1e-5, "dh0 of A");
  check.cotangents[1] = gen(1.1, {1, 1, 3, 2});
  std::vector<Tensor> b = check.adjoint();
  expectNear(b[4].data, {-0.086147, 0.059729, 0.112165, 0.087271, 0.179964},
             1e-5, "dg of B");
  expectNear({&b[6].data[0], 2}, {0.018843, 0.001964}, 1e-5, "dh0 of B");
}

/// dK of a kv head is the sum over its group.
TEST(Gradient, ATT_13) {
  AttentionShape shape;
  shape.heads = 4;
  shape.kvHeads = 2;
  shape.windows = shape.sinks = {0, 0, 0, 0};
  AdjointCheck grouped{
      shape.text(),
      Call::packed({3}),
      {gen(0.1, {3, 4, 2}), gen(0.2, {3, 2, 2}), gen(0.3, {3, 2, 2}), Tensor()},
      {gen(0.9, {3, 4, 2}), Tensor()}};
  AdjointCheck repeated = grouped;
  shape.kvHeads = 4;
  repeated.text = shape.text();
  for (unsigned operand : {1, 2}) {
    Tensor wide({3, 4, 2});
    for (int64_t t = 0; t < 3; ++t)
      for (int64_t h = 0; h < 4; ++h)
        for (int64_t c = 0; c < 2; ++c)
          wide(t, h, c) = grouped.arguments[operand](t, h / 2, c);
    repeated.arguments[operand] = wide;
  }
  Tensor dk = grouped.adjoint()[1], wide = repeated.adjoint()[1];
  for (int64_t t = 0; t < 3; ++t)
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t c = 0; c < 2; ++c)
        EXPECT_NEAR(dk(t, h, c), wide(t, 2 * h, c) + wide(t, 2 * h + 1, c),
                    1e-14);
}

/// Nothing flows from the second document to the first.
TEST(Gradient, VAR_02) {
  GdnFixture f;
  AdjointCheck twice = gdnCheck(true, false);
  twice.call = Call::packed({5, 5});
  for (Tensor &argument : twice.arguments)
    if (argument.size())
      argument = stacked({argument, argument});
  twice.cotangents[0] = stacked({Tensor({5, 1, 2}), gen(0.9, {5, 1, 2})});
  for (const Tensor &gradient : twice.adjoint())
    for (int64_t i = 0; i < gradient.size() / 2; ++i)
      EXPECT_EQ(gradient.data[i], 0);

  AdjointCheck convolution{shortConvText(2, 4, false),
                           Call::packed({5, 5}),
                           {gen(0.3, {10, 2}), gen(0.4, {2, 4}), Tensor()},
                           {stacked({Tensor({5, 2}), gen(0.9, {5, 2})})}};
  Tensor dx = convolution.adjoint()[0];
  for (int64_t i = 0; i < dx.size() / 2; ++i)
    EXPECT_EQ(dx.data[i], 0);
}
