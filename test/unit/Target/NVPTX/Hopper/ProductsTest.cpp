//===- ProductsTest.cpp - products as strategies write them ---------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The three products of training in the tiles and with the records of
// lib/Schedule, run on the host beside the tile interpreter, and assembled.
//
//===----------------------------------------------------------------------===//

#include "KernelsFixture.h"

#include "../../../../../lib/Schedule/WarpgroupProduct.h"
#include "hybrid/Target/NVPTX/Compile.h"
#include "hybrid/Tile/Passes.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::hopper;
using hybrid::tile::HostBuffer;

namespace {

class HopperProducts : public KernelsFixture {
protected:
  /// y = x Wᵀ of `columns` and `depth`.
  tile::ProductShape forward(int64_t columns, int64_t depth) {
    tile::ProductShape s;
    s.columns = columns, s.depth = depth;
    s.transposeB = true;
    s.element = s.resultElement = BFloat16Type::get(&context);
    return s;
  }
  /// dx = dy W.
  tile::ProductShape inputGradient(int64_t columns, int64_t depth) {
    tile::ProductShape s = forward(columns, depth);
    s.transposeB = false;
    return s;
  }
  /// dW = dyᵀ x, in f32.
  tile::ProductShape weightGradient(int64_t rows, int64_t columns) {
    tile::ProductShape s;
    s.rows = rows, s.columns = columns;
    s.depth = ShapedType::kDynamic;
    s.transposeA = true;
    s.element = BFloat16Type::get(&context);
    return s;
  }

  /// The program of a product in tiles of at most `columns`, and its record.
  void build(tile::ProductShape shape, int64_t columns = 256) {
    context.loadDialect<HopperDialect>();
    TargetTraits target = *lookupTarget("cuda:sm_90a");
    if (!isPersistent)
      target.persistentDepth = 0;
    tiled = tiledForWarpgroups(shape, target, columns);
    programs = ModuleOp::create(UnknownLoc::get(&context));
    OpBuilder builder = OpBuilder::atBlockEnd(programs->getBody());
    recordProduct(tile::buildProduct(builder, builder.getUnknownLoc(), tiled),
                  tiled, target);
    PassManager passes(&context);
    OpPassManager &nested = passes.nest<tile::ProgramOp>();
    nested.addPass(createHybridNarrowProducts());
    nested.addPass(createCanonicalizerPass());
    nested.addPass(createCSEPass());
    ASSERT_TRUE(succeeded(passes.run(*programs))) << reported;
  }

  /// With `tokens` for the size that is not known, on whole numbers, whose sums
  /// are exact in f32.
  void compareOn(int64_t tokens, double tolerance) {
    makeKernel();
    auto sized = [&](int64_t size) {
      return ShapedType::isDynamic(size) ? tokens : size;
    };
    int64_t m = sized(tiled.rows), n = tiled.columns, k = sized(tiled.depth);
    HostBuffer a(tiled.transposeA ? SmallVector<int64_t>{k, m}
                                  : SmallVector<int64_t>{m, k},
                 0),
        b(tiled.transposeB ? SmallVector<int64_t>{n, k}
                           : SmallVector<int64_t>{k, n},
          0),
        c(tiled.splits > 1 ? SmallVector<int64_t>{tiled.splits, m, n}
                           : SmallVector<int64_t>{m, n},
          NAN);
    fill(a, 1, true);
    fill(b, 2, true);
    if (tiled.accumulate)
      fill(c, 3, true);
    compare({&a, &b, &c}, {tokens, 1, tokens, 1, 0, 0}, {2}, tolerance);
  }

  tile::ProductShape tiled;
  /// Whether blocks take a tile after another.
  bool isPersistent = true;
};

/// Half of the distance of two neighbouring bf16 numbers of the results, which
/// are below 512, twice: one rounding each.
constexpr double kNarrow = 1.01;

} // namespace

TEST_F(HopperProducts, Forward) {
  // Columns and depth that do not fill their last tiles.
  build(forward(136, 200));
  EXPECT_EQ(tiled.columnTile, 192);
  for (int64_t tokens : {1, 200})
    compareOn(tokens, kNarrow);
}

TEST_F(HopperProducts, ABlockPerTile) {
  isPersistent = false;
  build(forward(136, 200));
  compareOn(200, kNarrow);
  EXPECT_FALSE(kernel().isPersistent());
}

