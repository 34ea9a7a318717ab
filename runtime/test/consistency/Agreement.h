//===- Agreement.h - how far two ways to compute the same are apart ------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the programs of this folder share: a model with random weights, random
// tokens, and bounds of what rounding may do.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_TEST_CONSISTENCY_AGREEMENT_H
#define HYBRID_RUNTIME_TEST_CONSISTENCY_AGREEMENT_H

#include "core/Context.h"
#include "core/Random.h"

#include <cstdio>
#include <cstdlib>
#include <optional>

namespace hyb::test {

using namespace rt;

/// Ends the program with a message when something did not work at all.
inline void need(const Status &status) {
  if (status.ok())
    return;
  std::fprintf(stderr, "error: %s\n", status.message().c_str());
  std::exit(1);
}
template <typename T> T need(Result<T> result) {
  need(result.status());
  return std::move(*result);
}

/// Two ways to compute the same have an error each, at worst independent.
inline constexpr double kTwoWays = 1.4142135623730951;

/// How far two ways to compute the same may be apart by rounding, by the
/// compute type that the artefact says: `forward` of logits and losses,
/// `lastRow` of logits when the rest of the call is the same, `backward` of
/// gradients, `parts` of gradients summed over calls.
struct Bounds {
  ElementType type;
  double forward, lastRow, backward, parts;
};
/// Ends the program when none are known of a type.
const Bounds &boundsOf(ElementType type);

using Rows = std::vector<float>;
using Ids = std::vector<int32_t>;

/// The differences of numbers from what is expected, relative to the size of
/// that; infinite when one is not a number.
struct Difference {
  double largest = 0, rms = 0;

  /// By the measure of a compute type.
  double in(ElementType type) const {
    return type == ElementType::F32 ? largest : rms;
  }
};
Difference difference(const Rows &actual, const Rows &expected);
Difference largerOf(const Difference &a, const Difference &b);

/// A model on a device, with random weights.
struct Machine {
  std::unique_ptr<Runtime> runtime;
  std::unique_ptr<Model> model;
  std::unique_ptr<Context> context;
};
struct MachineOptions {
  int threads = 2;
  std::string device = "cpu";
  /// Who computes matrix products; the processor has but one way.
  std::string products = "compiled";
  /// Of the processor; null: the best.
  const char *level = nullptr;
  /// Whether working memory is full of NaN before every call.
  bool poison = false;
  /// Weights are numbers of this type; by default of the model's.
  std::optional<ElementType> weights;
};
Machine openMachine(const std::string &path, const MachineOptions &options);

/// The same for a name always.
Ids randomIds(int64_t count, const char *name, int64_t vocabulary);

} // namespace hyb::test

#endif // HYBRID_RUNTIME_TEST_CONSISTENCY_AGREEMENT_H
