//===- RowsTest.cpp - embedding, loss heads, sums and products against the
// oracle -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Tile/Families/Rows.h"
#include "../../tools/tile-against-oracle/TokensById.h"
#include "OracleTest.h"
#include "hybrid/Tile/Families/Product.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::tile;

namespace {
const int64_t kLengths[] = {21, 0, 1, 16};
using RowsTest = OracleTest;

/// One graph operation in a function of its operands.
std::string function(StringRef arguments, StringRef op, StringRef result) {
  return ("func.func @f(" + arguments + ") -> " + result +
          " {\n  %0 = hybrid." + op + "\n  return %0 : " + result + "\n}")
      .str();
}
} // namespace

TEST_F(RowsTest, Embed) {
  compare(function("%i: tensor<?xi32>, %t: tensor<7x10xf32>",
                   "embed %i, %t : (tensor<?xi32>, tensor<7x10xf32>) -> "
                   "tensor<?x10xf32>",
                   "tensor<?x10xf32>"),
          kLengths, [](OpBuilder &b, Operation *op) -> FailureOr<ProgramOp> {
            return buildEmbed(b, op->getLoc(), {7, 10});
          });
}

TEST_F(RowsTest, EmbedGrad) {
  for (int64_t width : {10, 32, 40}) {
    std::string w = std::to_string(width), dy = "tensor<?x" + w + "xf32>",
                table = "tensor<7x" + w + "xf32>";
    compare(
        function("%i: tensor<?xi32>, %d: " + dy,
                 "embed_grad %i, %d : (tensor<?xi32>, " + dy + ") -> " + table,
                 table),
        kLengths, [&](OpBuilder &b, Operation *op) -> FailureOr<ProgramOp> {
          return buildEmbedGrad(b, op->getLoc(), {7, width});
        });
    compare(
        function("%i: tensor<?xi32>, %d: " + dy,
                 "embed_grad %i, %d : (tensor<?xi32>, " + dy + ") -> " + table,
                 table),
        kLengths, [&](OpBuilder &b, Operation *op) -> FailureOr<ProgramOp> {
          EmbedShape shape{7, width};
          shape.pointRows = 2;
          shape.turns = 2;
          return buildEmbedGrad(b, op->getLoc(), shape);
        });
  }
}

// More tokens than a tile of ids, of which some tiles have none of a block's.
TEST_F(RowsTest, EmbedGradOfManyTokens) {
  idLimit = 500;
  compare(function("%i: tensor<?xi32>, %d: tensor<?x8xf32>",
                   "embed_grad %i, %d : (tensor<?xi32>, tensor<?x8xf32>) -> "
                   "tensor<500x8xf32>",
                   "tensor<500x8xf32>"),
          {1500, 0, 700},
          [&](OpBuilder &b, Operation *op) -> FailureOr<ProgramOp> {
            EmbedShape shape{500, 8};
            shape.pointRows = 8;
            return buildEmbedGrad(b, op->getLoc(), shape);
          });
}

// Ids of one token and of many, and rows that one point and several have.
TEST_F(RowsTest, EmbedGradByIds) {
  OpBuilder b = builder();
  for (int64_t width : {10, 128, 2100})
    for (int64_t tokens : {0, 1, 23}) {
      HostBuffer ids({tokens}, 0.0);
      for (int64_t t = 0; t < tokens; ++t)
        ids({t}) = t % 3 == 0 ? 2 : (t * t) % 7;
      HostBuffer byId = tokensById(ids.elements()),
                 dy = random({tokens, width}), table = random({7, width}),
                 expected = table;
      for (int64_t t = 0; t < tokens; ++t)
        for (int64_t n = 0; n < width; ++n)
          expected({int64_t(ids({t})), n}) += dy({t, n});
      run(buildEmbedGradByIds(b, b.getUnknownLoc(), {7, width}),
          {&byId, &dy, &table}, {tokens, 1, tokens, 0, 0, 0});
      EXPECT_LT(distance(table, expected), 1e-12) << width << ", " << tokens;
    }
}

