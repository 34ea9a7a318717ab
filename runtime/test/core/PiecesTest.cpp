//===- PiecesTest.cpp - Launches for some rows at a time ------------------===//
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

/// Three launches; 1 and 2 run for every four rows. 1 writes a buffer of a
/// piece, 2 reads it and writes the rows of the loss.
constexpr const char *kPlan = R"({
  "kernels": [{"symbol": "k", "name": "k", "scratch": 0,
               "grid": ["tokens"], "parallel": [true]}],
  "entries": {"loss": {
    "buffers": [
      {"name": "ids", "kind": "ids", "type": "i32", "sizes": ["tokens"]},
      {"name": "wide", "kind": "arena", "type": "f32",
       "sizes": ["tokens", 64], "first": 1, "last": 2, "pieces": 0},
      {"name": "loss", "kind": "loss", "type": "f32", "sizes": ["tokens"]}],
    "launches": [
      {"layer": -1, "op": "before", "alternatives": [
        {"guard": null, "kernel": 0, "views": [
          {"buffer": 0, "offset": 0, "sizes": ["tokens"], "strides": [1]}]}]},
      {"layer": -1, "op": "make", "alternatives": [
        {"guard": null, "kernel": 0, "views": [
          {"buffer": 0, "offset": "row", "sizes": ["tokens"], "strides": [1]},
          {"buffer": 1, "offset": 0, "sizes": ["tokens", 64],
           "strides": [64, 1]}]}]},
      {"layer": -1, "op": "read", "alternatives": [
        {"guard": null, "kernel": 0, "views": [
          {"buffer": 1, "offset": 0, "sizes": ["tokens", 64],
           "strides": [64, 1]},
          {"buffer": 2, "offset": "row", "sizes": ["tokens"],
           "strides": [1]}]}]}],
    "pieces": [{"rows": 4, "first": 1, "last": 2}]}}})";

/// "before 10", "make 4", ...: what runs, and for how many rows.
std::vector<std::string> runsOf(const PlanCase &plan) {
  std::vector<std::string> list;
  for (size_t i = 0; i < plan.made->launches().size(); ++i)
    list.push_back(plan.made->origin(i).label() + " " +
                   std::to_string(plan.made->launches()[i].tasks));
  return list;
}

void expectRefused(const std::string &from, const std::string &to,
                   const std::string &reason, int64_t tokens = 10) {
  PlanCase instance(replaced(kPlan, from, to), tokens);
  EXPECT_FALSE(instance.made) << "accepted; expected: " << reason;
  EXPECT_NE(instance.message.find(reason), std::string::npos)
      << instance.message;
}

} // namespace

TEST(Pieces, RunOneAfterTheOther) {
  PlanCase instance(kPlan, 10);
  ASSERT_TRUE(instance.made) << instance.message;
  EXPECT_EQ(runsOf(instance),
            (std::vector<std::string>{"before 10", "make 4", "read 4", "make 4",
                                      "read 4", "make 2", "read 2"}));
  // The arena has room for a piece.
  EXPECT_EQ(instance.made->arenaBytes(), 4 * 64 * kElementBytes);
  std::vector<int32_t> ids(10);
  std::vector<float> loss(10), arena(256);
  Bindings bindings;
  bindings.ids = ids.data();
  bindings.loss = loss.data();
  bindings.arena = arena.data();
  instance.made->bind(bindings);
  const std::vector<Launch> &launches = instance.made->launches();
  for (size_t piece = 0; piece < 3; ++piece) {
    const Launch &make = launches[1 + 2 * piece],
                 &read = launches[2 + 2 * piece];
    EXPECT_EQ(make.views[0].base, ids.data() + 4 * piece);
    EXPECT_EQ(make.views[1].base, arena.data());
    EXPECT_EQ(read.views[1].base, loss.data() + 4 * piece);
    EXPECT_EQ(read.views[1].sizes[0], piece < 2 ? 4 : 2);
    EXPECT_EQ(make.grid[0], piece < 2 ? 4 : 2);
  }
}

