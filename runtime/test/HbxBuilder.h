//===- HbxBuilder.h - Containers for tests --------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_TEST_HBXBUILDER_H
#define HYBRID_RUNTIME_TEST_HBXBUILDER_H

#include "core/HbxFormat.h"

#include <cstring>
#include <string>
#include <vector>

namespace hyb::test {

struct SectionToBuild {
  std::string kind, name, content;
};

/// The bytes of an artefact, by the letter of the specification and apart from
/// the compiler's writer.
inline std::string buildHbx(const std::vector<SectionToBuild> &sections) {
  HbxHeader header = {};
  std::memcpy(header.magic, kHbxMagic, sizeof(kHbxMagic));
  header.major = kHbxMajor;
  header.minor = kHbxMinor;
  header.sectionCount = static_cast<uint32_t>(sections.size());
  std::vector<HbxSection> table(sections.size());
  std::string file(sizeof(header) + table.size() * sizeof(HbxSection), '\0');
  for (size_t i = 0; i < sections.size(); ++i) {
    file.resize(hbxAlign(file.size()), '\0');
    const std::string &content = sections[i].content;
    std::memcpy(table[i].kind, sections[i].kind.data(),
                sections[i].kind.size());
    std::memcpy(table[i].name, sections[i].name.data(),
                sections[i].name.size());
    table[i].offset = file.size();
    table[i].size = content.size();
    table[i].checksum = hbxChecksum(content.data(), content.size());
    file += content;
  }
  header.fileSize = file.size();
  header.tableChecksum =
      hbxChecksum(table.data(), table.size() * sizeof(HbxSection));
  std::memcpy(file.data(), &header, sizeof(header));
  if (!table.empty())
    std::memcpy(file.data() + sizeof(header), table.data(),
                table.size() * sizeof(HbxSection));
  return file;
}

} // namespace hyb::test

#endif // HYBRID_RUNTIME_TEST_HBXBUILDER_H
