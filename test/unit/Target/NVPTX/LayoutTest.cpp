//===- LayoutTest.cpp - layouts, simulated on the host -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../../../../lib/Target/NVPTX/Layout.h"

#include "gtest/gtest.h"
#include <map>
#include <set>
#include <string>
#include <vector>

using namespace hybrid::nvptx;

namespace {

using Point = std::vector<int64_t>;

/// Where a layout puts the element that (register, lane, warp) holds.
Point pointOf(const Layout &layout, int64_t reg, int64_t lane, int64_t warp) {
  Coordinates base = layout.threadBase(lane, warp);
  Coordinates offset = layout.registerOffset(reg);
  Point point;
  for (auto [x, y] : llvm::zip(base, offset))
    point.push_back(x + y);
  return point;
}

bool isInside(const Layout &layout, const Point &point) {
  for (auto [x, size] : llvm::zip(point, layout.getShape()))
    if (x >= size)
      return false;
  return true;
}

/// How often each element is held; all threads of `warps` warps.
std::map<Point, int> countsOf(const Layout &layout, int64_t warps) {
  std::map<Point, int> counts;
  for (int64_t warp = 0; warp < warps; ++warp)
    for (int64_t lane = 0; lane < kLanes; ++lane)
      for (int64_t reg = 0; reg < layout.numRegisters(); ++reg) {
        Point point = pointOf(layout, reg, lane, warp);
        for (unsigned d = 0; d < point.size(); ++d)
          EXPECT_LT(point[d], layout.extent(d));
        if (isInside(layout, point))
          ++counts[point];
      }
  return counts;
}

int64_t elementsOf(const Layout &layout) {
  int64_t count = 1;
  for (int64_t size : layout.getShape())
    count *= size;
  return count;
}

/// Every element is held, all equally often; once when there are no copies.
void expectCovered(const Layout &layout, int64_t warps) {
  auto counts = countsOf(layout, warps);
  EXPECT_EQ(int64_t(counts.size()), elementsOf(layout));
  std::set<int> times;
  for (auto &[point, count] : counts)
    times.insert(count);
  EXPECT_EQ(times.size(), 1u);
  if (!layout.hasCopies()) {
    EXPECT_EQ(*times.begin(), 1);
  }
  for (int64_t reg = 0; reg < layout.numRegisters(); ++reg)
    EXPECT_EQ(layout.registerAt(layout.registerOffset(reg)), reg);
}

const std::vector<std::vector<int64_t>> kShapes = {
    {1},       {7},       {64},     {1024},   {1, 1},     {64, 1},
    {1, 64},   {63, 1},   {16, 12}, {12, 20}, {64, 64},   {128, 128},
    {8, 1024}, {96, 48},  {20, 1},  {5, 33},  {16, 3, 4}, {2, 5, 128},
    {4, 100},  {128, 32}, {3, 3, 3}};

} // namespace

TEST(LayoutTest, BlockedCoversEveryShape) {
  for (const auto &shape : kShapes)
    for (int64_t warps : {1, 4, 8})
      for (int64_t vector : {1, 4, 8})
        expectCovered(Layout::blocked(shape, warps, vector), warps);
}

TEST(LayoutTest, BlockedLoadsSixteenBytesAndWholeLines) {
  Layout layout = Layout::blocked({64, 128}, 4);
  EXPECT_EQ(layout.run(1), 4);
  // A warp's first access is one row of 512 bytes.
  for (int64_t lane = 0; lane < kLanes; ++lane)
    EXPECT_EQ(pointOf(layout, 0, lane, 0), (Point{0, 4 * lane}));
}

TEST(LayoutTest, ColumnsLieInOneWarp) {
  for (const auto &shape : kShapes)
    for (int64_t warps : {1, 2, 8}) {
      if (shape.size() != 2)
        continue;
      Layout layout = Layout::columns(shape, warps, /*vector=*/4);
      expectCovered(layout, warps);
      for (const Factor &factor : layout.getWarps())
        EXPECT_NE(factor.dim, 0);
    }
  // A row beside the columns is in the lanes that would load it.
  EXPECT_EQ(
      *Layout::columns({128, 8}, 2, 4).restricted({128, 1}).reshaped({1, 128}),
      Layout::blocked({1, 128}, 2, 4));
}

TEST(LayoutTest, ScanHoldsRunsAndNoTwoWarpsShareOne) {
  for (const auto &shape : kShapes)
    for (unsigned dim = 0; dim < shape.size(); ++dim) {
      Layout layout = Layout::scan(shape, dim, 4);
      expectCovered(layout, 4);
      for (const Factor &factor : layout.getWarps())
        EXPECT_NE(factor.dim, int(dim));
      // One run of registers, then lanes in order of coordinates.
      int along = 0;
      for (const Factor &factor : layout.getLanes())
        along += factor.dim == int(dim);
      EXPECT_LE(along, 1);
    }
}