TEST_F(RowsTest, CrossEntropy) {
  ignoreSome = true;
  // One tile, several, and a ragged last one.
  for (int64_t columns : {64, 4, 3}) {
    CrossEntropyShape shape{8, columns, 8};
    std::string arguments =
        "%l: tensor<?x8xf32>, %n: tensor<?xi32>, %w: tensor<?xf32>";
    compare(function(arguments,
                     "cross_entropy %l, %n, %w : (tensor<?x8xf32>, "
                     "tensor<?xi32>, tensor<?xf32>) "
                     "-> tensor<?xf32>",
                     "tensor<?xf32>"),
            kLengths, [&](OpBuilder &b, Operation *op) -> FailureOr<ProgramOp> {
              return buildCrossEntropy(b, op->getLoc(), shape);
            });
    compare(
        function(
            arguments,
            "cross_entropy_grad %l, %n, %w : (tensor<?x8xf32>, tensor<?xi32>, "
            "tensor<?xf32>) -> tensor<?x8xf32>",
            "tensor<?x8xf32>"),
        kLengths, [&](OpBuilder &b, Operation *op) -> FailureOr<ProgramOp> {
          return buildCrossEntropyGrad(b, op->getLoc(), shape);
        });
    shape.hasLossGradient = true;
    compare(function(arguments + ", %d: tensor<?xf32>",
                     "cross_entropy_grad %l, %n, %w dloss(%d) : "
                     "(tensor<?x8xf32>, tensor<?xi32>, "
                     "tensor<?xf32>, tensor<?xf32>) -> tensor<?x8xf32>",
                     "tensor<?x8xf32>"),
            kLengths, [&](OpBuilder &b, Operation *op) -> FailureOr<ProgramOp> {
              return buildCrossEntropyGrad(b, op->getLoc(), shape);
            });
  }
}

// What the loss keeps of a row gives the adjoint the same numbers as computing
// it again, to the bit, over several tiles of which the last is ragged.
TEST_F(RowsTest, CrossEntropyWithStatistics) {
  constexpr int64_t tokens = 19, vocab = 10;
  CrossEntropyShape shape{vocab, 4, 8};
  HostBuffer logits = random({tokens, vocab}), weights = random({tokens});
  HostBuffer labels({tokens}, 0.0), dloss = random({tokens});
  for (int64_t n = 0; n < tokens; ++n)
    labels({n}) = n % 5 == 4 ? -100 : double(n % vocab);
  HostBuffer loss({tokens}, kNaN), again({tokens}, kNaN);
  HostBuffer largest({tokens}, kNaN), sum({tokens}, kNaN);
  HostBuffer known({tokens, vocab}, kNaN), computed({tokens, vocab}, kNaN);
  int64_t symbols[] = {tokens, 1, tokens, 0, 0, 0};
  OpBuilder b = builder();
  Location loc = b.getUnknownLoc();
  run(buildCrossEntropy(b, loc, shape), {&logits, &labels, &weights, &again},
      symbols);
  shape.hasLossGradient = true;
  run(buildCrossEntropyGrad(b, loc, shape),
      {&logits, &labels, &weights, &dloss, &computed}, symbols);
  shape.hasStatistics = true;
  run(buildCrossEntropy(b, loc, shape),
      {&logits, &labels, &weights, &loss, &largest, &sum}, symbols);
  run(buildCrossEntropyGrad(b, loc, shape),
      {&logits, &labels, &weights, &dloss, &largest, &sum, &known}, symbols);
  EXPECT_EQ(distance(loss, again), 0.0);
  EXPECT_EQ(distance(known, computed), 0.0);
}

// Labels [2, -100, 0] over equal logits: ln 3, 0, ln 3, and no gradient where
// the label is ignored, whatever its weight is.
TEST_F(RowsTest, TRN_04) {
  HostBuffer logits({3, 3}, 0.0), labels({3}, 0.0), weights({3}, 1.0),
      loss({3}, kNaN), dlogits({3, 3}, kNaN);
  labels({0}) = 2;
  labels({1}) = -100;
  weights({1}) = kNaN;
  OpBuilder b = builder();
  CrossEntropyShape shape{3, 1024, 8};
  int64_t symbols[] = {3, 1, 3, 0, 0, 0};
  run(buildCrossEntropy(b, b.getUnknownLoc(), shape),
      {&logits, &labels, &weights, &loss}, symbols);
  EXPECT_NEAR(loss({0}), std::log(3.0), 1e-12);
  EXPECT_EQ(loss({1}), 0.0);
  EXPECT_NEAR(loss({2}), std::log(3.0), 1e-12);
  run(buildCrossEntropyGrad(b, b.getUnknownLoc(), shape),
      {&logits, &labels, &weights, &dlogits}, symbols);
  for (int64_t n = 0; n < 3; ++n) {
    EXPECT_NEAR(dlogits({0, n}), 1.0 / 3 - (n == 2), 1e-12);
    EXPECT_EQ(dlogits({1, n}), 0.0);
  }
}

