//===- check-artefact.cpp - Does an artefact agree with itself? ----------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   check-artefact ARTEFACT [TOKENS] [DEVICE] [--repeats=N] [--no-poison]
//                  [--exact=ARTEFACT] [--products=compiled|cublaslt|auto]
//                  [--only-repeats]
//
// Runs a compiled model in every way that must give the same numbers, with
// random weights and working memory full of NaN, and compares:
//
//   loss and extend     scoring whole sequences, and through a state
//   splits              one call, token by token, uneven pieces, pieces of 0
//   ragged batch        sequences of unlike length together and alone
//   last rows           the logits of the last row, and of all rows
//   threads             1, 2 and 3: the same bits
//   levels              every processor level: up to rounding
//   processor           a GPU and the processor: up to rounding
//   graphs              launches one by one and as a graph: the same bits
//   rollback, save      as if the tokens taken back were never seen
//   backward            twice the same bits; batches in parts, unless elements
//                       are left out at random; finite
//   repeats             N training steps from one state: the same bits
//   training            the loss of one batch falls
//   exact               in a narrow type: errors beside the same model in f32
//   steps               sequences of unlike length that step together and alone
//
// How far two f32 gradients are apart depends on the model: an embedding that
// every later token reads adds up what all of them round. So it is measured:
// the processor computes the gradient again with parameters that have moved to
// neighbouring numbers, and another level or device may be three times as far
// off as that moves it, as design says of backward passes.
//
// With --exact, the artefact of the same spec in f32, the processor says how
// far the model is off in its type. A device may be twice as far off, three
// times in gradients. Two ways to compute the same have an error each, which at
// worst are independent, so they may differ by that times the root of two.
//
// Without poison, working memory stays as it is, for tools that know what
// nobody wrote. One line per check with the worst error; exit code 1 when one
// fails. The oracle is not asked here: agreement with it is tested by the
// compiler.
//
//===----------------------------------------------------------------------===//

#include "Agreement.h"

#include "core/Context.h"
#include "core/Random.h"
#include "core/State.h"
#include "train/Trainer.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <unistd.h>

using namespace hyb::rt;
using namespace hyb::test;

namespace {

class Checker {
public:
  Checker(const std::string &path, int64_t tokens, const std::string &device,
          int repeats, bool poison, const std::string &exact,
          const std::string &products)
      : path(path), exact(exact), device(device), products(products),
        tokens(tokens), poison(poison), repeats(repeats) {}

  /// All checks, or repeats alone.
  int run(bool all);

private:
  Machine open(int threads, const char *level = nullptr,
               const std::string &device = "cpu") const;
  std::unique_ptr<State> state(const Machine &machine, int64_t slots = 1,
                               int64_t depth = 0, int64_t chunk = 0) const;
  Ids someIds(int64_t count, const char *name) const {
    return randomIds(count, name, vocabulary);
  }
  Rows extend(const Machine &machine, State &state, const Ids &ids,
              hyb_logits which = HYB_LOGITS_ALL, int64_t slot = 0) const;
  /// Feeds `ids` in pieces of the lengths given, the last one repeated.
  Rows extendIn(const Machine &machine, const Ids &ids,
                const std::vector<int64_t> &lengths, int64_t chunk = 0) const;
  hyb_batch batchOf(const Ids &ids, const Ids &labels,
                    const std::vector<hyb_segment> &segments) const;
  Rows lossOf(const Machine &machine, const Ids &ids, const Ids &labels,
              const std::vector<hyb_segment> &segments) const;
  Rows gradientOf(const Machine &machine, const Ids &ids, const Ids &labels,
                  const std::vector<hyb_segment> &segments) const;

  void checkAll();
  void measureType();
  void checkLoss();
  void checkSplits();
  void checkRagged();
  void checkThreadsAndLevels();
  void checkAgainstProcessor();
  void checkGraphs();
  void checkRepeats();
  void checkStates();
  void checkBackward();
  void checkTraining();
  void checkSteps();
  void checkSteps(const std::vector<int64_t> &from,
                  const std::vector<int64_t> &rows, hyb_logits which);
  Difference movedGradient(const Ids &ids, const Ids &labels,
                           const std::vector<hyb_segment> &segments);
  void reportGradient(const std::string &name, const Difference &found,
                      const Difference &moved);
  bool hasDropout() const;
  void report(const char *name, double error, double limit);
  /// By the measure of the artefact's compute type; `limit` 0: the same bits.
  void report(const char *name, const Difference &found, double limit) {
    report(name, limit == 0 ? found.largest : found.in(bounds->type), limit);
  }

