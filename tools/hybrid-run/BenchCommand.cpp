//===- BenchCommand.cpp --------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "OptionChecks.h"
#include "Session.h"
#include "core/State.h"
#include "io/Json.h"
#include "train/Trainer.h"

#include <CLI/CLI.hpp>
#include <cinttypes>
#include <functional>
#include <iterator>
#include <sys/resource.h>

namespace hyb::run {

using namespace hyb::rt;

namespace {

struct BenchArguments {
  SessionOptions session;
  int64_t sequences = 1;
  std::vector<int64_t> batch = {16}, length = {256}, prefill = {2048},
                       decode = {2048};
  int repeats = 5;
  bool train = false, profile = false, json = false;
};

/// Steps of one kind.
struct Measurement {
  std::string name;
  int64_t tokens;            // of a step
  std::vector<double> times; // seconds; sorted in the end
  Context::Profiles profiles;
  int64_t peakBytes = 0; // of the device, by the program so far
  double firstEnded = 0; // seconds from the program's start; 0: not yet

  double median() const { return times[times.size() / 2]; }
  double fastest() const { return times.front(); }
  double tokensPerSecond() const {
    return static_cast<double>(tokens) / median();
  }
};

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

int64_t peakKilobytes() {
  struct rusage usage;
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

class Bench {
public:
  Bench(BenchArguments arguments, Session session)
      : arguments(std::move(arguments)), session(std::move(session)) {}

  Status run();

private:
  Status measureTraining(int64_t sequences, int64_t length);
  Status measurePrefill(int64_t length);
  Status measureDecode();
  /// One call of `step` to warm up, then `count` that are timed.
  Status time(Measurement &row, int64_t count,
              const std::function<Status()> &step);
  void add(Measurement row);
  Status measure(std::string name, int64_t tokens, int64_t count,
                 const std::function<Status()> &step);
  Result<std::unique_ptr<State>> stateFor(int64_t slots, int64_t context) const;
  enum class Logits { OnHost, OnDevice };
  /// The same number of ids for every slot.
  Status extend(State &state, const std::vector<int32_t> &ids,
                Logits logits = Logits::OnHost);
  void print() const;
  void printProfile(const Measurement &measurement) const;

  BenchArguments arguments;
  Session session;
  std::vector<Measurement> results;
};

Status Bench::time(Measurement &row, int64_t count,
                   const std::function<Status()> &step) {
  HYB_TRY(step());
  if (row.firstEnded == 0)
    row.firstEnded = secondsSinceStart();
  if (arguments.profile)
    session.context->startProfile();
  for (int64_t i = 0; i < count; ++i) {
    double begin = secondsNow();
    HYB_TRY(step());
    row.times.push_back(secondsNow() - begin);
  }
  if (arguments.profile)
    row.profiles = session.context->profiles();
  return Status();
}

void Bench::add(Measurement row) {
  std::sort(row.times.begin(), row.times.end());
  row.peakBytes = session.model->device().isHost()
                      ? 1024 * peakKilobytes()
                      : session.model->device().peakBytes();
  results.push_back(std::move(row));
}

Status Bench::measure(std::string name, int64_t tokens, int64_t count,
                      const std::function<Status()> &step) {
  Measurement row{std::move(name), tokens, {}, {}, 0, 0};
  HYB_TRY(time(row, count, step));
  add(std::move(row));
  return Status();
}

Result<std::unique_ptr<State>> Bench::stateFor(int64_t slots,
                                               int64_t context) const {
  hyb_state_options options;
  hyb_state_options_init(&options, sizeof(options));
  options.slots = slots;
  options.context = context;
  return State::create(*session.model, options);
}

Status Bench::extend(State &state, const std::vector<int32_t> &ids,
                     Logits logits) {
  std::vector<hyb_segment> segments;
  for (int64_t slot = 0; slot < state.slotCount(); ++slot)
    segments.push_back(
        {static_cast<int64_t>(ids.size()) / state.slotCount(), slot});
  hyb_batch batch = {};
  batch.ids = ids.data();
  batch.tokens = static_cast<int64_t>(ids.size());
  batch.segments = segments.data();
  batch.segment_count = state.slotCount();
  if (logits == Logits::OnDevice) {
    DeviceMemory memory;
    return session.context->extendOnDevice(state, batch, HYB_LOGITS_LAST,
                                           &memory);
  }
  const float *host;
  return session.context->extend(state, batch, HYB_LOGITS_LAST, &host);
}

Status Bench::measureTraining(int64_t sequences, int64_t length) {
  hyb_trainer_options options;
  hyb_trainer_options_init(&options, sizeof(options));
  HYB_ASSIGN(std::unique_ptr<Trainer> trainer,
             Trainer::create(*session.context, options));
  int64_t tokens = sequences * length;
  std::vector<int32_t> ids =
      someIds(tokens + 1, session.model->meta().vocabulary);
  std::vector<hyb_segment> segments(static_cast<size_t>(sequences),
                                    hyb_segment{length, 0});
  hyb_batch batch = {};
  batch.ids = ids.data();
  batch.labels = ids.data() + 1;
  batch.tokens = tokens;
  batch.segments = segments.data();
  batch.segment_count = sequences;
  return measure("training step, " + std::to_string(sequences) + " x " +
                     std::to_string(length),
                 tokens, arguments.repeats, [&]() -> Status {
                   HYB_TRY(trainer->accumulate(batch, nullptr, nullptr));
                   return trainer->update(1e-4f, nullptr);
                 });
}

Status Bench::measurePrefill(int64_t length) {
  HYB_ASSIGN(std::unique_ptr<State> state, stateFor(1, length));
  std::vector<int32_t> ids = someIds(length, session.model->meta().vocabulary);
  return measure("prefill of " + std::to_string(length), length,
                 arguments.repeats, [&]() -> Status {
                   HYB_TRY(state->reset(0));
                   return extend(*state, ids);
                 });
}

// The lengths take turns, a few steps each, so that what changes on the machine
// meets all of them. Steps follow each other: a length grows by a few per cent.
// A step leaves its logits on the device; on a GPU rows for those whose logits
// are then copied to the host follow.
Status Bench::measureDecode() {
  int64_t steps = std::max(20, 20 * arguments.repeats);
  int64_t turn = arguments.profile ? steps : 20;
  int64_t vocabulary = session.model->meta().vocabulary;
  bool copies = !session.model->device().isHost() && !arguments.profile;
  std::vector<std::unique_ptr<State>> states;
  std::vector<Measurement> rows, copied;
  for (int64_t length : arguments.decode) {
    if (length == 0)
      continue;
    HYB_ASSIGN(std::unique_ptr<State> state,
               stateFor(arguments.sequences,
                        length + (copies ? 2 : 1) * (steps + steps / turn)));
    HYB_TRY(extend(*state, someIds(length * arguments.sequences, vocabulary)));
    states.push_back(std::move(state));
    std::string name = "decode step at " + std::to_string(length);
    if (arguments.sequences > 1)
      name += ", " + std::to_string(arguments.sequences) + " sequences";
    if (copies)
      copied.push_back(
          {name + ", logits on the host", arguments.sequences, {}, {}, 0, 0});
    rows.push_back({std::move(name), arguments.sequences, {}, {}, 0, 0});
  }
  std::vector<int32_t> next = someIds(arguments.sequences, vocabulary);
  for (int64_t done = 0; done < steps; done += turn)
    for (size_t i = 0; i < rows.size(); ++i) {
      HYB_TRY(time(rows[i], turn,
                   [&] { return extend(*states[i], next, Logits::OnDevice); }));
      if (copies)
        HYB_TRY(time(copied[i], turn,
                     [&] { return extend(*states[i], next, Logits::OnHost); }));
    }
  rows.insert(rows.end(), std::make_move_iterator(copied.begin()),
              std::make_move_iterator(copied.end()));
  for (Measurement &row : rows)
    add(std::move(row));
  return Status();
}

void Bench::print() const {
  if (arguments.json) {
    nlohmann::ordered_json result;
    result["model"] = session.model->meta().name;
    result["cpu_level"] = session.model->codeName();
    result["device"] = session.model->device().description();
    result["threads"] = session.runtime->threads().size();
    result["peak_kilobytes"] = peakKilobytes();
    result["device_peak_bytes"] = session.model->device().peakBytes();
    result["context_bytes"] = session.context->memoryBytes();
    for (const Measurement &row : results)
      result["results"].push_back({{"name", row.name},
                                   {"milliseconds", 1e3 * row.median()},
                                   {"fastest", 1e3 * row.fastest()},
                                   {"tokens_per_second", row.tokensPerSecond()},
                                   {"first_ended_s", row.firstEnded},
                                   {"peak_bytes", row.peakBytes}});
    std::printf("%s\n", result.dump().c_str());
    return;
  }
  std::printf("%s, %s, %s\n", session.model->meta().name.c_str(),
              session.model->codeName().c_str(),
              session.model->device().description().c_str());
  for (const Measurement &row : results)
    std::printf("%-36s %10.3f ms %12.0f tokens/s   fastest %10.3f ms\n",
                row.name.c_str(), 1e3 * row.median(), row.tokensPerSecond(),
                1e3 * row.fastest());
  std::printf("working memory %.1f MB, peak of the process %.1f MB\n",
              static_cast<double>(session.context->memoryBytes()) / 1e6,
              static_cast<double>(peakKilobytes()) / 1e3);
  if (int64_t peak = session.model->device().peakBytes())
    std::printf("peak of the device %.1f MB\n",
                static_cast<double>(peak) / 1e6);
}

/// Launches of all layers with the same name are one row, costliest first.
void Bench::printProfile(const Measurement &measurement) const {
  for (const auto &[name, profile] : measurement.profiles) {
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
    std::printf("\n%s, %s: %.3f ms a call, %" PRId64 " calls\n",
                measurement.name.c_str(), name.c_str(),
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
  auto isMeasured = [](int64_t length) { return length > 0; };
  // Inference is measured without f32 parameters; where there is none, they are
  // drawn once and not rounded first.
  if (std::none_of(arguments.prefill.begin(), arguments.prefill.end(),
                   isMeasured) &&
      std::none_of(arguments.decode.begin(), arguments.decode.end(),
                   isMeasured))
    HYB_TRY(session.model->needMasters());
  if (arguments.session.weights.empty())
    HYB_TRY(session.model->initialise(0));
  // What needs least memory first: the peak of a row is that of the program.
  for (int64_t length : arguments.prefill)
    if (length > 0)
      HYB_TRY(measurePrefill(length));
  HYB_TRY(measureDecode());
  if (arguments.train)
    for (size_t i = 0; i < arguments.length.size(); ++i)
      HYB_TRY(
          measureTraining(arguments.batch[arguments.batch.size() > 1 ? i : 0],
                          arguments.length[i]));
  print();
  for (const Measurement &measurement : results)
    printProfile(measurement);
  return session.saveTrace();
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
  add("--batch", arguments->batch,
      "sequences of a training step, for all lengths or one each")
      ->check(wholeNumber(1));
  add("--length", arguments->length, "tokens of each sequence")
      ->check(wholeNumber(1));
  add("--prefill", arguments->prefill, "tokens; 0: none")
      ->check(wholeNumber(0));
  add("--decode", arguments->decode, "lengths from which to decode on; 0: none")
      ->check(wholeNumber(0));
  add("--sequences", arguments->sequences, "that decode side by side")
      ->check(wholeNumber(1));
  add("--repeats", arguments->repeats,
      "of each; 20 times as many decode steps, each a token further")
      ->check(wholeNumber(1));
  command
      ->add_flag("--profile", arguments->profile,
                 "time per op; the clock itself costs a little")
      ->group("Output");
  command->add_flag("--json", arguments->json, "one JSON object")
      ->group("Output");
  command->callback([&action, arguments] {
    if (arguments->batch.size() != 1 &&
        arguments->batch.size() != arguments->length.size())
      throw CLI::ValidationError(
          "--batch", std::to_string(arguments->batch.size()) + " numbers for " +
                         std::to_string(arguments->length.size()) +
                         " of --length; give one, or one for each");
    action = [arguments]() -> Status {
      HYB_ASSIGN(Session session, Session::open(arguments->session));
      return Bench(*arguments, std::move(session)).run();
    };
  });
}

} // namespace hyb::run
