//===- HbxFuzz.cpp --------------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// Input: an artefact whose checksums are made right before it is read, so that
// the fuzzer gets past them; an input that starts with 0xff is read as it is.
//
//===----------------------------------------------------------------------===//

#include "core/HbxFormat.h"
#include "io/HbxReader.h"

#include <cstdlib>
#include <cstring>

using namespace hyb;
using namespace hyb::rt;

static void repairChecksums(std::string &file) {
  if (file.size() < sizeof(HbxHeader))
    return;
  HbxHeader header;
  std::memcpy(&header, file.data(), sizeof(header));
  std::memcpy(header.magic, kHbxMagic, sizeof(kHbxMagic));
  header.fileSize = file.size();
  size_t room = (file.size() - sizeof(header)) / sizeof(HbxSection);
  size_t count = header.sectionCount < room ? header.sectionCount : room;
  for (size_t i = 0; i < count; ++i) {
    HbxSection section;
    char *place = file.data() + sizeof(header) + i * sizeof(section);
    std::memcpy(&section, place, sizeof(section));
    if (section.offset <= file.size() &&
        section.size <= file.size() - section.offset)
      section.checksum =
          hbxChecksum(file.data() + section.offset, section.size);
    std::memcpy(place, &section, sizeof(section));
  }
  header.tableChecksum =
      hbxChecksum(file.data() + sizeof(header), count * sizeof(HbxSection));
  std::memcpy(file.data(), &header, sizeof(header));
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  bool raw = size > 0 && data[0] == 0xff;
  std::string file(reinterpret_cast<const char *>(data) + raw, size - raw);
  if (!raw)
    repairChecksums(file);
  auto reader = HbxReader::parse(
      {reinterpret_cast<const uint8_t *>(file.data()), file.size()});
  if (!reader.ok()) {
    if (reader.status().message().empty())
      std::abort();
    return 0;
  }
  unsigned char folded = 0;
  for (const HbxReader::Section &section : reader->sections())
    for (uint8_t byte : section.content)
      folded ^= byte;
  [[maybe_unused]] volatile unsigned char used = folded;
  return 0;
}
