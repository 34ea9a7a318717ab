//===- ContainerTest.cpp - the bytes of a .hbx file -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Artefact/Container.h"

#include "core/HbxFormat.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <cstring>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace hybrid;

namespace {

std::string serialise(llvm::ArrayRef<ArtefactSection> sections) {
  llvm::Expected<std::string> bytes = serialiseArtefact(sections);
  EXPECT_TRUE(bool(bytes));
  return bytes ? *bytes
               : (llvm::consumeError(bytes.takeError()), std::string());
}

std::string errorOf(llvm::ArrayRef<ArtefactSection> sections) {
  llvm::Expected<std::string> bytes = serialiseArtefact(sections);
  return bytes ? std::string() : llvm::toString(bytes.takeError());
}

TEST(Container, LayoutIsWhatTheFormatSays) {
  std::string bytes = serialise(
      {{"meta", "", "{}"}, {"code", "x86-64-v3", std::string(100, 'x')}});
  // Header and two entries end at 192; meta is there, code at the next 64.
  ASSERT_EQ(bytes.size(), 256u + 100u);
  EXPECT_EQ(std::memcmp(bytes.data(), "HBX\x1a", 4), 0);

  hyb::HbxHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  EXPECT_EQ(header.major, 1);
  EXPECT_EQ(header.sectionCount, 2u);
  EXPECT_EQ(header.fileSize, bytes.size());
  EXPECT_EQ(header.tableChecksum, hyb::hbxChecksum(bytes.data() + 64, 128));

  hyb::HbxSection code;
  std::memcpy(&code, bytes.data() + 128, sizeof(code));
  EXPECT_STREQ(code.kind, "code");
  EXPECT_STREQ(code.name, "x86-64-v3");
  EXPECT_EQ(code.offset, 256u);
  EXPECT_EQ(code.size, 100u);
  EXPECT_EQ(code.checksum, hyb::hbxChecksum(bytes.data() + 256, 100));
  EXPECT_EQ(bytes.substr(192, 2), "{}");
  EXPECT_EQ(bytes.substr(194, 62), std::string(62, '\0'));
}

// XXH64 of nothing with seed 0, from the algorithm's own description.
TEST(Container, ChecksumIsXXH64) {
  EXPECT_EQ(hyb::hbxChecksum("", 0), 0xef46db3751d8e999u);
  EXPECT_EQ(hyb::hbxChecksum("abc", 3), 0x44bc2cf5ad770999u);
}

TEST(Container, RefusesWhatAReaderWould) {
  EXPECT_EQ(errorOf({{"kind-of-17-bytes!", "", ""}}),
            "section kind or name 'kind-of-17-bytes!' has 17 bytes, at most 16 "
            "are allowed");
  EXPECT_EQ(errorOf({{"code", "x", "a"}, {"code", "x", "b"}}),
            "section 'code' named 'x' occurs twice");
  EXPECT_EQ(errorOf({{"", "x", "a"}}), "section 'x' has no kind");
  std::vector<ArtefactSection> many;
  for (unsigned i = 0; i <= hyb::kHbxMaxSections; ++i)
    many.push_back({"code", std::to_string(i), ""});
  EXPECT_EQ(errorOf(many),
            "artefact has 1025 sections, at most 1024 are allowed");
}

class Folder : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(
        llvm::sys::fs::createUniqueDirectory("hybrid-artefact", folder));
  }
  void TearDown() override {
    EXPECT_FALSE(llvm::sys::fs::remove_directories(folder));
  }
  std::string at(llvm::StringRef name) {
    llvm::SmallString<128> path = folder;
    llvm::sys::path::append(path, name);
    return path.str().str();
  }
  unsigned entries() {
    unsigned count = 0;
    std::error_code code;
    for (llvm::sys::fs::directory_iterator it(folder, code), end;
         it != end && !code; it.increment(code))
      ++count;
    return count;
  }
  llvm::SmallString<128> folder;
};

TEST_F(Folder, ReplacesAFileWhole) {
  std::string path = at("a.hbx");
  ASSERT_FALSE(bool(writeFileAtomically(path, "old")));
  ASSERT_FALSE(bool(writeFileAtomically(path, "new bytes")));
  auto buffer = llvm::MemoryBuffer::getFile(path);
  ASSERT_TRUE(bool(buffer));
  EXPECT_EQ((*buffer)->getBuffer(), "new bytes");
  EXPECT_EQ(entries(), 1u);
}

// A link stays one: it may be /dev/stdout, and every user of the machine has
// the same.
TEST_F(Folder, WritesThroughALink) {
  std::string file = at("a.hbx"), link = at("link"), lost = at("lost");
  ASSERT_FALSE(bool(writeFileAtomically(file, "old")));
  ASSERT_FALSE(llvm::sys::fs::create_link(file, link));
  ASSERT_FALSE(bool(writeFileAtomically(link, "new")));
  EXPECT_TRUE(llvm::sys::fs::is_symlink_file(link));
  auto buffer = llvm::MemoryBuffer::getFile(file);
  ASSERT_TRUE(bool(buffer));
  EXPECT_EQ((*buffer)->getBuffer(), "new");

  ASSERT_FALSE(llvm::sys::fs::create_link(at("absent"), lost));
  EXPECT_EQ(llvm::toString(writeFileAtomically(lost, "x")),
            "cannot write '" + lost +
                "': it is a link to a file that cannot be found: "
                "No such file or directory");
  EXPECT_EQ(entries(), 3u);
}

// A pipe stands for the devices: a test that fails must not take /dev/null away
// from the whole machine.
TEST_F(Folder, WritesThroughAPipeAndALinkToIt) {
  std::string pipe = at("pipe"), link = at("link");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  ASSERT_FALSE(llvm::sys::fs::create_link(pipe, link));
  int reader = ::open(pipe.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  for (const std::string &path : {pipe, link}) {
    EXPECT_FALSE(bool(writeFileAtomically(path, "x")));
    char found = 0;
    EXPECT_EQ(::read(reader, &found, 1), 1) << path;
    EXPECT_EQ(found, 'x');
  }
  ::close(reader);
  llvm::sys::fs::file_status status;
  ASSERT_FALSE(llvm::sys::fs::status(pipe, status));
  EXPECT_TRUE(llvm::sys::fs::is_other(status));
  EXPECT_TRUE(llvm::sys::fs::is_symlink_file(link));
  EXPECT_EQ(entries(), 2u);
}

TEST_F(Folder, NamesTheFileItCannotWrite) {
  std::string path = at("absent/a.hbx");
  EXPECT_EQ(llvm::toString(writeFileAtomically(path, "x")),
            "cannot write '" + path + "': No such file or directory");
  // A folder stands where the file should go: the rename fails.
  std::string taken = at("taken");
  ASSERT_FALSE(llvm::sys::fs::create_directory(taken));
  EXPECT_EQ(llvm::toString(writeFileAtomically(taken, "x")),
            "cannot write '" + taken + "': Is a directory");
  EXPECT_EQ(entries(), 1u) << "a temporary file was left behind";
}

} // namespace
