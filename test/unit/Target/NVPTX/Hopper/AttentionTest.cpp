//===- AttentionTest.cpp - attention of the softmax family on warpgroups --===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelsFixture.h"

#include "hybrid/Target/NVPTX/Compile.h"
#include "hybrid/Tile/Families/SoftmaxWarpgroups.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::hopper;
using hybrid::tile::HostBuffer;
using hybrid::tile::HostView;

namespace {

tile::SoftmaxShape shapeOf(int64_t heads, int64_t kvHeads, int64_t dim,
                           ArrayRef<int64_t> windows = {},
                           ArrayRef<int64_t> sinks = {}) {
  tile::SoftmaxShape s;
  s.heads = heads;
  s.kvHeads = kvHeads;
  s.dim = s.valueDim = dim;
  s.scale = 1.0 / std::sqrt(double(dim));
  s.windows.assign(windows.begin(), windows.end());
  s.sinks.assign(sinks.begin(), sinks.end());
  s.windows.resize(heads, 0);
  s.sinks.resize(heads, 0);
  return s;
}

/// The kernels of one attention beside their programs in the interpreter.
class HopperAttention : public KernelsFixture {
protected:
  using Build = tile::ProgramOp (*)(OpBuilder &, Location,
                                    const tile::SoftmaxShape &);

  void make(Build build, tile::SoftmaxShape shape) {
    s = shape;
    s.element = BFloat16Type::get(&context);
    programs = ModuleOp::create(UnknownLoc::get(&context));
    OpBuilder b = OpBuilder::atBlockEnd(programs->getBody());
    ASSERT_TRUE(build(b, b.getUnknownLoc(), s));
    ASSERT_TRUE(succeeded(verify(*programs))) << reported;
    makeKernel();
  }

  /// Data of sequences of these lengths.
  struct Data {
    Data(const tile::SoftmaxShape &s, ArrayRef<int64_t> lengths,
         ArrayRef<int64_t> first = {})
        : segs(segments(lengths, first)),
          symbols{segs.tokens, int64_t(lengths.size()), segs.longest, 1, 0, 0},
          q({segs.tokens, s.heads, s.dim}, 0),
          k({segs.tokens, s.kvHeads, s.dim}, 0), v(k), o(q), dout(q), dq(q),
          dk(k), dv(v), lse({segs.tokens, s.heads}, 0),
          shift({s.heads, segs.tokens}, 0), delta(shift) {
      fill(q, 1), fill(k, 2), fill(v, 3), fill(dout, 4);
    }
    SegmentBuffers segs;
    int64_t symbols[6];
    HostBuffer q, k, v, o, dout, dq, dk, dv, lse, shift, delta;
  };

  void compareForward(const tile::SoftmaxShape &shape,
                      ArrayRef<int64_t> lengths, ArrayRef<int64_t> first = {}) {
    make(tile::buildSoftmaxForwardWarpgroups, shape);
    Data d(s, lengths, first);
    compare(forward(d), d.symbols, {5, 6}, 8e-3);
  }
  std::vector<HostBuffer *> forward(Data &d) {
    return {&d.q, &d.k,  &d.v, &d.segs.table, &d.segs.tokenSegment,
            &d.o, &d.lse};
  }

  /// Both kernels of the adjoint, with the row terms of the forward.
  void compareBackward(const tile::SoftmaxShape &shape,
                       ArrayRef<int64_t> lengths,
                       ArrayRef<int64_t> first = {}) {
    make(tile::buildSoftmaxForwardWarpgroups, shape);
    Data d(s, lengths, first);
    run(scheduled(), forward(d), d.symbols);
    OpBuilder b = OpBuilder::atBlockEnd(programs->getBody());
    run(tile::buildSoftmaxRowTerms(b, b.getUnknownLoc(), s),
        {&d.o, &d.lse, &d.dout, &d.shift, &d.delta}, d.symbols);
    std::vector<HostBuffer *> views{
        &d.q,     &d.k,     &d.v,          &d.dout,
        &d.shift, &d.delta, &d.segs.table, &d.segs.tokenSegment};
    make(tile::buildSoftmaxBackwardQueriesWarpgroups, shape);
    views.push_back(&d.dq);
    compare(views, d.symbols, {8}, 2e-2);
    views.pop_back();
    make(tile::buildSoftmaxBackwardKeysWarpgroups, shape);
    views.push_back(&d.dk);
    views.push_back(&d.dv);
    compare(views, d.symbols, {8, 9}, 2e-2);
  }

  tile::SoftmaxShape s;
};

} // namespace

TEST_F(HopperAttention, ForwardOfGroupedHeads) {
  compareForward(shapeOf(2, 1, 64), {130, 0, 1});
}

TEST_F(HopperAttention, ForwardOfWindowsAndSinks) {
  compareForward(shapeOf(2, 2, 64, {70, 30}, {4, 0}), {290, 40}, {0, 2});
}

TEST_F(HopperAttention, ForwardOverACache) {
  make(tile::buildSoftmaxCachedWarpgroups, shapeOf(2, 1, 64));
  HostBuffer q({150, 2, 64}, 0), k({2, 1, 260, 64}, NAN), v(k),
      table({2, 4}, 0), owner({150}, 0), o(q);
  fill(q, 1);
  // 110 rows after 70 in slot 1, 40 rows after none in slot 0; what lies behind
  // them is not a number.
  const double rows[2][4] = {{0, 110, 1, 70}, {110, 150, 0, 0}};
  HostBuffer newK({260, 64}, 0), newV(newK);
  fill(newK, 2), fill(newV, 3);
  for (int64_t n = 0; n < 2; ++n) {
    for (int64_t c = 0; c < 4; ++c)
      table({n, c}) = rows[n][c];
    int64_t count = n == 0 ? 180 : 40;
    for (int64_t at = 0; at < count; ++at)
      for (int64_t c = 0; c < 64; ++c) {
        k({1 - n, 0, at, c}) = newK({at, c});
        v({1 - n, 0, at, c}) = newV({at, c});
      }
  }
  compare({&q, &k, &v, &table, &owner, &o}, {150, 2, 110, 2, 260, 0}, {5},
          8e-3);
}

