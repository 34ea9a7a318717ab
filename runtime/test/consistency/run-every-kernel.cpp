//===- run-every-kernel.cpp - few launches of many kernels ---------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   run-every-kernel ARTEFACT [TOKENS] [DEVICE] [--count]
//
// TOKENS are those of the training step and of one prefill. For tools that look
// at every access of every thread, and take a thousand times as long: a loss, a
// training step, a prefill, and steps of a few numbers of sequences, because
// the alternatives of a launch are chosen by such numbers. What comes out is
// compared with the processor, so that a tool does not look at a run that went
// wrong.
//
// With --count, for a run without a tool: how many kernels of the artefact ran,
// and the names of those that did not.
//
//===----------------------------------------------------------------------===//

#include "Agreement.h"

#include "core/State.h"
#include "train/Trainer.h"

#include <map>
#include <set>

using namespace hyb::rt;
using namespace hyb::test;

namespace {

/// A call that appends to the sequences in slots from 0 on.
struct Call {
  int64_t sequences, tokens;
  hyb_logits which;
};

/// Row products take up to 4 rows, and steps up to 16 tokens of a sequence;
/// above are tiles of a few rows, then of many.
constexpr int64_t kFew = 6, kMany = 20;
/// A prefill after which there are few keys.
constexpr int64_t kShort = 70;

struct Results {
  std::map<std::string, Rows> forward;
  Rows gradient;
};

class EveryKernel {
public:
  EveryKernel(const std::string &path, int64_t tokens)
      : path(path), tokens(tokens) {}

  Results run(const std::string &device, bool counts);
  void printCount() const;

  ElementType type = ElementType::F32;

private:
  hyb_batch batchOf(const Ids &ids, const std::vector<hyb_segment> &segments);
  void runState(int64_t context, const std::vector<Call> &calls);
  void trainStep();
  /// How far a run under a slow tool is.
  void tell(const char *what) const {
    if (isFirst)
      std::printf("ran  %s\n", what);
    std::fflush(stdout);
  }

