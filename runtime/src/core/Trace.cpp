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

Json complete(const std::string &name, int row, int64_t begin,
              int64_t nanoseconds) {
  return {{"name", name},
          {"ph", "X"},
          {"pid", 1},
          {"tid", row},
          {"ts", static_cast<double>(begin) / 1e3},
          {"dur", static_cast<double>(nanoseconds) / 1e3}};
}

Json naming(const char *what, int row, const std::string &name) {
  return {{"name", what},
          {"ph", "M"},
          {"pid", 1},
          {"tid", row},
          {"args", {{"name", name}}}};
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
                      &plan->kernels[instance.kernelIndex(i)], begin,
                      times.nanoseconds[i], instance.launches()[i].tasks});
    begin += times.nanoseconds[i];
  }
  calls.push_back({&instance.entry(), instance.shape().symbols, times.begin,
                   begin - times.begin});
}

Status Trace::save(const std::string &path) const {
  int64_t origin = calls.empty() ? 0 : calls.front().begin;
  Json list = Json::array();
  list.push_back(naming("process_name", 0, device));
  list.push_back(naming("thread_name", kCallRow, "calls"));
  list.push_back(naming("thread_name", kLaunchRow, "launches"));
  for (const Call &call : calls) {
    Json event = complete(call.entry->name, kCallRow, call.begin - origin,
                          call.nanoseconds);
    event["args"] = {{"tokens", call.symbols[Symbols::Tokens]},
                     {"segments", call.symbols[Symbols::Segments]}};
    list.push_back(std::move(event));
  }
  for (const Event &event : events) {
    Json item = complete(event.launch->label(), kLaunchRow,
                         event.begin - origin, event.nanoseconds);
    item["args"] = {{"layer", event.launch->layer},
                    {"op", event.launch->op},
                    {"kernel", event.kernel->name},
                    {"tasks", event.tasks}};
    list.push_back(std::move(item));
  }
  Json root = {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(list)}};
  if (dropped > 0)
    root["otherData"] = {{"launches_left_out", dropped}};
  // Names come from a file and may be anything; a trace is always UTF-8.
  return writeFileAtomically(
      path, root.dump(-1, ' ', false, Json::error_handler_t::replace));
}

} // namespace hyb::rt
