//===- BenchCommand.cpp --------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "Session.h"
#include "core/State.h"
#include "io/Json.h"
#include "train/Trainer.h"

#include <CLI/CLI.hpp>
#include <cinttypes>
#include <sys/resource.h>

namespace hyb::run {

using namespace hyb::rt;

namespace {

struct BenchArguments {
  SessionOptions session;
  int64_t batch = 16, length = 256, prefill = 2048;
  std::vector<int64_t> decode = {2048};
  int repeats = 5;
  bool train = false, profile = false, json = false;
};

struct Measurement {
  std::string name;
  double milliseconds; // median of a step
  double tokensPerSecond;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Ids that look like nothing in particular.
std::vector<int32_t> someIds(int64_t count, int64_t vocabulary) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  uint32_t value = 12345;
  for (int32_t &id : ids) {
    value = value * 1664525 + 1013904223;
    id = static_cast<int32_t>((value >> 8) % vocabulary);
  }
  return ids;
}

class Bench {
public:
  Bench(BenchArguments arguments, Session session)
      : arguments(std::move(arguments)), session(std::move(session)) {}

  Status run();

private:
  Status measureTraining();
  Status measurePrefill();
  Status measureDecode(int64_t length);
  Result<std::unique_ptr<State>> stateFor(int64_t context) const;
  Status extend(State &state, const std::vector<int32_t> &ids);
  void print() const;
  void printProfile() const;

  BenchArguments arguments;
  Session session;
  std::vector<Measurement> results;
};

Result<std::unique_ptr<State>> Bench::stateFor(int64_t context) const {
  hyb_state_options options;
  hyb_state_options_init(&options, sizeof(options));
  options.context = context;
  return State::create(*session.model, options);
}

Status Bench::extend(State &state, const std::vector<int32_t> &ids) {
  hyb_segment segment = {static_cast<int64_t>(ids.size()), 0};
  hyb_batch batch = {};
  batch.ids = ids.data();
  batch.tokens = segment.length;
  batch.segments = &segment;
  batch.segment_count = 1;
  const float *logits;
  return session.context->extend(state, batch, HYB_LOGITS_LAST, &logits);
}

Status Bench::measureTraining() {
  hyb_trainer_options options;
  hyb_trainer_options_init(&options, sizeof(options));
  HYB_ASSIGN(std::unique_ptr<Trainer> trainer,
             Trainer::create(*session.context, options));
  int64_t tokens = arguments.batch * arguments.length;
  std::vector<int32_t> ids =
      someIds(tokens + 1, session.model->meta().vocabulary);
  std::vector<hyb_segment> segments(static_cast<size_t>(arguments.batch),
                                    hyb_segment{arguments.length, 0});
  hyb_batch batch = {};
  batch.ids = ids.data();
  batch.labels = ids.data() + 1;
  batch.tokens = tokens;
  batch.segments = segments.data();
  batch.segment_count = arguments.batch;
  std::vector<double> times;
  for (int i = -1; i < arguments.repeats; ++i) {
    double begin = secondsNow();
    HYB_TRY(trainer->accumulate(batch, nullptr, nullptr));
    HYB_TRY(trainer->update(1e-4f, nullptr));
    if (i >= 0)
      times.push_back(secondsNow() - begin);
  }
  double time = median(times);
  results.push_back({"training step, " + std::to_string(arguments.batch) +
                         " x " + std::to_string(arguments.length),
                     1e3 * time, static_cast<double>(tokens) / time});
  return Status();
}

Status Bench::measurePrefill() {
  HYB_ASSIGN(std::unique_ptr<State> state, stateFor(arguments.prefill));
  std::vector<int32_t> ids =
      someIds(arguments.prefill, session.model->meta().vocabulary);
  std::vector<double> times;
  for (int i = -1; i < arguments.repeats; ++i) {
    HYB_TRY(state->reset(0));
    double begin = secondsNow();
    HYB_TRY(extend(*state, ids));
    if (i >= 0)
      times.push_back(secondsNow() - begin);
  }
  double time = median(times);
  results.push_back({"prefill of " + std::to_string(arguments.prefill),
                     1e3 * time,
                     static_cast<double>(arguments.prefill) / time});
  return Status();
}

// The steps follow each other, so the length grows by a few per cent at most.
Status Bench::measureDecode(int64_t length) {
  int64_t steps = std::max(20, 20 * arguments.repeats);
  HYB_ASSIGN(std::unique_ptr<State> state, stateFor(length + steps + 1));
  int64_t vocabulary = session.model->meta().vocabulary;
  HYB_TRY(extend(*state, someIds(length, vocabulary)));
  std::vector<int32_t> next = someIds(1, vocabulary);
  HYB_TRY(extend(*state, next));
  std::vector<double> times;
  for (int64_t i = 0; i < steps; ++i) {
    double begin = secondsNow();
    HYB_TRY(extend(*state, next));
    times.push_back(secondsNow() - begin);
  }
  double time = median(times);
  results.push_back(
      {"decode step at " + std::to_string(length), 1e3 * time, 1 / time});
  return Status();
}

void Bench::print() const {
  struct rusage usage;
  ::getrusage(RUSAGE_SELF, &usage);
  if (arguments.json) {
    nlohmann::ordered_json result;
    result["model"] = session.model->meta().name;
    result["cpu_level"] = session.model->codeName();
    result["device"] = session.model->device().description();
    result["threads"] = session.runtime->threads().size();
    result["peak_kilobytes"] = usage.ru_maxrss;
    result["context_bytes"] = session.context->memoryBytes();
    for (const Measurement &row : results)
      result["results"].push_back({{"name", row.name},
                                   {"milliseconds", row.milliseconds},
                                   {"tokens_per_second", row.tokensPerSecond}});
    std::printf("%s\n", result.dump().c_str());
    return;
  }
  std::printf("%s, %s, %s\n", session.model->meta().name.c_str(),
              session.model->codeName().c_str(),
              session.model->device().description().c_str());
  for (const Measurement &row : results)
    std::printf("%-32s %10.3f ms %12.0f tokens/s\n", row.name.c_str(),
                row.milliseconds, row.tokensPerSecond);
  std::printf("working memory %.1f MB, peak of the process %.1f MB\n",
              static_cast<double>(session.context->memoryBytes()) / 1e6,
              static_cast<double>(usage.ru_maxrss) / 1e3);
}

/// Launches of all layers with the same name are one row, costliest first.
void Bench::printProfile() const {
  for (const auto &[name, profile] : session.context->profiles()) {
    Result<const PlanEntry *> entry = session.model->entry(name);
    if (!entry.ok())
      continue;
    struct Row {
      int64_t nanoseconds = 0, launches = 0;
    };
    std::map<std::string, Row> rows;
    int64_t total = 0;
    for (size_t i = 0; i < profile.nanoseconds.size(); ++i) {
      if (profile.nanoseconds[i] == 0)
        continue;
      Row &row = rows[(*entry)->launches[i].op];
      row.nanoseconds += profile.nanoseconds[i];
      ++row.launches;
      total += profile.nanoseconds[i];
    }
    std::vector<std::pair<std::string, Row>> sorted(rows.begin(), rows.end());
    std::sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) {
      return a.second.nanoseconds > b.second.nanoseconds;
    });
    double calls = static_cast<double>(profile.calls);
    std::printf("\n%s: %.3f ms a call, %" PRId64 " calls\n", name.c_str(),
                static_cast<double>(total) / calls / 1e6, profile.calls);
    for (const auto &[op, row] : sorted)
      std::printf("  %6.2f %%  %10.1f us  %4" PRId64 " launches  %s\n",
                  100.0 * static_cast<double>(row.nanoseconds) /
                      static_cast<double>(total),
                  static_cast<double>(row.nanoseconds) / calls / 1e3,
                  row.launches, op.c_str());
  }
}

