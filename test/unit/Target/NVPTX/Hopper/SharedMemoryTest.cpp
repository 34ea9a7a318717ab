//===- SharedMemoryTest.cpp - operands where the tensor cores look --------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SharedMemorySim.h"

#include "../../../../../lib/Target/NVPTX/Hopper/KernelEmitter.h"
#include "gtest/gtest.h"
#include <set>

using namespace hybrid::hopper;
using namespace hybrid::hopper::sim;
using hybrid::nvptx::Coordinates;
using hybrid::nvptx::Layout;

namespace {

/// Where the copy engine puts element (row, column) of a tile of panels.
int64_t tileAddress(int64_t start, int64_t rows, int64_t row, int64_t column) {
  return boxAddress(start + column / 64 * rows * 128, row, column % 64);
}

/// The address that the emitted descriptor of step depth / 16 gives.
int64_t readAddress(int64_t start, const OperandWalk &walk, int64_t index,
                    int64_t depth) {
  uint64_t bits = uint64_t(start >> 4 & 0x3fff) |
                  uint64_t(descriptorBits(walk.leadingBytes, walk.strideBytes));
  Descriptor descriptor(bits + uint64_t(walk.stepOffset(depth / 16) >> 4));
  EXPECT_EQ(descriptor.swizzle, 1);
  return descriptor.address(index, depth % 16, walk.isTransposed);
}

} // namespace

TEST(HopperSharedMemory, SwizzleKeepsPiecesAndSpreadsColumns) {
  std::set<int64_t> seen;
  for (int64_t address = 0; address < 1024; address += 2) {
    seen.insert(swizzle128(address));
    EXPECT_EQ(swizzle128(address) / 128, address / 128);
    EXPECT_EQ(swizzle128(address) % 16, address % 16);
  }
  EXPECT_EQ(seen.size(), 512u);
  // Eight rows of a 16-byte column lie in different banks.
  for (int64_t piece = 0; piece < 8; ++piece) {
    std::set<int64_t> banks;
    for (int64_t row = 0; row < 8; ++row)
      banks.insert(boxAddress(0, row, piece * 8) % 128);
    EXPECT_EQ(banks.size(), 8u);
  }
}

TEST(HopperSharedMemory, DepthAlongColumnsIsReadWhereItLies) {
  for (int64_t start : {0, 1024, 49152})
    for (int64_t rows : {8, 64, 128, 256})
      for (int64_t columns : {64, 128, 256}) {
        OperandWalk walk = OperandWalk::of(rows, false);
        for (int64_t row = 0; row < rows; ++row)
          for (int64_t column = 0; column < columns; ++column)
            ASSERT_EQ(readAddress(start, walk, row, column),
                      tileAddress(start, rows, row, column))
                << rows << "x" << columns << " at " << row << ", " << column;
      }
}

TEST(HopperSharedMemory, RowsOfALeftOperandStartAtMultiplesOfEight) {
  OperandWalk walk = OperandWalk::of(128, false);
  for (int64_t first : {0, 8, 64})
    for (int64_t row = 0; row < 64; ++row)
      for (int64_t column = 0; column < 128; ++column)
        ASSERT_EQ(readAddress(first * 128, walk, row, column),
                  tileAddress(0, 128, first + row, column));
}

TEST(HopperSharedMemory, DepthAlongRowsIsReadWhereItLies) {
  // The values of attention: depth is the key, the index runs along a row.
  for (int64_t start : {0, 2048})
    for (int64_t rows : {16, 64, 128})
      for (int64_t columns : {64, 128, 256}) {
        OperandWalk walk = OperandWalk::of(rows, true);
        for (int64_t row = 0; row < rows; ++row)
          for (int64_t column = 0; column < columns; ++column)
            ASSERT_EQ(readAddress(start, walk, column, row),
                      tileAddress(start, rows, row, column))
                << rows << "x" << columns << " at " << row << ", " << column;
      }
}

TEST(HopperSharedMemory, AWrongDistanceIsNoticed) {
  OperandWalk walk = OperandWalk::of(128, true);
  walk.leadingBytes /= 2;
  EXPECT_NE(readAddress(0, walk, 64, 0), tileAddress(0, 128, 0, 64));
  walk = OperandWalk::of(128, false);
  walk.strideBytes *= 2;
  EXPECT_NE(readAddress(0, walk, 8, 0), tileAddress(0, 128, 8, 0));
}

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

TEST(HopperFragments, AccumulatorIsThatOfTheInstruction) {
  // PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16", accumulator D:
  // row = 16 warp + lane / 4 + 8 (i / 2 mod 2),
  // column = 8 (i / 4) + 2 (lane mod 4) + i mod 2.
  for (int64_t columns : {8, 64, 128, 256}) {
    Layout layout = fragmentLayout({64, columns});
    ASSERT_EQ(layout.numRegisters(), columns / 2);
    for (int64_t warp = 0; warp < 4; ++warp)
      for (int64_t lane = 0; lane < 32; ++lane)
        for (int64_t i = 0; i < columns / 2; ++i) {
          Coordinates at = layout.registerOffset(i),
                      base = layout.threadBase(lane, warp);
          EXPECT_EQ(at[0] + base[0], 16 * warp + lane / 4 + 8 * (i / 2 % 2));
          EXPECT_EQ(at[1] + base[1], 8 * (i / 4) + 2 * (lane % 4) + i % 2);
        }
  }
}

TEST(HopperFragments, AccumulatorPairsAreTheLeftOperand) {
  // PTX ISA, the same section, matrix A in registers: four words of two, the
  // word w of step s has row 16 warp + lane / 4 + 8 (w mod 2) and depth 16 s +
  // 8 (w / 2) + 2 (lane mod 4) + {0, 1}.
  Layout layout = fragmentLayout({64, 128});
  for (int64_t step = 0; step < 8; ++step)
    for (int64_t w = 0; w < 4; ++w)
      for (int64_t half = 0; half < 2; ++half) {
        Coordinates at = layout.registerOffset(8 * step + 2 * w + half);
        EXPECT_EQ(at[0], 8 * (w % 2));
        EXPECT_EQ(at[1], 16 * step + 8 * (w / 2) + half);
      }
}

TEST(HopperFragments, RowsAndColumnsAreWhatABroadcastNeeds) {
  EXPECT_EQ(fragmentLayout({64, 1}).numRegisters(), 2);
  EXPECT_EQ(fragmentLayout({64}).numRegisters(), 2);
  EXPECT_EQ(fragmentLayout({1, 128}).numRegisters(), 32);
  Layout whole = fragmentLayout({64, 128}), column = fragmentLayout({64, 1}),
         row = fragmentLayout({1, 128});
  for (int64_t reg = 0; reg < whole.numRegisters(); ++reg) {
    Coordinates at = whole.registerOffset(reg);
    EXPECT_TRUE(column.registerAt({at[0], 0}).has_value());
    EXPECT_TRUE(row.registerAt({0, at[1]}).has_value());
  }
}
