//===- RandomStacks.h - random specs and arguments for their entries -----===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One number is a model and a call: it says the layers, head groups, windows,
// widths and lengths. A failing test prints the number, which repeats it.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TEST_UNIT_RANDOMSTACKS_H
#define HYBRID_TEST_UNIT_RANDOMSTACKS_H

#include "hybrid/Oracle/Oracle.h"

#include <cstdint>
#include <string>
#include <vector>

namespace hybrid::cases {

/// Numbers that are the same on every platform.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}

  uint64_t next();
  /// A number from `least` to `most`, both included.
  int64_t between(int64_t least, int64_t most);
  /// True in `percent` of 100 cases.
  bool chance(int64_t percent) { return between(0, 99) < percent; }
  double uniform(double least, double most);
  template <typename T> T pick(std::initializer_list<T> choices) {
    return *(choices.begin() + between(0, choices.size() - 1));
  }

private:
  uint64_t state;
};

struct RandomStack {
  uint64_t seed;
  /// Text of the spec.
  std::string spec;
  int64_t vocab;
  /// Of the packed sequences; 0 and 1 among them.
  std::vector<int64_t> lengths;
  /// Whether cutting a call into several must not change results. Beyond the
  /// trained length dynamic NTK does not promise that.
  bool splits;
};

/// Every odd seed has a sequence longer than two chunks of 64 tokens and than
/// any window and stride of the model.
RandomStack makeRandomStack(uint64_t seed);

/// The same with the widths and head dims of large models, for which a target
/// may have kernels of their own.
RandomStack makeWideStack(uint64_t seed);

/// The stack with dropout: at this rate, or, for two of five seeds, at one of
/// three.
RandomStack withDropout(RandomStack stack, llvm::StringRef rate);
RandomStack drawDropout(RandomStack stack);

/// The spec with a compute type: "bf16", "f16".
std::string inType(std::string spec, llvm::StringRef dtype);

/// Arguments for an entry by the roles of its arguments: parameters of the size
/// a trained model has, ids and labels below `vocab` (some labels ignored),
/// weights, gradients to add to, and zero states.
std::vector<oracle::Tensor> randomArguments(mlir::func::FuncOp entry,
                                            const oracle::Call &call,
                                            int64_t vocab, uint64_t seed);

} // namespace hybrid::cases

#endif // HYBRID_TEST_UNIT_RANDOMSTACKS_H
