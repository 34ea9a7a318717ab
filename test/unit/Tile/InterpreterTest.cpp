//===- InterpreterTest.cpp - the tile interpreter and what it refuses ----===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProgramTest.h"

using namespace mlir;
using namespace hybrid::tile;

using InterpreterTest = ProgramTest;

static const char *const kDouble = R"mlir(
  tile.program @double(%x: !tile.view<?x4xf32>, %y: !tile.view<?x4xf32>)
      grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 3)> order [parallel] {
    %c0 = arith.constant 0 : index
    %c3 = arith.constant 3 : index
    %block = tile.id 0
    %row = arith.muli %block, %c3 : index
    %n = tile.dim %x, 0 : !tile.view<?x4xf32>
    %a = tile.load %x[%row, %c0] dims [0, 1] limit(%n) : !tile.view<?x4xf32> -> tensor<3x4xf32>
    %b = arith.addf %a, %a : tensor<3x4xf32>
    tile.store %b, %y[%row, %c0] dims [0, 1] limit(LIMIT) : tensor<3x4xf32>, !tile.view<?x4xf32>
    tile.return
  })mlir";

static std::string replaced(std::string text, StringRef what, StringRef with) {
  for (size_t at; (at = text.find(what)) != std::string::npos;)
    text.replace(at, what.size(), with);
  return text;
}

TEST_F(InterpreterTest, LimitsCutTheLastBlock) {
  ProgramOp program = parse(replaced(kDouble, "LIMIT", "%n"));
  HostBuffer x = random({7, 4}), y({7, 4}, kNaN);
  run(program, {&x, &y}, {7, 1, 7, 0, 0, 0});
  for (int64_t i = 0; i < 7; ++i)
    EXPECT_EQ(y({i, 2}), 2 * x({i, 2}));
}

TEST_F(InterpreterTest, AccessOutsideOfAViewIsAnError) {
  ProgramOp program =
      parse(replaced(replaced(kDouble, "limit(LIMIT)", ""), "limit()", ""));
  HostBuffer x = random({7, 4}), y({7, 4}, kNaN);
  EXPECT_TRUE(
      failed(interpret(program, {x.view(), y.view()}, {7, 1, 7, 0, 0, 0})));
  EXPECT_NE(reported.find(
                "'tile.store' op touches index 7 of dim 0, which has size 7 "
                "(element [7, 0] at grid point [2])"),
            std::string::npos)
      << reported;
}

TEST_F(InterpreterTest, ViewsMustFitTheirTypes) {
  ProgramOp program = parse(replaced(kDouble, "LIMIT", "%n"));
  HostBuffer x = random({7, 4}), y({7, 5}, kNaN);
  EXPECT_TRUE(
      failed(interpret(program, {x.view(), y.view()}, {7, 1, 7, 0, 0, 0})));
  EXPECT_NE(
      reported.find("argument 1 is '!tile.view<?x4xf32>', which sizes [7, 5]"),
      std::string::npos)
      << reported;
}

// Every point adds to the same row; only an ordered dim may do that.
static const char *const kAccumulate = R"mlir(
  tile.program @sum(%x: !tile.view<?xf32>, %y: !tile.view<1xf32>)
      grid affine_map<()[t, s, l, n, c, d] -> (t)> order [ORDER] {
    %c0 = arith.constant 0 : index
    %t = tile.id 0
    %first = arith.cmpi eq, %t, %c0 : index
    %a = tile.load %x[%t] dims [0] : !tile.view<?xf32> -> tensor<1xf32>
    tile.accumulate %a, %y[%c0] dims [0] first(%first) : tensor<1xf32>, !tile.view<1xf32>
    tile.return
  })mlir";

TEST_F(InterpreterTest, OrderedTurnsAccumulateAndTheFirstOneStores) {
  ProgramOp program = parse(replaced(kAccumulate, "ORDER", "ordered"));
  HostBuffer x = random({5}), y({1}, kNaN);
  run(program, {&x, &y}, {5, 1, 5, 0, 0, 0});
  EXPECT_EQ(y({0}), (((x({0}) + x({1})) + x({2})) + x({3})) + x({4}));
}

TEST_F(InterpreterTest, ParallelPointsThatShareMemoryAreAnError) {
  ProgramOp program = parse(replaced(kAccumulate, "ORDER", "parallel"));
  HostBuffer x = random({5}), y({1}, kNaN);
  EXPECT_TRUE(
      failed(interpret(program, {x.view(), y.view()}, {5, 1, 5, 0, 0, 0})));
  EXPECT_NE(
      reported.find(
          "element [0], which another parallel point (number 0) also touches"),
      std::string::npos)
      << reported;
}

