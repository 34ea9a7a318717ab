//===- ProductsTest.cpp - Launches that are matrix products ---------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PlanCase.h"

#include <gtest/gtest.h>

namespace hyb::rt {
namespace {

/// Parts of a product and their sum, then the loss from it in pieces of rows:
/// few columns of the rows of `x` times `t`, for three rows or more.
constexpr const char *kPlan = R"({
  "kernels": [{"symbol": "k", "name": "k", "scratch": 0,
               "grid": ["tokens"], "parallel": [true]}],
  "entries": {"loss": {
    "buffers": [
      {"name": "x", "kind": "arena", "type": "f32",
       "sizes": ["tokens", 16], "first": 0, "last": 2},
      {"name": "p", "kind": "arena", "type": "f32", "sizes": [2, 16, 16],
       "first": 0, "last": 1},
      {"name": "t", "kind": "arena", "type": "f32", "sizes": [16, 16],
       "first": 1, "last": 2},
      {"name": "loss", "kind": "loss", "type": "f32", "sizes": ["tokens"]},
      {"name": "ids", "kind": "ids", "type": "i32", "sizes": ["tokens"]}],
    "launches": [
      {"layer": -1, "op": "parts", "alternatives": [
        {"guard": null, "kernel": 0, "views": [
          {"buffer": 0, "offset": 0, "sizes": ["tokens", 16], "strides": [16, 1]},
          {"buffer": 0, "offset": 0, "sizes": ["tokens", 16], "strides": [16, 1]},
          {"buffer": 1, "offset": 0, "sizes": [2, 16, 16],
           "strides": [256, 16, 1]}]}]},
      {"layer": -1, "op": "sum", "alternatives": [
        {"guard": null, "kernel": 0, "views": [
          {"buffer": 1, "offset": 0, "sizes": [2, 16, 16],
           "strides": [256, 16, 1]},
          {"buffer": 2, "offset": 0, "sizes": [16, 16], "strides": [16, 1]}],
         "product": {"a": 0, "b": 1, "c": 1, "transpose_a": true,
                     "parts": true}}]},
      {"layer": -1, "op": "loss", "alternatives": [
        {"guard": ["le", "tokens", 2], "kernel": 0, "views": [
          {"buffer": 4, "offset": 0, "sizes": ["tokens"], "strides": [1]}]},
        {"guard": null, "kernel": 0, "views": [
          {"buffer": 0, "offset": ["add", 4, ["mul", "row", 16]],
           "sizes": ["tokens", 8], "strides": [16, 1]},
          {"buffer": 2, "offset": 64, "sizes": [1, 8], "strides": [0, 1]},
          {"buffer": 3, "offset": "row", "sizes": ["tokens", 1],
           "strides": [1, 1]}],
         "product": {"a": 0, "b": 1, "c": 2, "transpose_b": true,
                     "accumulate": true}}]}],
    "pieces": [{"rows": 4, "first": 2, "last": 2}]}}})";

/// Takes what it is given, or nothing.
struct Taker : ProductLibrary {
  bool takes = true;
  std::vector<ProductShape> shapes;
  Result<std::shared_ptr<const LibraryProduct>>
  choose(const PlanKernel &, const ProductShape &shape) override {
    shapes.push_back(shape);
    return takes ? std::make_shared<const LibraryProduct>("taken")
                 : std::shared_ptr<const LibraryProduct>();
  }
};

/// "sum taken" for what the library computes, else "sum k".
std::vector<std::string> ran(const PlanCase &plan) {
  std::vector<std::string> names;
  for (size_t i = 0; i < plan.made->launches().size(); ++i)
    names.push_back(plan.made->origin(i).op + " " + plan.made->workerName(i));
  return names;
}

using Names = std::vector<std::string>;

TEST(PlanProducts, AreGivenToTheLibraryPieceByPiece) {
  Taker taker;
  PlanCase instance(kPlan, 7, &taker);
  ASSERT_TRUE(instance.made) << instance.message;
  EXPECT_EQ(ran(instance), (Names{"sum taken", "loss taken", "loss taken"}));
  ASSERT_EQ(taker.shapes.size(), 3u);
  const ProductShape &sum = taker.shapes[0], &rest = taker.shapes[2];
  EXPECT_EQ(sum.text(), "16 x 16 x 7 in f32");
  EXPECT_TRUE(sum.transposeA && !sum.transposeB && !sum.accumulate);
  EXPECT_EQ(sum.alignA, 256);
  EXPECT_EQ(rest.text(), "3 x 1 x 8 in f32");
  EXPECT_TRUE(!rest.transposeA && rest.transposeB && rest.accumulate);
  EXPECT_EQ(rest.strideA, 16);
  // Of an arena whose buffers begin at multiples of 256 bytes.
  EXPECT_EQ(rest.alignA, 16);
  EXPECT_EQ(rest.alignB, 256);
  // Four elements of the loss, which begins at such a multiple too, are before.
  EXPECT_EQ(rest.alignC, 16);
  const Launch &launch = instance.made->launches()[2];
  EXPECT_EQ(launch.viewCount, 3u);
  EXPECT_EQ(launch.views[0].sizes[0], 3);
  EXPECT_EQ(launch.views[2].sizes[1], 1);
  EXPECT_EQ(instance.made->kernelOf(2), nullptr);
}

