//===- Agreement.cpp - how far two ways to compute the same are apart ----===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Agreement.h"

#include "core/Random.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace hyb::test {

namespace {

/// Of f32 the largest differences, of others the root mean square, which is
/// what random models may be off in that type (RandomStackTest.cpp).
constexpr Bounds kBounds[] = {{ElementType::F32, 1e-4, 1e-5, 1e-3, 1e-4},
                              {ElementType::BF16, 0.02, 0.02, 0.1, 0.1},
                              {ElementType::F16, 0.005, 0.005, 0.03, 0.03}};

float inType(float value, ElementType type) {
  return type == ElementType::BF16  ? bf16ToFloat(floatToBf16(value))
         : type == ElementType::F16 ? f16ToFloat(floatToF16(value))
                                    : value;
}

// Parameters that start at 0 or 1 would hide mistakes.
void shakeParameters(Model &model, ElementType type) {
  for (const ParameterInfo &info : model.parameterTable().parameters) {
    Rows values(static_cast<size_t>(info.elements));
    need(model.readParameter(info, values.data()));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = inType(
          values[i] + static_cast<float>(
                          0.1 * (RandomStream(2, info.path).uniform(i) - 0.5)),
          type);
    need(model.writeParameter(info, values.data()));
  }
}

} // namespace

const Bounds &boundsOf(ElementType type) {
  const Bounds *row =
      std::find_if(std::begin(kBounds), std::end(kBounds),
                   [&](const Bounds &known) { return known.type == type; });
  if (row == std::end(kBounds))
    need(failure(HYB_UNSUPPORTED, "no bounds are known of models in %s",
                 elementTypeName(type)));
  return *row;
}

Difference difference(const Rows &actual, const Rows &expected) {
  Difference result;
  if (actual.size() != expected.size())
    return {INFINITY, INFINITY};
  double differences = 0, squares = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    double d = std::abs(static_cast<double>(actual[i]) - expected[i]);
    if (!(d <= result.largest))
      result.largest = std::isnan(d) ? INFINITY : d;
    differences += d * d;
    squares += static_cast<double>(expected[i]) * expected[i];
  }
  double size = std::sqrt(
      std::max(1e-30, squares / std::max<size_t>(1, expected.size())));
  result.rms =
      std::isfinite(differences)
          ? std::sqrt(differences / std::max<size_t>(1, expected.size())) / size
          : INFINITY;
  result.largest /= size;
  return result;
}
Difference largerOf(const Difference &a, const Difference &b) {
  return {std::max(a.largest, b.largest), std::max(a.rms, b.rms)};
}

Machine openMachine(const std::string &path, const MachineOptions &given) {
  Machine machine;
  hyb_runtime_options options;
  hyb_runtime_options_init(&options, sizeof(options));
  options.threads = given.threads;
  options.cpu_level = given.level;
  options.device = given.device.c_str();
  options.products = given.products.c_str();
  machine.runtime = need(Runtime::create(options));
  machine.model = need(Model::open(*machine.runtime, path));
  need(machine.model->initialise(1));
  shakeParameters(*machine.model,
                  given.weights.value_or(machine.model->computeType()));
  hyb_context_options room;
  hyb_context_options_init(&room, sizeof(room));
  room.poison = given.poison;
  machine.context = need(Context::create(*machine.model, room));
  return machine;
}

Ids randomIds(int64_t count, const char *name, int64_t vocabulary) {
  Ids ids;
  for (int64_t i = 0; i < count; ++i)
    ids.push_back(static_cast<int32_t>(RandomStream(3, name).below(
        static_cast<uint64_t>(vocabulary), static_cast<uint64_t>(i))));
  return ids;
}

} // namespace hyb::test
