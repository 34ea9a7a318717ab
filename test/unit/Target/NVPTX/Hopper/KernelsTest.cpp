//===- KernelsTest.cpp - hopper kernels, run on the host ------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelsFixture.h"

#include "hybrid/Target/NVPTX/Compile.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::hopper;
using hybrid::tile::HostBuffer;
using hybrid::tile::HostView;

namespace {

class HopperKernels : public KernelsFixture {
protected:
  /// A program of bench/programs with other sizes, and its kernel beside it.
  void load(StringRef file,
            ArrayRef<std::pair<StringRef, StringRef>> replacements) {
    context.loadDialect<HopperDialect>();
    std::string path = (HYBRID_PROGRAMS "/" + file).str();
    auto text = llvm::MemoryBuffer::getFile(path);
    ASSERT_TRUE(bool(text)) << path;
    source = (*text)->getBuffer().str();
    for (auto [from, to] : replacements) {
      ASSERT_NE(source.find(from.str()), std::string::npos) << from.str();
      for (size_t at = 0;
           (at = source.find(from.str(), at)) != std::string::npos;
           at += to.size())
        source.replace(at, from.size(), to.str());
    }
    programs = parseSourceString<ModuleOp>(source, &context);
    ASSERT_TRUE(programs) << reported;
    makeKernel();
  }

  void loadProduct(StringRef element = "bf16") {
    // 256 columns and depth 448: seven tiles, not a multiple of the copies.
    load("product-bf16-hopper.mlir",
         {{"<8192x8192x", "<256x448x"},
          {"!matrix = !tile.view<?x8192xbf16>",
           "!matrix = !tile.view<?x448xbf16>\n!sums = !tile.view<?x256xbf16>"},
          {"%c: !matrix", "%c: !sums"},
          {"%c, 0 : !matrix", "%c, 0 : !sums"},
          {"xbf16>, !matrix\n", "xbf16>, !sums\n"},
          {"constant 8192", "constant 448"},
          {", 32)>", ", 1)>"},
          {"bf16", element}});
  }
  void loadAttention(int64_t dim) {
    load("softmax-forward-bf16-hopper-" + std::to_string(dim) + ".mlir",
         {{"?x16x", "?x2x"}, {"(s, 16,", "(s, 2,"}});
  }
  void compareProduct(int64_t rows) {
    HostBuffer a({rows, 448}, 0), b({256, 448}, 0), c({rows, 256}, NAN);
    fill(a, 1, true);
    fill(b, 2, true);
    compare({&a, &b, &c}, {rows, 1, rows, 1, 0, 0}, {2}, 1.01);
  }
  /// Sequences of one stream; rows of the others are NaN when `only` is given.
  void compareAttention(int64_t dim, ArrayRef<int64_t> lengths,
                        int64_t poisoned = -1) {
    int64_t tokens = 0, longest = 0;
    for (int64_t length : lengths) {
      tokens += length;
      longest = std::max(longest, length);
    }
    int64_t segments = lengths.size();
    HostBuffer q({tokens, 2, dim}, 0), k({tokens, 2, dim}, 0),
        v({tokens, 2, dim}, 0), table({segments, 4}, 0), owner({tokens}, 0),
        o({tokens, 2, dim}, 0), lse({tokens, 2}, 0);
    fill(q, 1), fill(k, 2), fill(v, 3);
    int64_t begin = 0;
    for (auto [n, length] : llvm::enumerate(lengths)) {
      table({int64_t(n), 0}) = double(begin);
      table({int64_t(n), 1}) = double(begin + length);
      for (int64_t row = begin; row < begin + length; ++row) {
        owner({row}) = double(n);
        if (int64_t(n) == poisoned)
          for (int64_t d = 0; d < 2 * dim; ++d)
            k({row, d / dim, d % dim}) = v({row, d / dim, d % dim}) = NAN;
      }
      begin += length;
    }
    if (poisoned >= 0) {
      // Its own rows, and no others, are what is not a number.
      std::vector<HostView> views;
      for (HostBuffer *buffer : {&q, &k, &v, &table, &owner, &o, &lse})
        views.push_back(buffer->view());
      ASSERT_EQ(sim::simulate(kernel(), views,
                              {tokens, segments, longest, 1, 0, 0}, {}),
                "");
      for (int64_t row = 0; row < tokens; ++row)
        EXPECT_EQ(std::isnan(o({row, 1, 5})), int64_t(owner({row})) == poisoned)
            << row;
      return;
    }
    compare({&q, &k, &v, &table, &owner, &o, &lse},
            {tokens, segments, longest, 1, 0, 0}, {5, 6}, 8e-3);
  }