TEST_F(RowsTest, ReduceTokens) {
  struct Case {
    SmallVector<int64_t> sizes;
    unsigned summed;
  };
  for (const Case &c :
       {Case{{70}, 0}, {{5}, 0}, {{3, 70}, 0}, {{3, 70}, 1}, {{3, 5}, 1}}) {
    auto shape = [](StringRef lead, ArrayRef<int64_t> sizes) {
      std::string type = "tensor<" + lead.str();
      for (int64_t size : sizes)
        type += std::to_string(size) + "x";
      return type + "f32>";
    };
    std::string x = shape("?x", c.sizes),
                y = shape("", ArrayRef(c.sizes).drop_front(c.summed));
    compare(function("%x: " + x, "reduce_tokens %x : " + x + " -> " + y, y),
            kLengths, [&](OpBuilder &b, Operation *op) -> FailureOr<ProgramOp> {
              ReduceTokensShape reduce;
              reduce.sizes = c.sizes;
              reduce.summed = c.summed;
              return buildReduceTokens(b, op->getLoc(), reduce);
            });
  }
}

TEST_F(RowsTest, LastRows) {
  compare(function("%x: tensor<?x6xf32>, %s: !hybrid.segments",
                   "last_rows %x, %s : (tensor<?x6xf32>, !hybrid.segments) -> "
                   "tensor<?x6xf32, #hybrid.per_segment>",
                   "tensor<?x6xf32, #hybrid.per_segment>"),
          {0, 21, 0, 1, 16, 0},
          [](OpBuilder &b, Operation *op) -> FailureOr<ProgramOp> {
            return buildLastRows(b, op->getLoc(), 6);
          });
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

TEST_F(RowsTest, Product) {
  constexpr int64_t t = ShapedType::kDynamic;
  struct Case {
    StringRef a, b, flags, c;
    int64_t rows, columns, depth;
    bool transposeA, transposeB;
  };
  const Case cases[] = {
      {"?x12", "20x12", "transpose_b", "?x20", t, 20, 12, false, true},
      {"?x12", "12x20", "", "?x20", t, 20, 12, false, false},
      {"?x12", "?x20", "transpose_a", "12x20", 12, 20, t, true, false},
      {"9x12", "20x12", "transpose_b", "9x20", 9, 20, 12, false, true},
  };
  for (const Case &c : cases)
    for (int64_t tile : {4, 8, 64}) { // divides all, some, none of the sizes
      std::string a = "tensor<" + c.a.str() + "xf32>",
                  b = "tensor<" + c.b.str() + "xf32>",
                  r = "tensor<" + c.c.str() + "xf32>";
      compare(function("%a: " + a + ", %b: " + b,
                       "product %a, %b " + c.flags.str() + " : (" + a + ", " +
                           b + ") -> " + r,
                       r),
              kLengths,
              [&](OpBuilder &builder, Operation *op) -> FailureOr<ProgramOp> {
                ProductShape shape;
                shape.rows = c.rows;
                shape.columns = c.columns;
                shape.depth = c.depth;
                shape.transposeA = c.transposeA;
                shape.transposeB = c.transposeB;
                shape.rowTile = shape.columnTile = shape.depthTile = tile;
                return buildProduct(builder, op->getLoc(), shape);
              });
    }
}

TEST_F(RowsTest, AccumulatingFormsAddToWhatIsThere) {
  HostBuffer x = random({9, 5}), dy = random({9, 3}), c = random({3, 5}),
             before = c;
  ProductShape shape;
  shape.rows = 3;
  shape.columns = 5;
  shape.depth = ShapedType::kDynamic;
  shape.transposeA = shape.accumulate = true;
  shape.depthTile = 4;
  OpBuilder b = builder();
  run(buildProduct(b, b.getUnknownLoc(), shape), {&dy, &x, &c},
      {9, 1, 9, 0, 0, 0});
  HostBuffer expected = before;
  for (int64_t m = 0; m < 3; ++m)
    for (int64_t n = 0; n < 5; ++n)
      for (int64_t k = 0; k < 9; ++k)
        expected({m, n}) += dy({k, m}) * x({k, n});
  EXPECT_LT(distance(c, expected), 1e-12);

  HostBuffer ids({9}, 0.0), table = random({4, 5}), sums = random({5}),
                            sums0 = sums;
  HostBuffer table0 = table;
  for (int64_t t = 0; t < 9; ++t) {
    ids({t}) = (t * t) % 4;
    for (int64_t n = 0; n < 5; ++n) {
      table0({(t * t) % 4, n}) += x({t, n});
      sums0({n}) += x({t, n});
    }
  }
  run(buildEmbedGrad(b, b.getUnknownLoc(), {4, 5, true}), {&ids, &x, &table},
      {9, 1, 9, 0, 0, 0});
  EXPECT_LT(distance(table, table0), 1e-12);
  ReduceTokensShape reduce;
  reduce.sizes = {5};
  reduce.accumulate = true;
  run(buildReduceTokens(b, b.getUnknownLoc(), reduce), {&x, &sums},
      {9, 1, 9, 0, 0, 0});
  EXPECT_LT(distance(sums, sums0), 1e-12);
}

TEST_F(RowsTest, SumsOfPartsAreOneSum) {
  OpBuilder b = builder();
  for (int64_t summed : {0, 1}) {
    HostBuffer x = random({70, 3, 5});
    HostBuffer whole(
        summed ? std::vector<int64_t>{5} : std::vector<int64_t>{3, 5}, kNaN),
        parts(summed ? std::vector<int64_t>{3, 5}
                     : std::vector<int64_t>{3, 3, 5},
              kNaN),
        again = whole;
    ReduceTokensShape shape;
    shape.sizes = {3, 5};
    shape.summed = summed;
    run(buildReduceTokens(b, b.getUnknownLoc(), shape), {&x, &whole},
        {70, 1, 70, 0, 0, 0});
    shape.part = 32;
    run(buildReduceTokens(b, b.getUnknownLoc(), shape), {&x, &parts},
        {70, 1, 70, 0, 0, 0});
    shape.part = 0;
    shape.sizes.erase(shape.sizes.begin(), shape.sizes.begin() + summed);
    shape.summed = 0;
    run(buildReduceTokens(b, b.getUnknownLoc(), shape), {&parts, &again},
        {3, 1, 3, 0, 0, 0});
    EXPECT_LT(distance(again, whole), 1e-12);
  }
}

TEST_F(RowsTest, GroupedProductTakesTheMatrixOfItsSegment) {
  SegmentBuffers segs = segments({5, 0, 1, 9});
  for (int64_t row = 0; row < 4; ++row)
    segs.table({row, 2}) = 3 - row;
  HostBuffer a = random({15, 6}), w = random({4, 7, 6}), c({15, 7}, kNaN),
             expected({15, 7}, 0.0);
  for (int64_t t = 0; t < 15; ++t) {
    int64_t slot = 3 - int64_t(segs.tokenSegment({t}));
    for (int64_t n = 0; n < 7; ++n)
      for (int64_t k = 0; k < 6; ++k)
        expected({t, n}) += a({t, k}) * w({slot, n, k});
  }
  ProductShape shape;
  shape.columns = 7;
  shape.depth = 6;
  shape.transposeB = shape.grouped = true;
  shape.rowTile = shape.columnTile = shape.depthTile = 4;
  OpBuilder b = builder();
  run(buildProduct(b, b.getUnknownLoc(), shape),
      {&a, &w, &segs.table, &segs.tokenSegment, &c}, {15, 4, 9, 4, 0, 0});
  EXPECT_LT(distance(c, expected), 1e-12);
}
