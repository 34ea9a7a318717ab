//===- FunctionTest.cpp - Calls of functions of an artefact ---------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../fixture/LoadedFixture.h"

#include <cmath>
#include <gtest/gtest.h>

namespace hyb::test {
namespace {

using namespace hyb::rt;

/// A tensor in the memory of the model's device.
struct OnDevice {
  DeviceMemory memory;
  std::vector<int64_t> shape;
  hyb_dl_tensor tensor = {};

  template <typename T>
  OnDevice(Device &device, std::vector<int64_t> sizes,
           const std::vector<T> &values, uint8_t code)
      : shape(std::move(sizes)) {
    auto bytes = static_cast<int64_t>(values.size() * sizeof(T));
    // With room for a start that is not aligned.
    memory = std::move(*device.allocate(bytes + 1024));
    EXPECT_TRUE(device.write(memory.data(), values.data(), bytes).ok());
    tensor.data = memory.data();
    tensor.device = device.dlDevice();
    tensor.rank = static_cast<int32_t>(shape.size());
    tensor.type = {code, 32, 1};
    tensor.shape = shape.data();
  }
};

/// The fixture's function `pick`: row which[t] of `rows` for every token.
class Function : public testing::Test {
protected:
  LoadedFixture fixture;
  Device &device = fixture.model->device();
  std::vector<float> table = numbers();
  OnDevice rows{device, {8, 8}, table, HYB_DL_FLOAT};
  OnDevice which{device, {3}, std::vector<int32_t>{5, 0, 7}, HYB_DL_INT};
  OnDevice picked{device, {3, 8}, std::vector<float>(24, -1.0f), HYB_DL_FLOAT};
  std::vector<hyb_argument> arguments = {{"picked", &picked.tensor},
                                         {"which", &which.tensor},
                                         {"rows", &rows.tensor}};
  std::vector<int64_t> lengths = {2, 1};

