//===- FamiliesTest.cpp - programs of the families as machine code -------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whether a program computes its family is tested beside the program; here
// each target's code is held against the program, at sizes where tiles are
// full, ragged and empty.
//
//===----------------------------------------------------------------------===//

#include "../../tools/tile-against-oracle/TokensById.h"
#include "../Tile/RecurrenceHarness.h"
#include "../Tile/SoftmaxReference.h"
// Of the target that the test is built for.
#include <KernelHarness.h>

#include "hybrid/Hybrid/HybridOps.h"
#include "hybrid/Tile/Families/Product.h"
#include "hybrid/Tile/Families/RowProducts.h"
#include "hybrid/Tile/Families/Rows.h"
#include "hybrid/Tile/Families/Rowwise.h"
#include "hybrid/Tile/Families/ShortConv.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using hybrid::target::KernelTest;
using namespace hybrid::tile;

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

namespace {

class SoftmaxKernelTest : public KernelTest {
protected:
  void forwardAndBackward(const SoftmaxShape &s, ArrayRef<int64_t> lengths) {
    module = ModuleOp::create(UnknownLoc::get(&context));
    SegmentBuffers segs = segments(lengths);
    int64_t t = segs.tokens;
    HostBuffer q = random({t, s.heads, s.dim}),
               k = random({t, s.kvHeads, s.dim}),
               v = random({t, s.kvHeads, s.valueDim});
    HostBuffer o({t, s.heads, s.valueDim}, kNaN), lse({t, s.heads}, kNaN);
    int64_t symbols[] = {t, int64_t(lengths.size()), segs.longest, 0, 0, 0};
    OpBuilder b = builder();
    compare(buildSoftmaxForward(b, b.getUnknownLoc(), s),
            {&q, &k, &v, &segs.table, &segs.tokenSegment, &o, &lse}, symbols);
    HostBuffer dout = random({t, s.heads, s.valueDim});
    HostBuffer dq(q.shape(), kNaN), dk(k.shape(), kNaN), dv(v.shape(), kNaN);
    compare(buildSoftmaxBackward(b, b.getUnknownLoc(), s),
            {&q, &k, &v, &o, &lse, &dout, &segs.table, &segs.tokenSegment, &dq,
             &dk, &dv},
            symbols, 1e-5);
  }
  void splitKeys(SoftmaxShape s);
  void steps(const SoftmaxShape &s);
};

} // namespace

TEST_F(SoftmaxKernelTest, Causal) {
  forwardAndBackward(softmaxShape(2, 1, 32, 32, {}, {}, 64, 64),
                     {130, 0, 64, 1});
}

TEST_F(SoftmaxKernelTest, OddWidths) {
  forwardAndBackward(softmaxShape(1, 1, 12, 20, {}, {}, 16, 24), {37, 5});
}

TEST_F(SoftmaxKernelTest, HeadWiseWindowsAndSinks) {
  forwardAndBackward(softmaxShape(4, 2, 16, 16, {0, 5, 20, 0}, {0, 3, 0, 0}),
                     {70, 7});
}

TEST_F(SoftmaxKernelTest, Cached) {
  SoftmaxShape s = softmaxShape(4, 2, 16, 16, {0, 9, 0, 9}, {0, 2, 0, 2});
  int64_t rows = 64;
  SegmentBuffers segs = segments({3, 1, 20}, {40, 0, 8});
  int64_t t = segs.tokens;
  int64_t symbols[] = {t, 3, segs.longest, 3, rows, 0};
  HostBuffer q = random({t, s.heads, s.dim}), k = random({t, s.kvHeads, s.dim}),
             v = random({t, s.kvHeads, s.valueDim});
  HostBuffer kCache = random({3, s.kvHeads, rows, s.dim});
  HostBuffer vCache = random({3, s.kvHeads, rows, s.valueDim});
  HostBuffer o(q.shape(), kNaN);
  OpBuilder b = builder();
  compare(buildSoftmaxAppend(b, b.getUnknownLoc(), s),
          {&k, &v, &kCache, &vCache, &segs.table, &segs.tokenSegment}, symbols);
  compare(buildSoftmaxCached(b, b.getUnknownLoc(), s),
          {&q, &kCache, &vCache, &segs.table, &segs.tokenSegment, &o}, symbols);
}

