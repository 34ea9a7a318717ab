//===- Json.cpp -----------------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "io/Json.h"

#include <set>

namespace hyb::rt {

namespace {

constexpr int kMaxDepth = 64;

/// Watches the parser: it cannot be stopped from outside, but once something is
/// wrong every value is thrown away at once.
struct ParseWatch {
  std::string problem;
  std::vector<std::set<std::string>> keys;

  bool operator()(int depth, Json::parse_event_t event, Json &value) {
    using Event = Json::parse_event_t;
    if (!problem.empty())
      return false;
    if (depth > kMaxDepth) {
      problem = "nested deeper than " + std::to_string(kMaxDepth);
      return false;
    }
    if (event == Event::object_start)
      keys.emplace_back();
    else if (event == Event::object_end)
      keys.pop_back();
    else if (event == Event::key &&
             !keys.back().insert(value.get_ref<std::string &>()).second)
      problem = "'" + value.get_ref<std::string &>() + "' is named twice";
    return problem.empty();
  }
};

Status wrongKind(const char *key, const std::string &where, const char *kind,
                 const Json &value) {
  return failure(HYB_INVALID_FILE, "%s: '%s' is %s, expected %s", where.c_str(),
                 key, value.type_name(), kind);
}

} // namespace

Result<Json> parseJsonObject(Bytes text, const std::string &what) {
  auto watch = std::make_shared<ParseWatch>();
  Json value = Json::parse(
      text.begin(), text.end(),
      [watch](int depth, Json::parse_event_t event, Json &parsed) {
        return (*watch)(depth, event, parsed);
      },
      /*allow_exceptions=*/false);
  if (!watch->problem.empty())
    return failure(HYB_INVALID_FILE, "%s: %s", what.c_str(),
                   watch->problem.c_str());
  if (value.is_discarded() || !value.is_object())
    return failure(HYB_INVALID_FILE, "%s: not a JSON object in UTF-8",
                   what.c_str());
  return value;
}

Result<const Json *> jsonMember(const Json &object, const char *key,
                                const std::string &where) {
  if (!object.is_object())
    return failure(HYB_INVALID_FILE, "%s: is %s, expected an object",
                   where.c_str(), object.type_name());
  auto it = object.find(key);
  if (it == object.end())
    return failure(HYB_INVALID_FILE, "%s: has no '%s'", where.c_str(), key);
  return &*it;
}

Result<const Json *> jsonArray(const Json &object, const char *key,
                               const std::string &where) {
  HYB_ASSIGN(const Json *value, jsonMember(object, key, where));
  if (!value->is_array())
    return wrongKind(key, where, "a list", *value);
  return value;
}

Result<const Json *> jsonObject(const Json &object, const char *key,
                                const std::string &where) {
  HYB_ASSIGN(const Json *value, jsonMember(object, key, where));
  if (!value->is_object())
    return wrongKind(key, where, "an object", *value);
  return value;
}

Result<std::string> jsonText(const Json &object, const char *key,
                             const std::string &where) {
  HYB_ASSIGN(const Json *value, jsonMember(object, key, where));
  if (!value->is_string())
    return wrongKind(key, where, "a text", *value);
  return value->get_ref<const std::string &>();
}

Result<int64_t> jsonInteger(const Json &object, const char *key,
                            const std::string &where) {
  HYB_ASSIGN(const Json *value, jsonMember(object, key, where));
  std::optional<int64_t> number = jsonAsInteger(*value);
  if (!number)
    return wrongKind(key, where, "a whole number of 64 bits", *value);
  return *number;
}

Result<bool> jsonBool(const Json &object, const char *key,
                      const std::string &where) {
  HYB_ASSIGN(const Json *value, jsonMember(object, key, where));
  if (!value->is_boolean())
    return wrongKind(key, where, "a truth value", *value);
  return value->get<bool>();
}

std::optional<int64_t> jsonAsInteger(const Json &value) {
  if (value.is_number_unsigned()) {
    uint64_t number = value.get<uint64_t>();
    if (number > static_cast<uint64_t>(INT64_MAX))
      return std::nullopt;
    return static_cast<int64_t>(number);
  }
  if (value.is_number_integer())
    return value.get<int64_t>();
  return std::nullopt;
}

} // namespace hyb::rt
