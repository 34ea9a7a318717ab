//===- Safetensors.cpp ----------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "io/Safetensors.h"

#include "core/Checked.h"
#include "io/SafetensorsHeader.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <tuple>

namespace hyb::rt {

namespace {

struct DTypeRow {
  const char *name;
  uint64_t size;
};

constexpr DTypeRow kDTypes[] = {
    {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1},
    {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
    {"U32", 4},  {"F32", 4}, {"F64", 8}, {"I64", 8},     {"U64", 8}};

/// Bytes that the shape needs; nothing when that does not fit in 64 bits. The
/// product is checked before a zero dimension can hide it: [2^63, 4, 0] is
/// refused, as a product that wraps to 0 would have to be.
std::optional<uint64_t> bytesOfShape(const TensorEntry &entry) {
  uint64_t bytes = dtypeSize(entry.type);
  bool empty = false;
  for (uint64_t size : entry.shape) {
    if (size == 0)
      empty = true;
    else if (!checkedMul(bytes, size, &bytes))
      return std::nullopt;
  }
  return empty ? 0 : bytes;
}

Status checkEntry(const TensorEntry &entry, uint64_t dataBytes) {
  if (entry.begin > entry.end || entry.end > dataBytes)
    return failure(HYB_INVALID_FILE,
                   "%s: range %" PRIu64 " to %" PRIu64
                   " is not inside the %" PRIu64 " bytes of data",
                   entry.name.c_str(), entry.begin, entry.end, dataBytes);
  std::optional<uint64_t> needed = bytesOfShape(entry);
  if (!needed)
    return failure(HYB_INVALID_FILE, "%s: size of shape %s overflows 64 bits",
                   entry.name.c_str(), shapeText(entry.shape).c_str());
  if (*needed != entry.end - entry.begin)
    return failure(HYB_INVALID_FILE,
                   "%s: shape needs %" PRIu64 " bytes, range has %" PRIu64,
                   entry.name.c_str(), *needed, entry.end - entry.begin);
  return Status();
}

/// Every byte of data belongs to exactly one tensor. `entries` are sorted.
Status checkCoverage(const std::vector<TensorEntry> &entries,
                     uint64_t dataBytes) {
  uint64_t covered = 0;
  for (const TensorEntry &entry : entries) {
    if (entry.begin < covered)
      return failure(HYB_INVALID_FILE,
                     "%s: starts at %" PRIu64
                     ", inside the tensor before it, which ends at %" PRIu64,
                     entry.name.c_str(), entry.begin, covered);
    if (entry.begin > covered)
      return failure(HYB_INVALID_FILE,
                     "%s: starts at %" PRIu64 ", but the data before it ends "
                     "at %" PRIu64 ": the bytes between belong to no tensor",
                     entry.name.c_str(), entry.begin, covered);
    covered = entry.end;
  }
  if (covered != dataBytes)
    return failure(HYB_INVALID_FILE,
                   "tensors end at %" PRIu64 ", but there are %" PRIu64
                   " bytes of data: the rest belongs to no tensor",
                   covered, dataBytes);
  return Status();
}

} // namespace

const char *dtypeName(DType type) {
  return kDTypes[static_cast<size_t>(type)].name;
}

DType dtypeOf(ElementType type) {
  switch (type) {
  case ElementType::F32:
    return DType::F32;
  case ElementType::I32:
    return DType::I32;
  case ElementType::BF16:
    return DType::BF16;
  case ElementType::F16:
    return DType::F16;
  }
  return DType::F32;
}

uint64_t dtypeSize(DType type) {
  return kDTypes[static_cast<size_t>(type)].size;
}

std::optional<DType> dtypeByName(std::string_view name) {
  for (size_t i = 0; i < std::size(kDTypes); ++i)
    if (name == kDTypes[i].name)
      return static_cast<DType>(i);
  return std::nullopt;
}

std::string shapeText(const std::vector<uint64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

Result<SafetensorsView> SafetensorsView::parse(Bytes file) {
  if (file.size < 8)
    return failure(HYB_INVALID_FILE,
                   "file of %zu bytes is too short for the 8-byte header "
                   "length at offset 0",
                   file.size);
  uint64_t headerBytes;
  std::memcpy(&headerBytes, file.data, sizeof(headerBytes));
  if (headerBytes > kMaxHeaderBytes || headerBytes > file.size - 8)
    return failure(HYB_INVALID_FILE,
                   "header length %" PRIu64
                   " at offset 0 does not fit: the file has %zu bytes and a "
                   "header at most %" PRIu64 "; is this a .safetensors file?",
                   headerBytes, file.size, kMaxHeaderBytes);
  Bytes text = {file.data + 8, static_cast<size_t>(headerBytes)};
  if (text.size == 0 || text.data[0] != '{')
    return failure(HYB_INVALID_FILE,
                   "header at offset 8 does not start with '{': it is not an "
                   "object of tensors");
  HYB_ASSIGN(SafetensorsHeader header, parseSafetensorsHeader(text, 8));

  SafetensorsView view;
  view.content = {file.data + 8 + text.size, file.size - 8 - text.size};
  view.entries = std::move(header.entries);
  view.texts = std::move(header.metadata);
  for (const TensorEntry &entry : view.entries)
    HYB_TRY(checkEntry(entry, view.content.size));
  // Headers need not be in the order of the data.
  std::sort(view.entries.begin(), view.entries.end(),
            [](const TensorEntry &a, const TensorEntry &b) {
              return std::tie(a.begin, a.end, a.name) <
                     std::tie(b.begin, b.end, b.name);
            });
  HYB_TRY(checkCoverage(view.entries, view.content.size));
  for (size_t i = 0; i < view.entries.size(); ++i)
    view.byName.emplace(view.entries[i].name, i);
  return view;
}

const TensorEntry *SafetensorsView::find(std::string_view name) const {
  auto it = byName.find(name);
  return it == byName.end() ? nullptr : &entries[it->second];
}

Result<SafetensorsFile> SafetensorsFile::open(const std::string &path) {
  SafetensorsFile result;
  HYB_ASSIGN(result.file, MappedFile::open(path));
  Result<SafetensorsView> view = SafetensorsView::parse(result.file.bytes());
  if (!view.ok())
    return view.status().within(path);
  result.view = std::move(*view);
  return result;
}

} // namespace hyb::rt