TEST_F(HopperProducts, ForwardInF16) {
  tile::ProductShape shape = forward(64, 128);
  shape.element = shape.resultElement = Float16Type::get(&context);
  build(shape);
  compareOn(130, kNarrow);
}

TEST_F(HopperProducts, Logits) {
  // Stored as f32, in fours; an odd number of columns one by one.
  for (int64_t columns : {128, 65}) {
    tile::ProductShape shape = forward(columns, 64);
    shape.resultElement = {};
    build(shape);
    compareOn(70, 0.0);
  }
}

TEST_F(HopperProducts, InputGradient) {
  build(inputGradient(136, 200));
  for (int64_t tokens : {1, 200})
    compareOn(tokens, kNarrow);
}

TEST_F(HopperProducts, WeightGradient) {
  build(weightGradient(136, 72));
  for (int64_t tokens : {0, 1, 130})
    compareOn(tokens, 0.0);
}

TEST_F(HopperProducts, WeightGradientInRangesOfDepth) {
  tile::ProductShape shape = weightGradient(64, 64);
  shape.splits = 3;
  build(shape);
  // Ranges of three, of two and of no tokens.
  for (int64_t tokens : {500, 100})
    compareOn(tokens, 0.0);
}

TEST_F(HopperProducts, WeightGradientThatIsAdded) {
  tile::ProductShape shape = weightGradient(72, 64);
  shape.accumulate = true;
  build(shape);
  compareOn(100, 0.0);
}

TEST_F(HopperProducts, PointsOneAfterAnother) {
  // Three points for two blocks, each with a copy more than the ring has.
  tile::ProductShape shape = forward(64, 64 * 7);
  build(shape);
  compareOn(300, kNarrow);
  EXPECT_TRUE(kernel().isPersistent());
}

TEST_F(HopperProducts, APointThatKeepsItsCopiesIsADeadlock) {
  build(forward(64, 64 * 7));
  makeKernel();
  // The releases behind the loop of a point.
  kernel()->walk([](ArriveOp arrive) {
    auto loop = arrive->getParentOfType<scf::ForOp>();
    if (!loop->getParentOfType<scf::ForOp>())
      arrive->erase();
  });
  HostBuffer a({600, 448}, 1), b({64, 448}, 1), c({600, 64}, NAN);
  tile::HostView views[] = {a.view(), b.view(), c.view()};
  std::string fault =
      sim::simulate(kernel(), views, {600, 1, 600, 1, 0, 0}, {});
  EXPECT_NE(fault.find("deadlock"), std::string::npos) << fault;
}

// Tiles of the whole width at the sizes of models.
TEST_F(HopperProducts, CodeHasNoSpillsAndNothingIsSerialised) {
  if (nvptx::findAssembler().empty())
    GTEST_SKIP() << "no ptxas";
  tile::ProductShape logits = forward(128256, 1024),
                     ranges = weightGradient(1024, 1024),
                     added = weightGradient(1024, 3584);
  logits.resultElement = {};
  ranges.splits = 4;
  added.accumulate = true;
  struct Case {
    tile::ProductShape shape;
    int64_t columns;
  } cases[] = {
      {forward(3584, 1024), 256},
      {forward(1000, 1024), 256},
      {forward(1024, 1024), 128},
      {logits, 256},
      {inputGradient(1536, 5120), 256},
      {inputGradient(1000, 1536), 256},
      {ranges, 256},
      {added, 256},
  };
  for (auto &[shape, columns] : cases) {
    // Every other one a block per tile.
    isPersistent = !isPersistent;
    build(shape, columns);
    auto code = nvptx::compile(*programs, scheduled().getSymName(), "sm_90a");
    ASSERT_TRUE(succeeded(code)) << reported;
    EXPECT_EQ(code->kernels.front().maps.size(), 2u);
    auto assembled =
        nvptx::assemble(UnknownLoc::get(&context), code->ptx, "sm_90a");
    ASSERT_TRUE(succeeded(assembled)) << reported;
    const nvptx::KernelResources &used = assembled->kernels.front();
    std::string what = std::to_string(shape.columns) + " columns, depth " +
                       std::to_string(shape.depth);
    EXPECT_EQ(used.spillStores + used.spillLoads, 0) << what;
    EXPECT_EQ(used.stack, 0) << what;
    EXPECT_TRUE(used.notices.empty()) << what << used.notices.front();
  }
}
