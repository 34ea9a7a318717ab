//===- KernelOpsTest.cpp - each tile op as machine code -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Of the target that the test is built for.
#include <KernelHarness.h>

#include "hybrid/Tile/Families/KernelBuilder.h"

using namespace mlir;
using hybrid::target::KernelTest;
using namespace hybrid::tile;

namespace {

class KernelOpsTest : public KernelTest {
protected:
  using Body = llvm::function_ref<Value(KernelBuilder &, Value)>;

  /// y[block of rows] = body(x[block of rows]) with ragged last blocks; views
  /// are [rows, width] and [rows, outWidth].
  void rowBlocks(int64_t rows, int64_t block, int64_t width, int64_t outWidth,
                 Body body, double tolerance = 2e-6) {
    module = ModuleOp::create(UnknownLoc::get(&context));
    MLIRContext *c = &context;
    Symbols s(c);
    SmallVector<Type> views{
        KernelBuilder::viewType(c, {ShapedType::kDynamic, width}),
        KernelBuilder::viewType(c, {ShapedType::kDynamic, outWidth})};
    OpBuilder at = builder();
    KernelBuilder k(at, at.getUnknownLoc(), "rows", {s.tokens.ceilDiv(block)},
                    {Order::parallel}, views);
    Value row = k.mul(k.id(0), k.idx(block)), count = k.dim(k.view(0), 0);
    Value x = k.load(k.view(0), {row, k.idx(0)}, {0, 1}, {block, width}, count);
    k.store(body(k, x), k.view(1), {row, k.idx(0)}, {0, 1}, count);
    ProgramOp program = k.finish();
    HostBuffer in = random({rows, width}), out({rows, outWidth}, kNaN);
    compare(program, {&in, &out}, {rows, 1, rows, 0, 0, 0}, tolerance);
  }
};

} // namespace

TEST_F(KernelOpsTest, Elementwise) {
  for (int64_t width : {1, 3, 4, 7, 8, 16, 24, 33, 64})
    rowBlocks(37, 16, width, width, [&](KernelBuilder &k, Value x) {
      return k.add(k.mul(x, x), k.full(0.5, {16, width}));
    });
}

TEST_F(KernelOpsTest, ReductionsAndBroadcasts) {
  for (int64_t width : {1, 5, 16, 40, 64})
    rowBlocks(37, 16, width, width, [&](KernelBuilder &k, Value x) {
      Value centered = k.sub(x, k.broadcast(k.maximum(x, 1), {16, width}));
      Value p = k.exp(centered);
      return k.mul(p, k.broadcast(k.div(k.full(1.0, {16, 1}), k.sum(p, 1)),
                                  {16, width}));
    });
}

// Whatever the verifier of a program lets through has code.
TEST_F(KernelOpsTest, EveryElementwiseOp) {
  for (llvm::StringRef name : elementwiseOps()) {
    std::string text = elementwiseProgram(name);
    SCOPED_TRACE(text);
    ProgramOp program = parse(text);
    ASSERT_TRUE(program);
    HostBuffer out({2}, kNaN);
    compare(program, {&out}, {1, 1, 1, 0, 0, 0});
  }
}

TEST_F(KernelOpsTest, ColumnReductions) {
  for (int64_t width : {1, 5, 16, 40, 64})
    rowBlocks(37, 16, width, width, [&](KernelBuilder &k, Value x) {
      return k.add(x, k.broadcast(k.sum(x, 0), {16, width}));
    });
}

TEST_F(KernelOpsTest, PrefixSums) {
  for (int64_t width : {1, 5, 16, 40})
    for (unsigned dim : {0u, 1u})
      for (bool reverse : {false, true})
        rowBlocks(37, 16, width, width, [&](KernelBuilder &k, Value x) {
          return k.prefixSum(k.mul(x, x), dim, reverse);
        });
}

