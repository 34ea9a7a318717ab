//===- Runtime.h - Threads and devices --------------------------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CORE_RUNTIME_H
#define HYBRID_RUNTIME_CORE_RUNTIME_H

#include "core/Devices.h"
#include "cpu/ThreadPool.h"

namespace hyb::rt {

class Runtime {
public:
  static Result<std::unique_ptr<Runtime>>
  create(const hyb_runtime_options &options);

  ThreadPool &threads() const { return *pool; }
  Devices &devices() const { return *deviceSet; }

  [[gnu::format(printf, 3, 4)]] void log(hyb_log_level logLevel,
                                         const char *format, ...) const;

private:
  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<Devices> deviceSet;
  hyb_log_callback callback = nullptr;
  void *callbackUser = nullptr;
};

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_CORE_RUNTIME_H
