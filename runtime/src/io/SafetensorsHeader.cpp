//===- SafetensorsHeader.cpp ----------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Events of the JSON parser drive a small state machine, so that memory grows
// with the tensors accepted and never with nesting or with values that would be
// thrown away.
//
//===----------------------------------------------------------------------===//

#include "io/SafetensorsHeader.h"

#include <cstdarg>
#include <nlohmann/json.hpp>
#include <set>

namespace hyb::rt {

namespace {

using json = nlohmann::json;

class HeaderReader : public nlohmann::json_sax<json> {
public:
  explicit HeaderReader(size_t offset) : offset(offset) {}

  SafetensorsHeader header;
  Status status;

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a truth value"); }
  bool binary(binary_t &) override { return unexpected("binary data"); }
  bool number_integer(number_integer_t value) override {
    return refuse("%s: '%s' has %lld, expected a number that is not negative",
                  name.c_str(), field.c_str(), static_cast<long long>(value));
  }
  bool number_float(number_float_t, const string_t &text) override {
    return refuse("%s: '%s' has %s, expected a whole number below 2^64",
                  name.c_str(), field.c_str(), text.c_str());
  }
  bool number_unsigned(number_unsigned_t value) override;
  bool string(string_t &value) override;
  bool key(string_t &value) override;
  bool start_object(size_t) override;
  bool end_object() override;
  bool start_array(size_t) override;
  bool end_array() override;
  bool parse_error(size_t position, const std::string &,
                   const nlohmann::detail::exception &problem) override;

private:
  /// Where the parser is: before the header, in it, in the value of a name.
  enum class Place { Start, Header, Tensor, Shape, Offsets, Metadata, Done };

  [[gnu::format(printf, 2, 3)]] bool refuse(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char text[512];
    std::vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    status = Status(HYB_INVALID_FILE, text);
    return false;
  }
  bool unexpected(const char *what);
  bool beginTensorField(const std::string &value);

  size_t offset;
  Place place = Place::Start;
  std::string name;  // of the tensor, or the metadata's own
  std::string field; // of the tensor, or key of the metadata
  std::set<std::string, std::less<>> names;
  TensorEntry entry;
  bool hasType = false, hasShape = false, hasOffsets = false;
  std::vector<uint64_t> numbers;
};

bool HeaderReader::unexpected(const char *what) {
  switch (place) {
  case Place::Start:
  case Place::Done:
    return refuse("header at offset %zu is %s, expected an object of tensors",
                  offset, what);
  case Place::Header:
    return refuse("%s: value is %s, expected an object with dtype, shape and "
                  "data_offsets",
                  name.c_str(), what);
  case Place::Metadata:
    return refuse("__metadata__: '%s' is %s, expected a text", field.c_str(),
                  what);
  default:
    return refuse("%s: '%s' is or holds %s", name.c_str(), field.c_str(), what);
  }
}

bool HeaderReader::number_unsigned(number_unsigned_t value) {
  if (place != Place::Shape && place != Place::Offsets)
    return unexpected("a number");
  size_t limit = place == Place::Shape ? SafetensorsView::kMaxRank : size_t(2);
  if (numbers.size() == limit)
    return refuse("%s: '%s' has more than %zu numbers", name.c_str(),
                  field.c_str(), limit);
  numbers.push_back(value);
  return true;
}

bool HeaderReader::string(string_t &value) {
  if (place == Place::Metadata) {
    header.metadata[field] = std::move(value);
    return true;
  }
  if (place != Place::Tensor || field != "dtype")
    return unexpected("a text");
  std::optional<DType> type = dtypeByName(value);
  if (!type)
    return refuse("%s: unknown dtype '%.32s'; convert the file to F32",
                  name.c_str(), value.c_str());
  entry.type = *type;
  return true;
}

bool HeaderReader::key(string_t &value) {
  if (value.size() > SafetensorsView::kMaxNameBytes)
    return refuse("a name of %zu bytes is longer than %zu", value.size(),
                  SafetensorsView::kMaxNameBytes);
  if (place == Place::Header) {
    if (!names.insert(value).second)
      return refuse("%.200s: named twice", value.c_str());
    name = value;
    return true;
  }
  field = value;
  if (place == Place::Metadata)
    return header.metadata.count(value) == 0 ||
           refuse("__metadata__: '%.200s' named twice", value.c_str());
  return beginTensorField(value);
}

bool HeaderReader::beginTensorField(const std::string &value) {
  bool *seen = value == "dtype"          ? &hasType
               : value == "shape"        ? &hasShape
               : value == "data_offsets" ? &hasOffsets
                                         : nullptr;
  if (!seen)
    return refuse("%s: unknown field '%.64s'", name.c_str(), value.c_str());
  if (*seen)
    return refuse("%s: '%s' given twice", name.c_str(), value.c_str());
  *seen = true;
  return true;
}

bool HeaderReader::start_object(size_t) {
  switch (place) {
  case Place::Start:
    place = Place::Header;
    return true;
  case Place::Header:
    place = name == "__metadata__" ? Place::Metadata : Place::Tensor;
    entry = TensorEntry();
    hasType = hasShape = hasOffsets = false;
    return true;
  default:
    return unexpected("an object");
  }
}

bool HeaderReader::end_object() {
  if (place == Place::Header) {
    place = Place::Done;
    return true;
  }
  if (place == Place::Tensor) {
    const char *missing = !hasType      ? "dtype"
                          : !hasShape   ? "shape"
                          : !hasOffsets ? "data_offsets"
                                        : nullptr;
    if (missing)
      return refuse("%s: has no '%s'", name.c_str(), missing);
    entry.name = name;
    header.entries.push_back(std::move(entry));
  }
  place = Place::Header;
  return true;
}

bool HeaderReader::start_array(size_t) {
  if (place != Place::Tensor || field == "dtype")
    return unexpected("a list");
  place = field == "shape" ? Place::Shape : Place::Offsets;
  numbers.clear();
  return true;
}

bool HeaderReader::end_array() {
  if (place == Place::Shape) {
    entry.shape = numbers;
  } else {
    if (numbers.size() != 2)
      return refuse("%s: 'data_offsets' has %zu numbers, expected 2",
                    name.c_str(), numbers.size());
    entry.begin = numbers[0];
    entry.end = numbers[1];
  }
  place = Place::Tensor;
  return true;
}

bool HeaderReader::parse_error(size_t position, const std::string &,
                               const nlohmann::detail::exception &) {
  return refuse("header is not valid JSON in UTF-8 at offset %zu",
                offset + (position ? position - 1 : 0));
}

} // namespace

Result<SafetensorsHeader> parseSafetensorsHeader(Bytes text, size_t offset) {
  HeaderReader reader(offset);
  // Strict: spaces may follow the object, other text may not.
  if (!json::sax_parse(text.begin(), text.end(), &reader,
                       json::input_format_t::json, /*strict=*/true))
    return reader.status;
  return std::move(reader.header);
}

} // namespace hyb::rt
