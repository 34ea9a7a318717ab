//===- HbxReaderTest.cpp --------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "io/HbxReader.h"

#include "../HbxBuilder.h"

#include <gtest/gtest.h>

using namespace hyb;
using namespace hyb::rt;

namespace {

Result<HbxReader> parse(const std::string &file) {
  return HbxReader::parse(
      {reinterpret_cast<const uint8_t *>(file.data()), file.size()});
}

std::string sample() {
  return test::buildHbx({{"meta", "", "{\"model\": \"demo\"}"},
                         {"params", "", "{}"},
                         {"code", "x86-64-v3", std::string(100, '\x7f')},
                         {"empty", "", ""}});
}

void expectRefused(const std::string &file, const std::string &reason) {
  auto reader = parse(file);
  ASSERT_FALSE(reader.ok()) << "accepted; expected: " << reason;
  EXPECT_NE(reader.status().message().find(reason), std::string::npos)
      << reader.status().message();
}

/// The sample with its table changed and its checksum made right again.
template <typename Change> std::string withTable(Change change) {
  std::string file = sample();
  HbxHeader header;
  std::memcpy(&header, file.data(), sizeof(header));
  std::vector<HbxSection> table(header.sectionCount);
  size_t bytes = table.size() * sizeof(HbxSection);
  std::memcpy(table.data(), file.data() + sizeof(header), bytes);
  change(table);
  header.tableChecksum = hbxChecksum(table.data(), bytes);
  std::memcpy(file.data(), &header, sizeof(header));
  std::memcpy(file.data() + sizeof(header), table.data(), bytes);
  return file;
}

} // namespace

TEST(HbxReader, FindsSections) {
  std::string file = sample();
  auto reader = parse(file);
  ASSERT_TRUE(reader.ok()) << reader.status().message();
  EXPECT_EQ(reader->sections().size(), 4u);
  ASSERT_TRUE(reader->find("code", "x86-64-v3"));
  EXPECT_EQ(reader->find("code", "x86-64-v3")->content.size, 100u);
  EXPECT_EQ(reader->find("code", "x86-64"), nullptr);
  auto missing = reader->get("code", "x86-64");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().message(),
            "artefact has no section code x86-64; compile the spec again");
  EXPECT_TRUE(parse(test::buildHbx({})).ok());
}

TEST(HbxReader, EveryTruncationIsRefused) {
  std::string file = sample();
  for (size_t size = 0; size < file.size(); ++size)
    ASSERT_FALSE(parse(file.substr(0, size)).ok()) << size;
  expectRefused(file + '\0', "artefact is cut or grown");
}

TEST(HbxReader, EverySingleByteFlipIsRefused) {
  std::string file = sample();
  for (size_t i = 0; i < file.size(); ++i)
    for (int flip = 1; flip < 256; ++flip) {
      file[i] = static_cast<char>(file[i] ^ flip);
      ASSERT_FALSE(parse(file).ok()) << "byte " << i << " ^ " << flip;
      file[i] = static_cast<char>(file[i] ^ flip);
    }
  EXPECT_TRUE(parse(file).ok());
}

TEST(HbxReader, SaysWhatIsWrong) {
  expectRefused("hello", "not an artefact: 5 bytes");
  expectRefused(std::string(64, 'x'), "does not start with HBX");
  std::string newer = sample();
  newer[4] = 2;
  expectRefused(newer,
                "artefact has format 2.0, this runtime reads 1.0 to 1.0");
  EXPECT_EQ(parse(newer).status().code(), HYB_UNSUPPORTED);
  std::string many = sample();
  many[11] = 1;
  expectRefused(many, "sections, at most 1024 are allowed");
  std::string flipped = sample();
  flipped[flipped.size() - 50] = 0;
  expectRefused(flipped, "section code x86-64-v3 does not match its checksum");
}

// A table whose checksum is right can still lie.
TEST(HbxReader, DoesNotBelieveTheTable) {
  expectRefused(withTable([](auto &t) { t[2].size = UINT64_MAX; }),
                "section code x86-64-v3 is at");
  expectRefused(withTable([](auto &t) { t[2].offset = UINT64_MAX - 63; }),
                "expected at");
  expectRefused(withTable([](auto &t) { t[1].offset = t[0].offset; }),
                "expected at");
  expectRefused(withTable([](auto &t) { t[1].reserved = 1; }), "reserved");
  expectRefused(withTable([](auto &t) { t[1].kind[0] = '\n'; }),
                "no proper kind or name");
  expectRefused(withTable([](auto &t) { t[1].kind[10] = 'x'; }),
                "no proper kind or name");
  expectRefused(withTable([](auto &t) {
                  std::memcpy(t[1].kind, t[0].kind, sizeof(t[0].kind));
                }),
                "two sections are meta");
  expectRefused(withTable([](auto &t) {
                  t[0].size = 4;
                  t[0].checksum = hbxChecksum("{\"mo", 4);
                }),
                "bytes before section params are not zero");
}
