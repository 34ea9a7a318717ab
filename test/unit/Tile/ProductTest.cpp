//===- ProductTest.cpp - product programs against the definition ---------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Tile/Families/Product.h"
#include "ProgramTest.h"
#include "hybrid/Tile/Families/RowProducts.h"

using namespace mlir;
using namespace hybrid::tile;

namespace {

class ProductTest : public ProgramTest {
protected:
  /// `stream` is the number of rows that kDynamic stands for.
  void check(const ProductShape &s, int64_t stream) {
    auto sizeOf = [&](int64_t size) {
      return ShapedType::isDynamic(size) ? stream : size;
    };
    int64_t rows = sizeOf(s.rows), depth = sizeOf(s.depth);
    HostBuffer a = s.transposeA ? random({depth, rows}) : random({rows, depth});
    HostBuffer b =
        s.transposeB ? random({s.columns, depth}) : random({depth, s.columns});
    HostBuffer c = s.accumulate ? random({rows, s.columns})
                                : HostBuffer({rows, s.columns}, kNaN);
    HostBuffer expected = c;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < s.columns; ++j) {
        double sum = s.accumulate ? c({i, j}) : 0.0;
        for (int64_t n = 0; n < depth; ++n)
          sum += (s.transposeA ? a({n, i}) : a({i, n})) *
                 (s.transposeB ? b({j, n}) : b({n, j}));
        expected({i, j}) = sum;
      }
    }
    OpBuilder at = builder();
    Location loc = at.getUnknownLoc();
    int64_t call[] = {stream, 1, stream, 0, 0, 0};
    if (s.splits == 1) {
      run(buildProduct(at, loc, s), {&a, &b, &c}, call);
    } else {
      HostBuffer parts({s.splits, rows, s.columns}, kNaN);
      run(buildProduct(at, loc, s), {&a, &b, &parts}, call);
      run(buildProductSum(at, loc, s), {&parts, &c}, call);
    }
    EXPECT_LT(distance(c, expected), 1e-11);
  }
};

constexpr int64_t kStream = ShapedType::kDynamic;

} // namespace

TEST_F(ProductTest, RowsTimesWeights) {
  for (int64_t stream : {0, 1, 16, 129})
    check({kStream, 24, 40, false, true}, stream);
}

TEST_F(ProductTest, RowsTimesWeightsOfManyTiles) {
  check({kStream, 300, 272, false, true}, 20);
}

TEST_F(ProductTest, GradientOfRows) { check({kStream, 40, 24}, 37); }

TEST_F(ProductTest, GradientOfWeightsIsAddedTo) {
  for (int64_t stream : {0, 5, 130})
    check({24, 40, kStream, true, false, true}, stream);
}

// Parts of the depth without a tile of it are zero.
TEST_F(ProductTest, SplitDepth) {
  ProductShape s{24, 40, kStream, true, false, true};
  s.rowTile = s.columnTile = 16;
  s.depthTile = 8;
  s.splits = 3;
  for (int64_t stream : {0, 5, 16, 24, 67})
    check(s, stream);
  s.accumulate = false;
  s.transposeA = false;
  s.transposeB = true;
  s.rows = kStream;
  s.depth = 64;
  check(s, 19);
}

TEST_F(ProductTest, FewRows) {
  ProductShape s{kStream, 20, 32, false, true};
  s.rowTile = 8;
  for (int64_t stream : {1, 8, 11})
    check(s, stream);
}

// Matrices whose columns are cut by a limit and whole, of a depth in pieces and
// in one. With a row-wise operation in front: test/Schedule/cuda.
TEST_F(ProductTest, RowsThatReadSeveralMatrices) {
  constexpr int64_t kColumns[] = {8, 10, 3};
  for (auto [depth, piece] :
       {std::pair<int64_t, int64_t>{32, 64}, {32, 16}, {40, 16}})
    for (int64_t stream : {0, 1, 3}) {
      RowProductsShape s;
      s.depth = depth;
      s.depthTile = piece;
      HostBuffer a = random({stream, depth});
      SmallVector<HostBuffer> matrices, results, expected;
      for (int64_t columns : kColumns) {
        s.matrices.push_back({columns});
        matrices.push_back(random({columns, depth}));
        results.push_back(HostBuffer({stream, columns}, kNaN));
        expected.push_back(HostBuffer({stream, columns}, 0.0));
        for (int64_t i = 0; i < stream; ++i)
          for (int64_t j = 0; j < columns; ++j)
            for (int64_t n = 0; n < depth; ++n)
              expected.back()({i, j}) += a({i, n}) * matrices.back()({j, n});
      }
      OpBuilder at = builder();
      FailureOr<ProgramOp> program =
          buildRowProducts(at, at.getUnknownLoc(), s);
      ASSERT_TRUE(succeeded(program));
      run(*program,
          {&a, &matrices[0], &matrices[1], &matrices[2], &results[0],
           &results[1], &results[2]},
          {stream, 1, stream, 0, 0, 0});
      for (size_t n = 0; n < results.size(); ++n)
        EXPECT_LT(distance(results[n], expected[n]), 1e-11);
    }
}

// Blocks of one row have no limit of rows, with columns and depth that are cut
// by one and without.
TEST_F(ProductTest, OneRow) {
  for (auto [columns, depth] :
       {std::pair<int64_t, int64_t>{20, 32}, {40, 32}, {32, 300}, {40, 300}}) {
    ProductShape s{kStream, columns, depth, false, true};
    s.rowTile = 1;
    s.columnTile = 32;
    for (int64_t stream : {0, 1, 3})
      check(s, stream);
  }
}
