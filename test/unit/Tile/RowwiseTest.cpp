//===- RowwiseTest.cpp - row-wise programs against the oracle -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Tile/Families/Rowwise.h"
#include "OracleTest.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::tile;

namespace {
class RowwiseTest : public OracleTest {
protected:
  void check(StringRef text, double tolerance = 1e-12,
             ArrayRef<int64_t> lengths = {70, 0, 1, 60},
             ArrayRef<int64_t> first = {}) {
    compare(
        text, lengths,
        [](OpBuilder &b, Operation *op) { return buildRowwise(b, op); },
        tolerance, first);
  }

  /// `op` of x and y, both of `type`.
  void checkBinary(StringRef op, StringRef type = "tensor<?x40xf32>") {
    std::string t = type.str();
    bool twoTypes = op == "add" || op == "sub" || op == "mul";
    check("func.func @f(%x: " + t + ", %y: " + t + ") -> " + t +
          " {\n  %0 = hybrid." + op.str() + " %x, %y : " + t +
          (twoTypes ? ", " + t : "") + "\n  return %0 : " + t + "\n}");
  }
  void checkUnary(StringRef op, StringRef type = "tensor<?x40xf32>") {
    std::string t = type.str();
    check("func.func @f(%x: " + t + ") -> " + t + " {\n  %0 = hybrid." +
          op.str() + " %x : " + t + "\n  return %0 : " + t + "\n}");
  }
};
} // namespace

TEST_F(RowwiseTest, Elementwise) {
  for (StringRef op :
       {"silu", "sigmoid", "log_sigmoid", "softplus", "exp", "neg"})
    checkUnary(op);
  for (StringRef op : {"add", "sub", "mul", "silu_grad", "sigmoid_grad",
                       "log_sigmoid_grad", "softplus_grad"})
    checkBinary(op);
}

// The terms of a norm's gain, whose silu of an absent row would not be 0,
// beside a result that is stored. The last part ends inside of a block.
// Constants of a program are f32, so epsilon and 1 / 32 are numbers that f32
// has.
TEST_F(RowwiseTest, SumsOverRows) {
  StringRef text = R"(
    func.func @f(%x: tensor<?x3x32xf32>, %dy: tensor<?x3x32xf32>, %w: tensor<32xf32>)
        -> (tensor<?x3x32xf32>, tensor<?x3x32xf32>, tensor<?x3x32xf32>) {
      %0:3 = hybrid.rowwise (%a = %x : tensor<?x3x32xf32>, %b = %dy : tensor<?x3x32xf32>, %c = %w : tensor<32xf32>)
          -> (tensor<?x3x32xf32>, tensor<?x3x32xf32>, tensor<?x3x32xf32>) {
        %n = hybrid.normalize rms %a epsilon 0.5 : tensor<?x3x32xf32>
        %g = hybrid.mul %n, %b : tensor<?x3x32xf32>, tensor<?x3x32xf32>
        %d = hybrid.mul %b, %c : tensor<?x3x32xf32>, tensor<32xf32>
        %e = hybrid.sigmoid %d : tensor<?x3x32xf32>
        hybrid.yield %g, %d, %e : tensor<?x3x32xf32>, tensor<?x3x32xf32>, tensor<?x3x32xf32>
      }
      return %0#0, %0#1, %0#2 : tensor<?x3x32xf32>, tensor<?x3x32xf32>, tensor<?x3x32xf32>
    })";
  for (auto rows : {SmallVector<int64_t>{0, 2}, SmallVector<int64_t>{0, 1, 2}})
    for (int64_t length : {0, 1, 64, 205}) {
      summed = rows;
      RowSums sums;
      sums.part = part;
      for (int64_t n : {0, 1, 2})
        sums.summed.push_back(llvm::is_contained(rows, n));
      compare(text, {length}, [&](OpBuilder &b, Operation *op) {
        return buildRowwiseSums(b, op, sums, /*blockElements=*/1024);
      });
    }
}

TEST_F(RowwiseTest, EveryRank) {
  checkUnary("silu", "tensor<?xf32>");
  checkUnary("silu", "tensor<?x3x5xf32>");
  checkBinary("add", "tensor<?xf32>");
}

