//===- TrainCommand.cpp --------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "LossCurve.h"
#include "OptionChecks.h"
#include "Progress.h"
#include "Session.h"
#include "train/Evaluate.h"
#include "train/TrainingRun.h"

#include <CLI/CLI.hpp>
#include <cinttypes>

namespace hyb::run {

using namespace hyb::rt;

namespace {

/// Validation during the run reads at most this much; at the end all of it.
constexpr size_t kQuickValidationBytes = 50'000;
constexpr double kLn2 = 0.6931471805599453;

struct TrainArguments {
  SessionOptions session;
  std::string text, valid, out, initFrom;
  int64_t bytes = 10'000'000, steps = 0;
  int64_t batch = 16, parts = 1, length = 0;
  double learningRate = 3e-3, weightDecay = 0.1, clip = 1;
  double beta1 = 0.9, beta2 = 0.95, floor = 0.1;
  int64_t warmup = -1;
  std::string schedule = "cosine";
  uint64_t seed = 0;
  bool keepRest = false, quiet = false;
  double saveSeconds = 60;
};

class TrainCommand {
public:
  explicit TrainCommand(TrainArguments arguments)
      : arguments(std::move(arguments)), progress(this->arguments.quiet) {}

  Status run();

private:
  Result<TrainingOptions> options() const;
  Status describe() const;
  Status loop();
  Status report(const StepReport &step);
  Status quickValidation(bool last);
  Status finish();
  Status finalValidation();

