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

#include "hybrid/Graph/ModelTables.h"
#include "hybrid/Graph/Passes.h"
#include "hybrid/Hybrid/HybridDialect.h"
#include "hybrid/Stack/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace hybrid;
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

/// The published name of one of our parameters.
std::string publishedName(StringRef path) {
  static const std::pair<const char *, const char *> parts[] = {
      {"embed.", "model.embed_tokens."},
      {"head.", "lm_head."},
      {"mixer.o_norm.", "attn.o_norm."},
      {"mixer.gate_down_proj.", "attn.gk_proj.0."},
      {"mixer.gate_up_proj.", "attn.gk_proj.1."},
      {"mixer_norm.", "input_layernorm."},
      {"mlp_norm.", "post_attention_layernorm."},
      {"mixer.", "self_attn."},
      {"_conv.", "_conv1d."},
  };
  std::string name = path.str();
  for (auto [ours, theirs] : parts)
    if (size_t at = name.find(ours); at != std::string::npos)
      name.replace(at, std::strlen(ours), theirs);
  if (StringRef(name).starts_with("layers.") || name == "norm.weight")
    name = "model." + name;
  return name;
}

/// The tensor of `path`, by the names of transformers or of
/// flash-linear-attention.
Tensor lookup(const llvm::StringMap<Tensor> &checkpoint, StringRef path) {
  static const std::pair<const char *, const char *> alternatives[] = {
      {"self_attn.", "attn."},
      {"embed_tokens.", "embeddings."},
      {"input_layernorm.", "attn_norm."},
      {"post_attention_layernorm.", "mlp_norm."},
      {"o_norm.", "g_norm."},
  };
  std::string name = publishedName(path);
  for (auto [first, second] : alternatives) {
    if (checkpoint.contains(name))
      break;
    if (size_t at = name.find(first); at != std::string::npos)
      name.replace(at, std::strlen(first), second);
  }
  EXPECT_TRUE(checkpoint.contains(name)) << path.str() << " as " << name;
  return checkpoint.lookup(name);
}

class PublishedTest : public testing::TestWithParam<Published> {
protected:
  void SetUp() override {
    std::string folder = std::string(HYBRID_FIXTURES) + "/" + GetParam().name;
    checkpoint = readCheckpoint(folder + "/model.safetensors");
    expected = readCheckpoint(folder + "/expected.safetensors");
    context.loadDialect<HybridDialect, func::FuncDialect>();
    std::string text =
        "hybrid.model @m vocab(160) width(64) layers(4) epsilon(0.000001)" +
        std::string(GetParam().tied ? " tied" : "") + " {\n" +
        GetParam().mixers + "\nhybrid.mlp swiglu(96)\n}\n";
    module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module);
    PassManager passes(&context);
    passes.addPass(createHybridExpandStack());
    passes.addPass(createHybridBuildGraph());
    ASSERT_TRUE(succeeded(passes.run(*module)));
  }

  /// Evaluates `entry`: parameters from the checkpoint, states zero, the other
  /// arguments by their role.
  std::vector<Tensor> evaluate(StringRef entry,
                               const llvm::StringMap<Tensor> &inputs) {
    auto function = module->lookupSymbol<func::FuncOp>(entry);
    oracle::Call call = oracle::Call::packed({kTokens, kTokens});
    call.slots = kSequences;
    call.context = kTokens;
    std::vector<Tensor> arguments;
    for (BlockArgument argument : function.getArguments()) {
      unsigned index = argument.getArgNumber();
      auto text = [&](StringRef key) {
        auto attr = function.getArgAttrOfType<StringAttr>(index, key);
        return attr ? attr.getValue() : StringRef();
      };
      StringRef role = text("hybrid.role");
      if (role == "param")
        arguments.push_back(parameter(argument, text("hybrid.path")));
      else if (role == "state")
        arguments.push_back(zeros(argument));
      else
        arguments.push_back(inputs.lookup(role));
    }
    FailureOr<std::vector<Tensor>> results =
        oracle::evaluate(function, arguments, call);
    EXPECT_TRUE(succeeded(results));
    return succeeded(results) ? *results : std::vector<Tensor>();
  }

  Tensor parameter(BlockArgument argument, StringRef path) {
    Tensor tensor = lookup(checkpoint, path);
    // A convolution has a middle dimension of 1 on disk.
    auto shape = cast<RankedTensorType>(argument.getType()).getShape();
    return Tensor(shape, tensor.data);
  }

  static Tensor zeros(BlockArgument argument) {
    auto type = cast<RankedTensorType>(argument.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[0] = kSequences;
    bool isRing = GetParam().name == StringRef("mistral_swa");
    for (int64_t &size : shape)
      if (ShapedType::isDynamic(size))
        size = isRing ? kTokens + 15 : kTokens;
    return Tensor(shape);
  }

  static double publishedLoss() {
    std::string path =
        std::string(HYBRID_FIXTURES) + "/" + GetParam().name + "/expected.json";
    auto buffer = llvm::cantFail(
        llvm::errorOrToExpected(llvm::MemoryBuffer::getFile(path)));
    auto value = llvm::cantFail(llvm::json::parse(buffer->getBuffer()));
    return *value.getAsObject()->getNumber("loss");
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  llvm::StringMap<Tensor> checkpoint, expected;
};

TEST_P(PublishedTest, Logits) {
  Tensor ids({kSequences * kTokens}, expected["ids"].data);
  llvm::StringMap<Tensor> inputs;
  inputs["ids"] = ids;
  std::vector<Tensor> results = evaluate("extend_all", inputs);
  ASSERT_FALSE(results.empty());
  const std::vector<double> &logits = expected["logits"].data;
  ASSERT_EQ(results[0].data.size(), logits.size());
  double worst = 0;
  for (auto [found, wanted] : llvm::zip(results[0].data, logits))
    worst = std::max(worst, std::abs(found - wanted));
  EXPECT_LT(worst, GetParam().logitTolerance);

  // The last row of each segment is what `extend` gives.
  std::vector<Tensor> last = evaluate("extend", inputs);
  ASSERT_FALSE(last.empty());
  for (int64_t s = 0; s < kSequences; ++s)
    for (int64_t n = 0; n < kVocab; ++n)
      EXPECT_EQ(last[0](s, n), results[0]((s + 1) * kTokens - 1, n));
}

TEST_P(PublishedTest, Loss) {
  Tensor ids({kSequences * kTokens}, expected["ids"].data);
  Tensor labels({kSequences * kTokens}), weights({kSequences * kTokens});
  for (int64_t t = 0; t < labels.size(); ++t) {
    bool isLast = t % kTokens == kTokens - 1;
    labels.data[t] = isLast ? -100 : ids.data[t + 1];
    weights.data[t] = 1;
  }
  llvm::StringMap<Tensor> inputs;
  inputs["ids"] = ids;
  inputs["labels"] = labels;
  inputs["weights"] = weights;
  std::vector<Tensor> results = evaluate("loss", inputs);
  ASSERT_FALSE(results.empty());
  double sum = 0;
  for (double loss : results[0].data)
    sum += loss;

  EXPECT_NEAR(sum / (kSequences * (kTokens - 1)), publishedLoss(),
              GetParam().lossTolerance);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, PublishedTest, testing::ValuesIn(published),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

} // namespace
