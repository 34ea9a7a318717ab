//===- Json.cpp -----------------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "io/Json.h"

namespace hyb::rt {

namespace {

constexpr size_t kMaxDepth = 64;

/// Builds a tree in place, so that it can be taken apart whatever happens, and
/// stops at the first thing that is wrong.
class TreeBuilder : public nlohmann::json_sax<Json> {
public:
  explicit TreeBuilder(Json &root) : root(root) {}

  std::string problem;

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t &) override {
    return add(value);
  }
  bool string(string_t &value) override { return add(std::move(value)); }
  bool binary(binary_t &) override { return false; }
  bool start_object(size_t) override { return enter(Json::value_t::object); }
  bool start_array(size_t) override { return enter(Json::value_t::array); }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }
  bool key(string_t &value) override {
    if (open.back()->contains(value))
      return refuse("'" + value + "' is named twice");
    name = std::move(value);
    return true;
  }
  bool parse_error(size_t, const std::string &,
                   const nlohmann::detail::exception &) override {
    return false;
  }

private:
  bool refuse(std::string what) {
    problem = std::move(what);
    return false;
  }

  /// Puts a leaf, or a container that is still empty, where it belongs.
  Json &place(Json value) {
    if (open.empty())
      return root = std::move(value);
    Json &parent = *open.back();
    if (parent.is_object())
      return *parent.emplace(std::move(name), std::move(value)).first;
    parent.push_back(std::move(value));
    return parent.back();
  }
  template <typename T> bool add(T value) {
    place(std::move(value));
    return true;
  }
  bool enter(Json::value_t kind) {
    if (open.size() > kMaxDepth)
      return refuse("nested deeper than " + std::to_string(kMaxDepth));
    open.push_back(&place(kind));
    return true;
  }
  bool leave() {
    open.pop_back();
    return true;
  }

  Json &root;
  std::vector<Json *> open;
  std::string name;
};

Status wrongKind(const char *key, const std::string &where, const char *kind,
                 const Json &value) {
  return failure(HYB_INVALID_FILE, "%s: '%s' is %s, expected %s", where.c_str(),
                 key, value.type_name(), kind);
}

} // namespace

void dismantle(Json &tree) noexcept {
  if (auto *list = tree.get_ptr<Json::array_t *>()) {
    for (Json &value : *list)
      dismantle(value);
    list->clear();
  } else if (auto *object = tree.get_ptr<Json::object_t *>()) {
    for (auto &member : *object)
      dismantle(member.second);
    object->clear();
  }
}

std::string jsonQuoted(const std::string &text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<JsonDocument> parseJsonObject(Bytes text, const std::string &what) {
  JsonDocument root;
  TreeBuilder builder(root);
  bool isWhole = Json::sax_parse(text.begin(), text.end(), &builder);
  if (!builder.problem.empty())
    return failure(HYB_INVALID_FILE, "%s: %s", what.c_str(),
                   builder.problem.c_str());
  if (!isWhole || !root.is_object())
    return failure(HYB_INVALID_FILE, "%s: not a JSON object in UTF-8",
                   what.c_str());
  return root;
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
