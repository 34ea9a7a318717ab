//===- PlanCase.h - a plan of a test and its entry ------------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TEST_CORE_PLANCASE_H
#define HYBRID_TEST_CORE_PLANCASE_H

#include "core/PlanInstance.h"

#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <vector>

namespace hyb::rt {

/// `text` with the first `from`, which must be there, as `to`.
inline std::string replaced(std::string text, const std::string &from,
                            const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

/// A plan, and its entry `loss` for a number of tokens; else why there is none.
struct PlanCase {
  Plan plan;
  ModelMeta meta;
  ParameterTable parameters;
  StateTable states;
  std::vector<KernelHandle> kernels = {nullptr};
  std::optional<PlanInstance> made;
  std::string message;

  PlanCase(const std::string &text, int64_t tokens,
           ProductLibrary *library = nullptr) {
    Result<Plan> parsed = Plan::parse(
        Bytes{reinterpret_cast<const uint8_t *>(text.data()), text.size()});
    if (!parsed.ok()) {
      message = parsed.status().message();
      return;
    }
    plan = std::move(*parsed);
    CallShape shape;
    shape.symbols[Symbols::Tokens] = tokens;
    Result<PlanInstance> result = PlanInstance::create(
        {plan, meta, parameters, states, kernels, nullptr, library},
        plan.entries.at("loss"), shape);
    if (result.ok())
      made = std::move(*result);
    else
      message = result.status().message();
  }
};

} // namespace hyb::rt

#endif // HYBRID_TEST_CORE_PLANCASE_H
