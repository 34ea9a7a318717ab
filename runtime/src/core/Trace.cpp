//===- Trace.cpp ---------------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/Trace.h"

#include "io/AtomicFile.h"
#include "io/Json.h"

namespace hyb::rt {

namespace {

/// A million launches are 200 MB of text, about as much as a viewer opens.
constexpr size_t kMaxEvents = 1'000'000;

/// Rows of the picture.
constexpr int kCallRow = 1, kLaunchRow = 2;

/// A bar of a row; the members of "args" follow, and "}}".
std::string complete(const std::string &name, int row, int64_t begin,
                     int64_t nanoseconds) {
  char times[96];
  std::snprintf(times, sizeof(times), "\"ts\":%.3f,\"dur\":%.3f",
                static_cast<double>(begin) / 1e3,
                static_cast<double>(nanoseconds) / 1e3);
  return "{\"name\":" + jsonQuoted(name) +
         ",\"ph\":\"X\",\"pid\":1,\"tid\":" + std::to_string(row) + "," +
         times + ",\"args\":{";
}

std::string member(const char *name, int64_t value) {
  return std::string("\"") + name + "\":" + std::to_string(value);
}

std::string naming(const char *what, int row, const std::string &name) {
  return std::string("{\"name\":\"") + what +
         "\",\"ph\":\"M\",\"pid\":1,\"tid\":" + std::to_string(row) +
         ",\"args\":{\"name\":" + jsonQuoted(name) + "}}";
}

} // namespace

void Trace::add(const PlanInstance &instance, const LaunchTimes &times) {
  size_t count = times.nanoseconds.size();
  if (events.size() + count > kMaxEvents) {
    dropped += static_cast<int64_t>(count);
    return;
  }
  int64_t begin = times.begin;
  for (size_t i = 0; i < count; ++i) {
    events.push_back({&instance.origin(i),
                      &*names.insert(instance.workerName(i)).first, begin,
                      times.nanoseconds[i], instance.launches()[i].tasks});
    begin += times.nanoseconds[i];
  }
  calls.push_back({&instance.entry(), instance.shape().symbols, times.begin,
                   begin - times.begin});
}

Status Trace::save(const std::string &path) const {
  int64_t origin = calls.empty() ? 0 : calls.front().begin;
  // Names come from a file and may be anything; a trace is always UTF-8.
  std::string text = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  text += naming("process_name", 0, device) + ",";
  text += naming("thread_name", kCallRow, "calls") + ",";
  text += naming("thread_name", kLaunchRow, "launches");
  for (const Call &call : calls)
    text += ",\n" +
            complete(call.entry->name, kCallRow, call.begin - origin,
                     call.nanoseconds) +
            member("tokens", call.symbols[Symbols::Tokens]) + "," +
            member("segments", call.symbols[Symbols::Segments]) + "}}";
  for (const Event &event : events)
    text += ",\n" +
            complete(event.launch->label(), kLaunchRow, event.begin - origin,
                     event.nanoseconds) +
            member("layer", event.launch->layer) +
            ",\"op\":" + jsonQuoted(event.launch->op) +
            ",\"kernel\":" + jsonQuoted(*event.worker) + "," +
            member("tasks", event.tasks) + "}}";
  text += "]";
  if (dropped > 0)
    text += ",\"otherData\":{" + member("launches_left_out", dropped) + "}";
  return writeFileAtomically(path, text + "}");
}

} // namespace hyb::rt
