//===- EvalCommand.cpp ---------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "OptionChecks.h"
#include "Progress.h"
#include "Session.h"
#include "io/Json.h"
#include "train/Evaluate.h"
#include "train/Trainer.h"

#include <CLI/CLI.hpp>
#include <cinttypes>

namespace hyb::run {

using namespace hyb::rt;

namespace {

struct EvalArguments {
  SessionOptions session;
  std::string text;
  int64_t length = 0, stride = 0, batch = 16;
  double adapt = 0;
  bool byPosition = false, json = false, quiet = false;
};

/// Positions 0, 1, 2-3, 4-7, ...: loss falls with the logarithm of the context.
struct PositionBand {
  int64_t first, last;
  double loss;
  int64_t rows;
};

std::vector<PositionBand> bandsOf(const Evaluation &evaluation) {
  std::vector<PositionBand> bands;
  size_t count = evaluation.natsAt.size();
  for (size_t first = 0, next; first < count; first = next) {
    next = std::min(first == 0 ? 1 : 2 * first, count);
    double nats = 0;
    int64_t rows = 0;
    for (size_t i = first; i < next; ++i) {
      nats += evaluation.natsAt[i];
      rows += evaluation.rowsAt[i];
    }
    if (rows > 0)
      bands.push_back({static_cast<int64_t>(first),
                       static_cast<int64_t>(next) - 1,
                       nats / static_cast<double>(rows), rows});
  }
  return bands;
}

double exactShare(const Evaluation &evaluation) {
  return static_cast<double>(evaluation.exactSpans) /
         static_cast<double>(evaluation.spans);
}

void printJson(const Evaluation &evaluation, bool byPosition) {
  nlohmann::ordered_json result;
  result["loss"] = evaluation.loss();
  result["bits_per_byte"] = evaluation.bitsPerByte();
  result["tokens"] = evaluation.rows;
  if (evaluation.spans > 0) {
    result["spans"] = evaluation.spans;
    result["exact_match"] = exactShare(evaluation);
  }
  if (byPosition)
    for (const PositionBand &band : bandsOf(evaluation))
      result["by_position"].push_back({{"first", band.first},
                                       {"last", band.last},
                                       {"loss", band.loss},
                                       {"tokens", band.rows}});
  std::printf("%s\n", result.dump().c_str());
}

void printText(const Evaluation &evaluation, bool byPosition) {
  std::printf("bits per byte %.4f\nloss          %.4f\ntokens        %" PRId64
              "\n",
              evaluation.bitsPerByte(), evaluation.loss(), evaluation.rows);
  if (evaluation.spans > 0)
    std::printf("exact match   %.2f %% of %" PRId64 " labelled spans\n",
                100 * exactShare(evaluation), evaluation.spans);
  if (!byPosition)
    return;
  std::printf("\n%15s  %8s  %9s\n", "position", "loss", "tokens");
  for (const PositionBand &band : bandsOf(evaluation))
    std::printf("%6" PRId64 " - %6" PRId64 "  %8.4f  %9" PRId64 "\n",
                band.first, band.last, band.loss, band.rows);
}

/// Steps of the optimiser on what was scored, in memory alone. Nothing pulls
/// the weights towards zero: a text is too short for that to be of use.
Result<std::unique_ptr<Trainer>> makeAdapting(const Session &session) {
  hyb_trainer_options options;
  hyb_trainer_options_init(&options, sizeof(options));
  options.weight_decay = 0;
  return Trainer::create(*session.context, options);
}

Status evaluate(const EvalArguments &arguments) {
  HYB_ASSIGN(Session session, Session::open(arguments.session));
  const ModelMeta &meta = session.model->meta();
  int64_t length = arguments.length > 0     ? arguments.length
                   : meta.trainedLength > 0 ? meta.trainedLength
                                            : 256;
  if (arguments.stride > length)
    throw CLI::ValidationError(
        "--stride", std::to_string(arguments.stride) + " is more than the " +
                        std::to_string(length) +
                        " tokens of a window, so bytes between windows would "
                        "be left out; give at most the length");
  HYB_ASSIGN(std::unique_ptr<Dataset> data,
             openDataset(arguments.text, length, 0, meta.vocabulary));
  bool isText = dynamic_cast<TextData *>(data.get()) != nullptr;
  if (arguments.adapt > 0 && !isText)
    throw CLI::ValidationError(
        "--adapt", "samples of a .safetensors file do not follow each other; "
                   "give a text, or no --adapt");
  Progress progress(arguments.quiet);
  catchInterrupts();
  EvaluationProgress show = [&](double share) {
    progress.show(share, "evaluated");
    return interrupted ? 1 : 0;
  };
  Result<Evaluation> evaluation = [&]() -> Result<Evaluation> {
    if (!isText)
      return evaluateSamples(*session.context, *data, arguments.batch,
                             /*exactMatch=*/true, show);
    HYB_ASSIGN(MappedFile file, MappedFile::open(arguments.text));
    // Overlapping windows would leave the first positions unscored.
    int64_t stride = arguments.stride > 0   ? arguments.stride
                     : arguments.byPosition ? length
                                            : std::max<int64_t>(1, length / 2);
    std::unique_ptr<Trainer> trainer;
    if (arguments.adapt > 0) {
      HYB_ASSIGN(trainer, makeAdapting(session));
    }
    auto learn = [&](const hyb_batch &batch) -> Status {
      HYB_TRY(trainer->accumulate(batch, nullptr, nullptr));
      return trainer->update(static_cast<float>(arguments.adapt), nullptr);
    };
    return evaluateText(*session.context, file.bytes(), length, stride,
                        arguments.batch, show,
                        trainer ? EvaluationLearner(learn) : nullptr);
  }();
  progress.finish();
  if (!evaluation.ok())
    return evaluation.status();
  HYB_TRY(evaluation->checkFinite());
  if (arguments.json)
    printJson(*evaluation, arguments.byPosition);
  else
    printText(*evaluation, arguments.byPosition);
  return session.saveTrace();
}

} // namespace

void addEval(CLI::App &app, Action &action) {
  CLI::App *command = app.add_subcommand(
      "eval", "bits per byte, loss by position, exact match of labelled spans");
  command->footer("Two examples:\n"
                  "  hybrid-run eval demo.hbx --weights=run --text=valid.txt "
                  "--by-position\n"
                  "  hybrid-run eval needle.hbx --weights=run "
                  "--text=needle-16x.safetensors --json");
  auto arguments = std::make_shared<EvalArguments>();
  arguments->session.addTo(*command, /*withWeights=*/true);
  auto add = [&](const char *name, auto &value, const char *help) {
    return command->add_option(name, value, help)
        ->group("Data")
        ->capture_default_str();
  };
  add("--text", arguments->text,
      "text, or .safetensors with I32 ids and labels (-100: no label)")
      ->required();
  add("--length", arguments->length,
      "tokens per window of a text; 0: the spec's trained length")
      ->check(wholeNumber(0));
  add("--stride", arguments->stride,
      "new tokens per window, the rest is context; 0: half the length, or "
      "all of it with --by-position")
      ->check(wholeNumber(0));
  add("--batch", arguments->batch, "windows at once")->check(wholeNumber(1));
  add("--adapt", arguments->adapt,
      "dynamic evaluation: learning rate of a step of the optimiser on every "
      "batch of windows after it was scored, in memory alone; 0: none")
      ->check(realNumber(0));
  command
      ->add_flag("--by-position", arguments->byPosition,
                 "loss by position in the window")
      ->group("Output");
  command->add_flag("--json", arguments->json, "one JSON object")
      ->group("Output");
  command->add_flag("-q,--quiet", arguments->quiet, "no progress")
      ->group("Output");
  command->callback([&action, arguments] {
    action = [arguments] { return evaluate(*arguments); };
  });
}

} // namespace hyb::run
