//===- AtomicFileTest.cpp -------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "io/AtomicFile.h"

#include "../TemporaryFolder.h"

#include <csignal>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace hyb;
using namespace hyb::rt;

TEST(AtomicFile, ReplacesOnCommitOnly) {
  test::TemporaryFolder folder;
  std::string path = folder.write("a", "old");
  {
    auto file = AtomicFile::create(path);
    ASSERT_TRUE(file.ok()) << file.status().message();
    ASSERT_TRUE(file->write("new!", 4).ok());
    EXPECT_EQ(folder.read("a"), "old");
  }
  EXPECT_EQ(folder.read("a"), "old");
  EXPECT_EQ(folder.fileCount(), 1u) << "a partial file was left behind";

  ASSERT_TRUE(writeFileAtomically(path, "new!").ok());
  EXPECT_EQ(folder.read("a"), "new!");
  EXPECT_EQ(folder.fileCount(), 1u);
}

TEST(AtomicFile, OverwritesThePartialFileOfAKilledProcess) {
  test::TemporaryFolder folder;
  folder.write(".a.partial", "left over and longer than the new content");
  ASSERT_TRUE(writeFileAtomically(folder.path("a"), "x").ok());
  EXPECT_EQ(folder.read("a"), "x");
  EXPECT_EQ(folder.fileCount(), 1u);
}

TEST(AtomicFile, RefusesASecondWriter) {
  test::TemporaryFolder folder;
  auto first = AtomicFile::create(folder.path("a"));
  ASSERT_TRUE(first.ok());
  auto second = AtomicFile::create(folder.path("a"));
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find("another process is writing it"),
            std::string::npos);
  ASSERT_TRUE(first->write("1", 1).ok());
  ASSERT_TRUE(first->commit().ok());
  EXPECT_EQ(folder.read("a"), "1");
}

// A limit on the file size stands for the full disk: write() fails half-way.
TEST(AtomicFile, FullDiskLeavesTheOldFile) {
  test::TemporaryFolder folder;
  std::string path = folder.write("a", "old");
  struct rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit small = {4096, before.rlim_max};
  auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  Status status = writeFileAtomically(path, std::string(10000, 'x'));
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);

  EXPECT_EQ(status.code(), HYB_IO);
  EXPECT_NE(status.message().find("cannot write " + path), std::string::npos)
      << status.message();
  EXPECT_EQ(folder.read("a"), "old");
  EXPECT_EQ(folder.fileCount(), 1u);
}

TEST(AtomicFile, NamesTheFolderThatIsMissing) {
  test::TemporaryFolder folder;
  Status status = writeFileAtomically(folder.path("none/a"), "x");
  EXPECT_EQ(status.code(), HYB_IO);
  EXPECT_NE(status.message().find("No such file"), std::string::npos);
}

TEST(AtomicFile, ReplacesWhatALinkNames) {
  test::TemporaryFolder folder;
  folder.write("a", "old");
  std::string link = folder.path("link"), lost = folder.path("lost");
  ASSERT_EQ(::symlink("a", link.c_str()), 0);
  ASSERT_TRUE(writeFileAtomically(link, "new").ok());
  EXPECT_EQ(folder.read("a"), "new");
  struct stat present;
  ASSERT_EQ(::lstat(link.c_str(), &present), 0);
  EXPECT_TRUE(S_ISLNK(present.st_mode));

  ASSERT_EQ(::symlink("absent", lost.c_str()), 0);
  Status status = writeFileAtomically(lost, "x");
  EXPECT_EQ(status.code(), HYB_IO);
  EXPECT_NE(status.message().find("follow the link"), std::string::npos)
      << status.message();
  EXPECT_EQ(folder.fileCount(), 3u);
}

TEST(AtomicFile, RefusesAFolder) {
  test::TemporaryFolder folder;
  std::string inner = folder.path("inner");
  ASSERT_EQ(::mkdir(inner.c_str(), 0700), 0);
  Status status = writeFileAtomically(inner, "x");
  EXPECT_EQ(status.code(), HYB_IO);
  EXPECT_NE(status.message().find("not a file that can be replaced; choose "
                                  "another path"),
            std::string::npos)
      << status.message();
  ::rmdir(inner.c_str());
}

// Renaming over it would turn a device or a pipe into a file.
TEST(AtomicFile, WritesThroughToAPipeOrADevice) {
  test::TemporaryFolder folder;
  std::string pipe = folder.path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  // Open for reading and writing, so that no one waits.
  int reader = ::open(pipe.c_str(), O_RDWR | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  Status status = writeFileAtomically(pipe, "through");
  EXPECT_TRUE(status.ok()) << status.message();
  char text[16] = {};
  EXPECT_EQ(::read(reader, text, sizeof(text)), 7);
  EXPECT_STREQ(text, "through");
  ::close(reader);
  EXPECT_TRUE(writeFileAtomically("/dev/null", "x").ok());
  EXPECT_EQ(writeFileAtomically("/dev/full", "x").code(), HYB_IO);
  struct stat present;
  ASSERT_EQ(::stat(pipe.c_str(), &present), 0);
  EXPECT_TRUE(S_ISFIFO(present.st_mode));
  EXPECT_EQ(folder.fileCount(), 1u);
}
