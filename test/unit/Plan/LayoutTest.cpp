//===- LayoutTest.cpp - where tensors lie in buffers -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Hybrid/HybridOps.h"
#include "hybrid/Plan/MemoryPlan.h"
#include <gtest/gtest.h>

using namespace hybrid;
using mlir::RankedTensorType;

namespace {

constexpr int64_t dynamic = mlir::ShapedType::kDynamic;

class LayoutTest : public testing::Test {
protected:
  LayoutTest() { context.loadDialect<HybridDialect>(); }
  RankedTensorType type(llvm::ArrayRef<int64_t> shape) {
    return RankedTensorType::get(shape, mlir::Float32Type::get(&context));
  }
  /// Values for tokens = 10.
  llvm::SmallVector<int64_t> values(llvm::ArrayRef<mlir::AffineExpr> exprs) {
    llvm::SmallVector<int64_t> result;
    for (mlir::AffineExpr expr : exprs)
      result.push_back(*evaluate(expr, {10, 2, 8, 3, 64, 0}));
    return result;
  }
  using Values = llvm::SmallVector<int64_t>;
  mlir::MLIRContext context;
};

TEST_F(LayoutTest, ContiguousIsRowMajor) {
  Layout layout = Layout::contiguous(type({dynamic, 4, 16}));
  EXPECT_EQ(values(layout.sizes), (Values{10, 4, 16}));
  EXPECT_EQ(values(layout.strides), (Values{64, 16, 1}));
}

TEST_F(LayoutTest, SliceKeepsStrides) {
  Layout layout = Layout::contiguous(type({dynamic, 4, 16})).sliced(1, 1, 2);
  EXPECT_EQ(values({layout.offset}), (Values{16}));
  EXPECT_EQ(values(layout.sizes), (Values{10, 2, 16}));
  EXPECT_EQ(values(layout.strides), (Values{64, 16, 1}));
}

TEST_F(LayoutTest, ReshapeOfASliceMergesWhatIsEven) {
  Layout layout = Layout::contiguous(type({dynamic, 4, 16})).sliced(1, 1, 2);
  auto rows = layout.reshaped(type({dynamic, 32}));
  ASSERT_TRUE(rows);
  EXPECT_EQ(values(rows->strides), (Values{64, 1}));
  auto heads = rows->reshaped(type({dynamic, 2, 16}));
  ASSERT_TRUE(heads);
  EXPECT_EQ(*heads, layout);
  auto halves = rows->reshaped(type({dynamic, 4, 8}));
  ASSERT_TRUE(halves);
  EXPECT_EQ(values(halves->strides), (Values{64, 8, 1}));
}

TEST_F(LayoutTest, ReshapeAcrossAGapNeedsACopy) {
  Layout layout = Layout::contiguous(type({8, 4, 16})).sliced(2, 0, 8);
  EXPECT_FALSE(layout.reshaped(type({8, 32})));
  EXPECT_TRUE(layout.reshaped(type({8, 4, 2, 4})));
  EXPECT_FALSE(layout.reshaped(type({8, 4, 16})));
}

TEST_F(LayoutTest, ReshapeWithDimsOfSizeOne) {
  Layout layout = Layout::contiguous(type({dynamic, 4}));
  auto wide = layout.reshaped(type({dynamic, 4, 1}));
  ASSERT_TRUE(wide);
  EXPECT_EQ(values(wide->strides), (Values{4, 1, 1}));
  auto back = wide->reshaped(type({dynamic, 4}));
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, layout);
}

// One head of a wider row: the dim of size 1 has no bearing on what is even.
TEST_F(LayoutTest, ReshapeOfOneHeadOfAWiderRow) {
  Layout head = Layout::contiguous(type({dynamic, 4, 16})).sliced(1, 2, 1);
  auto row = head.reshaped(type({dynamic, 16}));
  ASSERT_TRUE(row);
  EXPECT_EQ(values({row->offset}), (Values{32}));
  EXPECT_EQ(values(row->strides), (Values{64, 1}));
  auto back = row->reshaped(type({dynamic, 1, 16}));
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, head);
  EXPECT_FALSE(head.reshaped(type({dynamic, 4, 16})));
}

TEST_F(LayoutTest, EvaluationNoticesOverflow) {
  mlir::AffineExpr tokens = mlir::getAffineSymbolExpr(0, &context);
  SymbolValues huge = {int64_t(1) << 62, 0, 0, 0, 0, 0};
  EXPECT_FALSE(evaluate(tokens * 4, huge));
  EXPECT_FALSE(evaluate(tokens + tokens, huge));
  EXPECT_EQ(evaluate(tokens.floorDiv(4), huge), int64_t(1) << 60);
  EXPECT_EQ(evaluate(tokens.ceilDiv(3), {10, 0, 0, 0, 0, 0}), 4);
  EXPECT_EQ(evaluate(tokens % 4, {10, 0, 0, 0, 0, 0}), 2);
  mlir::AffineExpr segments = mlir::getAffineSymbolExpr(1, &context);
  EXPECT_FALSE(evaluate(tokens.floorDiv(segments), {10, 0, 0, 0, 0, 0}));
}

} // namespace
