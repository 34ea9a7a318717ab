//===- TrainingRun.h - A training run in a folder ---------------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A run is a function of its options, its data and the artefact: the sample
// order, the learning rate and the first parameters are computed from the step
// and the seed. What a checkpoint holds is therefore parameters, moments and
// the step, and a run that was killed continues with the same bits.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_TRAIN_TRAININGRUN_H
#define HYBRID_RUNTIME_TRAIN_TRAININGRUN_H

#include "train/Data.h"
#include "train/Evaluate.h"
#include "train/Schedule.h"
#include "train/Trainer.h"

#include <cstdio>
#include <limits>

namespace hyb::rt {

struct TrainingOptions {
  std::string folder;
  int64_t batch = 16;
  /// The batch is run in this many parts, which saves memory.
  int64_t parts = 1;
  uint64_t seed = 0;
  Schedule schedule;
  /// The caller left the warm-up to us: a run that continues keeps its own.
  bool defaultWarmup = false;
  hyb_trainer_options optimiser;
  SampleOrder::Rest rest = SampleOrder::Rest::Drop;
  /// A new run begins with these weights; empty: with the spec's distributions.
  std::string initFrom;
};

struct StepReport {
  int64_t step = 0;   // steps done, this one included
  int64_t tokens = 0; // seen by the run so far
  double loss = 0;    // mean over the labelled rows, in nats
  double learningRate = 0;
  hyb_update update = {};
};

/// Files of a run's folder.
inline constexpr const char *kCheckpointNote = "checkpoint.json";
inline constexpr const char *kLogFile = "log.jsonl";
inline constexpr const char *kBestFile = "best.safetensors";

class TrainingRun {
public:
  /// Starts in an empty folder or continues from its checkpoint. Refuses when
  /// the checkpoint was made with other options that change the numbers, or
  /// while another run is in the folder. A folder made in vain is removed.
  static Result<std::unique_ptr<TrainingRun>>
  open(Context &context, const Dataset &data, TrainingOptions options);
  ~TrainingRun();

  /// Steps done; the run is complete at the schedule's total.
  int64_t step() const { return stepsDone; }
  int64_t totalSteps() const { return options.schedule.totalSteps; }
  int64_t stepsPerEpoch() const { return order.stepsPerEpoch(); }
  bool resumed() const { return stepsAtStart > 0; }
  int64_t tokens() const { return tokensSeen; }

  Result<StepReport> takeStep();
  /// Appends a line to the log.
  Status logStep(const StepReport &report, double tokensPerSecond);
  /// The same for a validation, `quick` when it was of a part of the data; a
  /// result that the log ends with is not repeated.
  Status logValidation(const Evaluation &result, bool quick);
  /// Says which data results are of from now on. Forgets the best so far when
  /// it was of other data, and returns whether it was.
  bool validateOn(Bytes text);
  /// Writes the weights when `result` is the best so far.
  Status keepBest(const Evaluation &result);
  /// The step after which it was, and what it was; infinite before the first.
  int64_t bestStep() const { return stepOfBest; }
  double bestBitsPerByte() const { return best; }
  /// Writes the checkpoint: one file that holds everything, then a note for
  /// people. Whatever happens, the folder has the old checkpoint or the new.
  Status save();

private:
  TrainingRun(Context &context, const Dataset &data, TrainingOptions options)
      : context(context), data(data), options(std::move(options)),
        order(data.samples(), this->options.batch, this->options.seed,
              this->options.rest) {}

  std::string path(const char *name) const {
    return options.folder + "/" + name;
  }
  std::map<std::string, std::string> settings() const;
  /// Everything that may fail once the folder is there.
  Status begin();
  Status lockFolder();
  Status start();
  Status resume(const SafetensorsView &checkpoint);
  /// What an earlier process of this run has kept.
  Status findBest();
  /// Drops what the log says of steps after the checkpoint.
  Status openLog();
  Status writeLog(const std::string &line);

  Context &context;
  const Dataset &data;
  TrainingOptions options;
  SampleOrder order;
  std::unique_ptr<Trainer> trainer;
  int64_t stepsDone = 0, stepsAtStart = 0, tokensSeen = 0;
  int64_t stepOfBest = 0;
  double best = std::numeric_limits<double>::infinity();
  std::string dataOfBest; // a hash; empty: not recorded
  std::FILE *log = nullptr;
  std::string lastLogged; // line
  int folder = -1;        // holds the lock
  std::vector<int32_t> ids, labels;
};

/// The spec text that weights were trained under, from a checkpoint's or a
/// folder's metadata; empty when it is not recorded.
Result<std::string> recordedSpec(const std::string &weights);

/// Lines that only one of two texts has, in order: "- old", "+ new".
std::vector<std::string> differingLines(const std::string &before,
                                        const std::string &after);

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_TRAIN_TRAININGRUN_H