  /// What the simulator says of the product with one kind of op left out.
  template <typename Op>
  std::string withoutFirst(llvm::function_ref<bool(Op)> chosen,
                           sim::Policy policy, int64_t rows = 128) {
    Op found;
    kernel()->walk([&](Op op) {
      if (!found && chosen(op))
        found = op;
    });
    EXPECT_TRUE(found);
    found->erase();
    HostBuffer a({rows, 448}, 1), b({256, 448}, 1), c({rows, 256}, NAN);
    HostView views[] = {a.view(), b.view(), c.view()};
    return sim::simulate(kernel(), views, {rows, 1, rows, 1, 0, 0}, policy);
  }

  std::string source;
};

bool isInLoader(Operation *op) {
  while (!isa<RolesOp>(op->getParentOp()))
    op = op->getParentOp();
  return op->getParentRegion()->getRegionNumber() == 0;
}

} // namespace

TEST_F(HopperKernels, Product) {
  loadProduct();
  compareProduct(128);
}

TEST_F(HopperKernels, ProductInF16) {
  loadProduct("f16");
  compareProduct(128);
}

TEST_F(HopperKernels, ProductOfRowsThatDoNotFill) {
  loadProduct();
  for (int64_t rows : {1, 200})
    compareProduct(rows);
}

TEST_F(HopperKernels, AttentionOfHeadDim128) {
  loadAttention(128);
  compareAttention(128, {300});
}

TEST_F(HopperKernels, AttentionOfHeadDim64) {
  loadAttention(64);
  compareAttention(64, {1, 130, 0, 128});
}

TEST_F(HopperKernels, AnotherSequenceDoesNotReachIn) {
  loadAttention(64);
  compareAttention(64, {70, 150, 60}, /*poisoned=*/1);
}

//===----------------------------------------------------------------------===//
// Faults are found
//===----------------------------------------------------------------------===//

TEST_F(HopperKernels, AProductThatDoesNotWaitIsFound) {
  loadProduct();
  std::string fault =
      withoutFirst<WaitOp>([](WaitOp op) { return !isInLoader(op); },
                           {Choice::LastRole, Events::Late, 1});
  EXPECT_NE(fault.find("has not arrived"), std::string::npos) << fault;
}

TEST_F(HopperKernels, ACopyThatDoesNotWaitIsFound) {
  loadProduct();
  std::string fault =
      withoutFirst<WaitOp>([](WaitOp op) { return isInLoader(op); },
                           {Choice::Random, Events::Random, 1});
  EXPECT_NE(fault.find("still reads"), std::string::npos) << fault;
}

TEST_F(HopperKernels, AReleaseTooEarlyIsFound) {
  loadProduct();
  // Copies are released when all but two products have ended: as if one more
  // had.
  kernel()->walk([](ProductWaitOp wait) {
    if (wait.getFlights().empty())
      wait.setPending(8);
  });
  HostBuffer a({128, 448}, 1), b({256, 448}, 1), c({128, 256}, NAN);
  HostView views[] = {a.view(), b.view(), c.view()};
  std::string fault = sim::simulate(kernel(), views, {128, 1, 128, 1, 0, 0},
                                    {Choice::FirstRole, Events::Late, 1});
  for (unsigned seed = 1; fault.empty() && seed < 20; ++seed)
    fault = sim::simulate(kernel(), views, {128, 1, 128, 1, 0, 0},
                          {Choice::Random, Events::Random, seed});
  EXPECT_NE(fault.find("still reads"), std::string::npos) << fault;
}

TEST_F(HopperKernels, AMissingReleaseIsADeadlock) {
  loadProduct();
  std::string fault = withoutFirst<ArriveOp>([](ArriveOp) { return true; }, {});
  EXPECT_NE(fault.find("deadlock"), std::string::npos) << fault;
}

TEST_F(HopperKernels, AMissingFenceIsFound) {
  loadProduct();
  std::string fault =
      withoutFirst<ProductFenceOp>([](auto) { return true; }, {});
  EXPECT_NE(fault.find("without a fence"), std::string::npos) << fault;
}

