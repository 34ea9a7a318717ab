//===- RowProductTest.cpp - one row on tensor cores -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelHarness.h"

using namespace mlir;
using namespace hybrid::tile;

using RowProductTest = hybrid::target::KernelTest;

// Columns by which an instruction takes 8, 4 or 2 of them, a number that none
// divides, and so many that it takes 8 and the last fewer; steps of the depth
// that eight warps share with a rest, or have one each; a start that is not 0.
TEST_F(RowProductTest, WidthsAndDepths) {
  for (auto [columns, depth] : {std::pair<int64_t, int64_t>{24, 1024},
                                {12, 576},
                                {2, 2048},
                                {9, 544},
                                {55, 512},
                                {38, 512},
                                {16, 256},
                                {4, 1024},
                                {5, 40}})
    for (StringRef element : {"bf16", "f16"}) {
      std::string text;
      llvm::raw_string_ostream out(text);
      std::string row = ("1x" + Twine(depth) + "x").str(),
                  matrix = (Twine(columns) + "x" + Twine(depth) + "x").str(),
                  sums = ("1x" + Twine(columns) + "xf32").str();
      out << "tile.program @row(%x: !tile.view<" << row << "f32>, %w: "
          << "!tile.view<" << matrix << "f32>, %s: !tile.view<" << sums
          << ">, %y: !tile.view<" << sums << ">) grid "
          << "affine_map<()[t, s, l, n, c, d] -> (1)> order [parallel] {\n"
          << "%c0 = arith.constant 0 : index\n";
      auto load = [&](StringRef to, StringRef from, StringRef shape) {
        out << to << " = tile.load " << from << "[%c0, %c0] dims [0, 1] : "
            << "!tile.view<" << shape << "> -> tensor<" << shape << ">\n";
      };
      auto round = [&](StringRef to, StringRef from, StringRef shape) {
        out << to << " = arith.truncf " << from << " : tensor<" << shape
            << "f32> to tensor<" << shape << element << ">\n";
      };
      load("%x32", "%x", row + "f32");
      load("%w32", "%w", matrix + "f32");
      load("%start", "%s", sums);
      round("%a", "%x32", row);
      round("%b", "%w32", matrix);
      out << "%sum = tile.dot %a, %b, %start {transpose_b} : tensor<" << row
          << element << ">, tensor<" << matrix << element << "> -> tensor<"
          << sums << ">\n"
          << "tile.store %sum, %y[%c0, %c0] dims [0, 1] : tensor<" << sums
          << ">, !tile.view<" << sums << ">\ntile.return\n}\n";
      ProgramOp program = parse(text);
      ASSERT_TRUE(program);
      // The interpreter rounds nothing: all numbers have 16 bits.
      auto drawn = [&](ArrayRef<int64_t> sizes) {
        HostBuffer buffer = random(sizes);
        for (double &number : buffer.elements())
          number = std::round(16 * number) / 16;
        return buffer;
      };
      HostBuffer x = drawn({1, depth}), w = drawn({columns, depth}),
                 start = random({1, columns}), y({1, columns}, kNaN);
      compare(program, {&x, &w, &start, &y}, {1, 1, 1, 0, 0, 0}, 1e-5);
    }
}
