//===- ModelFaultsTest.cpp - public faults of whole models ----------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Harness.h"

#include "llvm/Support/MathExtras.h"

#include "train/Evaluate.h"

#include <gtest/gtest.h>
#include <thread>

using namespace hybrid::test;

namespace {

using Gradients = std::map<std::string, std::vector<float>>;

/// Runs backward `runs` times while a processor is busy with other work.
void expectSameGradients(CompiledModel &compiled,
                         const CompiledModel::Batch &batch, int runs) {
  std::vector<float> losses, again;
  Gradients first = compiled.backward(batch, losses);
  std::atomic<bool> stop(false);
  std::thread load([&] {
    for (volatile unsigned n = 0; !stop; n = n + 1)
      ;
  });
  for (int run = 1; run < runs; ++run) {
    bool same = compiled.backward(batch, again) == first && again == losses;
    EXPECT_TRUE(same) << "run " << run;
    if (!same)
      break;
  }
  stop = true;
  load.join();
}

/// Every gradient, those of the gates among them.
void expectNearOracle(CompiledModel &compiled,
                      const CompiledModel::Batch &batch) {
  std::vector<float> losses;
  Gradients found = compiled.backward(batch, losses);
  for (const auto &[path, expected] : compiled.oracleBackward(batch))
    EXPECT_LT(distance(found[path], expected), 1e-3) << path;
}

} // namespace

// Full and windowed, grouped heads; the gradient of k and v is a sum over the
// group, that of q one over tiles of keys.
TEST(CompiledModelFaults, ATT_18) {
  CompiledModel compiled(R"(
hybrid.model @m vocab(64) width(32) layers(2) {
  hybrid.mix ratio(1 : 1) {
    hybrid.softmax heads(16) kv_heads(2) head_dim(128) position(nope)
    hybrid.softmax heads(16) kv_heads(2) head_dim(128) position(nope) window(128)
  }
})");
  ASSERT_TRUE(compiled.ok()) << compiled.report;
  expectSameGradients(compiled, compiled.randomBatch({1024}, 3), 200);
}

TEST(CompiledModelFaults, LIN_19) {
  CompiledModel compiled(R"(
hybrid.model @m vocab(64) width(32) layers(1) {
  hybrid.gdn heads(4) head_dim(64)
})");
  ASSERT_TRUE(compiled.ok()) << compiled.report;
  CompiledModel::Batch batch = compiled.randomBatch({256, 256}, 3);
  expectNearOracle(compiled, batch);
  expectSameGradients(compiled, batch, 100);
  // All log gates 0.
  for (const auto &info : compiled.model->parameterTable().parameters)
    if (info.path.find("A_log") != std::string::npos)
      std::fill_n(compiled.model->parameter(info), info.elements, -100.0f);
  expectNearOracle(compiled, batch);
  expectSameGradients(compiled, batch, 100);
}

// A whole model with convolutions, in two calls as in one.
TEST(CompiledModelFaults, CCH_05) {
  CompiledModel compiled(R"(
hybrid.model @m vocab(64) width(32) layers(2) {
  hybrid.gdn heads(2) head_dim(16) conv(4)
})");
  ASSERT_TRUE(compiled.ok()) << compiled.report;
  std::vector<int32_t> ids = compiled.randomBatch({512}, 5).ids;
  std::vector<double> whole;
  for (float logit : compiled.logits(ids, {512}))
    whole.push_back(logit);
  for (const std::vector<int64_t> &pieces :
       {std::vector<int64_t>{256, 256}, {2, 510}, {510, 2}})
    EXPECT_LT(distance(compiled.logits(ids, pieces), whole), 1e-5)
        << testing::PrintToString(pieces);
}

// Decode of 4096 tokens and prefill of the same.
TEST(CompiledModelFaults, LIN_27) {
  CompiledModel compiled(R"(
hybrid.model @m vocab(64) width(32) layers(1) {
  hybrid.gdn heads(2) head_dim(16)
})");
  ASSERT_TRUE(compiled.ok()) << compiled.report;
  constexpr int64_t tokens = 4096;
  std::vector<int32_t> ids = compiled.randomBatch({tokens}, 5).ids;
  std::vector<float> prefilled, decoded;
  std::vector<float> prefill = compiled.logits(ids, {tokens}, &prefilled),
                     decode = compiled.logits(
                         ids, std::vector<int64_t>(tokens, 1), &decoded);
  ASSERT_EQ(prefill.size(), decode.size());
  ASSERT_FALSE(prefilled.empty());
  auto last = [](const std::vector<float> &logits) {
    return llvm::ArrayRef<float>(logits).take_back(64);
  };
  auto exact = [](llvm::ArrayRef<float> values) {
    return std::vector<double>(values.begin(), values.end());
  };
  EXPECT_LT(distance(last(decode), exact(last(prefill))), 1e-3);
  EXPECT_LT(distance(decoded, exact(prefilled)), 1e-3);
}

