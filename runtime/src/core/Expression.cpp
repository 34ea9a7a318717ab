//===- Expression.cpp ----------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/Expression.h"

#include "core/Checked.h"
#include "io/Json.h"

#include <algorithm>

namespace hyb::rt {

namespace {

constexpr const char *kSymbolNames[Symbols::Count] = {
    "tokens", "segments", "longest", "slots", "context", "depth", "row"};

Status malformed(const std::string &where, const char *expected) {
  return failure(HYB_INVALID_FILE, "%s: not %s", where.c_str(), expected);
}

/// `["name", a, b]`: the name, or nothing when the value is not of that form.
const std::string *operationName(const Json &value) {
  if (!value.is_array() || value.size() != 3 || !value[0].is_string())
    return nullptr;
  return &value[0].get_ref<const std::string &>();
}

} // namespace

const char *Symbols::name(size_t index) { return kSymbolNames[index]; }

std::string Symbols::text() const {
  std::string result;
  for (size_t i = 0; i < Row; ++i)
    result += (i ? ", " : "") + std::string(kSymbolNames[i]) + " " +
              std::to_string(values[i]);
  if (values[Row] > 0)
    result += ", row " + std::to_string(values[Row]);
  return result;
}

// Recursion is bounded: the JSON reader refuses nesting beyond 64.
Status Expression::append(const Json &value, const std::string &where,
                          std::vector<Step> &steps) {
  if (std::optional<int64_t> number = jsonAsInteger(value)) {
    steps.push_back({Op::Constant, *number});
    return Status();
  }
  if (value.is_string()) {
    const std::string &text = value.get_ref<const std::string &>();
    for (size_t i = 0; i < Symbols::Count; ++i)
      if (text == kSymbolNames[i]) {
        steps.push_back({Op::Symbol, static_cast<int64_t>(i)});
        return Status();
      }
    return failure(HYB_INVALID_FILE, "%s: unknown symbol '%.32s'",
                   where.c_str(), text.c_str());
  }
  static constexpr std::pair<const char *, Op> kOps[] = {
      {"add", Op::Add},         {"mul", Op::Mul}, {"floordiv", Op::FloorDiv},
      {"ceildiv", Op::CeilDiv}, {"min", Op::Min}, {"max", Op::Max}};
  const std::string *name = operationName(value);
  if (!name)
    return malformed(where, "an integer, a symbol or an operation of two");
  for (auto [text, op] : kOps)
    if (*name == text) {
      HYB_TRY(append(value[1], where, steps));
      HYB_TRY(append(value[2], where, steps));
      steps.push_back({op, 0});
      return Status();
    }
  return failure(HYB_INVALID_FILE, "%s: unknown operation '%.32s'",
                 where.c_str(), name->c_str());
}

Result<Expression> Expression::fromJson(const Json &value,
                                        const std::string &where) {
  Expression result;
  result.steps.clear();
  HYB_TRY(append(value, where, result.steps));
  size_t depth = 0, deepest = 0;
  for (const Step &step : result.steps) {
    depth += step.op == Op::Constant || step.op == Op::Symbol ? 1 : -1;
    deepest = std::max(deepest, depth);
  }
  if (deepest > kMaxStack)
    return malformed(where, "simple enough to evaluate");
  return result;
}

bool Expression::apply(Op op, int64_t a, int64_t b, int64_t *result) {
  switch (op) {
  case Op::Add:
    return checkedAdd(a, b, result);
  case Op::Mul:
    return checkedMul(a, b, result);
  case Op::FloorDiv:
    return checkedFloorDiv(a, b, result);
  case Op::CeilDiv:
    return checkedCeilDiv(a, b, result);
  case Op::Min:
    *result = std::min(a, b);
    return true;
  case Op::Max:
    *result = std::max(a, b);
    return true;
  default:
    return false;
  }
}

std::optional<int64_t> Expression::evaluate(const Symbols &symbols) const {
  int64_t stack[kMaxStack];
  size_t top = 0;
  for (const Step &step : steps) {
    if (step.op == Op::Constant) {
      stack[top++] = step.value;
    } else if (step.op == Op::Symbol) {
      stack[top++] = symbols.values[static_cast<size_t>(step.value)];
    } else {
      --top;
      if (!apply(step.op, stack[top - 1], stack[top], &stack[top - 1]))
        return std::nullopt;
    }
  }
  return stack[0];
}

Status sizeOverflow(const std::string &where, const Symbols &symbols) {
  return failure(HYB_OUT_OF_RANGE,
                 "%s: a size overflows or is negative for %s; use smaller "
                 "capacities",
                 where.c_str(), symbols.text().c_str());
}

Result<int64_t> evaluateSize(const Expression &expression,
                             const Symbols &symbols, const std::string &where) {
  std::optional<int64_t> value = expression.evaluate(symbols);
  if (!value || *value < 0)
    return sizeOverflow(where, symbols);
  return *value;
}

Status Predicate::append(const Json &value, const std::string &where,
                         std::vector<Comparison> &terms) {
  const std::string *name = operationName(value);
  if (!name)
    return malformed(where, "a comparison");
  if (*name == "and") {
    HYB_TRY(append(value[1], where, terms));
    return append(value[2], where, terms);
  }
  Comparison term;
  if (*name == "le")
    term.relation = Relation::LessEqual;
  else if (*name == "ge")
    term.relation = Relation::GreaterEqual;
  else if (*name == "eq")
    term.relation = Relation::Equal;
  else
    return failure(HYB_INVALID_FILE, "%s: unknown comparison '%.32s'",
                   where.c_str(), name->c_str());
  HYB_ASSIGN(term.left, Expression::fromJson(value[1], where));
  HYB_ASSIGN(term.right, Expression::fromJson(value[2], where));
  terms.push_back(std::move(term));
  return Status();
}

Result<Predicate> Predicate::fromJson(const Json &value,
                                      const std::string &where) {
  Predicate result;
  HYB_TRY(append(value, where, result.terms));
  return result;
}

std::optional<bool> Predicate::evaluate(const Symbols &symbols) const {
  for (const Comparison &term : terms) {
    std::optional<int64_t> left = term.left.evaluate(symbols);
    std::optional<int64_t> right = term.right.evaluate(symbols);
    if (!left || !right)
      return std::nullopt;
    bool holds = term.relation == Relation::LessEqual      ? *left <= *right
                 : term.relation == Relation::GreaterEqual ? *left >= *right
                                                           : *left == *right;
    if (!holds)
      return false;
  }
  return true;
}

} // namespace hyb::rt