  std::string path;
  int64_t tokens, vocabulary = 0;
  Machine machine;
  Results results;
  /// How often each kernel ran.
  std::map<std::string, int> ran;
  std::set<std::string> all;
  bool isFirst = true;
};

hyb_batch EveryKernel::batchOf(const Ids &ids,
                               const std::vector<hyb_segment> &segments) {
  hyb_batch batch = {};
  batch.ids = batch.labels = ids.data();
  batch.tokens = static_cast<int64_t>(ids.size());
  batch.segments = segments.data();
  batch.segment_count = static_cast<int64_t>(segments.size());
  return batch;
}

void EveryKernel::runState(int64_t context, const std::vector<Call> &calls) {
  hyb_state_options options;
  hyb_state_options_init(&options, sizeof(options));
  options.slots = kMany;
  options.context = context;
  auto state = need(State::create(*machine.model, options));
  for (const Call &call : calls) {
    std::vector<hyb_segment> segments;
    for (int64_t slot = 0; slot < call.sequences; ++slot)
      segments.push_back({call.tokens, slot});
    bool whole = call.which == HYB_LOGITS_ALL;
    std::string name = std::to_string(call.sequences) + " x " +
                       std::to_string(call.tokens) +
                       (whole ? " tokens, all rows" : " tokens, last rows") +
                       ", context " + std::to_string(context);
    Ids ids = randomIds(call.sequences * call.tokens, name.c_str(), vocabulary);
    const float *logits;
    need(machine.context->extend(*state, batchOf(ids, segments), call.which,
                                 &logits));
    tell(name.c_str());
    int64_t rows = whole ? call.sequences * call.tokens : call.sequences;
    results.forward[name] = {logits, logits + rows * vocabulary};
  }
}

void EveryKernel::trainStep() {
  Ids ids = randomIds(tokens, "step", vocabulary);
  std::vector<hyb_segment> segments = {{tokens - tokens / 3, 0},
                                       {tokens / 3, 0}};
  const float *losses;
  need(machine.context->loss(batchOf(ids, segments), &losses));
  results.forward["loss"] = {losses, losses + tokens};
  tell("loss");
  hyb_trainer_options options;
  hyb_trainer_options_init(&options, sizeof(options));
  auto trainer = need(Trainer::create(*machine.context, options));
  need(trainer->accumulate(batchOf(ids, segments), nullptr, nullptr));
  const DeviceMemory &gradients = trainer->gradientMemory();
  results.gradient.resize(
      static_cast<size_t>(machine.model->flatBytes() / kElementBytes));
  need(machine.model->device().read(results.gradient.data(), gradients.data(),
                                    machine.model->flatBytes()));
  tell("gradient");
  need(trainer->update(1e-3f, nullptr));
  tell("update");
}

Results EveryKernel::run(const std::string &device, bool counts) {
  results = Results();
  MachineOptions options;
  options.device = device;
  machine = openMachine(path, options);
  type = machine.model->computeType();
  vocabulary = machine.model->meta().vocabulary;
  if (counts) {
    ModelTables tables = machine.model->planTables();
    for (const PlanKernel &kernel : tables.plan.kernels)
      all.insert(kernel.name);
    machine.context->watch(
        [](void *user, const hyb_launch *launch) {
          ++(*static_cast<std::map<std::string, int> *>(user))[launch->kernel];
        },
        &ran);
  }
  runState(2 * kShort + 32, {{1, kShort, HYB_LOGITS_ALL},
                             {1, 1, HYB_LOGITS_ALL},
                             {1, 7, HYB_LOGITS_ALL},
                             {kFew, 1, HYB_LOGITS_ALL},
                             {kMany, 1, HYB_LOGITS_ALL},
                             {1, kShort, HYB_LOGITS_LAST},
                             {1, 1, HYB_LOGITS_LAST},
                             {kFew, 1, HYB_LOGITS_LAST},
                             {kMany, 1, HYB_LOGITS_LAST}});
  // Where there may be many keys they are split.
  runState(tokens + 320, {{1, tokens, HYB_LOGITS_LAST},
                          {1, 1, HYB_LOGITS_LAST},
                          {kFew, 1, HYB_LOGITS_LAST},
                          {kMany, 1, HYB_LOGITS_LAST}});
  // Last: of a gradient that is only noise, which devices have of their own,
  // the first update makes a change as large as of any other.
  trainStep();
  isFirst = false;
  return std::move(results);
}

void EveryKernel::printCount() const {
  int launches = 0;
  for (const auto &[name, count] : ran)
    launches += count;
  std::printf("%d launches; %zu of %zu kernels ran\n", launches, ran.size(),
              all.size());
  for (const std::string &name : all)
    if (!ran.count(name))
      std::printf("  did not run: %s\n", name.c_str());
}

bool report(const std::string &name, double error, double limit) {
  bool good = error <= limit;
  std::printf("%-4s %-44s %.3g (limit %.3g)\n", good ? "ok" : "FAIL",
              name.c_str(), error, limit);
  return good;
}

} // namespace

int main(int count, char **arguments) {
  std::vector<std::string> plain;
  bool counts = false;
  for (int i = 1; i < count; ++i)
    if (std::string(arguments[i]) == "--count")
      counts = true;
    else
      plain.push_back(arguments[i]);
  if (plain.empty() || plain.size() > 3 || plain[0][0] == '-') {
    std::fprintf(stderr, "usage: %s ARTEFACT [TOKENS] [DEVICE] [--count]\n",
                 arguments[0]);
    return 2;
  }
  int64_t tokens = plain.size() > 1 ? std::atoll(plain[1].c_str()) : 300;
  EveryKernel program(plain[0], tokens);
  Results found = program.run(plain.size() > 2 ? plain[2] : "cpu", counts);
  Results expected = program.run("cpu", false);
  const Bounds &bounds = boundsOf(program.type);
  // Those of a narrow type are of one way, beside what is exact.
  double ways = program.type == ElementType::F32 ? 1 : kTwoWays;
  bool good = true;
  for (const auto &[name, rows] : expected.forward)
    good &= report(name, difference(found.forward[name], rows).in(program.type),
                   ways * bounds.forward);
  good &= report("gradient",
                 difference(found.gradient, expected.gradient).in(program.type),
                 ways * bounds.backward);
  if (counts)
    program.printCount();
  return good ? 0 : 1;
}