TEST(Pieces, FewRowsAreOnePieceAndNoRowsAreNone) {
  PlanCase few(kPlan, 3);
  ASSERT_TRUE(few.made) << few.message;
  EXPECT_EQ(runsOf(few),
            (std::vector<std::string>{"before 3", "make 3", "read 3"}));
  EXPECT_EQ(few.made->arenaBytes(), 3 * 64 * kElementBytes);
  PlanCase exact(kPlan, 8);
  ASSERT_TRUE(exact.made) << exact.message;
  EXPECT_EQ(runsOf(exact).size(), 5u);
  PlanCase none(kPlan, 0);
  ASSERT_TRUE(none.made) << none.message;
  EXPECT_TRUE(runsOf(none).empty());
}

// Plans come from files.
TEST(Pieces, MalformedListsAreRefused) {
  const std::string list = R"({"rows": 4, "first": 1, "last": 2})";
  expectRefused(list, R"({"rows": 0, "first": 1, "last": 2})",
                "'rows' is 0, at least 1");
  expectRefused(list, R"({"rows": -4, "first": 1, "last": 2})",
                "'rows' is -4, at least 1");
  expectRefused(list, R"({"rows": 4, "first": 2, "last": 1})",
                "launches 2 to 1, which are none");
  expectRefused(list, R"({"rows": 4, "first": 1, "last": 3})",
                "'last' is 3, of 3");
  expectRefused(list, R"({"rows": 4, "first": -1, "last": 2})",
                "'first' is -1, of 3");
  expectRefused(list, list + ", " + list, "stand before the end of the pieces");
  expectRefused(list, "7", "pieces 0");
  expectRefused(R"("pieces": [)", R"("pieces": 7, "x": [)", "'pieces'");
  expectRefused(R"("pieces": 0)", R"("pieces": 1)", "'pieces' is 1, of 1");
}

// Views of a piece are checked like others.
TEST(Pieces, ViewsStayInsideTheirBuffers) {
  expectRefused(R"("offset": "row")", R"("offset": ["add", "row", 1])",
                "a view ends at element 11 of buffer ids, which has 10");
  expectRefused(R"("offset": "row")", R"("offset": ["mul", "row", 2])",
                "buffer ids, which has 10");
  expectRefused(R"("offset": 0, "sizes": ["tokens", 64])",
                R"("offset": "row", "sizes": ["tokens", 64])",
                "a view ends at element 260 of buffer wide, which has 256");
  // Outside of pieces there is no row, and a piece's buffer has no more rows.
  expectRefused(R"("offset": 0, "sizes": ["tokens"])",
                R"("offset": ["add", "row", 1], "sizes": ["tokens"])",
                "a view ends at element 11 of buffer ids");
  expectRefused(R"("pieces": [{"rows": 4, "first": 1)",
                R"("pieces": [{"rows": 4, "first": 2)",
                "a view ends at element 640 of buffer wide, which has 256");
}

// A few bytes must not become memory without end.
TEST(Pieces, TooManyAreRefused) {
  expectRefused(R"("rows": 4)", R"("rows": 1)",
                "launches 1 to 2 of loss for every 1 rows have more than "
                "1048576 views and alternatives",
                int64_t(1) << 31);
  expectRefused(R"("rows": 4)", R"("rows": 1)", "have more than",
                INT64_MAX / 64);
}

// Nor time: each alternative has a guard to evaluate for each piece.
TEST(Pieces, TooManyAlternativesAreRefused) {
  std::string never = R"({"guard": ["le", ["add", "tokens", 1], "tokens"],
                          "kernel": 0, "views": []}, )",
              many;
  for (int i = 0; i < 300; ++i)
    many += never;
  std::string before = R"({"layer": -1, "op": "make", "alternatives": [)";
  PlanCase few(replaced(kPlan, before, before + many), 400);
  EXPECT_TRUE(few.made) << few.message;
  expectRefused(before, before + many,
                "1048576 views and alternatives for tokens 20000", 20000);
}

} // namespace hyb::rt