namespace {
/// 5000 tokens in samples of 1024: the last row of the last one has no label.
struct ChunkedTokens : hyb::rt::Dataset {
  static constexpr int64_t kTokens = 5000, kChunk = 1024;
  int64_t samples() const override { return llvm::divideCeil(kTokens, kChunk); }
  int64_t length() const override { return kChunk; }
  void read(int64_t, int64_t sample, int32_t *ids,
            int32_t *labels) const override {
    for (int64_t i = 0; i < kChunk; ++i) {
      int64_t token = sample * kChunk + i;
      ids[i] = token % 8;
      labels[i] = token + 1 < kTokens ? (token + 1) % 8 : -100;
    }
  }
};

/// A model whose logits are all equal.
void expectPerplexity(
    int64_t vocabulary, double loss,
    llvm::function_ref<hyb::rt::Result<hyb::rt::Evaluation>(hyb::rt::Context &)>
        evaluate) {
  CompiledModel compiled("hybrid.model @m vocab(" + std::to_string(vocabulary) +
                         ") width(16) layers(1) {\n"
                         "hybrid.softmax heads(1) head_dim(16) position(nope)\n"
                         "}");
  ASSERT_TRUE(compiled.ok()) << compiled.report;
  for (const auto &info : compiled.model->parameterTable().parameters)
    std::fill_n(compiled.model->parameter(info), info.elements, 0.0f);
  auto evaluation = evaluate(*compiled.context);
  ASSERT_TRUE(evaluation.ok()) << evaluation.status().message();
  EXPECT_EQ(evaluation->rows, 4999);
  EXPECT_NEAR(evaluation->loss(), loss, 1e-6);
  EXPECT_NEAR(std::exp(evaluation->loss()), double(vocabulary),
              1e-5 * double(vocabulary));
}
} // namespace

TEST(CompiledModelFaults, PPL_06) {
  expectPerplexity(8, 2.079442, [](hyb::rt::Context &context) {
    return hyb::rt::evaluateSamples(context, ChunkedTokens(), 2, false);
  });
}

// Every byte of a text but the first is scored once, whatever the windows.
TEST(CompiledModelFaults, PPL_06_text) {
  std::vector<uint8_t> text(5000);
  for (size_t i = 0; i < text.size(); ++i)
    text[i] = i * i;
  for (int64_t stride : {1024, 512})
    expectPerplexity(256, std::log(256), [&](hyb::rt::Context &context) {
      return hyb::rt::evaluateText(context, {text.data(), text.size()}, 1024,
                                   stride, 2);
    });
}

// What is learnt from a batch of windows changes what comes after it, and
// nothing before: with all weights at zero every byte costs ln 256.
TEST(CompiledModelFaults, LearningFromWhatWasScored) {
  CompiledModel compiled("hybrid.model @m vocab(256) width(16) layers(1) {\n"
                         "hybrid.softmax heads(1) head_dim(16) position(nope)\n"
                         "}");
  ASSERT_TRUE(compiled.ok()) << compiled.report;
  std::vector<uint8_t> text(1001);
  for (size_t i = 0; i < text.size(); ++i)
    text[i] = i * i;
  auto evaluate = [&](size_t bytes, const hyb::rt::EvaluationLearner &learner) {
    auto result = hyb::rt::evaluateText(*compiled.context, {text.data(), bytes},
                                        /*length=*/128, /*stride=*/64,
                                        /*batch=*/2, nullptr, learner);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() ? *result : hyb::rt::Evaluation();
  };
  // Rows of the first batch: a whole window and a stride.
  double before = evaluate(193, nullptr).nats;
  std::vector<int32_t> learnt;
  auto forget = [&](const hyb_batch &batch) {
    for (int64_t i = 0; i < batch.tokens; ++i)
      if (batch.labels[i] != -100)
        learnt.push_back(batch.labels[i]);
    for (const auto &info : compiled.model->parameterTable().parameters)
      std::fill_n(compiled.model->parameter(info), info.elements, 0.0f);
    compiled.model->parametersChanged();
    return hyb::rt::Status();
  };
  hyb::rt::Evaluation evaluation = evaluate(text.size(), forget);
  EXPECT_EQ(evaluation.rows, 1000);
  EXPECT_NE(before, 192 * std::log(256));
  EXPECT_NEAR(evaluation.nats, before + 808 * std::log(256), 1e-3);
  // Every byte is learnt from once, but those of the last batch.
  ASSERT_EQ(learnt.size(), 960u);
  EXPECT_TRUE(std::equal(learnt.begin(), learnt.end(), text.begin() + 1));
}