TEST_F(RowwiseTest, StaticTensorsGoByTheirFirstDim) {
  checkUnary("exp", "tensor<5xf32>");
  checkBinary("add", "tensor<300x64xf32>");
}

TEST_F(RowwiseTest, OperandsAreStretched) {
  check(
      R"mlir(func.func @f(%x: tensor<?x4x6xf32>, %w: tensor<6xf32>) -> tensor<?x4x6xf32> {
    %0 = hybrid.add %x, %w : tensor<?x4x6xf32>, tensor<6xf32>
    return %0 : tensor<?x4x6xf32>
  })mlir");
  check(
      R"mlir(func.func @f(%x: tensor<?x4x6xf32>, %w: tensor<4x1xf32>) -> tensor<?x4x6xf32> {
    %0 = hybrid.mul %x, %w : tensor<?x4x6xf32>, tensor<4x1xf32>
    return %0 : tensor<?x4x6xf32>
  })mlir");
  check(
      R"mlir(func.func @f(%x: tensor<?x4x6xf32>, %w: tensor<?x4x1xf32>) -> tensor<?x4x6xf32> {
    %0 = hybrid.mul %x, %w : tensor<?x4x6xf32>, tensor<?x4x1xf32>
    return %0 : tensor<?x4x6xf32>
  })mlir");
}

TEST_F(RowwiseTest, Constants) {
  check(R"mlir(func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
    %0 = hybrid.scale %x by 0.25 : tensor<?x8xf32>
    return %0 : tensor<?x8xf32>
  })mlir");
  check(R"mlir(func.func @f() -> tensor<?x8xf32> {
    %0 = hybrid.fill 0.5 : tensor<?x8xf32>
    return %0 : tensor<?x8xf32>
  })mlir");
}

TEST_F(RowwiseTest, Norms) {
  for (std::string kind : {"rms", "l2"}) {
    // The epsilon of a program is f32.
    check("func.func @f(%x: tensor<?x40xf32>) -> tensor<?x40xf32> {\n  %0 = "
          "hybrid.normalize " +
              kind +
              " %x epsilon 1.0e-06 : tensor<?x40xf32>\n  return %0 : "
              "tensor<?x40xf32>\n}",
          1e-7);
    check("func.func @f(%x: tensor<?x3x8xf32>, %d: tensor<?x3x8xf32>) -> "
          "tensor<?x3x8xf32> {\n"
          "  %0 = hybrid.normalize_grad " +
              kind +
              " %x, %d epsilon 1.0e-06 : tensor<?x3x8xf32>\n"
              "  return %0 : tensor<?x3x8xf32>\n}",
          1e-7);
  }
}

TEST_F(RowwiseTest, Rotary) {
  auto rotary = [&](StringRef attributes, double tolerance,
                    ArrayRef<int64_t> lengths, ArrayRef<int64_t> first) {
    check(("func.func @f(%x: tensor<?x2x12xf32>, %s: !hybrid.segments) -> "
           "tensor<?x2x12xf32> {\n"
           "  %0 = hybrid.rotary %x, %s " +
           attributes +
           " : tensor<?x2x12xf32>\n  return %0 : tensor<?x2x12xf32>\n}")
              .str(),
          tolerance, lengths, first);
  };
  rotary("base 10000.0 dim 12", 1e-6, {70, 0, 1}, {0, 5, 30});
  rotary("base 10000.0 dim 8 inverse", 1e-6, {70, 0, 1}, {0, 5, 30});
  // The fraction of a large angle is kept: positions beyond 2^16.
  rotary("base 10000.0 dim 12", 4e-4, {20}, {100000});
  // ROP-10: up to the original length the base stays.
  rotary("base 10000.0 dim 12 ntk 2.0 original 64", 1e-5, {64, 3}, {0, 50});
  rotary("base 10000.0 dim 12 ntk 2.0 original 64", 1e-5, {70, 20}, {0, 100});
}

TEST_F(RowwiseTest, LogNScale) {
  check(
      R"mlir(func.func @f(%x: tensor<?x2x6xf32>, %s: !hybrid.segments) -> tensor<?x2x6xf32> {
    %0 = hybrid.log_n_scale %x, %s trained 16 : tensor<?x2x6xf32>
    return %0 : tensor<?x2x6xf32>
  })mlir",
      1e-6, {70, 3}, {0, 1000});
}

