//===- Json.h - JSON that may be hostile ------------------------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Typed access that returns an error where the library would throw. Include
// this in sources, not in headers: the library costs seconds to compile.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_IO_JSON_H
#define HYBRID_RUNTIME_IO_JSON_H

#include "io/MappedFile.h"

#include <nlohmann/json.hpp>

namespace hyb::rt {

using Json = nlohmann::json;

/// Takes a tree apart from its leaves. The library's destructor allocates for
/// whatever is not empty, and where there is no memory that ends the process.
void dismantle(Json &tree) noexcept;

/// The root of a tree that needs no memory to be destroyed.
struct JsonDocument : Json {
  JsonDocument() = default;
  JsonDocument(JsonDocument &&) = default;
  JsonDocument &operator=(JsonDocument &&) = delete;
  ~JsonDocument() { dismantle(*this); }
};

/// The text as a JSON string, quotes included; what is not UTF-8 is replaced.
std::string jsonQuoted(const std::string &text);

/// Parses an object. Duplicate keys, nesting beyond 64 and text after the
/// object are refused; `what` names the text in messages.
Result<JsonDocument> parseJsonObject(Bytes text, const std::string &what);

/// The member `key` of `object`, which must be of the kind asked for. `where`
/// names the object in messages.
Result<const Json *> jsonMember(const Json &object, const char *key,
                                const std::string &where);
Result<const Json *> jsonArray(const Json &object, const char *key,
                               const std::string &where);
Result<const Json *> jsonObject(const Json &object, const char *key,
                                const std::string &where);
Result<std::string> jsonText(const Json &object, const char *key,
                             const std::string &where);
Result<int64_t> jsonInteger(const Json &object, const char *key,
                            const std::string &where);
Result<bool> jsonBool(const Json &object, const char *key,
                      const std::string &where);

/// An integer that fits in 64 signed bits.
std::optional<int64_t> jsonAsInteger(const Json &value);

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_IO_JSON_H