// The same memory behind two views: a point reads what its neighbour writes.
TEST_F(InterpreterTest, ParallelPointsThatShareMemoryThroughTwoViews) {
  ProgramOp program = parse(R"mlir(
  tile.program @shift(%x: !tile.view<?xf32>, %y: !tile.view<?xf32>)
      grid affine_map<()[t, s, l, n, c, d] -> (t)> order [parallel] {
    %t = tile.id 0
    %a = tile.load %x[%t] dims [0] : !tile.view<?xf32> -> tensor<1xf32>
    tile.store %a, %y[%t] dims [0] : tensor<1xf32>, !tile.view<?xf32>
    tile.return
  })mlir");
  HostBuffer x = random({6}), other({6}, kNaN);
  int64_t symbols[] = {5, 1, 5, 0, 0, 0};
  run(program, {&x, &other}, symbols);
  HostView shifted = x.view();
  shifted.offset = 1;
  shifted.sizes = {5};
  EXPECT_TRUE(failed(interpret(program, {x.view(), shifted}, symbols)));
  EXPECT_NE(reported.find("'tile.load' op reads element [1], which another "
                          "parallel point (number 0) also touches"),
            std::string::npos)
      << reported;
}

TEST_F(InterpreterTest, GridsOfNegativeSizeAreAnError) {
  ProgramOp program = parse(R"mlir(
  tile.program @none()
      grid affine_map<()[t, s, l, n, c, d] -> (t - 2, s - 2)> order [parallel, parallel] {
    tile.return
  })mlir");
  EXPECT_TRUE(failed(interpret(program, {}, {1, 1, 1, 0, 0, 0})));
  EXPECT_NE(reported.find("grid dim 0 has size -1 for symbols"),
            std::string::npos)
      << reported;
}

// Every op that a program may hold, on numbers it is defined for.
TEST_F(InterpreterTest, KnowsEveryElementwiseOp) {
  for (StringRef name : elementwiseOps()) {
    std::string text = elementwiseProgram(name);
    SCOPED_TRACE(text);
    ProgramOp program = parse(text);
    ASSERT_TRUE(program);
    HostBuffer out({2}, kNaN);
    run(program, {&out}, {1, 1, 1, 0, 0, 0});
    EXPECT_TRUE(std::isfinite(out({0})) && std::isfinite(out({1})));
  }
}

// Beyond 2^53 a double has no low bits, and a shift sees the sign as a bit.
TEST_F(InterpreterTest, WordsWrap) {
  ProgramOp program = parse(R"mlir(
    tile.program @words(%out: !tile.view<3xf32>)
        grid affine_map<()[t, s, l, n, c, d] -> (t)> order [parallel] {
      %c0 = arith.constant 0 : index
      %x = arith.constant dense<[-1640531535, 2146121005, 65536]> : tensor<3xi32>
      %y = arith.constant dense<[2146121005, -1640531535, 65536]> : tensor<3xi32>
      %c16 = arith.constant dense<16> : tensor<3xi32>
      %product = arith.muli %x, %y : tensor<3xi32>
      %high = arith.shrui %product, %c16 : tensor<3xi32>
      %z = arith.sitofp %high : tensor<3xi32> to tensor<3xf32>
      tile.store %z, %out[%c0] dims [0] : tensor<3xf32>, !tile.view<3xf32>
      tile.return
    })mlir");
  ASSERT_TRUE(program);
  HostBuffer out({3}, kNaN);
  run(program, {&out}, {1, 1, 1, 0, 0, 0});
  uint32_t product = 2654435761u * 2146121005u;
  EXPECT_EQ(out.elements()[0], product >> 16);
  EXPECT_EQ(out.elements()[1], product >> 16);
  EXPECT_EQ(out.elements()[2], 0);
}

TEST_F(InterpreterTest, F32RoundsEveryStep) {
  ProgramOp program = parse(replaced(kAccumulate, "ORDER", "ordered"));
  HostBuffer x({2}, 1.0), y({1}, kNaN);
  x({1}) = 0x1p-25;
  run(program, {&x, &y}, {2, 1, 2, 0, 0, 0});
  EXPECT_EQ(y({0}), 1.0 + 0x1p-25);
  run(program, {&x, &y}, {2, 1, 2, 0, 0, 0},
      {InterpreterOptions::Arithmetic::f32, true});
  EXPECT_EQ(y({0}), 1.0);
}

