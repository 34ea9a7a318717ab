//===- TablesFuzz.cpp ----------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// Input: a byte that picks a table, then its JSON. A plan that is accepted is
// also instantiated for several capacities, against tables that fit the seeds.
//
//===----------------------------------------------------------------------===//

#include "core/PlanInstance.h"

#include <cstdlib>
#include <cstring>

using namespace hyb::rt;

static void checkRefusal(const Status &status) {
  if (!status.ok() && status.message().empty())
    std::abort();
}

static Bytes bytesOf(const char *text) {
  return {reinterpret_cast<const uint8_t *>(text), std::strlen(text)};
}

/// A library that computes every product there is.
struct Taker : ProductLibrary {
  Result<std::shared_ptr<const LibraryProduct>>
  choose(const PlanKernel &, const ProductShape &shape) override {
    return std::make_shared<const LibraryProduct>(shape.text());
  }
};

static void tryPlan(Bytes text) {
  static const ModelMeta meta = *ModelMeta::parse(
      bytesOf("{\"model\":\"m\",\"spec\":\"\",\"toolchain\":\"\",\"vocab\":8,"
              "\"layers\":1,\"trained_length\":8}"));
  static const ParameterTable parameters = *ParameterTable::parse(bytesOf(
      "{\"elements\":64,\"decay_elements\":64,\"parameters\":[{\"path\":"
      "\"p\",\"shape\":[8,8],\"offset\":0,\"decay\":true,\"init\":{"
      "\"kind\":\"ones\",\"values\":[]}}]}"));
  static const StateTable states = *StateTable::parse(
      bytesOf("{\"states\":[{\"path\":\"s\",\"kind\":\"kv\",\"type\":\"f32\","
              "\"sizes\":[\"slots\",\"context\"]}]}"));
  Result<Plan> plan = Plan::parse(text);
  checkRefusal(plan.status());
  if (!plan.ok())
    return;
  std::vector<KernelHandle> kernels(plan->kernels.size());
  Taker taker;
  ModelTables tables = {*plan, meta, parameters, states, kernels};
  const Symbols shapes[] = {
      {{0, 0, 0, 0, 0, 0}},
      {{5, 2, 3, 2, 16, 1}},
      {{INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX}}};
  for (const Symbols &symbols : shapes)
    for (const auto &[name, entry] : plan->entries)
      for (ProductLibrary *products : {static_cast<Taker *>(nullptr), &taker}) {
        tables.products = products;
        Result<PlanInstance> instance =
            PlanInstance::create(tables, entry, {symbols, 4});
        checkRefusal(instance.status());
        if (instance.ok())
          instance->bind({});
      }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  Bytes text = {data + 1, size - 1};
  switch (data[0]) {
  case 'm':
    checkRefusal(ModelMeta::parse(text).status());
    break;
  case 'p':
    checkRefusal(ParameterTable::parse(text).status());
    break;
  case 's':
    checkRefusal(StateTable::parse(text).status());
    break;
  default:
    tryPlan(text);
  }
  return 0;
}