void SoftmaxKernelTest::splitKeys(SoftmaxShape s) {
  module = ModuleOp::create(UnknownLoc::get(&context));
  s.splits = 3;
  int64_t rows = 96;
  SegmentBuffers segs = segments({1, 2}, {80, 0});
  int64_t t = segs.tokens;
  int64_t symbols[] = {t, 2, segs.longest, 2, rows, 0};
  HostBuffer q = random({t, s.heads, s.dim});
  HostBuffer kCache = random({2, s.kvHeads, rows, s.dim});
  HostBuffer vCache = random({2, s.kvHeads, rows, s.valueDim});
  HostBuffer part({t, s.heads, s.splits, s.valueDim}, kNaN),
      lse({t, s.heads, s.splits}, kNaN);
  HostBuffer o({t, s.heads, s.valueDim}, kNaN);
  OpBuilder b = builder();
  compare(buildSoftmaxSplit(b, b.getUnknownLoc(), s),
          {&q, &kCache, &vCache, &segs.table, &segs.tokenSegment, &part, &lse},
          symbols);
  compare(buildSoftmaxCombine(b, b.getUnknownLoc(), s), {&part, &lse, &o},
          symbols);
}

TEST_F(SoftmaxKernelTest, SplitKeys) { splitKeys(softmaxShape(2, 1, 16, 16)); }

TEST_F(SoftmaxKernelTest, SplitKeysElementwise) {
  for (SoftmaxShape s :
       {softmaxShape(2, 1, 16, 16), softmaxShape(3, 3, 40, 24),
        softmaxShape(4, 2, 16, 16, {20, 20, 9, 30}, {2, 2, 0, 0})}) {
    s.elementwise = true;
    s.queryTile = 1;
    s.keyTile = 16;
    splitKeys(s);
  }
}

/// Two sequences, one of which begins, and one that has no new row.
void SoftmaxKernelTest::steps(const SoftmaxShape &s) {
  module = ModuleOp::create(UnknownLoc::get(&context));
  int64_t rows = 96;
  SegmentBuffers segs = segments({1, 0, 2}, {80, 3, 0});
  int64_t t = segs.tokens;
  int64_t symbols[] = {t, 3, segs.longest, 3, rows, 0};
  HostBuffer q = random({t, s.heads, s.dim}), k = random({t, s.kvHeads, s.dim}),
             v = random({t, s.kvHeads, s.valueDim});
  HostBuffer kCache = random({3, s.kvHeads, rows, s.dim});
  HostBuffer vCache = random({3, s.kvHeads, rows, s.valueDim});
  HostBuffer part({t, s.heads, s.splits, s.valueDim}, kNaN),
      lse({t, s.heads, s.splits}, kNaN), o({t, s.heads, s.valueDim}, kNaN);
  // The same memory in a model; of rows that the program reads nothing changes.
  HostBuffer kUpdated = kCache, vUpdated = vCache;
  SmallVector<HostBuffer *> buffers = {
      &q,        &k,        &v,          &kCache,           &vCache,
      &kUpdated, &vUpdated, &segs.table, &segs.tokenSegment};
  if (s.splits == 1)
    buffers.push_back(&o);
  else
    buffers.append({&part, &lse});
  OpBuilder b = builder();
  SoftmaxStep step{s};
  compare(buildSoftmaxStep(b, b.getUnknownLoc(), step), buffers, symbols);
  if (s.splits == 1)
    return;
  // A product of the rows joins the ranges.
  RowProductsShape product;
  product.depth = s.heads * s.valueDim;
  product.ranges = {s.heads, s.splits, s.valueDim};
  product.matrices = {{24}};
  HostBuffer w = random({24, product.depth}), y({t, 24}, kNaN);
  FailureOr<ProgramOp> joined = buildRowProducts(b, b.getUnknownLoc(), product);
  ASSERT_TRUE(succeeded(joined));
  compare(*joined, {&part, &lse, &w, &y}, symbols);
}

