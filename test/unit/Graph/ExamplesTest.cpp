//===- ExamplesTest.cpp - the example specs, small -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The specs of examples/specs with small sizes in the oracle: any split of a
// sequence is the whole, and `loss` is the cross entropy of `extend_all`.
//
//===----------------------------------------------------------------------===//

#include "Model.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace hybrid;
using llvm::StringMap;
using oracle::Tensor;

namespace {

/// Longer than two strides of the shrunken history and than any window.
constexpr int64_t kTokens = 90;

class ExamplesTest : public testing::TestWithParam<const char *> {
protected:
  ExamplesTest() : model(readSpec(), /*small=*/true) {
    for (const ParameterRow &row : model.tables().params)
      params[row.path] = draw(row);
    ids = Tensor({kTokens});
    for (int64_t t = 0; t < kTokens; ++t)
      ids.data[t] = (t * t + 7 * t) % model.tables().meta.vocab;
  }

  static std::string readSpec() {
    std::string path = std::string(HYBRID_SPECS) + "/" + GetParam() + ".mlir";
    auto buffer = llvm::cantFail(
        llvm::errorOrToExpected(llvm::MemoryBuffer::getFile(path)));
    std::string text = buffer->getBuffer().str();
    // Exact numbers: what a narrower type rounds depends on the split.
    std::string narrow = " dtype(bf16)";
    if (size_t at = text.find(narrow + " {"); at != std::string::npos)
      text.erase(at, narrow.size());
    return text;
  }

  /// Values that keep the layers lively: norms near 1, matrices of unit gain.
  Tensor draw(const ParameterRow &row) {
    Tensor tensor(row.shape);
    double gain = row.shape.size() == 2 ? 1.5 / std::sqrt(row.shape[1]) : 0.3;
    double base = row.init == "ones" ? 1.0 : 0.0;
    for (double &value : tensor.data)
      value = base + gain * std::sin(12.9898 * ++drawn);
    return tensor;
  }

  /// Logits of all tokens in calls of the given lengths.
  std::vector<double> run(llvm::ArrayRef<int64_t> lengths) {
    oracle::Call call;
    call.slots = 1;
    call.context = kTokens;
    call.chunk = kTokens;
    std::vector<Tensor> states = model.zeroStates(call);
    std::vector<double> logits;
    int64_t position = 0;
    for (int64_t length : lengths) {
      call.segments = {{0, length, 0, position}};
      auto begin = ids.data.begin() + position;
      StringMap<Tensor> inputs;
      inputs["ids"] = Tensor({length}, {begin, begin + length});
      std::vector<Tensor> results =
          model.evaluate("extend_all", call, params, inputs, states);
      if (results.empty())
        return {};
      llvm::append_range(logits, results[0].data);
      states.assign(results.begin() + 1, results.end());
      position += length;
    }
    return logits;
  }

  Model model;
  StringMap<Tensor> params;
  Tensor ids;
  int64_t drawn = 0;
};

TEST_P(ExamplesTest, AnySplitIsTheWhole) {
  std::vector<double> whole = run({kTokens});
  std::vector<int64_t> tokenByToken(kTokens, 1);
  for (const std::vector<int64_t> &lengths :
       {tokenByToken, {1, 0, 40, 3, 46}, {65, 25}}) {
    std::vector<double> parts = run(lengths);
    ASSERT_EQ(parts.size(), whole.size());
    for (auto [found, wanted] : llvm::zip(parts, whole))
      ASSERT_NEAR(found, wanted, 1e-12);
  }
}

TEST_P(ExamplesTest, LossIsOfTheLogits) {
  std::vector<double> logits = run({kTokens});
  StringMap<Tensor> inputs;
  inputs["ids"] = ids;
  inputs["labels"] = ids;
  Tensor weights({kTokens});
  for (int64_t t = 0; t < kTokens; ++t)
    weights.data[t] = 0.5 + t % 3;
  inputs["weights"] = weights;
  std::vector<Tensor> results =
      model.evaluate("loss", oracle::Call::packed({kTokens}), params, inputs);
  ASSERT_FALSE(results.empty());
  int64_t vocab = model.tables().meta.vocab;
  for (int64_t t = 0; t < kTokens; ++t) {
    const double *row = logits.data() + t * vocab;
    double total = 0;
    for (int64_t n = 0; n < vocab; ++n)
      total += std::exp(row[n]);
    double wanted = std::log(total) - row[static_cast<int64_t>(ids.data[t])];
    EXPECT_NEAR(results[0].data[t], weights.data[t] * wanted, 1e-12);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Specs, ExamplesTest,
    testing::Values("book_25m", "demo", "demo_gla", "transformer_376m",
                    "rope_nope_376m", "swa_nope_376m", "gla_nope_376m",
                    "gdn_nope_376m", "headwise_376m", "gla_nope_swla_376m"),
    [](const auto &info) { return std::string(info.param); });

} // namespace
