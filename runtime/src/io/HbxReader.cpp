//===- HbxReader.cpp ------------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "io/HbxReader.h"

#include "core/HbxFormat.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

namespace hyb::rt {

namespace {

constexpr const char *kRemedy = "compile the spec again or copy the file again";

Status damaged(const char *what) {
  return failure(HYB_INVALID_FILE, "artefact is damaged: %s; %s", what,
                 kRemedy);
}

bool allZero(const uint8_t *data, size_t size) {
  return std::all_of(data, data + size, [](uint8_t byte) { return byte == 0; });
}

Status checkHeader(const HbxHeader &header, size_t fileSize) {
  if (std::memcmp(header.magic, kHbxMagic, sizeof(kHbxMagic)) != 0)
    return failure(HYB_INVALID_FILE,
                   "not an artefact: it does not start with HBX; compile a "
                   "spec with hybridc");
  if (header.major != kHbxMajor || header.minor > kHbxMinor)
    return failure(HYB_UNSUPPORTED,
                   "artefact has format %u.%u, this runtime reads %u.0 to "
                   "%u.%u; compile the spec with this release",
                   header.major, header.minor, kHbxMajor, kHbxMajor, kHbxMinor);
  if (header.fileSize != fileSize)
    return failure(HYB_INVALID_FILE,
                   "artefact is cut or grown: it was written with %" PRIu64
                   " bytes and has %zu; %s",
                   header.fileSize, fileSize, kRemedy);
  if (header.zero != 0 || !allZero(header.padding, sizeof(header.padding)))
    return damaged("reserved bytes of the header are not zero");
  if (header.sectionCount > kHbxMaxSections)
    return failure(HYB_INVALID_FILE,
                   "artefact states %u sections, at most %u are allowed; %s",
                   header.sectionCount, kHbxMaxSections, kRemedy);
  return Status();
}

/// The text of a zero-padded field; nothing after the first zero, and only
/// characters that are safe to print.
std::optional<std::string> fieldText(const char (&field)[16]) {
  size_t length = ::strnlen(field, sizeof(field));
  for (size_t i = 0; i < sizeof(field); ++i)
    if (i < length ? field[i] <= ' ' || field[i] > '~' : field[i] != 0)
      return std::nullopt;
  return std::string(field, length);
}

Result<HbxReader::Section> readSection(Bytes file, const HbxSection &entry,
                                       uint64_t *end) {
  std::optional<std::string> kind = fieldText(entry.kind);
  std::optional<std::string> name = fieldText(entry.name);
  if (!kind || !name || kind->empty())
    return damaged("a section has no proper kind or name");
  std::string label = "section " + *kind + (name->empty() ? "" : " " + *name);
  if (entry.reserved != 0)
    return damaged((label + " has reserved bytes that are not zero").c_str());
  // Sections follow each other with nothing but alignment between them, so
  // order, overlap and coverage are one comparison.
  uint64_t expected = hbxAlign(*end);
  if (entry.offset != expected || entry.offset > file.size ||
      entry.size > file.size - entry.offset)
    return failure(HYB_INVALID_FILE,
                   "artefact is damaged: %s is at %" PRIu64 " with %" PRIu64
                   " bytes, expected at %" PRIu64 " in a file of %zu; %s",
                   label.c_str(), entry.offset, entry.size, expected, file.size,
                   kRemedy);
  if (!allZero(file.data + *end, static_cast<size_t>(entry.offset - *end)))
    return damaged(("bytes before " + label + " are not zero").c_str());
  Bytes content = {file.data + entry.offset, static_cast<size_t>(entry.size)};
  if (hbxChecksum(content.data, content.size) != entry.checksum)
    return damaged((label + " does not match its checksum").c_str());
  *end = entry.offset + entry.size;
  return HbxReader::Section{*kind, *name, content};
}

} // namespace

Result<HbxReader> HbxReader::parse(Bytes file) {
  if (file.size < sizeof(HbxHeader))
    return failure(HYB_INVALID_FILE,
                   "not an artefact: %zu bytes, a header has %zu; compile a "
                   "spec with hybridc",
                   file.size, sizeof(HbxHeader));
  HbxHeader header;
  std::memcpy(&header, file.data, sizeof(header));
  HYB_TRY(checkHeader(header, file.size));
  size_t tableBytes = header.sectionCount * sizeof(HbxSection);
  if (tableBytes > file.size - sizeof(header))
    return damaged("the section table does not fit in the file");
  const uint8_t *table = file.data + sizeof(header);
  if (hbxChecksum(table, tableBytes) != header.tableChecksum)
    return damaged("the section table does not match its checksum");

  HbxReader reader;
  uint64_t end = sizeof(header) + tableBytes;
  for (uint32_t i = 0; i < header.sectionCount; ++i) {
    HbxSection entry;
    std::memcpy(&entry, table + i * sizeof(entry), sizeof(entry));
    HYB_ASSIGN(Section section, readSection(file, entry, &end));
    if (reader.find(section.kind, section.name))
      return damaged(
          ("two sections are " + section.kind + " " + section.name).c_str());
    reader.parts.push_back(std::move(section));
  }
  if (end != file.size)
    return damaged("bytes after the last section");
  return reader;
}

const HbxReader::Section *HbxReader::find(std::string_view kind,
                                          std::string_view name) const {
  for (const Section &section : parts)
    if (section.kind == kind && section.name == name)
      return &section;
  return nullptr;
}

Result<Bytes> HbxReader::get(std::string_view kind,
                             std::string_view name) const {
  if (const Section *section = find(kind, name))
    return section->content;
  return failure(HYB_INVALID_FILE,
                 "artefact has no section %.*s %.*s; compile the spec again",
                 static_cast<int>(kind.size()), kind.data(),
                 static_cast<int>(name.size()), name.data());
}

} // namespace hyb::rt
