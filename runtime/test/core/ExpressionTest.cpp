//===- ExpressionTest.cpp ------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/Expression.h"

#include "core/Plan.h"
#include "io/Json.h"

#include <gtest/gtest.h>

using namespace hyb::rt;

namespace {

const Symbols kSymbols = {{10, 3, 7, 2, 64, 4}};

std::optional<int64_t> valueOf(const char *text) {
  auto expression = Expression::fromJson(Json::parse(text), "test");
  EXPECT_TRUE(expression.ok()) << expression.status().message();
  return expression->evaluate(kSymbols);
}

std::string refusal(const char *text) {
  auto expression = Expression::fromJson(Json::parse(text), "test");
  return expression.ok() ? "accepted" : expression.status().message();
}

std::optional<bool> truthOf(const char *text) {
  auto predicate = Predicate::fromJson(Json::parse(text), "test");
  EXPECT_TRUE(predicate.ok()) << predicate.status().message();
  return predicate->evaluate(kSymbols);
}

} // namespace

TEST(Expression, Evaluates) {
  EXPECT_EQ(valueOf("-5"), -5);
  EXPECT_EQ(valueOf("\"tokens\""), 10);
  EXPECT_EQ(valueOf("\"depth\""), 4);
  EXPECT_EQ(valueOf(R"(["add", ["mul", "tokens", 3], "segments"])"), 33);
  EXPECT_EQ(valueOf(R"(["ceildiv", "tokens", 4])"), 3);
  EXPECT_EQ(valueOf(R"(["floordiv", "tokens", 4])"), 2);
  EXPECT_EQ(valueOf(R"(["floordiv", -7, 2])"), -4);
  EXPECT_EQ(valueOf(R"(["ceildiv", -7, 2])"), -3);
  EXPECT_EQ(valueOf(R"(["ceildiv", 7, -2])"), -3);
  EXPECT_EQ(valueOf(R"(["min", "longest", ["max", "slots", 5]])"), 5);
}

TEST(Expression, NoticesOverflow) {
  EXPECT_EQ(valueOf(R"(["mul", 4611686018427387904, 2])"), std::nullopt);
  EXPECT_EQ(valueOf(R"(["add", 9223372036854775807, 1])"), std::nullopt);
  EXPECT_EQ(valueOf(R"(["floordiv", 1, 0])"), std::nullopt);
  EXPECT_EQ(valueOf(R"(["ceildiv", -9223372036854775808, -1])"), std::nullopt);
  EXPECT_EQ(valueOf(R"(["mul", -9223372036854775808, -1])"), std::nullopt);
}

TEST(Expression, RefusesWhatIsNotOne) {
  EXPECT_EQ(refusal("\"batch\""), "test: unknown symbol 'batch'");
  EXPECT_EQ(refusal(R"(["pow", 1, 2])"), "test: unknown operation 'pow'");
  const char *reason = "test: not an integer, a symbol or an operation of two";
  EXPECT_EQ(refusal("1.5"), reason);
  EXPECT_EQ(refusal("18446744073709551615"), reason);
  EXPECT_EQ(refusal(R"(["add", 1])"), reason);
  EXPECT_EQ(refusal("{}"), reason);
}

TEST(Predicate, Evaluates) {
  EXPECT_EQ(truthOf(R"(["le", "tokens", 10])"), true);
  EXPECT_EQ(truthOf(R"(["le", "tokens", 9])"), false);
  EXPECT_EQ(truthOf(R"(["ge", "tokens", 11])"), false);
  EXPECT_EQ(truthOf(R"(["and", ["eq", "slots", 2], ["ge", "context", 1]])"),
            true);
  EXPECT_EQ(truthOf(R"(["and", ["eq", "slots", 1], ["ge", "context", 1]])"),
            false);
  EXPECT_EQ(truthOf(R"(["eq", ["floordiv", 1, 0], 0])"), std::nullopt);
  EXPECT_FALSE(Predicate::fromJson(Json::parse(R"(["lt", 1, 2])"), "x").ok());
}

TEST(Json, RefusesDuplicatesAndDepth) {
  auto parse = [](const std::string &text) {
    auto value = parseJsonObject(
        {reinterpret_cast<const uint8_t *>(text.data()), text.size()}, "it");
    return value.ok() ? "accepted" : value.status().message();
  };
  EXPECT_EQ(parse("{\"a\": {\"b\": 1}, \"c\": [{\"b\": 1}, {\"b\": 2}]}"),
            "accepted");
  EXPECT_EQ(parse("{\"a\": 1, \"a\": 2}"), "it: 'a' is named twice");
  EXPECT_EQ(parse("{\"a\": {\"b\": 1, \"b\": 2}}"), "it: 'b' is named twice");
  EXPECT_EQ(parse("{\"a\": " + std::string(100000, '[')),
            "it: nested deeper than 64");
  EXPECT_EQ(parse("[]"), "it: not a JSON object in UTF-8");
  EXPECT_EQ(parse("{} {}"), "it: not a JSON object in UTF-8");
  EXPECT_EQ(parse("{\"\xc3\": 1}"), "it: not a JSON object in UTF-8");
}
