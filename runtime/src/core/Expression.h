//===- Expression.h - Integer expressions of a plan -------------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sizes, offsets, grids and guards of a plan are expressions of six capacities.
// They come from a file, so every step is checked.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CORE_EXPRESSION_H
#define HYBRID_RUNTIME_CORE_EXPRESSION_H

#include "core/Status.h"

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace hyb::rt {

/// What describes a call, in the order of architecture.md section 2, and in
/// launches that run for some rows at a time the first of them; else that is 0.
struct Symbols {
  enum Index { Tokens, Segments, Longest, Slots, Context, Depth, Row, Count };

  std::array<int64_t, Count> values = {};

  int64_t operator[](Index index) const { return values[index]; }
  int64_t &operator[](Index index) { return values[index]; }
  bool operator==(const Symbols &other) const { return values == other.values; }

  static const char *name(size_t index);
  /// "tokens 8, segments 1, ..."
  std::string text() const;
};

/// An integer expression in postfix form.
class Expression {
public:
  Expression() : Expression(0) {}
  explicit Expression(int64_t value) : steps{{Op::Constant, value}} {}

  /// `["add", "tokens", 1]`; `where` names the expression in messages.
  static Result<Expression> fromJson(const nlohmann::json &value,
                                     const std::string &where);

  /// Nothing when a step overflows or divides by zero.
  std::optional<int64_t> evaluate(const Symbols &symbols) const;

private:
  enum class Op : uint8_t {
    Constant,
    Symbol,
    Add,
    Mul,
    FloorDiv,
    CeilDiv,
    Min,
    Max
  };
  struct Step {
    Op op;
    int64_t value; // of a constant; index of a symbol
  };

  static Status append(const nlohmann::json &value, const std::string &where,
                       std::vector<Step> &steps);
  static bool apply(Op op, int64_t a, int64_t b, int64_t *result);

  std::vector<Step> steps;
  /// The deepest that the stack of an evaluation gets.
  static constexpr size_t kMaxStack = 64;
};

/// The value of a size, stride, offset or grid: never negative. `where` names
/// what it is of.
Result<int64_t> evaluateSize(const Expression &expression,
                             const Symbols &symbols, const std::string &where);
/// The error where there is none.
Status sizeOverflow(const std::string &where, const Symbols &symbols);

/// A conjunction of comparisons.
class Predicate {
public:
  static Result<Predicate> fromJson(const nlohmann::json &value,
                                    const std::string &where);

  std::optional<bool> evaluate(const Symbols &symbols) const;

private:
  enum class Relation : uint8_t { LessEqual, GreaterEqual, Equal };
  struct Comparison {
    Relation relation;
    Expression left, right;
  };

  static Status append(const nlohmann::json &value, const std::string &where,
                       std::vector<Comparison> &terms);

  std::vector<Comparison> terms;
};

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_CORE_EXPRESSION_H