Status Bench::run() {
  if (arguments.session.weights.empty())
    HYB_TRY(session.model->initialise(0));
  if (arguments.profile)
    session.context->startProfile();
  if (arguments.train)
    HYB_TRY(measureTraining());
  if (arguments.prefill > 0)
    HYB_TRY(measurePrefill());
  for (int64_t length : arguments.decode)
    if (length > 0)
      HYB_TRY(measureDecode(length));
  print();
  if (arguments.profile)
    printProfile();
  return Status();
}

} // namespace

void addBench(CLI::App &app, Action &action) {
  CLI::App *command = app.add_subcommand(
      "bench", "time of training, prefill and decode; medians");
  command->footer("Two examples:\n"
                  "  hybrid-run bench demo.hbx --train --batch=16 "
                  "--length=256\n"
                  "  hybrid-run bench demo.hbx --prefill=0 --decode 4096 65536 "
                  "--profile");
  auto arguments = std::make_shared<BenchArguments>();
  arguments->session.addTo(*command, /*withWeights=*/false);
  auto add = [&](const char *name, auto &value, const char *help) {
    return command->add_option(name, value, help)
        ->group("What to measure")
        ->capture_default_str();
  };
  command->add_flag("--train", arguments->train, "also a training step")
      ->group("What to measure");
  add("--batch", arguments->batch, "sequences of a training step")
      ->check(CLI::PositiveNumber);
  add("--length", arguments->length, "tokens of each")
      ->check(CLI::PositiveNumber);
  add("--prefill", arguments->prefill, "tokens; 0: none")
      ->check(CLI::NonNegativeNumber);
  add("--decode", arguments->decode, "lengths at which to decode; 0: none")
      ->check(CLI::NonNegativeNumber);
  add("--repeats", arguments->repeats, "of each; 20 times as many decode steps")
      ->check(CLI::PositiveNumber);
  command
      ->add_flag("--profile", arguments->profile,
                 "time per op; the clock itself costs a little")
      ->group("Output");
  command->add_flag("--json", arguments->json, "one JSON object")
      ->group("Output");
  command->callback([&action, arguments] {
    action = [arguments]() -> Status {
      HYB_ASSIGN(Session session, Session::open(arguments->session));
      return Bench(*arguments, std::move(session)).run();
    };
  });
}

} // namespace hyb::run
