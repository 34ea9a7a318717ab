//===- Trace.h - When every launch ran --------------------------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CORE_TRACE_H
#define HYBRID_RUNTIME_CORE_TRACE_H

#include "core/PlanInstance.h"

#include <set>

namespace hyb::rt {

/// The launches of calls by layer and op, for chrome://tracing, Perfetto and
/// whatever else reads the trace event format.
class Trace {
public:
  explicit Trace(std::string device) : device(std::move(device)) {}

  /// The entry of `instance` must outlive the trace.

  void add(const PlanInstance &instance, const LaunchTimes &times);
  /// A JSON object with times in microseconds since the first launch; written
  /// atomically.
  Status save(const std::string &path) const;

private:
  struct Call {
    const PlanEntry *entry;
    Symbols symbols;
    int64_t begin, nanoseconds;
  };
  struct Event {
    const PlanLaunch *launch;
    const std::string *worker;
    int64_t begin, nanoseconds, tasks;
  };

  std::string device;
  /// Of kernels, and of products by a library, whose lists come and go.
  std::set<std::string> names;
  std::vector<Call> calls;
  std::vector<Event> events;
  int64_t dropped = 0;
};

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_CORE_TRACE_H
