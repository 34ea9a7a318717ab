//===- Border.cpp - what every function of the C API does -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "api/Border.h"

#include <cstdio>

using namespace hyb::rt;

hyb_status hyb::rt::report(const Status &status, hyb_error *error) {
  if (error) {
    error->status = status.code();
    std::snprintf(error->message, sizeof(error->message), "%s",
                  status.ok() ? "no error" : status.message().c_str());
  }
  return status.code();
}

hyb_status hyb::rt::reportUnexpected(const char *what, hyb_error *error) {
  if (error) {
    error->status = HYB_INTERNAL;
    std::snprintf(error->message, sizeof(error->message), "unexpected %.200s",
                  what);
  }
  return HYB_INTERNAL;
}

Status hyb::rt::missing(const char *argument) {
  return failure(HYB_INVALID_ARGUMENT, "argument '%s' is NULL", argument);
}

Result<const ParameterInfo *> hyb::rt::parameterAt(const Model &model,
                                                   int64_t index) {
  const auto &parameters = model.parameterTable().parameters;
  if (index < 0 || static_cast<size_t>(index) >= parameters.size())
    return failure(HYB_OUT_OF_RANGE,
                   "parameter %lld does not exist, the model has %zu",
                   static_cast<long long>(index), parameters.size());
  return &parameters[static_cast<size_t>(index)];
}