TEST_F(HopperAttention, Backward) {
  compareBackward(shapeOf(1, 1, 128), {140});
}

TEST_F(HopperAttention, BackwardOfRaggedSequencesInGroups) {
  compareBackward(shapeOf(2, 1, 64), {1, 0, 70});
}

TEST_F(HopperAttention, BackwardOfWindowsAndSinks) {
  compareBackward(shapeOf(2, 1, 64, {70, 30}, {4, 0}), {170}, {2});
}

TEST_F(HopperAttention, AnotherSequenceDoesNotReachIntoGradients) {
  make(tile::buildSoftmaxBackwardKeysWarpgroups, shapeOf(1, 1, 64));
  Data d(s, {70, 100, 60});
  for (int64_t row = 70; row < 170; ++row) {
    d.shift({0, row}) = d.delta({0, row}) = NAN;
    for (int64_t c = 0; c < 64; ++c)
      for (HostBuffer *buffer : {&d.q, &d.k, &d.v, &d.dout})
        (*buffer)({row, 0, c}) = NAN;
  }
  std::vector<HostView> views;
  for (HostBuffer *buffer : {&d.q, &d.k, &d.v, &d.dout, &d.shift, &d.delta,
                             &d.segs.table, &d.segs.tokenSegment, &d.dk, &d.dv})
    views.push_back(buffer->view());
  ASSERT_EQ(sim::simulate(kernel(), views, d.symbols, {}), "");
  for (int64_t row = 0; row < 230; ++row)
    EXPECT_EQ(std::isnan(d.dv({row, 0, 5})), row >= 70 && row < 170) << row;
}

/// What a loop loads is free when the last of its products has ended.
TEST_F(HopperAttention, AReleaseBeforeTheLastProductIsFound) {
  make(tile::buildSoftmaxBackwardKeysWarpgroups, shapeOf(1, 1, 64));
  // Queries are released behind the scores, not behind dk in the next
  // iteration.
  SmallVector<ArriveOp> releases;
  kernel()->walk([&](ArriveOp op) { releases.push_back(op); });
  ASSERT_EQ(releases.size(), 2u);
  Operation *firstWait = nullptr;
  kernel()->walk([&](ProductWaitOp op) {
    firstWait = firstWait ? firstWait : op.getOperation();
  });
  releases.front()->moveAfter(firstWait);
  releases.front().getIndexMutable().assign(releases.back().getIndex());
  Data d(s, {300});
  std::string fault;
  for (unsigned seed = 1; fault.empty() && seed < 20; ++seed) {
    std::vector<HostView> views;
    for (HostBuffer *buffer :
         {&d.q, &d.k, &d.v, &d.dout, &d.shift, &d.delta, &d.segs.table,
          &d.segs.tokenSegment, &d.dk, &d.dv})
      views.push_back(buffer->view());
    fault = sim::simulate(kernel(), views, d.symbols,
                          {Choice::Random, Events::Random, seed});
  }
  // The copy that comes too early is seen by itself or by the next product.
  bool isFound = fault.find("still reads") != std::string::npos ||
                 fault.find("has not arrived") != std::string::npos;
  EXPECT_TRUE(isFound) << fault;
}

TEST_F(HopperAttention, CodeHasNoSpillsAndNothingIsSerialised) {
  if (nvptx::findAssembler().empty())
    GTEST_SKIP() << "no ptxas";
  const std::pair<StringRef, Build> kBuilds[] = {
      {"forward", tile::buildSoftmaxForwardWarpgroups},
      {"cached", tile::buildSoftmaxCachedWarpgroups},
      {"keys", tile::buildSoftmaxBackwardKeysWarpgroups},
      {"queries", tile::buildSoftmaxBackwardQueriesWarpgroups}};
  const std::pair<StringRef, tile::SoftmaxShape> kShapes[] = {
      {"128", shapeOf(16, 16, 128)},
      {"64", shapeOf(16, 16, 64)},
      {"grouped", shapeOf(16, 4, 128)},
      {"windows", shapeOf(16, 4, 128, {512, 512, 0, 64}, {4, 4, 0, 0})}};
  for (const auto &[shapeName, shape] : kShapes)
    for (auto [name, build] : kBuilds) {
      if (name == "cached" && shape.anyWindow())
        continue;
      std::string which = (name + " " + shapeName).str();
      make(build, shape);
      auto code = nvptx::compile(*programs, scheduled().getSymName(), "sm_90a");
      ASSERT_TRUE(succeeded(code)) << which << reported;
      auto assembled =
          nvptx::assemble(UnknownLoc::get(&context), code->ptx, "sm_90a");
      ASSERT_TRUE(succeeded(assembled)) << which << reported;
      const nvptx::KernelResources &used = assembled->kernels.front();
      EXPECT_EQ(used.spillStores + used.spillLoads, 0) << which;
      EXPECT_EQ(used.stack, 0) << which;
      EXPECT_EQ(used.registers, 168) << which;
      EXPECT_TRUE(used.notices.empty()) << which << used.notices.front();
    }
}