TEST_F(RowwiseTest, Dropout) {
  idLimit = int64_t(1) << 31;
  for (std::string type : {"tensor<?xf32>", "tensor<?x40xf32>",
                           "tensor<?x3x24xf32>", "tensor<?x300xf32>"})
    for (std::string rate : {"0.0", "0.25", "0.9"})
      check("func.func @f(%x: " + type + ", %key: tensor<1xi32>) -> " + type +
                " {\n  %0 = hybrid.dropout %x, %key rate " + rate + " : " +
                type + "\n  return %0 : " + type + "\n}",
            1e-6);
}

TEST_F(RowwiseTest, SumsAndShapes) {
  check(R"mlir(func.func @f(%x: tensor<?x4x6xf32>) -> tensor<?x4x1xf32> {
    %0 = hybrid.reduce_dim %x : tensor<?x4x6xf32> -> tensor<?x4x1xf32>
    return %0 : tensor<?x4x1xf32>
  })mlir");
  check(R"mlir(func.func @f(%x: tensor<?x24xf32>) -> tensor<?x4x6xf32> {
    %0 = hybrid.reshape %x : tensor<?x24xf32> -> tensor<?x4x6xf32>
    return %0 : tensor<?x4x6xf32>
  })mlir");
  check(R"mlir(func.func @f(%x: tensor<?x24xf32>) -> tensor<?x5xf32> {
    %0 = hybrid.slice %x dim 1 from 7 size 5 : tensor<?x24xf32> -> tensor<?x5xf32>
    return %0 : tensor<?x5xf32>
  })mlir");
  check(
      R"mlir(func.func @f(%x: tensor<?x2x3xf32>, %y: tensor<?x4x3xf32>) -> tensor<?x6x3xf32> {
    %0 = hybrid.concat %x, %y dim 1 : (tensor<?x2x3xf32>, tensor<?x4x3xf32>) -> tensor<?x6x3xf32>
    return %0 : tensor<?x6x3xf32>
  })mlir");
}

TEST_F(RowwiseTest, RegionLoadsOnceAndStoresEveryResult) {
  check(
      R"mlir(func.func @f(%x: tensor<?x24xf32>, %w: tensor<6xf32>, %a: tensor<4x1xf32>, %s: !hybrid.segments)
      -> (tensor<?x4x6xf32>, tensor<?x24xf32>) {
    %0:2 = hybrid.rowwise (%i = %x : tensor<?x24xf32>, %j = %w : tensor<6xf32>, %l = %a : tensor<4x1xf32>, %p = %s : !hybrid.segments) -> (tensor<?x4x6xf32>, tensor<?x24xf32>) {
      %r = hybrid.reshape %i : tensor<?x24xf32> -> tensor<?x4x6xf32>
      %n = hybrid.normalize rms %r epsilon 1.0e-06 : tensor<?x4x6xf32>
      %m = hybrid.mul %n, %j : tensor<?x4x6xf32>, tensor<6xf32>
      %c = hybrid.exp %l : tensor<4x1xf32>
      %h = hybrid.mul %m, %c : tensor<?x4x6xf32>, tensor<4x1xf32>
      %t = hybrid.rotary %h, %p base 10000.0 dim 6 : tensor<?x4x6xf32>
      %u = hybrid.silu %i : tensor<?x24xf32>
      hybrid.yield %t, %u : tensor<?x4x6xf32>, tensor<?x24xf32>
    }
    return %0#0, %0#1 : tensor<?x4x6xf32>, tensor<?x24xf32>
  })mlir",
      1e-5);
}

TEST_F(RowwiseTest, ViewsAreNotKernels) {
  module = parseSourceString<ModuleOp>(
      R"mlir(func.func @f(%x: tensor<4x6xf32>) -> tensor<24xf32> {
    %0 = hybrid.reshape %x : tensor<4x6xf32> -> tensor<24xf32>
    return %0 : tensor<24xf32>
  })mlir",
      &context);
  auto function = *module->getOps<func::FuncOp>().begin();
  OpBuilder b = builder();
  EXPECT_TRUE(failed(buildRowwise(b, &function.getBody().front().front())));
  EXPECT_NE(
      reported.find("does not keep to its rows; it is a view, not a kernel"),
      std::string::npos)
      << reported;
}