TEST_F(SoftmaxKernelTest, Steps) {
  for (int64_t splits : {1, 3})
    for (SoftmaxShape s :
         {softmaxShape(2, 1, 16, 16), softmaxShape(3, 3, 40, 24),
          softmaxShape(4, 2, 16, 16, {20, 20, 9, 30}, {2, 2, 0, 0})}) {
      s.elementwise = true;
      s.queryTile = 1;
      s.keyTile = 16;
      s.splits = splits;
      steps(s);
    }
}

//===----------------------------------------------------------------------===//
// Recurrence
//===----------------------------------------------------------------------===//

namespace {

struct RecurrenceCase {
  const char *name;
  RecurrenceUpdate update;
  RecurrenceDecay decay;
  int64_t window, stride;
};

const RecurrenceCase kRecurrences[] = {
    {"Additive", RecurrenceUpdate::Additive, RecurrenceDecay::None, 0, 0},
    {"AdditivePerHead", RecurrenceUpdate::Additive, RecurrenceDecay::PerHead, 0,
     0},
    {"AdditivePerChannel", RecurrenceUpdate::Additive,
     RecurrenceDecay::PerChannel, 0, 0},
    {"Delta", RecurrenceUpdate::Delta, RecurrenceDecay::None, 0, 0},
    {"DeltaPerHead", RecurrenceUpdate::Delta, RecurrenceDecay::PerHead, 0, 0},
    {"DeltaPerChannel", RecurrenceUpdate::Delta, RecurrenceDecay::PerChannel, 0,
     0},
    {"SlidingPerHead", RecurrenceUpdate::Delta, RecurrenceDecay::PerHead, 64,
     32},
    {"SlidingPerChannel", RecurrenceUpdate::Additive,
     RecurrenceDecay::PerChannel, 32, 16},
};

void PrintTo(const RecurrenceCase &c, std::ostream *os) { *os << c.name; }

class RecurrenceKernelTest
    : public KernelTest,
      public testing::WithParamInterface<RecurrenceCase> {
protected:
  RecurrenceShape shape() const {
    RecurrenceShape s;
    s.update = GetParam().update;
    s.decay = GetParam().decay;
    s.window = GetParam().window;
    s.stride = GetParam().stride;
    s.heads = 2;
    s.kvHeads = 1;
    s.keyDim = 16;
    s.valueDim = 24;
    s.scale = 0.25;
    return s;
  }

  /// Arguments that forward and backward begin with.
  SmallVector<HostBuffer *> operands(test::Call &call) {
    const RecurrenceShape &s = call.shape;
    SmallVector<HostBuffer *> list{&call.query, &call.key, &call.value,
                                   &segs->table, &segs->tokenSegment};
    if (s.hasDecay())
      list.push_back(&call.decay);
    if (s.hasBeta())
      list.push_back(&call.beta);
    return list;
  }

  test::Call makeCall(const RecurrenceShape &s, ArrayRef<int64_t> lengths,
                      ArrayRef<int64_t> first = {}) {
    std::vector<test::Piece> pieces;
    for (auto [n, length] : llvm::enumerate(lengths))
      pieces.push_back({length, int64_t(n), first.empty() ? 0 : first[n]});
    segs.emplace(segments(lengths, first));
    test::Call call(s, pieces, lengths.size());
    test::fill(call);
    symbols = {segs->tokens,
               int64_t(lengths.size()),
               segs->longest,
               int64_t(lengths.size()),
               0,
               0};
    return call;
  }

  std::optional<SegmentBuffers> segs;
  SmallVector<int64_t> symbols;
};

INSTANTIATE_TEST_SUITE_P(All, RecurrenceKernelTest,
                         testing::ValuesIn(kRecurrences), [](const auto &info) {
                           return std::string(info.param.name);
                         });

} // namespace

