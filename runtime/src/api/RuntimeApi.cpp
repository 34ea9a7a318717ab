//===- RuntimeApi.cpp - C API: status, version, runtime -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "api/Border.h"

using namespace hyb::rt;

const char *hyb_status_name(hyb_status status) {
  switch (status) {
  case HYB_OK:
    return "ok";
  case HYB_INVALID_ARGUMENT:
    return "invalid_argument";
  case HYB_INVALID_FILE:
    return "invalid_file";
  case HYB_MISMATCH:
    return "mismatch";
  case HYB_UNSUPPORTED:
    return "unsupported";
  case HYB_OUT_OF_RANGE:
    return "out_of_range";
  case HYB_OUT_OF_MEMORY:
    return "out_of_memory";
  case HYB_IO:
    return "io";
  case HYB_CANCELLED:
    return "cancelled";
  case HYB_INTERNAL:
    return "internal";
  case HYB_NOT_FINITE:
    return "not_finite";
  case HYB_DEVICE:
    return "device";
  }
  return "unknown";
}

const char *hyb_version(void) { return HYBRID_VERSION; }

static hyb_runtime_options runtimeDefaults() {
  return {sizeof(hyb_runtime_options),
          0,
          nullptr,
          nullptr,
          nullptr,
          nullptr,
          0,
          nullptr};
}

void hyb_runtime_options_init(hyb_runtime_options *options, size_t size) {
  giveOut(runtimeDefaults(), options, size);
}

hyb_status hyb_runtime_create(const hyb_runtime_options *options,
                              hyb_runtime **runtime, hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(runtime);
    HYB_ASSIGN(hyb_runtime_options chosen,
               takeIn(options, runtimeDefaults(), "hyb_runtime_options"));
    HYB_ASSIGN(auto impl, Runtime::create(chosen));
    *runtime = new hyb_runtime{std::move(impl)};
    return Status();
  });
}

void hyb_runtime_destroy(hyb_runtime *runtime) { delete runtime; }

int32_t hyb_runtime_threads(const hyb_runtime *runtime) {
  return runtime ? runtime->impl->threads().size() : 0;
}
