//===- SafetensorsTest.cpp ------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "io/Safetensors.h"

#include "../TemporaryFolder.h"

#include <cstring>
#include <gtest/gtest.h>
#include <sys/resource.h>

using namespace hyb;
using namespace hyb::rt;

namespace {

std::string fileOf(const std::string &header, const std::string &data = "") {
  uint64_t length = header.size();
  std::string bytes(reinterpret_cast<const char *>(&length), sizeof(length));
  return bytes + header + data;
}

Result<SafetensorsView> parse(const std::string &file) {
  return SafetensorsView::parse(
      {reinterpret_cast<const uint8_t *>(file.data()), file.size()});
}

std::string zeros(size_t count) { return std::string(count, '\0'); }

/// `{"a":{"dtype":"F32","shape":SHAPE,"data_offsets":OFFSETS}}`
std::string oneTensor(const std::string &shape, const std::string &offsets,
                      const std::string &dtype = "F32") {
  return "{\"a\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}}";
}

void expectRefused(const std::string &file, const std::string &reason) {
  auto view = parse(file);
  ASSERT_FALSE(view.ok()) << "accepted; expected: " << reason;
  EXPECT_EQ(view.status().code(), HYB_INVALID_FILE);
  EXPECT_NE(view.status().message().find(reason), std::string::npos)
      << view.status().message();
}

long peakKilobytes() {
  struct rusage usage;
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

} // namespace

TEST(Safetensors, WritesWhatItReads) {
  test::TemporaryFolder folder;
  float weights[6] = {1, 2, 3, 4, 5, 6};
  int32_t ids[2] = {7, -8};
  std::string path = folder.path("a.safetensors");
  Status status = writeSafetensors(path,
                                   {{"w", DType::F32, {2, 3}, weights},
                                    {"ids", DType::I32, {2}, ids},
                                    {"none", DType::F64, {0, 4}, nullptr},
                                    {"scalar", DType::F32, {}, weights}},
                                   {{"model", "demo \"x\""}});
  ASSERT_TRUE(status.ok()) << status.message();
  auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const SafetensorsView &view = file->view;
  ASSERT_EQ(view.tensors().size(), 4u);
  EXPECT_EQ(view.metadata().at("model"), "demo \"x\"");
  const TensorEntry *w = view.find("w");
  ASSERT_TRUE(w);
  EXPECT_EQ(w->shape, (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(std::memcmp(view.data(*w).data, weights, sizeof(weights)), 0);
  EXPECT_EQ((view.data(*w).data - file->file.bytes().data) % 64, 0);
  EXPECT_EQ(std::memcmp(view.data(*view.find("ids")).data, ids, sizeof(ids)),
            0);
  EXPECT_EQ(view.data(*view.find("none")).size, 0u);
  EXPECT_EQ(view.find("missing"), nullptr);

  // Equal input, equal bytes.
  std::string first = folder.read("a.safetensors");
  ASSERT_TRUE(writeSafetensors(path,
                               {{"w", DType::F32, {2, 3}, weights},
                                {"ids", DType::I32, {2}, ids},
                                {"none", DType::F64, {0, 4}, nullptr},
                                {"scalar", DType::F32, {}, weights}},
                               {{"model", "demo \"x\""}})
                  .ok());
  EXPECT_EQ(folder.read("a.safetensors"), first);
}

// ztxz16/fastllm#713: the header length is trusted.
TEST(Safetensors, WTS_02) {
  long before = peakKilobytes();
  expectRefused("", "file of 0 bytes is too short");
  expectRefused(std::string(7, 'x'), "file of 7 bytes is too short");
  expectRefused(fileOf(""), "header at offset 8 does not start with '{'");
  std::string file = fileOf("{}", zeros(90));
  auto withLength = [&](uint64_t length) {
    std::string copy = file;
    std::memcpy(copy.data(), &length, sizeof(length));
    return copy;
  };
  ASSERT_EQ(file.size(), 100u);
  expectRefused(withLength(UINT64_MAX),
                "header length 18446744073709551615 at offset 0 does not fit: "
                "the file has 100 bytes");
  expectRefused(withLength(UINT64_MAX - 7), "at offset 0 does not fit");
  expectRefused(withLength(100), "header length 100 at offset 0 does not fit");
  expectRefused(withLength(93), "header length 93 at offset 0 does not fit");
  expectRefused(withLength(200'000'000), "does not fit");
  expectRefused(fileOf("{\"\xff\":1}"), "not valid JSON in UTF-8 at offset");
  expectRefused(fileOf("[1]"), "does not start with '{'");
  expectRefused(fileOf("{} x"), "not valid JSON in UTF-8 at offset 11");
  expectRefused(fileOf("{\"a\":"), "not valid JSON");
  EXPECT_LT(peakKilobytes() - before, 1024) << "memory use of refusing";
}

// antirez/h3.c#48: bytes that no tensor owns.
TEST(Safetensors, WTS_04) {
  auto two = [](const char *a, const char *b) {
    return std::string("{\"b\":{\"dtype\":\"F32\",\"shape\":[2],"
                       "\"data_offsets\":") +
           b +
           "},\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":" + a +
           "}}";
  };
  expectRefused(fileOf(two("[0,8]", "[12,20]"), zeros(20)),
                "b: starts at 12, but the data before it ends at 8");
  expectRefused(fileOf(two("[0,8]", "[4,12]"), zeros(12)),
                "b: starts at 4, inside the tensor before it, which ends at 8");
  expectRefused(fileOf(two("[0,8]", "[8,16]"), zeros(20)),
                "tensors end at 16, but there are 20 bytes");
  expectRefused(fileOf("{}", zeros(4)), "tensors end at 0");
  // Entries out of order, ranges contiguous.
  auto view = parse(fileOf(two("[0,8]", "[8,16]"), zeros(16)));
  ASSERT_TRUE(view.ok()) << view.status().message();
  EXPECT_EQ(view->tensors()[0].name, "a");
  EXPECT_EQ(view->tensors()[1].name, "b");
}

// ml-explore/mlx#3363: shape and range disagree.
TEST(Safetensors, WTS_05) {
  expectRefused(fileOf(oneTensor("[1000,1000]", "[0,4]"), zeros(4)),
                "a: shape needs 4000000 bytes, range has 4");
  expectRefused(fileOf(oneTensor("[2]", "[8,0]"), zeros(8)),
                "a: range 8 to 0 is not inside");
  expectRefused(fileOf(oneTensor("[2]", "[0]"), zeros(8)),
                "'data_offsets' has 1 numbers, expected 2");
  expectRefused(fileOf(oneTensor("[2]", "[0,4,8]"), zeros(8)),
                "'data_offsets' has more than 2 numbers");
  expectRefused(fileOf(oneTensor("[2]", "[-8,0]"), zeros(8)),
                "'data_offsets' has -8");
  expectRefused(fileOf(oneTensor("[2]", "[0,1e3]"), zeros(8)),
                "'data_offsets' has 1e3, expected a whole number");
  expectRefused(fileOf(oneTensor("[-1]", "[0,4]"), zeros(4)), "'shape' has -1");
  expectRefused(fileOf(oneTensor("[4294967296,4294967296]", "[0,0]")),
                "size of shape [4294967296, 4294967296] overflows");
  // A zero must not hide an overflow (google-ai-edge/LiteRT#9255).
  expectRefused(fileOf(oneTensor("[9223372036854775808,4,0]", "[0,0]")),
                "overflows");
  expectRefused(fileOf(oneTensor("[18446744073709551616]", "[0,4]"), zeros(4)),
                "expected a whole number below 2^64");
  expectRefused(fileOf(oneTensor("[2]", "[0,18446744073709551615]"), zeros(8)),
                "is not inside the 8 bytes of data");
}

// promptfoo/modelaudit#1607: empty tensors are legal.
TEST(Safetensors, WTS_06) {
  auto a = parse(fileOf(oneTensor("[0]", "[0,0]")));
  ASSERT_TRUE(a.ok()) << a.status().message();
  EXPECT_EQ(a->data(a->tensors()[0]).size, 0u);
  auto b = parse(fileOf(oneTensor("[3,0,2]", "[0,0]")));
  ASSERT_TRUE(b.ok()) << b.status().message();
  auto scalar = parse(fileOf(oneTensor("[]", "[0,4]"), zeros(4)));
  ASSERT_TRUE(scalar.ok()) << scalar.status().message();
  EXPECT_EQ(scalar->data(scalar->tensors()[0]).size, 4u);
  expectRefused(fileOf(oneTensor("[1]", "[0,0]")),
                "a: shape needs 4 bytes, range has 0");
}

TEST(Safetensors, RefusesWhatTheFormatDoesNotAllow) {
  expectRefused(fileOf(oneTensor("[1]", "[0,4]", "F31"), zeros(4)),
                "a: unknown dtype 'F31'");
  std::string body = "{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}";
  expectRefused(fileOf("{\"a\":" + body + ",\"a\":" + body + "}"),
                "a: named twice");
  expectRefused(fileOf("{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}"),
                "a: 'dtype' given twice");
  expectRefused(fileOf("{\"a\":{\"dtype\":\"U8\",\"shape\":[0]}}"),
                "a: has no 'data_offsets'");
  expectRefused(fileOf("{\"a\":{\"kind\":1}}"), "a: unknown field 'kind'");
  expectRefused(fileOf("{\"a\":7}"), "a: value is a number");
  expectRefused(fileOf("{\"a\":{\"shape\":[[1]]}}"),
                "a: 'shape' is or holds a list");
  expectRefused(fileOf("{\"__metadata__\":{\"x\":1}}"),
                "__metadata__: 'x' is a number, expected a text");
  expectRefused(fileOf("{\"__metadata__\":{\"x\":\"\",\"x\":\"\"}}"),
                "named twice");
  expectRefused(
      fileOf(oneTensor("[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,4]"),
             zeros(4)),
      "'shape' has more than 16 numbers");
  expectRefused(fileOf("{\"" + std::string(5000, 'n') + "\":" + body + "}"),
                "a name of 5000 bytes is longer than 4096");
  // Deep nesting costs no stack.
  expectRefused(fileOf("{\"a\":" + std::string(1 << 20, '[')), "a: value is a");
}

TEST(Safetensors, EveryTruncationIsRefused) {
  std::string file = fileOf(oneTensor("[3]", "[0,12]"), "abcdefghijkl");
  ASSERT_TRUE(parse(file).ok());
  for (size_t size = 0; size < file.size(); ++size)
    EXPECT_FALSE(parse(file.substr(0, size)).ok()) << size;
}

TEST(Safetensors, ErrorsNameTheFile) {
  test::TemporaryFolder folder;
  std::string path = folder.write("bad.safetensors", "xx");
  auto file = SafetensorsFile::open(path);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.status().message().find(path + ": file of 2 bytes"), 0u);
  EXPECT_EQ(SafetensorsFile::open(folder.path("none")).status().code(), HYB_IO);
  EXPECT_EQ(SafetensorsFile::open(folder.path("")).status().code(), HYB_IO);
}