TEST(LayoutTest, AccumulatorsCover) {
  for (int64_t rows : {1, 8, 16, 40, 64, 96, 128})
    for (int64_t columns : {1, 8, 12, 33, 64, 128})
      for (int64_t warps : {4, 8})
        for (bool wholeRows : {false, true}) {
          Accumulator part =
              Accumulator::divide(rows, columns, warps, wholeRows);
          expectCovered(part.layout(rows, columns, warps), warps);
        }
}

TEST(LayoutTest, AccumulatorIsThatOfTheInstruction) {
  // PTX ISA, "Matrix Fragments for mma.m16n8k8", accumulator of f32.
  Layout layout = Accumulator{1, 1, 1, 1}.layout(16, 8, 1);
  for (int64_t lane = 0; lane < kLanes; ++lane)
    for (int64_t reg = 0; reg < 4; ++reg) {
      Point expected{lane / 4 + (reg < 2 ? 0 : 8), lane % 4 * 2 + (reg & 1)};
      EXPECT_EQ(pointOf(layout, reg, lane, 0), expected);
    }
}

TEST(LayoutTest, WholeRowsKeepARowInOneWarp) {
  Accumulator part = Accumulator::divide(64, 64, 4, /*wholeRows=*/true);
  EXPECT_EQ(part.rowWarps, 4);
  EXPECT_EQ(part.columnWarps, 1);
  // Otherwise warps share both dims: 32 x 32 each.
  part = Accumulator::divide(64, 64, 4, false);
  EXPECT_EQ(part.rowWarps, 2);
  EXPECT_EQ(part.columnWarps, 2);
}

TEST(LayoutTest, ReshapesKeepTheRowMajorIndex) {
  auto linear = [](const Point &point, llvm::ArrayRef<int64_t> shape) {
    int64_t index = 0;
    for (auto [x, size] : llvm::zip(point, shape))
      index = index * size + x;
    return index;
  };
  const std::vector<std::pair<std::vector<int64_t>, std::vector<int64_t>>>
      pairs = {{{64, 1}, {64}},        {{64}, {1, 64}},
               {{64, 1}, {1, 64}},     {{16, 128}, {16, 4, 32}},
               {{8, 4, 32}, {8, 128}}, {{63, 1}, {63}},
               {{2, 4, 4}, {8, 4}}};
  for (const auto &[from, to] : pairs) {
    Layout layout = Layout::blocked(from, 4);
    auto reshaped = layout.reshaped(to);
    ASSERT_TRUE(reshaped.has_value());
    ASSERT_EQ(reshaped->numRegisters(), layout.numRegisters());
    expectCovered(*reshaped, 4);
    for (int64_t warp = 0; warp < 4; ++warp)
      for (int64_t lane = 0; lane < kLanes; ++lane)
        for (int64_t reg = 0; reg < layout.numRegisters(); ++reg) {
          Point point = pointOf(layout, reg, lane, warp);
          if (isInside(layout, point)) {
            EXPECT_EQ(linear(point, from),
                      linear(pointOf(*reshaped, reg, lane, warp), to));
          }
        }
  }
  // A digit that would have to move along two dims.
  EXPECT_FALSE(Layout::blocked({16, 12}, 4).reshaped({8, 24}).has_value());
}

TEST(LayoutTest, ReducedAndBroadcastAgree) {
  for (const auto &shape : kShapes)
    for (unsigned dim = 0; dim < shape.size(); ++dim) {
      Layout layout = Layout::blocked(shape, 4), narrow = layout.reduced(dim);
      EXPECT_EQ(narrow.getShape()[dim], 1);
      for (int64_t reg = 0; reg < layout.numRegisters(); ++reg) {
        Coordinates offset = layout.registerOffset(reg);
        offset[dim] = 0;
        EXPECT_TRUE(narrow.registerAt(offset).has_value());
      }
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        Coordinates base = layout.threadBase(lane, 2);
        base[dim] = 0;
        EXPECT_EQ(base, narrow.threadBase(lane, 2));
      }
    }
}

TEST(LayoutTest, PermutedMovesDims) {
  Layout layout = Layout::blocked({16, 32, 8}, 4);
  Layout moved = layout.permuted({2, 0, 1});
  for (int64_t reg = 0; reg < layout.numRegisters(); ++reg) {
    Point from = pointOf(layout, reg, 13, 3), to = pointOf(moved, reg, 13, 3);
    EXPECT_EQ(to, (Point{from[2], from[0], from[1]}));
  }
}