TEST_F(KernelOpsTest, UnitLowerInverse) {
  for (int64_t size : {1, 4, 16, 20, 64, 72})
    rowBlocks(size + 3, size, size, size, [&](KernelBuilder &k, Value x) {
      return k.unitLowerInverse(k.mul(x, k.full(0.1, {size, size})));
    });
}

TEST_F(KernelOpsTest, Products) {
  const int64_t shapes[][2] = {{64, 64}, {16, 33}, {5, 16}, {1, 40},
                               {40, 4},  {20, 1},  {96, 48}};
  for (const auto &shape : shapes) {
    int64_t rows = shape[0], depth = shape[1];
    // x xᵀ + 1, then that times x, with either operand written transposed or
    // not.
    for (bool transposed : {false, true})
      rowBlocks(2 * rows, rows, depth, depth, [&](KernelBuilder &k, Value x) {
        Value y = k.mul(x, k.full(0.5, {rows, depth}));
        Value square =
            transposed ? k.dot(x, y, k.full(1.0, {rows, rows}), false, true)
                       : k.dot(x, k.transpose(y), k.full(1.0, {rows, rows}));
        return transposed
                   ? k.dot(square, x, k.zeros({rows, depth}), true)
                   : k.dot(k.transpose(square), x, k.zeros({rows, depth}));
      });
    // xᵀ x, then x times that transposed.
    rowBlocks(2 * rows, rows, depth, depth, [&](KernelBuilder &k, Value x) {
      Value square = k.dot(x, x, k.zeros({depth, depth}), true);
      return k.dot(x, square, x, false, true);
    });
  }
}

TEST_F(KernelOpsTest, SlicesAndConcatenations) {
  rowBlocks(37, 16, 24, 24, [&](KernelBuilder &k, Value x) {
    Value a = k.slice(x, 1, 0, 8), b = k.slice(x, 1, 8, 16);
    return k.concat({k.neg(b), k.mul(a, a)}, 1);
  });
}

TEST_F(KernelOpsTest, Transposes) {
  for (int64_t width : {3, 16, 40})
    rowBlocks(32, 16, width, width, [&](KernelBuilder &k, Value x) {
      Value t = k.transpose(k.mul(x, x));
      return k.transpose(k.add(t, k.broadcast(k.sum(t, 0), {width, 16})));
    });
}

TEST_F(KernelOpsTest, ReshapesThatMoveElements) {
  rowBlocks(32, 16, 12, 12, [&](KernelBuilder &k, Value x) {
    Value r = k.reshape(k.mul(x, x), {8, 24});
    return k.reshape(k.add(r, k.broadcast(k.sum(r, 1), {8, 24})), {16, 12});
  });
  rowBlocks(32, 16, 12, 12, [&](KernelBuilder &k, Value x) {
    Value r = k.reshape(x, {16, 3, 4});
    return k.reshape(k.add(r, k.broadcast(k.sum(r, 1), {16, 3, 4})), {16, 12});
  });
}

TEST_F(KernelOpsTest, MasksFromIndices) {
  rowBlocks(37, 16, 16, 16, [&](KernelBuilder &k, Value x) {
    Value row = k.broadcast(k.iota(0, {16, 1}), {16, 16});
    Value column = k.broadcast(k.iota(1, {1, 16}), {16, 16});
    return k.select(k.le(column, row), x, k.zeros({16, 16}));
  });
}

TEST_F(KernelOpsTest, LoopsCarryTiles) {
  rowBlocks(37, 16, 16, 16, [&](KernelBuilder &k, Value x) {
    auto results =
        k.loop(k.idx(0), k.idx(5), 1, {x, k.zeros({16, 16}), k.sum(x, 1)},
               [&](Value i, ValueRange c) -> KernelBuilder::Values {
                 Value scaled = k.mul(c[0], k.full(0.5, {16, 16}));
                 Value product = k.dot(scaled, x, c[1]);
                 return {scaled, product, k.add(c[2], k.sum(product, 1))};
               });
    return k.add(results[1], k.broadcast(results[2], {16, 16}));
  });
}