  static std::vector<float> numbers() {
    std::vector<float> values(64);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(i);
    return values;
  }
  Status call(const char *entry = "pick") {
    return fixture.context->call(
        entry, arguments.data(), static_cast<int64_t>(arguments.size()),
        lengths.data(), static_cast<int64_t>(lengths.size()));
  }
  /// The message of a call that must be refused, with nothing written.
  std::string refused(const char *entry = "pick") {
    Status status = call(entry);
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(outputs(), std::vector<float>(24, -1.0f));
    return status.ok() ? "" : status.message();
  }
  std::vector<float> outputs() {
    std::vector<float> values(24);
    EXPECT_TRUE(device.read(values.data(), picked.memory.data(), 96).ok());
    return values;
  }
};

TEST_F(Function, ReadsInputsAndWritesOutputsInPlace) {
  ASSERT_TRUE(call().ok());
  std::vector<float> values = outputs();
  for (int j = 0; j < 8; ++j) {
    EXPECT_EQ(values[j], static_cast<float>(40 + j));
    EXPECT_EQ(values[8 + j], static_cast<float>(j));
    EXPECT_EQ(values[16 + j], static_cast<float>(56 + j));
  }
}

TEST_F(Function, OtherLengthsAndTensorsFollowEachOther) {
  ASSERT_TRUE(call().ok());
  std::vector<float> first = outputs();
  OnDevice one(device, {1}, std::vector<int32_t>{3}, HYB_DL_INT);
  OnDevice row(device, {1, 8}, std::vector<float>(8), HYB_DL_FLOAT);
  arguments = {
      {"picked", &row.tensor}, {"which", &one.tensor}, {"rows", &rows.tensor}};
  for (size_t segments = 1; segments < 12; ++segments) {
    lengths.assign(segments, 0);
    lengths.back() = 1;
    ASSERT_TRUE(call().ok());
    std::vector<float> values(8);
    ASSERT_TRUE(device.read(values.data(), row.memory.data(), 32).ok());
    EXPECT_EQ(values[2], 26.0f);
  }
  EXPECT_EQ(outputs(), first);
}

TEST_F(Function, NoTokensIsACall) {
  OnDevice none(device, {0}, std::vector<int32_t>{}, HYB_DL_INT);
  OnDevice nothing(device, {0, 8}, std::vector<float>{}, HYB_DL_FLOAT);
  none.tensor.data = nothing.tensor.data = nullptr;
  arguments = {{"picked", &nothing.tensor},
               {"which", &none.tensor},
               {"rows", &rows.tensor}};
  for (const std::vector<int64_t> &each :
       {std::vector<int64_t>{}, std::vector<int64_t>{0, 0}}) {
    lengths = each;
    EXPECT_TRUE(call().ok());
  }
}

TEST_F(Function, NamesThatAreNotThere) {
  arguments[0].name = "chosen";
  EXPECT_EQ(refused(), "'pick' has no argument 'chosen'; its arguments are: "
                       "rows, which, picked");
  arguments[0].name = "picked";
  arguments.push_back(arguments[1]);
  EXPECT_EQ(refused(), "'pick' is given twice its argument 'which'; its "
                       "arguments are: rows, which, picked");
  arguments.resize(2);
  EXPECT_EQ(refused(), "'pick' misses argument 'rows'; its arguments are: "
                       "rows, which, picked");
  EXPECT_EQ(refused("peck"),
            "artefact has no entry 'peck'; compile the spec with it");
}

TEST_F(Function, ShapesThatDoNotFit) {
  lengths = {2, 2};
  EXPECT_EQ(refused(),
            "output 'picked' of 'pick' has shape [3, 8], expected [4, 8] for 4 "
            "tokens in 2 sequences");
  lengths = {2, -1};
  EXPECT_EQ(refused(), "sequence 1 has length -1 after 2 tokens; lengths must "
                       "not be negative and sum to at most 2147483647");
  lengths = {INT32_MAX, 1};
  EXPECT_NE(refused().find("sequence 1 has length 1 after 2147483647 tokens"),
            std::string::npos);
  lengths = {3};
  which.tensor.rank = 0;
  EXPECT_EQ(refused(), "input 'which' of 'pick' has shape [], expected [3] for "
                       "3 tokens in 1 sequences");
}

TEST_F(Function, ElementsThatDoNotFit) {
  rows.tensor.type = {HYB_DL_FLOAT, 16, 1};
  EXPECT_EQ(refused(), "input 'rows' of 'pick' has elements of type f16, "
                       "expected f32; convert them");
  rows.tensor.type = {HYB_DL_FLOAT, 32, 1};
  which.tensor.type = {HYB_DL_INT, 64, 1};
  EXPECT_EQ(refused(), "input 'which' of 'pick' has elements of type i64, "
                       "expected i32; convert them");
  which.tensor.type = {77, 8, 2};
  EXPECT_EQ(refused(), "input 'which' of 'pick' has elements of type type code "
                       "77 of 8x2, expected i32; convert them");
}

TEST_F(Function, PlacesThatDoNotFit) {
  rows.tensor.device = {HYB_DL_CUDA, 7};
  EXPECT_EQ(refused(),
            "input 'rows' of 'pick' is on cuda:7, the function runs on " +
                std::string(device.name()) + "; move it there");
  rows.tensor.device = device.dlDevice();
  int64_t strides[] = {1, 8};
  rows.tensor.strides = strides;
  EXPECT_EQ(refused(), "input 'rows' of 'pick' has strides [1, 8] for shape "
                       "[8, 8]; give a contiguous tensor");
  strides[0] = 8, strides[1] = 1;
  rows.tensor.byte_offset = 4;
  EXPECT_EQ(refused(), "input 'rows' of 'pick' starts 4 bytes after a multiple "
                       "of " +
                           std::string(device.isHost() ? "64" : "256") +
                           "; copy it to memory that starts at one");
  rows.tensor.byte_offset = 0;
  rows.tensor.data = nullptr;
  EXPECT_EQ(refused(), "input 'rows' of 'pick' has no data");
}

TEST_F(Function, OutputsAreApart) {
  picked.tensor.data = rows.tensor.data;
  EXPECT_EQ(refused(), "output 'picked' of 'pick' overlaps input 'rows'; give "
                       "it memory of its own");
  // Inputs may be one tensor.
  picked.tensor.data = picked.memory.data();
  EXPECT_TRUE(call().ok());
}

TEST_F(Function, EntriesOfAModelAreCalledOtherwise) {
  EXPECT_EQ(refused("loss"),
            "entry 'loss' is a model's: it takes ids beside named tensors; use "
            "the function of the API for it");
}

std::string parsePlan(const std::string &buffers) {
  std::string plan =
      "{\"kernels\": [], \"entries\": {\"f\": " + fixtureEntry({buffers}, {}) +
      "}}";
  Result<Plan> parsed = Plan::parse(
      {reinterpret_cast<const uint8_t *>(plan.data()), plan.size()});
  return parsed.ok() ? "" : parsed.status().message();
}

TEST(FunctionPlan, ArgumentsHaveNamesOfTheirOwn) {
  EXPECT_EQ(parsePlan(fixtureBuffer("input", "8", ", \"path\": \"x\"")), "");
  EXPECT_EQ(parsePlan(fixtureBuffer("input", "8")),
            "plan entry f: buffer 0 is an input with the name '', which is "
            "empty or taken");
  EXPECT_EQ(parsePlan(fixtureBuffer("input", "8", ", \"path\": \"x\"") + ", " +
                      fixtureBuffer("output", "8", ", \"path\": \"x\"")),
            "plan entry f: buffer 1 is an output with the name 'x', which is "
            "empty or taken");
}

} // namespace
} // namespace hyb::test
