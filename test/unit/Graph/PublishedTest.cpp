//===- PublishedTest.cpp - graphs of published models -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A spec with the weights of a published model gives that library's logits and
// loss (test/fixtures), with states and without them.
//
//===----------------------------------------------------------------------===//

#include "Checkpoint.h"
#include "Model.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"

using namespace hybrid;
using llvm::StringMap;
using llvm::StringRef;
using oracle::Tensor;

namespace {

constexpr int64_t kSequences = 2, kTokens = 77, kVocab = 160;

struct Published {
  const char *name;
  const char *mixers; // of a model of 4 layers and width 64
  bool tied;
  double logitTolerance;
  double lossTolerance;
};

const Published published[] = {
    {"llama", "hybrid.softmax heads(4) kv_heads(2) head_dim(16) position(rope)",
     false, 1e-4, 1e-5},
    {"mistral_swa",
     "hybrid.softmax heads(4) kv_heads(2) head_dim(16) position(rope) "
     "window(16)",
     false, 1e-4, 1e-5},
    {"qwen3",
     "hybrid.softmax heads(4) kv_heads(2) head_dim(16) position(rope) qk_norm",
     false, 1e-4, 1e-5},
    {"smollm3",
     "hybrid.mix ratio(3 : 1) {\n"
     "  hybrid.softmax heads(4) kv_heads(2) head_dim(16)\n"
     "      position(rope, base = 2000000)\n"
     "  hybrid.softmax heads(4) kv_heads(2) head_dim(16) position(nope)\n"
     "}",
     true, 1e-4, 1e-5},
    {"fla_gla", "hybrid.gla heads(2) head_dim(16) value_dim(32)", false, 2e-3,
     1e-3},
    {"fla_gated_deltanet", "hybrid.gdn heads(2) head_dim(32) value_dim(64)",
     false, 2e-3, 1e-3},
};

using Renames = llvm::ArrayRef<std::pair<StringRef, StringRef>>;

std::string rename(std::string name, Renames renames) {
  for (auto [from, to] : renames)
    if (size_t at = name.find(from.str()); at != std::string::npos)
      name.replace(at, from.size(), to.str());
  return name;
}

/// The tensor of one of our parameters, by the names of transformers or of
/// flash-linear-attention.
Tensor lookup(const StringMap<Tensor> &checkpoint, const ParameterRow &row) {
  std::string name = row.path;
  if (StringRef(name).starts_with("layers.") || name == "norm.weight")
    name = "model." + name;
  std::string transformers =
      rename(name, {{"embed.", "model.embed_tokens."},
                    {"head.", "lm_head."},
                    {"mixer.", "self_attn."},
                    {"mixer_norm.", "input_layernorm."},
                    {"mlp_norm.", "post_attention_layernorm."}});
  std::string fla = rename(name, {{"embed.", "model.embeddings."},
                                  {"head.", "lm_head."},
                                  {"mixer.", "attn."},
                                  {"mixer_norm.", "attn_norm."},
                                  {"gate_down_proj.", "gk_proj.0."},
                                  {"gate_up_proj.", "gk_proj.1."},
                                  {"_conv.", "_conv1d."}});
  std::string flaGla = rename(fla, {{"o_norm.", "g_norm."}});
  for (const std::string &candidate : {transformers, fla, flaGla})
    if (checkpoint.contains(candidate))
      // A convolution has a middle dimension of 1 on disk.
      return Tensor(row.shape, checkpoint.lookup(candidate).data);
  ADD_FAILURE() << "no tensor for " << row.path;
  return Tensor(row.shape);
}

class PublishedTest : public testing::TestWithParam<Published> {
protected:
  PublishedTest()
      : folder(std::string(HYBRID_FIXTURES) + "/" + GetParam().name),
        model("hybrid.model @m vocab(160) width(64) layers(4) "
              "epsilon(0.000001)" +
              std::string(GetParam().tied ? " tied" : "") + " {\n" +
              GetParam().mixers + "\nhybrid.mlp swiglu(96)\n}\n"),
        expected(readCheckpoint(folder + "/expected.safetensors")),
        call(oracle::Call::packed({kTokens, kTokens})) {
    StringMap<Tensor> checkpoint =
        readCheckpoint(folder + "/model.safetensors");
    for (const ParameterRow &row : model.tables().params)
      params[row.path] = lookup(checkpoint, row);
    inputs["ids"] = Tensor({kSequences * kTokens}, expected["ids"].data);
    call.slots = kSequences;
    call.context = kTokens;
  }

  std::string folder;
  Model model;
  StringMap<Tensor> expected, params, inputs;
  oracle::Call call;
};

TEST_P(PublishedTest, Logits) {
  std::vector<Tensor> states = model.zeroStates(call);
  std::vector<Tensor> all =
      model.evaluate("extend_all", call, params, inputs, states);
  ASSERT_FALSE(all.empty());
  const std::vector<double> &logits = expected["logits"].data;
  ASSERT_EQ(all[0].data.size(), logits.size());
  double worst = 0;
  for (auto [found, wanted] : llvm::zip(all[0].data, logits))
    worst = std::max(worst, std::abs(found - wanted));
  EXPECT_LT(worst, GetParam().logitTolerance);

  // The last row of each segment is what `extend` gives.
  std::vector<Tensor> last =
      model.evaluate("extend", call, params, inputs, states);
  ASSERT_FALSE(last.empty());
  for (int64_t s = 0; s < kSequences; ++s)
    for (int64_t n = 0; n < kVocab; ++n)
      EXPECT_EQ(last[0](s, n), all[0]((s + 1) * kTokens - 1, n));
}

TEST_P(PublishedTest, Loss) {
  const Tensor &ids = inputs["ids"];
  Tensor labels(ids.shape), weights(ids.shape);
  for (int64_t t = 0; t < labels.size(); ++t) {
    bool isLast = t % kTokens == kTokens - 1;
    labels.data[t] = isLast ? -100 : ids.data[t + 1];
    weights.data[t] = 1;
  }
  inputs["labels"] = labels;
  inputs["weights"] = weights;
  std::vector<Tensor> results = model.evaluate("loss", call, params, inputs);
  ASSERT_FALSE(results.empty());
  double sum = 0;
  for (double loss : results[0].data)
    sum += loss;

  auto buffer = llvm::cantFail(llvm::errorOrToExpected(
      llvm::MemoryBuffer::getFile(folder + "/expected.json")));
  auto json = llvm::cantFail(llvm::json::parse(buffer->getBuffer()));
  EXPECT_NEAR(sum / (kSequences * (kTokens - 1)),
              *json.getAsObject()->getNumber("loss"), GetParam().lossTolerance);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, PublishedTest, testing::ValuesIn(published),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

} // namespace
