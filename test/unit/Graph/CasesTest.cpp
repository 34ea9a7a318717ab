//===- CasesTest.cpp - public fault cases of whole models -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Model.h"

#include "gtest/gtest.h"
#include <cmath>

using namespace hybrid;
using llvm::StringMap;
using oracle::Tensor;

namespace {

class CasesTest : public testing::Test {
protected:
  /// The loss of every token of `segments`, each holding the same ids.
  static std::vector<double> losses(const std::string &layers,
                                    std::vector<oracle::Segment> segments) {
    Model model("hybrid.model @m vocab(64) width(32) layers(2) {\n" + layers +
                "\n}\n");
    oracle::Call call;
    call.segments = std::move(segments);
    int64_t drawn = 0;
    StringMap<Tensor> params, inputs;
    for (const ParameterRow &row : model.tables().params) {
      Tensor tensor(row.shape);
      for (double &value : tensor.data)
        value = (row.init == "ones") + 0.4 * std::sin(12.9898 * ++drawn);
      params[row.path] = tensor;
    }
    Tensor ids({call.tokens()});
    for (const oracle::Segment &segment : call.segments)
      for (int64_t t = segment.begin; t < segment.end; ++t)
        ids.data[t] = (t - segment.begin) * 13 % 64;
    inputs["ids"] = inputs["labels"] = ids;
    inputs["weights"] = Tensor(ids.shape, std::vector<double>(ids.size(), 1.0));
    std::vector<Tensor> results = model.evaluate("loss", call, params, inputs);
    return results.empty() ? std::vector<double>() : results[0].data;
  }
};

// Positions reach the layers that ask for them and no other: NoPE layers do not
// notice a shift by 1000, rotary layers see distances alone.
TEST_F(CasesTest, CFG_02) {
  std::string nope = "hybrid.softmax heads(2) head_dim(16) position(nope)";
  std::string rope = "hybrid.softmax heads(2) head_dim(16) position(rope)";
  std::vector<double> first = losses(nope, {{0, 12, 0, 0}});
  ASSERT_EQ(first.size(), 12u);
  EXPECT_EQ(losses(nope, {{0, 12, 0, 1000}}), first);

  std::vector<double> rotated = losses(rope, {{0, 12, 0, 0}});
  std::vector<double> shifted = losses(rope, {{0, 12, 0, 1000}});
  ASSERT_EQ(shifted.size(), rotated.size());
  EXPECT_NE(rotated, first);
  for (auto [found, wanted] : llvm::zip(shifted, rotated))
    EXPECT_NEAR(found, wanted, 1e-9);
}

// A document behind another in the stream is as if alone, convolution included.
TEST_F(CasesTest, VAR_02) {
  for (std::string layers :
       {"hybrid.gdn heads(2) head_dim(16)",
        "hybrid.gla heads(2) head_dim(16) conv(4)",
        "hybrid.delta_net heads(2) head_dim(16)",
        ("hybrid.swla window(4) stride(2) {\n  hybrid.gla heads(2) "
         "head_dim(16)\n}"),
        "hybrid.softmax heads(2) head_dim(16) position(rope) window(3)"}) {
    SCOPED_TRACE(layers);
    std::vector<double> alone = losses(layers, {{0, 5, 0, 0}});
    std::vector<double> packed = losses(layers, {{0, 5, 0, 0}, {5, 10, 1, 0}});
    ASSERT_EQ(packed.size(), 10u);
    for (int64_t t = 0; t < 5; ++t) {
      EXPECT_EQ(packed[t], alone[t]);
      EXPECT_EQ(packed[t + 5], alone[t]);
    }
  }
}

} // namespace
