//===- RandomStacks.cpp - random specs and arguments for their entries ---===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RandomStacks.h"

#include "mlir/IR/BuiltinAttributes.h"

#include <cmath>

using namespace hybrid;
using namespace hybrid::cases;
using oracle::Call;
using oracle::Tensor;

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

/// splitmix64 (Steele, Lea and Flood, 2014).
uint64_t Random::next() {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

int64_t Random::between(int64_t least, int64_t most) {
  return least + static_cast<int64_t>(next() % (most - least + 1));
}

double Random::uniform(double least, double most) {
  return least + (most - least) * (next() >> 11) * 0x1.0p-53;
}

//===----------------------------------------------------------------------===//
// Specs
//===----------------------------------------------------------------------===//

namespace {
/// Text of the parts of one spec.
class SpecWriter {
public:
  SpecWriter(Random &random, bool isWide) : random(random), isWide(isWide) {}

  std::string softmax(int64_t heads);
  std::string recurrent(int64_t heads);
  /// A mixer that is no group of heads.
  std::string mixer(int64_t heads) {
    return random.chance(45) ? softmax(heads) : recurrent(heads);
  }
  /// What a layer may have.
  std::string layerMixer();
  /// What says which layer has which mixer.
  std::string plan();

  bool usesDynamicNtk = false;

private:
  static std::string clause(const char *name, int64_t value) {
    return std::string(" ") + name + "(" + std::to_string(value) + ")";
  }

  Random &random;
  /// Heads as wide as in large models, of which a few are enough.
  bool isWide;
};
} // namespace

std::string SpecWriter::softmax(int64_t heads) {
  std::string text = "hybrid.softmax" + clause("heads", heads);
  if (heads % 2 == 0 && random.chance(50))
    text += clause("kv_heads", heads / 2);
  text += clause("head_dim",
                 isWide ? random.pick({64, 128}) : random.pick({8, 16, 24}));
  switch (random.between(0, 3)) {
  case 0:
  case 1:
    text += " position(nope)";
    break;
  case 2:
    text += " position(rope, base = 1000)";
    break;
  case 3:
    text += " position(rope, dynamic_ntk = 2)";
    usesDynamicNtk = true;
    break;
  }
  if (random.chance(50)) {
    text += clause("window", random.pick({1, 3, 8, 17, 64}));
    if (random.chance(40))
      text += clause("sinks", random.between(1, 4));
  }
  if (random.chance(40))
    text += random.chance(50) ? " logit_scale(log_n)"
                              : " logit_scale(constant, factor = 1.5)";
  if (random.chance(30))
    text += " qk_norm";
  return text;
}

std::string SpecWriter::recurrent(int64_t heads) {
  bool gla = random.chance(50);
  std::string text = gla ? "hybrid.gla" : "hybrid.gdn";
  text +=
      clause("heads", heads) +
      clause("head_dim", isWide ? random.pick({32, 64}) : random.pick({8, 16}));
  if (random.chance(50))
    text += clause("value_dim",
                   isWide ? random.pick({64, 128}) : random.pick({8, 24}));
  if (random.chance(50))
    text +=
        random.chance(50) ? clause("conv", random.between(2, 4)) : " conv(off)";
  if (random.chance(40))
    text += std::string(" output(") +
            random.pick({"plain", "norm", "gate", "norm_gate"}) + ")";
  if (random.chance(30))
    text += gla ? " gate_bias(2)" : " negative_eigenvalues";
  if (random.chance(60))
    return text;
  int64_t stride = random.pick({1, 4, 16});
  int64_t window = stride * random.between(1, 4);
  return "hybrid.swla" + clause("window", window) + clause("stride", stride) +
         " { " + text + " }";
}

std::string SpecWriter::layerMixer() {
  if (random.chance(65))
    return mixer(random.between(1, 3));
  std::string text = "hybrid.heads { ";
  for (int64_t groups = random.between(2, 3); groups > 0; --groups)
    text += mixer(random.between(1, 2)) + " ";
  return text + "}";
}

std::string SpecWriter::plan() {
  switch (random.between(0, 2)) {
  case 0:
    return layerMixer();
  case 1:
    return "hybrid.mix ratio(" + std::to_string(random.between(1, 2)) +
           " : 1) { " + layerMixer() + " " + layerMixer() + " }";
  default:
    return "hybrid.pattern \"" + std::string(random.pick({"AB", "BA"})) +
           "\" { hybrid.named \"A\" { " + layerMixer() +
           " } hybrid.named \"B\" { " + layerMixer() + " } }";
  }
}

/// A long sequence first, where one is wanted, then a few that are short.
static std::vector<int64_t> randomLengths(Random &random, bool isLong) {
  std::vector<int64_t> lengths;
  if (isLong)
    lengths.push_back(random.between(129, 170));
  for (int64_t count = random.between(1, 3); count > 0; --count)
    lengths.push_back(random.chance(40) ? random.between(0, 1)
                                        : random.between(2, 24));
  // No call is without a token.
  lengths.back() += 1;
  return lengths;
}

static RandomStack makeStack(uint64_t seed, bool isWide) {
  Random random(seed);
  SpecWriter writer(random, isWide);
  RandomStack stack;
  stack.seed = seed;
  // Few sizes, so that stacks have programs in common.
  stack.vocab = random.pick({5, 17, 40});
  const int64_t trained = 24;
  std::string text = "hybrid.model @random vocab(" +
                     std::to_string(stack.vocab) + ") width(" +
                     std::to_string(isWide ? random.pick({64, 128})
                                           : random.pick({8, 16, 24, 40})) +
                     ") layers(" + std::to_string(random.between(2, 3)) + ")";
  if (random.chance(50))
    text += " tied";
  text += " trained(" + std::to_string(trained) + ") {\n  " + writer.plan();
  if (random.chance(70))
    text += "\n  hybrid.mlp swiglu(" +
            std::to_string(isWide ? random.pick({64, 192})
                                  : random.pick({8, 24, 48})) +
            ")";
  stack.spec = text + "\n}\n";
  stack.lengths = randomLengths(random, seed % 2 == 1);
  int64_t longest = *llvm::max_element(stack.lengths);
  stack.splits = !writer.usesDynamicNtk || longest <= trained;
  return stack;
}

RandomStack cases::makeRandomStack(uint64_t seed) {
  return makeStack(seed, /*isWide=*/false);
}

RandomStack cases::makeWideStack(uint64_t seed) {
  return makeStack(seed, /*isWide=*/true);
}

RandomStack cases::withDropout(RandomStack stack, llvm::StringRef rate) {
  stack.spec.insert(stack.spec.find(" {"), (" dropout(" + rate + ")").str());
  return stack;
}

RandomStack cases::drawDropout(RandomStack stack) {
  // Not of the numbers that say the rest, so that a seed stays what it was.
  Random random(stack.seed ^ 0x64726f706f7574);
  return random.chance(40)
             ? withDropout(std::move(stack), random.pick({"0.1", "0.3", "0.5"}))
             : stack;
}

std::string cases::inType(std::string spec, llvm::StringRef dtype) {
  size_t at = spec.find(')', spec.find(" layers(")) + 1;
  return spec.insert(at, (" dtype(" + dtype + ")").str());
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

/// Matrices keep the size of what they multiply, vectors are around 1.
static void fillParameter(Random &random, Tensor &tensor) {
  bool matrix = tensor.rank() == 2;
  double bound = matrix ? std::sqrt(3.0 / tensor.dim(1)) : 0.5;
  for (double &value : tensor.data)
    value = (matrix ? 0 : 1) + random.uniform(-bound, bound);
}

std::vector<Tensor> cases::randomArguments(mlir::func::FuncOp entry,
                                           const Call &call, int64_t vocab,
                                           uint64_t seed) {
  Random random(seed);
  std::vector<Tensor> arguments;
  for (mlir::BlockArgument argument : entry.getArguments()) {
    auto type = llvm::dyn_cast<mlir::RankedTensorType>(argument.getType());
    if (!type) {
      arguments.emplace_back();
      continue;
    }
    Tensor tensor(oracle::getShape(type, call));
    auto role = entry.getArgAttrOfType<mlir::StringAttr>(
        argument.getArgNumber(), "hybrid.role");
    if (role == "param")
      fillParameter(random, tensor);
    for (double &value : tensor.data) {
      if (role == "ids")
        value = random.between(0, vocab - 1);
      else if (role == "labels")
        value = random.chance(20) ? -100 : random.between(0, vocab - 1);
      else if (role == "weights")
        value = random.uniform(0.2, 2);
      else if (role == "gradient")
        value = random.uniform(-1, 1);
      else if (role == "random_key")
        value = static_cast<int32_t>(static_cast<uint32_t>(random.next()));
    }
    arguments.push_back(std::move(tensor));
  }
  return arguments;
}
