//===- Runtime.cpp -------------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/Runtime.h"

#include <cstdarg>

namespace hyb::rt {

static Result<ProductChoice> productChoice(const char *name) {
  std::string wanted = name ? name : "compiled";
  for (auto [known, choice] : {std::pair{"compiled", ProductChoice::Compiled},
                               {"cublaslt", ProductChoice::Library},
                               {"auto", ProductChoice::Automatic}})
    if (wanted == known)
      return choice;
  return failure(HYB_INVALID_ARGUMENT,
                 "products by '%.32s' are unknown; give compiled, cublaslt or "
                 "auto",
                 wanted.c_str());
}

Result<std::unique_ptr<Runtime>>
Runtime::create(const hyb_runtime_options &options) {
  auto runtime = std::make_unique<Runtime>();
  std::optional<CpuLevel> level;
  if (options.cpu_level) {
    level = cpuLevelByName(options.cpu_level);
    if (!level)
      return failure(HYB_INVALID_ARGUMENT,
                     "processor level '%.32s' is unknown; give x86-64, "
                     "x86-64-v3 or x86-64-v4",
                     options.cpu_level);
  }
  runtime->callback = options.log;
  runtime->callbackUser = options.log_user;
  HYB_ASSIGN(ProductChoice products, productChoice(options.products));
  HYB_ASSIGN(runtime->pool, ThreadPool::create(options.threads));
  HYB_ASSIGN(runtime->deviceSet,
             Devices::create(options.device ? options.device : "auto",
                             options.use_current_context != 0, products,
                             *runtime->pool, level));
  return runtime;
}

void Runtime::log(hyb_log_level logLevel, const char *format, ...) const {
  if (!callback)
    return;
  char text[HYB_MESSAGE_SIZE];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  callback(callbackUser, logLevel, text);
}

} // namespace hyb::rt