TEST_F(HopperKernels, ClearedRowsNeedABarrier) {
  loadAttention(64);
  kernel()->walk([](SyncOp sync) {
    if (isa<ClearRowsOp>(sync->getPrevNode()))
      sync->erase();
  });
  HostBuffer q({100, 2, 64}, 1), k({100, 2, 64}, 1), v({100, 2, 64}, 1),
      table({1, 4}, 0), owner({100}, 0), o({100, 2, 64}, 0), lse({100, 2}, 0);
  table({0, 1}) = 100;
  HostView views[] = {q.view(),     k.view(), v.view(),  table.view(),
                      owner.view(), o.view(), lse.view()};
  std::string fault =
      sim::simulate(kernel(), views, {100, 1, 100, 1, 0, 0}, {});
  EXPECT_NE(fault.find("without a barrier"), std::string::npos) << fault;
}

TEST_F(HopperKernels, TurnsInTheWrongOrderAreADeadlock) {
  loadAttention(64);
  // Without the first turn given away nobody begins.
  SignalOp first;
  kernel()->walk([&](SignalOp op) { first = first ? first : op; });
  first->erase();
  HostBuffer q({256, 2, 64}, 1), k({256, 2, 64}, 1), v({256, 2, 64}, 1),
      table({1, 4}, 0), owner({256}, 0), o({256, 2, 64}, 0), lse({256, 2}, 0);
  table({0, 1}) = 256;
  HostView views[] = {q.view(),     k.view(), v.view(),  table.view(),
                      owner.view(), o.view(), lse.view()};
  std::string fault =
      sim::simulate(kernel(), views, {256, 1, 256, 1, 0, 0}, {});
  EXPECT_NE(fault.find("deadlock"), std::string::npos) << fault;
}

//===----------------------------------------------------------------------===//
// Grids and code
//===----------------------------------------------------------------------===//

TEST_F(HopperKernels, EveryPointHasOneBlock) {
  loadProduct();
  for (int64_t group : {1, 4, 16})
    for (bool descends : {false, true}) {
      kernel().setGroup(group);
      kernel().setDescending(descends ? ArrayRef<int64_t>{0}
                                      : ArrayRef<int64_t>{});
      int64_t sizes[] = {10, 7};
      std::set<std::pair<int64_t, int64_t>> seen;
      for (int64_t task = 0; task < 70; ++task) {
        auto point = sim::pointOf(kernel(), sizes, task);
        seen.insert({point[0], point[1]});
      }
      EXPECT_EQ(seen.size(), 70u);
    }
}

TEST_F(HopperKernels, CodeHasNoSpillsAndNothingIsSerialised) {
  if (nvptx::findAssembler().empty())
    GTEST_SKIP() << "no ptxas";
  for (StringRef file :
       {"product-bf16-hopper.mlir", "softmax-forward-bf16-hopper-128.mlir",
        "softmax-forward-bf16-hopper-64.mlir"}) {
    load(file, {});
    auto code = nvptx::compile(*programs, scheduled().getSymName(), "sm_90a");
    ASSERT_TRUE(succeeded(code)) << reported;
    const nvptx::Kernel &made = code->kernels.front();
    EXPECT_EQ(made.threads, 384);
    EXPECT_EQ(made.maps.size(), file.starts_with("product") ? 2u : 3u);
    auto assembled =
        nvptx::assemble(UnknownLoc::get(&context), code->ptx, "sm_90a");
    ASSERT_TRUE(succeeded(assembled)) << reported;
    const nvptx::KernelResources &used = assembled->kernels.front();
    EXPECT_EQ(used.spillStores + used.spillLoads, 0) << file.str();
    EXPECT_EQ(used.stack, 0) << file.str();
    // What a block of three warpgroups starts with; roles change it.
    EXPECT_EQ(used.registers, 168) << file.str();
    EXPECT_TRUE(used.notices.empty()) << file.str() << used.notices.front();
    EXPECT_NE(code->ptx.find("setmaxnreg.inc.sync.aligned.u32 240"),
              std::string::npos);
  }
}

TEST_F(HopperKernels, TheGenericPathStaysWithoutARecord) {
  loadProduct();
  for (auto schedule :
       llvm::make_early_inc_range(programs->getOps<tile::ScheduleOp>()))
    schedule.erase();
  // 128 x 256 sums are more than it has registers for; 128 x 64 fit.
  auto code = nvptx::compile(*programs, scheduled().getSymName(), "sm_90a");
  ASSERT_TRUE(succeeded(code)) << reported;
  EXPECT_TRUE(code->kernels.front().maps.empty());
  EXPECT_EQ(code->ptx.find("wgmma"), std::string::npos);
}
