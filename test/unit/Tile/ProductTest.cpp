//===- ProductTest.cpp - product programs against the definition ---------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Tile/Families/Product.h"
#include "ProgramTest.h"

using namespace mlir;
using namespace hybrid::tile;

namespace {

class ProductTest : public ProgramTest {
protected:
  /// `stream` is the number of rows that kDynamic stands for.
  void check(const ProductShape &s, int64_t stream,
             ProgramOp (*build)(OpBuilder &, Location,
                                const ProductShape &) = buildProduct) {
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
      run(build(at, loc, s), {&a, &b, &c}, call);
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

TEST_F(ProductTest, RowsThatReadTheMatrix) {
  for (auto [columns, depth] :
       {std::pair<int64_t, int64_t>{8, 32}, {10, 40}, {8, 40}, {10, 32}}) {
    ProductShape s{kStream, columns, depth, false, true};
    s.columnTile = 4;
    s.depthTile = 16;
    for (int64_t stream : {0, 1, 3})
      check(s, stream, buildRowProduct);
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