TEST_F(InterpreterTest, RowsAreGatheredAndScatteredUnderTheirMask) {
  ProgramOp program = parse(R"mlir(
    tile.program @ring(%x: !tile.view<1x4x2xf32>, %y: !tile.view<1x4x2xf32>)
        grid affine_map<()[t, s, l, n, c, d] -> ()> order [] {
      %c0 = arith.constant 0 : index
      %r = arith.constant dense<[3, 9, 0]> : tensor<3xi32>
      %w = arith.constant dense<[1, 1, 2]> : tensor<3xi32>
      %m = arith.constant dense<[true, false, true]> : tensor<3xi1>
      %a = tile.load_rows %x[%c0, %c0, %c0] rows(%r) mask(%m) dims [1, 2] : !tile.view<1x4x2xf32> -> tensor<3x2xf32>
      tile.store_rows %a, %y[%c0, %c0, %c0] rows(%w) mask(%m) dims [1, 2] : tensor<3x2xf32>, !tile.view<1x4x2xf32>
      tile.return
    })mlir");
  HostBuffer x = random({1, 4, 2}), y({1, 4, 2}, 7.0);
  run(program, {&x, &y}, {0, 0, 0, 0, 0, 0});
  for (int64_t c = 0; c < 2; ++c) {
    EXPECT_EQ(y({0, 0, c}), 7.0);
    EXPECT_EQ(y({0, 1, c}), x({0, 3, c}));
    EXPECT_EQ(y({0, 2, c}), x({0, 0, c}));
    EXPECT_EQ(y({0, 3, c}), 7.0);
  }
}

TEST_F(InterpreterTest, ScatteringARowTwiceIsAnError) {
  ProgramOp program = parse(R"mlir(
    tile.program @twice(%y: !tile.view<4xf32>)
        grid affine_map<()[t, s, l, n, c, d] -> ()> order [] {
      %c0 = arith.constant 0 : index
      %w = arith.constant dense<1> : tensor<2xi32>
      %m = arith.constant dense<true> : tensor<2xi1>
      %a = arith.constant dense<0.0> : tensor<2xf32>
      tile.store_rows %a, %y[%c0] rows(%w) mask(%m) dims [0] : tensor<2xf32>, !tile.view<4xf32>
      tile.return
    })mlir");
  HostBuffer y({4}, 7.0);
  EXPECT_TRUE(failed(interpret(program, {y.view()}, {0, 0, 0, 0, 0, 0})));
  EXPECT_NE(reported.find("writes row 1 twice"), std::string::npos) << reported;
}

TEST_F(InterpreterTest, LoopsSwapWhatTheyCarry) {
  ProgramOp program = parse(R"mlir(
    tile.program @fibonacci(%y: !tile.view<1xf32>)
        grid affine_map<()[t, s, l, n, c, d] -> ()> order [] {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c10 = arith.constant 10 : index
      %zero = arith.constant 0.0 : f32
      %one = arith.constant 1.0 : f32
      %r:2 = scf.for %i = %c0 to %c10 step %c1 iter_args(%a = %zero, %b = %one) -> (f32, f32) {
        %c = arith.addf %a, %b : f32
        scf.yield %b, %c : f32, f32
      }
      tile.store_scalar %r#0, %y[%c0] : !tile.view<1xf32>
      tile.return
    })mlir");
  HostBuffer y({1}, kNaN);
  run(program, {&y}, {0, 0, 0, 0, 0, 0});
  EXPECT_EQ(y({0}), 55.0);
}

// A = I + c below the diagonal has (i, j) of the inverse -c(1 - c)^(i - j - 1).
class UnitLowerInverse : public ProgramTest {
protected:
  HostBuffer inverse(int64_t n, double c) {
    std::string shape = std::to_string(n) + "x" + std::to_string(n) + "xf32";
    ProgramOp program = parse(replaced(R"mlir(
      tile.program @inverse(%x: !tile.view<SHAPE>, %y: !tile.view<SHAPE>)
          grid affine_map<()[t, s, l, n, c, d] -> ()> order [] {
        %c0 = arith.constant 0 : index
        %a = tile.load %x[%c0, %c0] dims [0, 1] : !tile.view<SHAPE> -> tensor<SHAPE>
        %b = tile.unit_lower_inverse %a : tensor<SHAPE>
        tile.store %b, %y[%c0, %c0] dims [0, 1] : tensor<SHAPE>, !tile.view<SHAPE>
        tile.return
      })mlir",
                                       "SHAPE", shape));
    // What is not below the diagonal is not read.
    HostBuffer x({n, n}, kNaN), y({n, n}, kNaN);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < i; ++j)
        x({i, j}) = c;
    run(program, {&x, &y}, {0, 0, 0, 0, 0, 0},
        {InterpreterOptions::Arithmetic::f32, true});
    return y;
  }
};

TEST_F(UnitLowerInverse, LIN_07) {
  for (int64_t n : {16, 32, 64}) {
    HostBuffer y = inverse(n, 1.0), expected({n, n}, 0.0);
    for (int64_t i = 0; i < n; ++i) {
      expected({i, i}) = 1.0;
      if (i > 0)
        expected({i, i - 1}) = -1.0;
    }
    EXPECT_EQ(distance(y, expected), 0.0) << "n = " << n;
  }
  EXPECT_NEAR(inverse(64, 1.9)({63, 0}), -0.00276560, 1e-6);
  HostBuffer growing = inverse(64, 3.0);
  EXPECT_EQ(growing({5, 0}), -48.0);
  EXPECT_NEAR(growing({63, 0}) / -1.3835e19, 1.0, 1e-4);
}