  TrainArguments arguments;
  Progress progress;
  Session session;
  std::unique_ptr<Dataset> data;
  std::unique_ptr<TrainingRun> training;
  double begun = 0;
  int64_t tokensBefore = 0;
};

Result<TrainingOptions> TrainCommand::options() const {
  TrainingOptions options;
  options.folder = arguments.out;
  options.batch = arguments.batch;
  options.parts = arguments.parts;
  options.seed = arguments.seed;
  options.initFrom = arguments.initFrom;
  options.rest =
      arguments.keepRest ? SampleOrder::Rest::Keep : SampleOrder::Rest::Drop;
  Schedule &schedule = options.schedule;
  schedule.kind = *Schedule::kindByName(arguments.schedule);
  schedule.peak = arguments.learningRate;
  schedule.floor = arguments.floor;
  int64_t perStep = arguments.batch * data->length();
  schedule.totalSteps = arguments.steps > 0
                            ? arguments.steps
                            : std::max<int64_t>(1, arguments.bytes / perStep);
  options.defaultWarmup = arguments.warmup < 0;
  schedule.warmupSteps = arguments.warmup >= 0
                             ? arguments.warmup
                             : std::min<int64_t>(100, schedule.totalSteps / 10);
  hyb_trainer_options_init(&options.optimiser, sizeof(options.optimiser));
  options.optimiser.weight_decay = static_cast<float>(arguments.weightDecay);
  options.optimiser.clip_norm = static_cast<float>(arguments.clip);
  options.optimiser.beta1 = static_cast<float>(arguments.beta1);
  options.optimiser.beta2 = static_cast<float>(arguments.beta2);
  return options;
}

Status TrainCommand::describe() const {
  if (arguments.quiet)
    return Status();
  const Model &model = *session.model;
  std::fprintf(stderr,
               "%s: %" PRId64 " parameters, %s, %s\n"
               "%" PRId64 " steps of %" PRId64 " x %" PRId64 " tokens, %" PRId64
               " steps an epoch\n",
               model.meta().name.c_str(), model.parameterTable().scalars(),
               model.codeName().c_str(), model.device().description().c_str(),
               training->totalSteps(), arguments.batch, data->length(),
               training->stepsPerEpoch());
  if (training->resumed()) {
    bool complete = training->step() >= training->totalSteps();
    std::fprintf(stderr, "%s %s at step %" PRId64 "%s\n",
                 complete ? "nothing left to train in" : "continues",
                 arguments.out.c_str(), training->step(),
                 complete ? "; a larger --bytes or --steps would go on" : "");
  } else if (!arguments.initFrom.empty()) {
    HYB_ASSIGN(std::string before, recordedSpec(arguments.initFrom));
    std::vector<std::string> lines = differingLines(before, model.meta().spec);
    std::fprintf(stderr, "starts from %s; its spec and this one %s\n",
                 arguments.initFrom.c_str(),
                 lines.empty() ? "are the same" : "differ in:");
    for (const std::string &line : lines)
      std::fprintf(stderr, "  %s\n", line.c_str());
  }
  return Status();
}

Status TrainCommand::report(const StepReport &step) {
  double seconds = secondsNow() - begun;
  double rate = static_cast<double>(step.tokens - tokensBefore) / seconds;
  HYB_TRY(training->logStep(step, rate));
  char text[160];
  std::snprintf(text, sizeof(text),
                "step %" PRId64 "/%" PRId64
                "  loss %.4f  %.3f bits/byte  %.0f tokens/s%s",
                step.step, training->totalSteps(), step.loss, step.loss / kLn2,
                rate, step.update.skipped ? "  skipped" : "");
  progress.show(static_cast<double>(step.step) /
                    static_cast<double>(training->totalSteps()),
                text);
  if (step.update.skipped) {
    progress.finish();
    std::fprintf(stderr,
                 "warning: step %" PRId64
                 " skipped: %s; lower the learning rate if this repeats\n",
                 step.step,
                 step.update.weight > 0 ? "its gradient is not finite"
                                        : "no row has a label");
  }
  return Status();
}

/// The weights of the best one are kept. The last is followed by a validation
/// of all the data, which is what the log says of that step.
Status TrainCommand::quickValidation(bool last) {
  if (arguments.valid.empty())
    return Status();
  Result<Evaluation> result = [&]() -> Result<Evaluation> {
    HYB_ASSIGN(MappedFile file, MappedFile::open(arguments.valid));
    Bytes text = file.bytes();
    text.size = std::min(text.size, kQuickValidationBytes);
    int64_t bestStep = training->bestStep();
    double best = training->bestBitsPerByte();
    if (training->validateOn(text))
      std::fprintf(stderr,
                   "note: the best so far, %.4f bits per byte after step "
                   "%" PRId64 ", was of other data than this --valid; it is "
                   "measured anew\n",
                   best, bestStep);
    return evaluateText(*session.context, text, data->length(), data->length(),
                        arguments.batch);
  }();
  if (!result.ok())
    return result.status();
  HYB_TRY(training->keepBest(*result));
  return last ? Status() : training->logValidation(*result, /*quick=*/true);
}

Status TrainCommand::loop() {
  begun = secondsNow();
  progress.begin(static_cast<double>(training->step()) /
                 static_cast<double>(training->totalSteps()));
  tokensBefore = training->tokens();
  double saved = begun;
  int64_t tenth = std::max<int64_t>(1, training->totalSteps() / 10);
  bool textValidation = dynamic_cast<const TextData *>(data.get()) != nullptr;
  while (training->step() < training->totalSteps()) {
    HYB_ASSIGN(StepReport step, training->takeStep());
    HYB_TRY(report(step));
    bool last = training->step() == training->totalSteps();
    Status validated;
    if (textValidation && (last || step.step % tenth == 0))
      validated = quickValidation(last);
    // A validation that fails costs no steps.
    if (last || interrupted || !validated.ok() ||
        secondsNow() - saved >= arguments.saveSeconds) {
      HYB_TRY(training->save());
      saved = secondsNow();
    }
    HYB_TRY(validated);
    if (interrupted && !last) {
      progress.finish();
      return failure(HYB_CANCELLED,
                     "interrupted after step %" PRId64
                     ", which is saved; the same command continues",
                     training->step());
    }
  }
  progress.finish();
  return Status();
}

Status TrainCommand::finish() {
  Status validated = arguments.valid.empty() ? Status() : finalValidation();
  if (training->bestStep() > 0 && training->bestStep() < training->step())
    std::printf("best on the way: %.4f bits per byte of a part, after step "
                "%" PRId64 ", kept as %s/%s\n",
                training->bestBitsPerByte(), training->bestStep(),
                arguments.out.c_str(), kBestFile);
  std::fflush(stdout); // before what goes to the other stream
  if (validated.code() == HYB_CANCELLED)
    return validated;
  std::string log = arguments.out + "/" + kLogFile;
  std::string picture = arguments.out + "/loss.svg";
  Status drawn = drawLossCurve(log, picture);
  HYB_TRY(validated);
  HYB_TRY(drawn);
  if (!arguments.quiet)
    std::fprintf(stderr, "checkpoint %s/%s, log %s, loss curve %s\n",
                 arguments.out.c_str(), kCheckpointFile, log.c_str(),
                 picture.c_str());
  return Status();
}

/// All of the validation data, each byte with as much context as there is.
Status TrainCommand::finalValidation() {
  HYB_ASSIGN(std::unique_ptr<Dataset> valid,
             openDataset(arguments.valid, data->length(), 0,
                         session.model->meta().vocabulary));
  progress.begin(0);
  EvaluationProgress show = [&](double share) {
    progress.show(share, "validation");
    return interrupted ? 1 : 0;
  };
  Result<Evaluation> result = [&]() -> Result<Evaluation> {
    if (!dynamic_cast<TextData *>(valid.get()))
      return evaluateSamples(*session.context, *valid, arguments.batch,
                             /*exactMatch=*/true, show);
    HYB_ASSIGN(MappedFile file, MappedFile::open(arguments.valid));
    // Half a window of context for every byte but the first few.
    return evaluateText(*session.context, file.bytes(), data->length(),
                        std::max<int64_t>(1, data->length() / 2),
                        arguments.batch, show);
  }();
  progress.finish();
  if (!result.ok() && interrupted)
    return failure(HYB_CANCELLED,
                   "interrupted during the validation after the last step, "
                   "which is saved; the same command validates again");
  if (!result.ok())
    return result.status();
  HYB_TRY(training->logValidation(*result, /*quick=*/false));
  std::printf("validation: %.4f bits per byte, loss %.4f over %" PRId64
              " tokens\n",
              result->bitsPerByte(), result->loss(), result->rows);
  if (result->spans > 0)
    std::printf("exact match: %.2f %% of %" PRId64 " labelled spans\n",
                100.0 * static_cast<double>(result->exactSpans) /
                    static_cast<double>(result->spans),
                result->spans);
  return result->checkFinite();
}

Status TrainCommand::run() {
  HYB_ASSIGN(session, Session::open(arguments.session));
  int64_t length = arguments.length > 0 ? arguments.length
                   : session.model->meta().trainedLength > 0
                       ? session.model->meta().trainedLength
                       : 256;
  HYB_ASSIGN(data, openDataset(arguments.text, length, arguments.seed,
                               session.model->meta().vocabulary));
  HYB_ASSIGN(TrainingOptions chosen, options());
  HYB_ASSIGN(training, TrainingRun::open(*session.context, *data, chosen));
  HYB_TRY(describe());
  catchInterrupts();
  Status trained = loop();
  HYB_TRY(session.saveTrace());
  HYB_TRY(trained);
  return finish();
}

void addArguments(CLI::App &command, TrainArguments &arguments) {
  arguments.session.addTo(command, /*withWeights=*/false);
  auto add = [&](const char *name, auto &value, const char *help,
                 const char *group) {
    return command.add_option(name, value, help)
        ->group(group)
        ->capture_default_str();
  };
  add("--text", arguments.text,
      "training text, or .safetensors with I32 ids and labels", "Data")
      ->required();
  add("--valid", arguments.valid, "the same, for validation", "Data");
  add("--out", arguments.out,
      "folder of the run; continues when it has a checkpoint", "Data")
      ->required();
  add("--init-from", arguments.initFrom,
      "run folder or weights to start from, made under a spec with equal "
      "parameters",
      "Data");
  add("--length", arguments.length,
      "tokens per sequence; 0: the spec's trained length", "Data")
      ->check(wholeNumber(0));
  command
      .add_flag("--keep-rest", arguments.keepRest,
                "use the samples that do not fill a batch at the end of an "
                "epoch, as a smaller batch")
      ->group("Data");
  add("--bytes", arguments.bytes, "tokens to train on in all",
      "Length of the "
      "run")
      ->check(wholeNumber(1));
  add("--steps", arguments.steps, "steps to take instead; 0: from --bytes",
      "Length of the run")
      ->check(wholeNumber(0));
  add("--batch", arguments.batch, "sequences per step", "Optimiser")
      ->check(wholeNumber(1));
  add("--accumulate", arguments.parts,
      "run a batch in this many parts, to save memory", "Optimiser")
      ->check(wholeNumber(1));
  add("--lr", arguments.learningRate, "peak learning rate", "Optimiser")
      ->check(realNumber(0));
  add("--warmup", arguments.warmup,
      "steps of warm-up; -1: a tenth of the run, at most 100", "Optimiser")
      ->check(wholeNumber(-1));
  add("--schedule", arguments.schedule, "after the warm-up", "Optimiser")
      ->check(CLI::IsMember({"cosine", "constant", "wsd"}));
  add("--lr-floor", arguments.floor,
      "share of the peak that is left at the "
      "end",
      "Optimiser")
      ->check(realNumber(0, 1));
  add("--weight-decay", arguments.weightDecay,
      "of AdamW; spares gates, norms "
      "and biases",
      "Optimiser")
      ->check(realNumber(0));
  add("--beta1", arguments.beta1, "of AdamW", "Optimiser")
      ->check(shareBelowOne());
  add("--beta2", arguments.beta2, "of AdamW", "Optimiser")
      ->check(shareBelowOne());
  add("--clip", arguments.clip, "largest gradient norm; 0: no clipping",
      "Optimiser")
      ->check(realNumber(0));
  add("--seed", arguments.seed,
      "of the first weights, the order of data and dropout", "Optimiser")
      ->check(seedNumber());
  add("--save-seconds", arguments.saveSeconds, "between checkpoints", "Output")
      ->check(realNumber(0));
  command.add_flag("-q,--quiet", arguments.quiet, "no progress, results only")
      ->group("Output");
}

} // namespace

void addTrain(CLI::App &app, Action &action) {
  CLI::App *command = app.add_subcommand(
      "train", "train a model; may be interrupted and started again");
  command->footer(
      "Two examples:\n"
      "  hybrid-run train demo.hbx --text=train.txt --valid=valid.txt "
      "--out=run --bytes=12000000\n"
      "  hybrid-run train long.hbx --text=train.txt --init-from=run "
      "--out=run-long --length=1024 --lr=3e-4");
  auto arguments = std::make_shared<TrainArguments>();
  addArguments(*command, *arguments);
  command->callback([&action, arguments] {
    if (arguments->parts > arguments->batch)
      throw CLI::ValidationError(
          "--accumulate", "a batch of " + std::to_string(arguments->batch) +
                              " sequences has no " +
                              std::to_string(arguments->parts) +
                              " parts; give at most --batch");
    action = [arguments] { return TrainCommand(*arguments).run(); };
  });
}

} // namespace hyb::run