// What parts are made in takes no room then.
TEST(PlanProducts, NeedNoMemoryForParts) {
  Taker taker;
  PlanCase without(kPlan, 7, nullptr), with(kPlan, 7, &taker);
  ASSERT_TRUE(without.made && with.made);
  EXPECT_EQ(ran(without), (Names{"parts k", "sum k", "loss k", "loss k"}));
  EXPECT_EQ(without.made->arenaBytes() - with.made->arenaBytes(), 2048);
}

TEST(PlanProducts, ThatTheLibraryDoesNotTakeAreKernels) {
  Taker taker;
  taker.takes = false;
  PlanCase instance(kPlan, 7, &taker);
  ASSERT_TRUE(instance.made) << instance.message;
  EXPECT_EQ(ran(instance), (Names{"parts k", "sum k", "loss k", "loss k"}));
  EXPECT_EQ(instance.made->launches()[0].viewCount, 3u);
  EXPECT_EQ(instance.made->planView(2, 0).buffer, 0u);
}

// A call chooses among alternatives before anybody is asked.
TEST(PlanProducts, OfOtherAlternativesAreNotAskedFor) {
  Taker taker;
  PlanCase instance(kPlan, 2, &taker);
  ASSERT_TRUE(instance.made) << instance.message;
  EXPECT_EQ(ran(instance), (Names{"sum taken", "loss k"}));
}

// The parts belong to a list of pieces and the sum does not, or the other way.
TEST(PlanProducts, AcrossTheEdgeOfPiecesAreKernels) {
  Taker taker;
  std::string plan = replaced(kPlan, R"("first": 2, "last": 2}])",
                              R"("first": 1, "last": 2}])");
  PlanCase instance(plan, 4, &taker);
  ASSERT_TRUE(instance.made) << instance.message;
  EXPECT_EQ(ran(instance), (Names{"parts k", "sum k", "loss taken"}));
}

TEST(PlanProducts, BadMarksAreRefused) {
  const std::vector<
      std::pair<std::pair<const char *, const char *>, const char *>>
      cases = {
          {{R"("a": 0, "b": 1, "c": 1)", R"("a": 3, "b": 1, "c": 1)"},
           "launch 1: a product of view 3, which is no matrix, of 3 views"},
          {{R"("a": 0, "b": 1, "c": 1)", R"("a": 0, "b": 2, "c": 1)"},
           "a product of view 2, which is no matrix, of 3 views"},
          {{R"("a": 0, "b": 1, "c": 1)", R"("a": 0, "b": 1, "c": 2)"},
           "a product of view 2, which is no matrix, of 2 views"},
          {{R"("a": 0, "b": 1, "c": 1)", R"("a": -1, "b": 1, "c": 1)"},
           "'a' is -1"},
          {{R"("a": 0, "b": 1, "c": 1)", R"("a": 0, "b": 1)"}, "'c'"},
          {{R"("parts": true)", R"("parts": 1)"},
           "'parts' is number, expected a truth value"},
          {{R"("product": {"a": 0, "b": 1, "c": 1, "transpose_a": true,
                     "parts": true})",
            R"("product": 3)"},
           "'product'"},
          {{R"("accumulate": true)", R"("parts": true)"},
           "launch 2: a product of parts and no launch in front of it, or one "
           "of the two has alternatives"},
          {{R"("buffer": 2, "offset": 64)", R"("buffer": 4, "offset": 0)"},
           "launch 2: a product of f32 and i32 in f32"},
          {{R"("sizes": [1, 8], "strides": [0, 1])",
            R"("sizes": [1, 9], "strides": [0, 1])"},
           "launch loss of loss: factor or result 1 of a product is 1 x 9 with "
           "strides 0 and 1, expected 1 x 8 row by row"},
          {{R"("sizes": ["tokens", 8], "strides": [16, 1])",
            R"("sizes": ["tokens", 8], "strides": [7, 1])"},
           "factor or result 0 of a product is 4 x 8 with strides 7 and 1"},
          {{R"("sizes": ["tokens", 8], "strides": [16, 1])",
            R"("sizes": ["tokens", 8], "strides": [16, 2])"},
           "with strides 16 and 2, expected 4 x 8 row by row"},
          {{R"("sizes": ["tokens", 1],)", R"("sizes": [1, 1],)"},
           "factor or result 0 of a product is 4 x 8"}};
  for (const auto &[change, expected] : cases) {
    Taker taker;
    PlanCase instance(replaced(kPlan, change.first, change.second), 7, &taker);
    EXPECT_FALSE(instance.made) << change.second;
    EXPECT_NE(instance.message.find(expected), std::string::npos)
        << change.second << ": " << instance.message;
  }
}

} // namespace
} // namespace hyb::rt