TEST_P(RecurrenceKernelTest, Forward) {
  RecurrenceShape s = shape();
  s.hasState = true;
  test::Call call = makeCall(s, {150, 0, 1, 64}, {0, 0, 3, 40});
  SmallVector<HostBuffer *> list = operands(call);
  HostBuffer output({call.query.shape()[0], s.heads, s.valueDim}, kNaN);
  list.push_back(&call.state);
  list.push_back(&output);
  OpBuilder b = builder();
  compare(buildRecurrenceForward(b, b.getUnknownLoc(), s), list, symbols, 5e-6);
}

TEST_P(RecurrenceKernelTest, Step) {
  RecurrenceShape s = shape();
  s.hasState = true;
  test::Call call = makeCall(s, {1, 3, 0}, {70, 0, 3});
  SmallVector<HostBuffer *> list = operands(call);
  HostBuffer output({call.query.shape()[0], s.heads, s.valueDim}, kNaN);
  list.push_back(&call.state);
  list.push_back(&output);
  OpBuilder b = builder();
  compare(buildRecurrenceStep(b, b.getUnknownLoc(), s), list, symbols, 5e-6);
}

TEST_P(RecurrenceKernelTest, Backward) {
  RecurrenceShape s = shape();
  s.hasState = s.hasFinalCotangent = s.window == 0;
  test::Call call = makeCall(s, {150, 0, 1, 64});
  SmallVector<HostBuffer *> list = operands(call);
  HostBuffer dq(call.query.shape(), kNaN), dk(call.key.shape(), kNaN),
      dv(call.value.shape(), kNaN), dg(call.decay.shape(), kNaN),
      dbeta(call.beta.shape(), kNaN);
  if (s.hasState)
    list.push_back(&call.state);
  list.push_back(&call.dOutput);
  if (s.hasState)
    list.push_back(&call.dFinal);
  list.append({&dq, &dk, &dv});
  if (s.hasDecay())
    list.push_back(&dg);
  if (s.hasBeta())
    list.push_back(&dbeta);
  SmallVector<Attribute> constants, rows;
  for (int64_t symbol : symbols)
    constants.push_back(Builder(&context).getI64IntegerAttr(symbol));
  std::vector<HostBuffer> workspaces;
  for (const RecurrenceWorkspace &space :
       recurrenceBackwardWorkspaces(&context, s)) {
    ASSERT_TRUE(succeeded(space.rows.constantFold(constants, rows)));
    SmallVector<int64_t> sizes{cast<IntegerAttr>(rows.back()).getInt()};
    llvm::append_range(sizes, space.sizes);
    workspaces.emplace_back(sizes, kNaN);
  }
  for (HostBuffer &workspace : workspaces)
    list.push_back(&workspace);
  OpBuilder b = builder();
  compare(buildRecurrenceBackward(b, b.getUnknownLoc(), s), list, symbols,
          2e-5);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

namespace {

class ProductKernelTest : public KernelTest {
protected:
  void check(const ProductShape &s, int64_t stream) {
    module = ModuleOp::create(UnknownLoc::get(&context));
    auto sizeOf = [&](int64_t size) {
      return ShapedType::isDynamic(size) ? stream : size;
    };
    int64_t rows = sizeOf(s.rows), depth = sizeOf(s.depth);
    HostBuffer a = s.transposeA ? random({depth, rows}) : random({rows, depth});
    HostBuffer b =
        s.transposeB ? random({s.columns, depth}) : random({depth, s.columns});
    HostBuffer c = s.accumulate ? random({rows, s.columns})
                                : HostBuffer({rows, s.columns}, kNaN);
    OpBuilder at = builder();
    compare(buildProduct(at, at.getUnknownLoc(), s), {&a, &b, &c},
            {stream, 1, stream, 0, 0, 0});
  }
  static constexpr int64_t kStream = ShapedType::kDynamic;
};

} // namespace

TEST_F(ProductKernelTest, RowsTimesWeights) {
  check({kStream, 300, 272, false, true}, 150);
  check({kStream, 24, 40, false, true}, 0);
  check({kStream, 24, 40, false, true}, 1);
}

TEST_F(ProductKernelTest, GradientOfRows) { check({kStream, 136, 64}, 137); }

TEST_F(ProductKernelTest, GradientOfWeights) {
  check({72, 136, kStream, true, false, true}, 133);
}

TEST_F(ProductKernelTest, FewRows) {
  ProductShape s{kStream, 132, 72, false, true};
  s.rowTile = 8;
  check(s, 11);
}

TEST_F(ProductKernelTest, OneRow) {
  for (int64_t columns : {64, 72}) {
    ProductShape s{kStream, columns, 200, false, true};
    s.rowTile = 1;
    s.columnTile = 32;
    check(s, 3);
  }
}

TEST_F(ProductKernelTest, RowsThatReadSeveralMatrices) {
  for (auto [columns, depth] :
       {std::pair<int64_t, int64_t>{64, 512}, {70, 600}, {16, 40}}) {
    module = ModuleOp::create(UnknownLoc::get(&context));
    RowProductsShape s;
    s.depth = depth;
    s.depthTile = 512;
    s.columnTile = 8;
    s.matrices = {{columns}, {3 * columns}};
    HostBuffer a = random({3, depth}), b = random({columns, depth}),
               wide = random({3 * columns, depth}), c({3, columns}, kNaN),
               d({3, 3 * columns}, kNaN);
    OpBuilder at = builder();
    FailureOr<ProgramOp> program = buildRowProducts(at, at.getUnknownLoc(), s);
    ASSERT_TRUE(succeeded(program));
    compare(*program, {&a, &b, &wide, &c, &d}, {3, 1, 3, 0, 0, 0});
  }
}

// A processor's share of the matrices, multiplied in pieces; on a GPU it is
// asked for before the kernel in front has ended.
TEST_F(ProductKernelTest, RowsThatReadTheirShareEarly) {
  for (int64_t columns : {48, 70}) {
    module = ModuleOp::create(UnknownLoc::get(&context));
    RowProductsShape s;
    s.depth = 512;
    s.columnTile = 24;
    s.matrices = {{columns}, {3 * columns}};
    HostBuffer a = random({2, 512}), b = random({columns, 512}),
               wide = random({3 * columns, 512}), c({2, columns}, kNaN),
               d({2, 3 * columns}, kNaN);
    OpBuilder at = builder();
    FailureOr<ProgramOp> program = buildRowProducts(at, at.getUnknownLoc(), s);
    ASSERT_TRUE(succeeded(program));
    (*program)->setAttr(TileDialect::kOverlapAttr,
                        at.getDenseI64ArrayAttr({1, 2}));
    compare(*program, {&a, &b, &wide, &c, &d}, {2, 1, 2, 0, 0, 0});
  }
}

TEST_F(ProductKernelTest, SplitDepth) {
  module = ModuleOp::create(UnknownLoc::get(&context));
  ProductShape s{72, 136, kStream, true, false, true};
  s.rowTile = s.columnTile = 64;
  s.depthTile = 32;
  s.splits = 3;
  // The last part has no depth left.
  HostBuffer a = random({61, 72}), b = random({61, 136}),
             parts({3, 72, 136}, kNaN);
  OpBuilder at = builder();
  compare(buildProduct(at, at.getUnknownLoc(), s), {&a, &b, &parts},
          {61, 1, 61, 0, 0, 0});
}

TEST_F(ProductKernelTest, SumOfParts) {
  module = ModuleOp::create(UnknownLoc::get(&context));
  ProductShape s{72, 136, kStream, true, false, true};
  s.rowTile = 16;
  s.columnTile = 128;
  s.splits = 3;
  HostBuffer parts = random({3, 72, 136}), c = random({72, 136});
  OpBuilder at = builder();
  compare(buildProductSum(at, at.getUnknownLoc(), s), {&parts, &c},
          {61, 1, 61, 0, 0, 0});
}

//===----------------------------------------------------------------------===//
// Short convolutions
//===----------------------------------------------------------------------===//

namespace {

class ShortConvKernelTest : public KernelTest {
protected:
  /// With 136 channels a tile of 128 would not divide them.
  void forwardAndBackward(ShortConvShape s, ArrayRef<int64_t> lengths,
                          int64_t walked, int64_t backwardWalked) {
    module = ModuleOp::create(UnknownLoc::get(&context));
    SegmentBuffers segs = segments(lengths);
    int64_t t = segs.tokens, slots = lengths.size();
    int64_t symbols[] = {t, slots, segs.longest, slots, 0, 0};
    HostBuffer x = random({t, s.channels}), w = random({s.channels, s.kernel});
    HostBuffer state = random({slots, s.kernel - 1, s.channels});
    HostBuffer y(x.shape(), kNaN), dy = random(x.shape()), dx(x.shape(), kNaN);
    OpBuilder b = builder();
    s.walkedTokens = walked;
    s.hasState = true;
    compare(buildShortConvForward(b, b.getUnknownLoc(), s),
            {&x, &w, &segs.table, &segs.tokenSegment, &state, &y}, symbols);
    s.hasState = false;
    module = ModuleOp::create(UnknownLoc::get(&context));
    b = builder();
    compare(buildShortConvForward(b, b.getUnknownLoc(), s),
            {&x, &w, &segs.table, &segs.tokenSegment, &y}, symbols);
    s.walkedTokens = backwardWalked;
    s.partTokens = 96;
    HostBuffer parts(
        {(t + s.partTokens - 1) / s.partTokens, s.channels * s.kernel}, kNaN);
    HostBuffer dw(w.shape(), kNaN);
    compare(buildShortConvBackward(b, b.getUnknownLoc(), s),
            {&x, &w, &segs.table, &segs.tokenSegment, &dy, &dx,
             backwardWalked > 0 ? &parts : &dw},
            symbols);
  }
};

} // namespace

TEST_F(ShortConvKernelTest, Blocks) {
  forwardAndBackward({24, 3}, {70, 0, 1, 64}, 0, 0);
}

TEST_F(ShortConvKernelTest, Walked) {
  forwardAndBackward({256, 4}, {70, 0, 1, 64, 100}, 8, 4);
  forwardAndBackward({136, 2}, {3, 200}, 8, 8);
}

//===----------------------------------------------------------------------===//
// Embedding
//===----------------------------------------------------------------------===//

using EmbedKernelTest = KernelTest;

TEST_F(EmbedKernelTest, GradientByBlocksOfRows) {
  module = ModuleOp::create(UnknownLoc::get(&context));
  constexpr int64_t tokens = 1100;
  EmbedShape shape{100, 136};
  shape.pointRows = 4;
  shape.turns = 8;
  HostBuffer ids({tokens}, 0.0), dy = random({tokens, shape.width});
  for (auto [n, id] : llvm::enumerate(ids.elements()))
    id = double(n * n % shape.vocab);
  HostBuffer table({shape.vocab, shape.width}, kNaN);
  OpBuilder b = builder();
  compare(buildEmbedGrad(b, b.getUnknownLoc(), shape), {&ids, &dy, &table},
          {tokens, 1, tokens, 0, 0, 0}, 1e-5);
}

// Rows of one point, and of two of which the second is ragged.
TEST_F(EmbedKernelTest, GradientInTheOrderOfIds) {
  for (int64_t width : {136, 2100}) {
    module = ModuleOp::create(UnknownLoc::get(&context));
    constexpr int64_t tokens = 300;
    EmbedShape shape{100, width};
    HostBuffer ids({tokens}, 0.0);
    for (int64_t t = 0; t < tokens; ++t)
      ids({t}) = t % 5 == 0 ? 3 : t * t % shape.vocab;
    HostBuffer byId = tokensById(ids.elements()), dy = random({tokens, width}),
               table = random({shape.vocab, width});
    OpBuilder b = builder();
    compare(buildEmbedGradByIds(b, b.getUnknownLoc(), shape),
            {&byId, &dy, &table}, {tokens, 1, tokens, 0, 0, 0}, 1e-5);
  }
}

//===----------------------------------------------------------------------===//
// Losses
//===----------------------------------------------------------------------===//

using LossKernelTest = KernelTest;

// Several tiles of columns of which the last is ragged, as are the rows.
TEST_F(LossKernelTest, AdjointWithStatistics) {
  constexpr int64_t tokens = 19;
  CrossEntropyShape shape{1100, 512, 4};
  shape.hasStatistics = true;
  HostBuffer logits = random({tokens, shape.vocab}), weights = random({tokens});
  HostBuffer labels({tokens}, -100.0);
  for (int64_t n = 0; n < tokens; n += 3)
    labels({n}) = double(n * n * n % shape.vocab);
  HostBuffer loss({tokens}, kNaN), largest({tokens}, kNaN), sum({tokens}, kNaN);
  int64_t symbols[] = {tokens, 1, tokens, 0, 0, 0};
  module = ModuleOp::create(UnknownLoc::get(&context));
  OpBuilder b = builder();
  compare(buildCrossEntropy(b, b.getUnknownLoc(), shape),
          {&logits, &labels, &weights, &loss, &largest, &sum}, symbols);
  HostBuffer known({tokens}, 3.5), total({tokens}, 700.0);
  HostBuffer dlogits(logits.shape(), kNaN);
  module = ModuleOp::create(UnknownLoc::get(&context));
  b = builder();
  compare(buildCrossEntropyGrad(b, b.getUnknownLoc(), shape),
          {&logits, &labels, &weights, &known, &total, &dlogits}, symbols);
}

//===----------------------------------------------------------------------===//
// Row-wise regions
//===----------------------------------------------------------------------===//

using RowwiseKernelTest = KernelTest;

// Several blocks of rows of a part, which a GPU copies ahead, and a cut one.
TEST_F(RowwiseKernelTest, SumsOverRows) {
  constexpr int64_t width = 512, tokens = 77;
  context.loadDialect<hybrid::HybridDialect, func::FuncDialect>();
  auto graph = parseSourceString<ModuleOp>(R"mlir(
    func.func @f(%x: tensor<?x512xf32>, %dy: tensor<?x512xf32>, %w: tensor<512xf32>)
        -> (tensor<?x512xf32>, tensor<?x512xf32>) {
      %0:2 = hybrid.rowwise (%a = %x : tensor<?x512xf32>, %b = %dy : tensor<?x512xf32>, %c = %w : tensor<512xf32>)
          -> (tensor<?x512xf32>, tensor<?x512xf32>) {
        %n = hybrid.normalize rms %a epsilon 0.5 : tensor<?x512xf32>
        %g = hybrid.mul %n, %b : tensor<?x512xf32>, tensor<?x512xf32>
        %m = hybrid.mul %b, %c : tensor<?x512xf32>, tensor<512xf32>
        %d = hybrid.silu %m : tensor<?x512xf32>
        hybrid.yield %g, %d : tensor<?x512xf32>, tensor<?x512xf32>
      }
      return %0#0, %0#1 : tensor<?x512xf32>, tensor<?x512xf32>
    })mlir",
                                           &context);
  ASSERT_TRUE(graph) << reported;
  auto function = *graph->getOps<func::FuncOp>().begin();
  RowSums sums;
  sums.summed = {true, false};
  module = ModuleOp::create(UnknownLoc::get(&context));
  OpBuilder b = builder();
  auto program = buildRowwiseSums(b, &function.getBody().front().front(), sums,
                                  /*blockElements=*/4096);
  ASSERT_TRUE(succeeded(program)) << reported;
  HostBuffer x = random({tokens, width}), dy = random({tokens, width});
  HostBuffer w = random({width}), d({tokens, width}, kNaN);
  HostBuffer parts({(tokens + sums.part - 1) / sums.part, width}, kNaN);
  compare(*program, {&x, &dy, &w, &parts, &d}, {tokens, 1, tokens, 0, 0, 0},
          1e-5);
}