  std::string path, exact, device, products;
  int64_t tokens;
  bool poison = true;
  int repeats = 0;
  int64_t vocabulary = 0;
  int failures = 0;
  const Bounds *bounds = nullptr;
  Bounds measured = {};
  /// What weights are numbers of; by default the model's compute type.
  std::optional<ElementType> type;
  Machine main;
};

void Checker::report(const char *name, double error, double limit) {
  // A limit that was measured may be no number either.
  bool good = std::isfinite(error) && error <= limit;
  failures += !good;
  std::printf("%-4s %-34s %.3g (limit %.3g)\n", good ? "ok" : "FAIL", name,
              error, limit);
  std::fflush(stdout);
}

Machine Checker::open(int threads, const char *level,
                      const std::string &device) const {
  MachineOptions options;
  options.threads = threads;
  options.level = level;
  options.device = device;
  // The processor has but one way to compute them.
  if (device != "cpu")
    options.products = products;
  options.poison = poison;
  options.weights = type;
  return openMachine(path, options);
}

std::unique_ptr<State> Checker::state(const Machine &machine, int64_t slots,
                                      int64_t depth, int64_t chunk) const {
  hyb_state_options options;
  hyb_state_options_init(&options, sizeof(options));
  options.slots = slots;
  options.context = tokens + 32;
  options.rollback_depth = depth;
  options.chunk = chunk;
  return need(State::create(*machine.model, options));
}

Rows Checker::extend(const Machine &machine, State &state, const Ids &ids,
                     hyb_logits which, int64_t slot) const {
  hyb_segment segment = {static_cast<int64_t>(ids.size()), slot};
  hyb_batch batch = batchOf(ids, ids, {segment});
  batch.segments = &segment;
  const float *logits;
  need(machine.context->extend(state, batch, which, &logits));
  int64_t rows = which == HYB_LOGITS_ALL ? batch.tokens : 1;
  return {logits, logits + rows * vocabulary};
}

Rows Checker::extendIn(const Machine &machine, const Ids &ids,
                       const std::vector<int64_t> &lengths,
                       int64_t chunk) const {
  auto fresh = state(machine, 1, 0, chunk);
  Rows all;
  size_t piece = 0;
  for (size_t begin = 0; begin < ids.size(); ++piece) {
    size_t length =
        static_cast<size_t>(lengths[std::min(piece, lengths.size() - 1)]);
    size_t end = std::min(begin + length, ids.size());
    Rows rows = extend(machine, *fresh,
                       Ids(ids.begin() + static_cast<ptrdiff_t>(begin),
                           ids.begin() + static_cast<ptrdiff_t>(end)));
    all.insert(all.end(), rows.begin(), rows.end());
    begin = end;
  }
  return all;
}

hyb_batch Checker::batchOf(const Ids &ids, const Ids &labels,
                           const std::vector<hyb_segment> &segments) const {
  hyb_batch batch = {};
  batch.ids = ids.data();
  batch.labels = labels.data();
  batch.tokens = static_cast<int64_t>(ids.size());
  batch.segments = segments.data();
  batch.segment_count = static_cast<int64_t>(segments.size());
  return batch;
}

Rows Checker::lossOf(const Machine &machine, const Ids &ids, const Ids &labels,
                     const std::vector<hyb_segment> &segments) const {
  const float *losses;
  need(machine.context->loss(batchOf(ids, labels, segments), &losses));
  return {losses, losses + ids.size()};
}

Rows Checker::gradientOf(const Machine &machine, const Ids &ids,
                         const Ids &labels,
                         const std::vector<hyb_segment> &segments) const {
  Device &device = machine.model->device();
  int64_t bytes = machine.model->flatBytes();
  DeviceMemory memory = need(device.allocate(bytes));
  const float *losses;
  need(machine.context->backward(batchOf(ids, labels, segments), memory.data(),
                                 CallSeed(), &losses));
  Rows gradient(static_cast<size_t>(bytes / kElementBytes));
  need(device.read(gradient.data(), memory.data(), bytes));
  return gradient;
}

void Checker::measureType() {
  Checker other(exact, tokens, "cpu", 0, false, "", products);
  other.type = type;
  other.main = other.open(0);
  other.vocabulary = vocabulary;
  Machine processor = open(0);
  Ids ids = someIds(tokens, "exact"), labels = someIds(tokens, "labels");
  std::vector<hyb_segment> one = {{tokens, 0}};
  Rows logits = other.extendIn(other.main, ids, {tokens});
  Rows gradient = other.gradientOf(other.main, ids, labels, one);
  double forward = difference(extendIn(processor, ids, {tokens}), logits).rms;
  double backward =
      difference(gradientOf(processor, ids, labels, one), gradient).rms;
  report("exact, extend", difference(extendIn(main, ids, {tokens}), logits),
         2 * forward);
  report("exact, token by token", difference(extendIn(main, ids, {1}), logits),
         2 * forward);
  report("exact, backward",
         difference(gradientOf(main, ids, labels, one), gradient),
         3 * backward);
  measured = *bounds;
  for (double *bound : {&measured.forward, &measured.lastRow})
    *bound = std::max(*bound, kTwoWays * forward);
  for (double *bound : {&measured.backward, &measured.parts})
    *bound = std::max(*bound, kTwoWays * backward);
  bounds = &measured;
}

// Cross entropy in double from the logits of extend, against the entry `loss`.
void Checker::checkLoss() {
  Ids ids = someIds(tokens, "loss"), labels = someIds(tokens, "labels");
  labels[0] = kIgnoreLabel;
  Rows logits = extendIn(main, ids, {tokens}), expected;
  for (int64_t t = 0; t < tokens; ++t) {
    const float *row = logits.data() + t * vocabulary;
    double most = *std::max_element(row, row + vocabulary), sum = 0;
    for (int64_t i = 0; i < vocabulary; ++i)
      sum += std::exp(row[i] - most);
    int32_t label = labels[static_cast<size_t>(t)];
    expected.push_back(
        label == kIgnoreLabel
            ? 0
            : static_cast<float>(std::log(sum) + most - row[label]));
  }
  report("loss and extend",
         difference(lossOf(main, ids, labels, {{tokens, 0}}), expected),
         bounds->forward);
}

void Checker::checkSplits() {
  Ids ids = someIds(tokens, "split");
  Rows whole = extendIn(main, ids, {tokens});
  report("token by token", difference(extendIn(main, ids, {1}), whole),
         bounds->forward);
  report("uneven pieces, some of 0",
         difference(extendIn(main, ids, {3, 0, 1, 17, 0, 2, 64, 5}), whole),
         bounds->forward);
  report("chunks of 7",
         difference(extendIn(main, ids, {tokens}, /*chunk=*/7), whole),
         bounds->forward);
  auto fresh = state(main);
  Rows last = extend(main, *fresh, ids, HYB_LOGITS_LAST);
  report("last row",
         difference(last, Rows(whole.end() - vocabulary, whole.end())),
         bounds->lastRow);
}

void Checker::checkRagged() {
  std::vector<int64_t> lengths = {
      tokens, 0, 1, tokens / 3, 2, std::max<int64_t>(tokens - 5, 0)};
  Ids packed, labels;
  std::vector<hyb_segment> segments;
  Rows apart, losses;
  for (size_t i = 0; i < lengths.size(); ++i) {
    Ids ids = someIds(lengths[i], ("ragged" + std::to_string(i)).c_str());
    Ids next = someIds(lengths[i], ("next" + std::to_string(i)).c_str());
    // Slots in another order than segments.
    segments.push_back({lengths[i], static_cast<int64_t>(lengths.size() - i)});
    packed.insert(packed.end(), ids.begin(), ids.end());
    labels.insert(labels.end(), next.begin(), next.end());
    if (ids.empty())
      continue;
    auto alone = state(main);
    Rows rows = extend(main, *alone, ids);
    apart.insert(apart.end(), rows.begin(), rows.end());
    rows = lossOf(main, ids, next, {{lengths[i], 0}});
    losses.insert(losses.end(), rows.begin(), rows.end());
  }
  auto together = state(main, static_cast<int64_t>(lengths.size()) + 1);
  const float *logits;
  need(main.context->extend(*together, batchOf(packed, labels, segments),
                            HYB_LOGITS_ALL, &logits));
  report("ragged batch, extend",
         difference(Rows(logits, logits + apart.size()), apart),
         bounds->forward);
  report("ragged batch, loss",
         difference(lossOf(main, packed, labels, segments), losses),
         bounds->forward);
}

void Checker::checkThreadsAndLevels() {
  Ids ids = someIds(tokens, "threads"), labels = someIds(tokens, "labels");
  std::vector<hyb_segment> segments = {{tokens / 2, 0},
                                       {tokens - tokens / 2, 0}};
  Rows logits = extendIn(main, ids, {tokens / 2, 1});
  Rows gradient = gradientOf(main, ids, labels, segments);
  for (int threads : {1, 3}) {
    Machine other = open(threads);
    std::string name = std::to_string(threads) + " threads, the same bits";
    report((name + ", extend").c_str(),
           difference(extendIn(other, ids, {tokens / 2, 1}), logits), 0);
    report((name + ", backward").c_str(),
           difference(gradientOf(other, ids, labels, segments), gradient), 0);
  }
  Difference moved = movedGradient(ids, labels, segments);
  std::optional<CpuLevel> host = hostCpuLevel();
  for (CpuLevel level : kCpuLevels) {
    if (!host || level > *host || cpuLevelName(level) == main.model->codeName())
      continue;
    hyb_runtime_options options;
    hyb_runtime_options_init(&options, sizeof(options));
    options.cpu_level = cpuLevelName(level);
    options.device = "cpu";
    auto runtime = need(Runtime::create(options));
    if (!Model::open(*runtime, path).ok())
      continue; // not in the artefact
    Machine other = open(2, cpuLevelName(level));
    std::string name = std::string("level ") + cpuLevelName(level);
    report((name + ", extend").c_str(),
           difference(extendIn(other, ids, {tokens / 2, 1}), logits),
           bounds->forward);
    reportGradient(
        name + ", backward",
        difference(gradientOf(other, ids, labels, segments), gradient), moved);
  }
}

/// The largest change of the processor's gradient in a few draws, in each of
/// which a parameter is the next number above or below, or stays; nothing in a
/// narrow type, where --exact measures.
Difference Checker::movedGradient(const Ids &ids, const Ids &labels,
                                  const std::vector<hyb_segment> &segments) {
  Difference worst;
  if (bounds->type != ElementType::F32)
    return worst;
  constexpr int kDraws = 3;
  Machine processor = open(0);
  Model &model = *processor.model;
  Rows expected = gradientOf(processor, ids, labels, segments);
  std::vector<Rows> original;
  for (const ParameterInfo &info : model.parameterTable().parameters) {
    original.emplace_back(static_cast<size_t>(info.elements));
    need(model.readParameter(info, original.back().data()));
  }
  for (uint64_t draw = 0; draw < kDraws; ++draw) {
    auto from = original.begin();
    for (const ParameterInfo &info : model.parameterTable().parameters) {
      Rows values = *from++;
      RandomStream random(draw, info.path);
      for (size_t i = 0; i < values.size(); ++i) {
        uint64_t way = random.below(4, i);
        if (way < 2)
          values[i] = std::nextafter(values[i], way ? INFINITY : -INFINITY);
      }
      need(model.writeParameter(info, values.data()));
    }
    worst =
        largerOf(worst, difference(gradientOf(processor, ids, labels, segments),
                                   expected));
  }
  return worst;
}

/// In f32 the root mean square too, which one row alone does not carry.
void Checker::reportGradient(const std::string &name, const Difference &found,
                             const Difference &moved) {
  constexpr double kTimes = 3, kRms = 2e-5;
  report(name.c_str(), found,
         std::max(bounds->backward, kTimes * moved.in(bounds->type)));
  if (bounds->type == ElementType::F32)
    report((name + ", rms").c_str(), found.rms,
           std::max(kRms, kTimes * moved.rms));
}

// An artefact without code for the processor is not compared.
void Checker::checkAgainstProcessor() {
  hyb_runtime_options options;
  hyb_runtime_options_init(&options, sizeof(options));
  options.device = "cpu";
  auto runtime = need(Runtime::create(options));
  if (!Model::open(*runtime, path).ok())
    return;
  Machine other = open(0);
  Ids ids = someIds(tokens, "threads"), labels = someIds(tokens, "labels");
  std::vector<hyb_segment> segments = {{tokens / 2, 0},
                                       {tokens - tokens / 2, 0}};
  report("processor, extend",
         difference(extendIn(main, ids, {tokens / 2, 1}),
                    extendIn(other, ids, {tokens / 2, 1})),
         bounds->forward);
  report("processor, loss",
         difference(lossOf(main, ids, labels, segments),
                    lossOf(other, ids, labels, segments)),
         bounds->forward);
  reportGradient("processor, backward",
                 difference(gradientOf(main, ids, labels, segments),
                            gradientOf(other, ids, labels, segments)),
                 movedGradient(ids, labels, segments));
}

// Without poison lists are prepared: from the third call on a graph runs.
void Checker::checkGraphs() {
  bool before = std::exchange(poison, false);
  Machine prepared = open(2, nullptr, device);
  poison = before;
  Ids ids = someIds(tokens, "graphs"), labels = someIds(tokens, "labels");
  report("graphs, extend",
         difference(extendIn(prepared, ids, {1}), extendIn(main, ids, {1})), 0);
  std::vector<hyb_segment> one = {{tokens, 0}};
  Rows expected = lossOf(main, ids, labels, one);
  Difference worst;
  for (int i = 0; i < 4; ++i)
    worst = largerOf(worst,
                     difference(lossOf(prepared, ids, labels, one), expected));
  report("graphs, loss", worst, 0);
}

// As many rows as a step's programs are made for and more, of sequences in
// slots of another order, some without a row, from no token to a full context.
void Checker::checkSteps() {
  int64_t room = tokens + 32;
  const std::vector<int64_t> from = {0, room - 1, 1, tokens / 2, room - 2, 2,
                                     3, tokens,   7, 15,         16,       31,
                                     5, room - 3, 4, tokens / 3, 6};
  for (const std::vector<int64_t> &rows :
       {std::vector<int64_t>{1, 1},
        {1, 0, 3},
        {2, 1, 1},
        {1, 1, 1, 1},
        {1, 1, 2, 0, 2},
        std::vector<int64_t>(from.size(), 1)})
    for (hyb_logits which : {HYB_LOGITS_ALL, HYB_LOGITS_LAST})
      checkSteps(from, rows, which);
}

/// Segment n goes on by `rows[n]` rows behind `from[n]` tokens.
void Checker::checkSteps(const std::vector<int64_t> &from,
                         const std::vector<int64_t> &rows, hyb_logits which) {
  auto count = static_cast<int64_t>(rows.size());
  auto together = state(main, count);
  Ids packed;
  std::vector<hyb_segment> segments;
  Rows apart;
  for (int64_t n = 0; n < count; ++n) {
    int64_t begin = from[size_t(n)], more = rows[size_t(n)],
            slot = count - 1 - n;
    Ids ids = someIds(begin + more, ("step" + std::to_string(n)).c_str());
    Ids before(ids.begin(), ids.begin() + begin),
        next(ids.begin() + begin, ids.end());
    extend(main, *together, before, HYB_LOGITS_LAST, slot);
    auto alone = state(main);
    extend(main, *alone, before, HYB_LOGITS_LAST);
    segments.push_back({more, slot});
    packed.insert(packed.end(), next.begin(), next.end());
    Rows row = extend(main, *alone, next, which);
    apart.insert(apart.end(), row.begin(), row.end());
  }
  const float *logits;
  need(main.context->extend(*together, batchOf(packed, packed, segments), which,
                            &logits));
  std::string name = std::to_string(packed.size()) + " rows of " +
                     std::to_string(count) + " together" +
                     (which == HYB_LOGITS_LAST ? ", last" : "");
  report(name.c_str(), difference(Rows(logits, logits + apart.size()), apart),
         bounds->forward);
}

// The step is the whole of it: gradient, optimiser, parameters.
void Checker::checkRepeats() {
  hyb_trainer_options options;
  hyb_trainer_options_init(&options, sizeof(options));
  Ids ids = someIds(tokens, "repeats"), labels = someIds(tokens, "labels");
  std::vector<hyb_segment> segments = {{tokens / 3, 0},
                                       {tokens - tokens / 3, 0}};
  Machine machine = open(2, nullptr, device);
  Rows first;
  Difference worst;
  for (int i = 0; i < repeats; ++i) {
    need(machine.model->initialise(1));
    auto trainer = need(Trainer::create(*machine.context, options));
    need(trainer->accumulate(batchOf(ids, labels, segments), nullptr, nullptr));
    need(trainer->update(1e-3f, nullptr));
    int64_t bytes = machine.model->flatBytes();
    Rows after(static_cast<size_t>(bytes / kElementBytes));
    need(machine.model->device().read(after.data(), machine.model->parameters(),
                                      bytes));
    if (i == 0)
      first = after;
    worst = largerOf(worst, difference(after, first));
  }
  report((std::to_string(repeats) + " repeats of a step").c_str(), worst, 0);
}

void Checker::checkStates() {
  constexpr int64_t kDepth = 5;
  Ids ids = someIds(tokens, "state"), more = someIds(9, "more");
  Difference worst;
  for (int64_t back : {1, 2, 5}) {
    if (back > tokens)
      continue;
    for (int64_t step : {int64_t(1), int64_t(3), tokens}) {
      auto rolled = state(main, 1, kDepth);
      for (int64_t begin = 0; begin < tokens; begin += step)
        extend(main, *rolled,
               Ids(ids.begin() + begin,
                   ids.begin() + std::min(begin + step, tokens)));
      need(rolled->rollback(*main.context, 0, back));
      auto fresh = state(main, 1, kDepth);
      extend(main, *fresh, Ids(ids.begin(), ids.end() - back));
      worst = largerOf(worst, difference(extend(main, *rolled, more),
                                         extend(main, *fresh, more)));
    }
  }
  report("rollback", worst, bounds->forward);

  std::string file = "/tmp/hybrid-state-" + std::to_string(::getpid());
  worst = Difference();
  for (int64_t at : {int64_t(0), int64_t(1), tokens / 2, tokens}) {
    auto source = state(main, 2);
    extend(main, *source, Ids(ids.begin(), ids.begin() + at), HYB_LOGITS_ALL,
           1);
    need(source->save(1, file));
    auto snapshot = need(source->snapshot(1));
    Rows expected = extend(main, *source, more, HYB_LOGITS_ALL, 1);
    auto target = state(main, 2);
    extend(main, *target, more); // what was in the slot before must not show
    need(target->load(0, file));
    worst = largerOf(worst, difference(extend(main, *target, more), expected));
    need(target->restore(0, snapshot));
    worst = largerOf(worst, difference(extend(main, *target, more), expected));
    need(target->reset(0));
    auto fresh = state(main, 2);
    worst = largerOf(worst, difference(extend(main, *target, more),
                                       extend(main, *fresh, more)));
  }
  std::remove(file.c_str());
  report("save, load, snapshot, reset", worst, 0);
}

// What is left out depends on the row in the call, so parts leave out others.
bool Checker::hasDropout() const {
  ModelTables tables = main.model->planTables();
  const std::vector<PlanBuffer> &buffers =
      tables.plan.entries.at("backward").buffers;
  return std::any_of(buffers.begin(), buffers.end(),
                     [](const PlanBuffer &buffer) {
                       return buffer.kind == BufferKind::RandomKey;
                     });
}

void Checker::checkBackward() {
  Ids ids = someIds(2 * tokens, "backward"),
      labels = someIds(2 * tokens, "labels");
  labels[1] = kIgnoreLabel;
  std::vector<hyb_segment> both = {{tokens, 0}, {tokens, 0}},
                           one = {{tokens, 0}};
  Rows whole = gradientOf(main, ids, labels, both);
  report("backward again, the same bits",
         difference(gradientOf(main, ids, labels, both), whole), 0);
  auto half = [&](const Ids &all, int64_t part) {
    return Ids(all.begin() + part * tokens, all.begin() + (part + 1) * tokens);
  };
  Rows sum = gradientOf(main, half(ids, 0), half(labels, 0), one);
  Rows second = gradientOf(main, half(ids, 1), half(labels, 1), one);
  for (size_t i = 0; i < sum.size(); ++i)
    sum[i] += second[i];
  if (!hasDropout())
    report("backward in parts", difference(sum, whole), bounds->parts);
  Ids none(ids.size(), kIgnoreLabel);
  Rows zero = gradientOf(main, ids, none, both);
  report("no labels, no gradient", difference(zero, Rows(zero.size())), 0);
}

// More tokens take more steps: none of them can be told from those before it.
void Checker::checkTraining() {
  constexpr int64_t kSteps = 30, kTokens = 150;
  int64_t steps =
      kSteps * std::max<int64_t>(1, (tokens + kTokens - 1) / kTokens);
  Machine machine = open(2, nullptr, device);
  hyb_trainer_options options;
  hyb_trainer_options_init(&options, sizeof(options));
  auto trainer = need(Trainer::create(*machine.context, options));
  Ids ids = someIds(tokens, "train"), labels(ids.begin() + 1, ids.end());
  labels.push_back(tokens > 1 ? kIgnoreLabel : ids[0]);
  std::vector<hyb_segment> segments = {{tokens, 0}};
  double first = 0, last = 0, weight;
  for (int64_t step = 0; step < steps; ++step) {
    need(trainer->accumulate(batchOf(ids, labels, segments), &last, &weight));
    first = step == 0 ? last : first;
    hyb_update update;
    need(trainer->update(1e-2f, &update));
    failures += update.skipped;
  }
  report("loss after training / before", last / first, 0.7);
}

int Checker::run(bool all) {
  main = open(2, nullptr, device);
  vocabulary = main.model->meta().vocabulary;
  type = main.model->computeType();
  bounds = &boundsOf(*type);
  std::printf("%s in %s, %s on %s, %lld tokens\n",
              main.model->meta().name.c_str(), elementTypeName(*type),
              main.model->codeName().c_str(),
              main.model->device().description().c_str(),
              static_cast<long long>(tokens));
  if (all)
    checkAll();
  if (repeats > 0)
    checkRepeats();
  return failures ? 1 : 0;
}

void Checker::checkAll() {
  if (!exact.empty() && *type != ElementType::F32)
    measureType();
  checkLoss();
  checkSplits();
  checkRagged();
  if (main.model->device().isHost())
    checkThreadsAndLevels();
  else
    checkAgainstProcessor();
  checkStates();
  checkSteps();
  checkBackward();
  checkTraining();
  if (!main.model->device().isHost())
    checkGraphs();
}

} // namespace

int main(int argc, char **argv) {
  std::vector<std::string> plain;
  std::string exact, products = "compiled";
  int repeats = 0;
  bool poison = true, all = true;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word.compare(0, 10, "--repeats=") == 0)
      repeats = std::atoi(argv[i] + 10);
    else if (word == "--only-repeats")
      all = false;
    else if (word == "--no-poison")
      poison = false;
    else if (word.compare(0, 8, "--exact=") == 0)
      exact = word.substr(8);
    else if (word.compare(0, 11, "--products=") == 0)
      products = word.substr(11);
    else
      plain.push_back(word);
  }
  if (plain.empty() || plain.size() > 3 || plain[0][0] == '-') {
    std::fprintf(stderr,
                 "usage: %s ARTEFACT [TOKENS] [DEVICE] [--repeats=N] "
                 "[--no-poison] [--exact=ARTEFACT] "
                 "[--products=compiled|cublaslt|auto] [--only-repeats]\n",
                 argv[0]);
    return 2;
  }
  return Checker(plain[0], plain.size() > 1 ? std::atoll(plain[1].c_str()) : 70,
                 plain.size() > 2 ? plain[2] : "cpu", repeats, poison, exact,
                 products)
      .run(all);
}
