//===- TrainingRun.cpp ---------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "train/TrainingRun.h"

#include "core/HbxFormat.h"
#include "io/AtomicFile.h"
#include "io/Json.h"

#include <cerrno>
#include <cinttypes>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <unistd.h>

namespace hyb::rt {

namespace {

constexpr const char *kBestValidation = "validation bits per byte";
constexpr const char *kBestData = "validation data";

/// Shortest text that gives the same number back.
std::string exactText(double value) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.17g", value);
  return text;
}

Result<int64_t> countIn(const SafetensorsView &view, const char *key) {
  auto it = view.metadata().find(key);
  if (it == view.metadata().end() || it->second.empty() ||
      it->second.size() > 15 ||
      it->second.find_first_not_of("0123456789") != std::string::npos)
    return failure(HYB_MISMATCH,
                   "checkpoint has no '%s'; it is not of a training run", key);
  return int64_t(std::stoll(it->second));
}

/// The whole lines of the log whose step is at most `lastStep`.
std::string logUpTo(Bytes content, int64_t lastStep) {
  std::string kept;
  const char *begin = reinterpret_cast<const char *>(content.data);
  const char *end = begin + content.size;
  while (begin < end) {
    const char *newline = std::find(begin, end, '\n');
    if (newline == end)
      break; // cut off by a kill
    Json line = Json::parse(begin, newline, nullptr, false);
    if (line.is_object() && line.contains("step") &&
        jsonAsInteger(line["step"]).value_or(INT64_MAX) <= lastStep)
      kept.append(begin, newline + 1);
    begin = newline + 1;
  }
  return kept;
}

} // namespace

TrainingRun::~TrainingRun() {
  if (log)
    std::fclose(log);
  if (folder >= 0)
    ::close(folder);
}

/// The options that change the numbers, as texts. The total number of steps is
/// not among them: a run may be made longer.
std::map<std::string, std::string> TrainingRun::settings() const {
  const hyb_trainer_options &optimiser = options.optimiser;
  const Schedule &schedule = options.schedule;
  return {
      {"batch", std::to_string(options.batch)},
      {"parts", std::to_string(options.parts)},
      {"length", std::to_string(data.length())},
      {"samples", std::to_string(data.samples())},
      {"seed", std::to_string(options.seed)},
      {"rest", options.rest == SampleOrder::Rest::Keep ? "keep" : "drop"},
      {"schedule", std::to_string(static_cast<int>(schedule.kind))},
      {"learning rate", exactText(schedule.peak)},
      {"warm-up steps", std::to_string(schedule.warmupSteps)},
      {"beta1", exactText(static_cast<double>(optimiser.beta1))},
      {"beta2", exactText(static_cast<double>(optimiser.beta2))},
      {"epsilon", exactText(static_cast<double>(optimiser.epsilon))},
      {"weight decay", exactText(static_cast<double>(optimiser.weight_decay))},
      {"clip norm", exactText(static_cast<double>(optimiser.clip_norm))}};
}

Status TrainingRun::start() {
  if (options.initFrom.empty())
    return context.model().initialise(options.seed);
  return context.model().loadWeights(options.initFrom);
}

Status TrainingRun::resume(const SafetensorsView &checkpoint) {
  if (options.defaultWarmup) {
    HYB_ASSIGN(options.schedule.warmupSteps,
               countIn(checkpoint, "setting warm-up steps"));
  }
  for (const auto &[name, value] : settings()) {
    auto it = checkpoint.metadata().find("setting " + name);
    if (it == checkpoint.metadata().end() || it->second != value)
      return failure(HYB_MISMATCH,
                     "the run in this folder has %s %s, now %s is asked for; "
                     "give the same or another folder",
                     name.c_str(),
                     it == checkpoint.metadata().end() ? "unrecorded"
                                                       : it->second.c_str(),
                     value.c_str());
  }
  HYB_TRY(trainer->load(checkpoint));
  HYB_ASSIGN(stepsDone, countIn(checkpoint, "step"));
  HYB_ASSIGN(tokensSeen, countIn(checkpoint, "tokens"));
  stepsAtStart = stepsDone;
  return Status();
}

Status TrainingRun::openLog() {
  std::string name = path(kLogFile), kept;
  std::error_code ignored;
  if (stepsDone > 0 && std::filesystem::exists(name, ignored)) {
    HYB_ASSIGN(MappedFile old, MappedFile::open(name));
    kept = logUpTo(old.bytes(), stepsDone);
  }
  HYB_TRY(writeFileAtomically(name, kept));
  if (!kept.empty()) {
    kept.pop_back();
    lastLogged = kept.substr(kept.rfind('\n') + 1);
  }
  log = std::fopen(name.c_str(), "a");
  return log ? Status() : systemFailure("append to", name, errno);
}

Result<std::unique_ptr<TrainingRun>>
TrainingRun::open(Context &context, const Dataset &data,
                  TrainingOptions options) {
  if (options.batch < 1 || options.parts < 1 || options.parts > options.batch ||
      options.batch > (int64_t(1) << 30) / data.length())
    return failure(HYB_INVALID_ARGUMENT,
                   "batch of %" PRId64 " sequences of %" PRId64 " in %" PRId64
                   " parts; give at least one sequence per part and at most "
                   "2^30 tokens",
                   options.batch, data.length(), options.parts);
  std::error_code error;
  bool isNew = std::filesystem::create_directories(options.folder, error);
  if (error)
    return failure(HYB_IO, "cannot create folder %s: %s",
                   options.folder.c_str(), error.message().c_str());
  options.optimiser.seed = options.seed;
  std::unique_ptr<TrainingRun> run(
      new TrainingRun(context, data, std::move(options)));
  Status status = run->begin();
  if (status.ok())
    return run;
  if (isNew) // and still empty
    std::filesystem::remove(run->options.folder, error);
  return status;
}

Status TrainingRun::begin() {
  HYB_TRY(lockFolder());
  HYB_ASSIGN(trainer, Trainer::create(context, options.optimiser));
  std::string checkpoint = path(kCheckpointFile);
  std::error_code ignored;
  if (std::filesystem::exists(checkpoint, ignored)) {
    HYB_ASSIGN(SafetensorsFile file, SafetensorsFile::open(checkpoint));
    HYB_TRY(resume(file.view).within(checkpoint));
    HYB_TRY(findBest());
  } else {
    HYB_TRY(start());
  }
  return openLog();
}

Status TrainingRun::findBest() {
  std::error_code ignored;
  if (!std::filesystem::exists(path(kBestFile), ignored))
    return Status();
  // Of a longer run that was here before, or not ours: it is replaced.
  Result<SafetensorsFile> file = SafetensorsFile::open(path(kBestFile));
  if (!file.ok())
    return Status();
  Result<int64_t> step = countIn(file->view, "step");
  auto found = file->view.metadata().find(kBestValidation);
  if (!step.ok() || *step > stepsDone || found == file->view.metadata().end())
    return Status();
  stepOfBest = *step;
  best = std::strtod(found->second.c_str(), nullptr);
  auto data = file->view.metadata().find(kBestData);
  dataOfBest = data == file->view.metadata().end() ? "" : data->second;
  return Status();
}

bool TrainingRun::validateOn(Bytes text) {
  std::string data = std::to_string(text.size) + " bytes, hash " +
                     std::to_string(hbxChecksum(text.data, text.size));
  bool isOther = stepOfBest > 0 && data != dataOfBest;
  if (isOther) {
    stepOfBest = 0;
    best = std::numeric_limits<double>::infinity();
  }
  dataOfBest = data;
  return isOther;
}

Status TrainingRun::keepBest(const Evaluation &result) {
  if (result.rows == 0 || !(result.bitsPerByte() < best))
    return Status();
  HYB_TRY(context.model().saveWeights(
      path(kBestFile), {{"spec", context.model().meta().spec},
                        {"step", std::to_string(stepsDone)},
                        {kBestData, dataOfBest},
                        {kBestValidation, exactText(result.bitsPerByte())}}));
  best = result.bitsPerByte();
  stepOfBest = stepsDone;
  return Status();
}

/// Two runs in one folder would mix their logs and checkpoints. The lock ends
/// with the process, however that ends.
Status TrainingRun::lockFolder() {
  folder = ::open(options.folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0)
    return systemFailure("open folder", options.folder, errno);
  if (::flock(folder, LOCK_EX | LOCK_NB) == 0)
    return Status();
  if (errno != EWOULDBLOCK) // a file system without locks
    return Status();
  return failure(HYB_IO,
                 "another training run is working in folder %s; choose another "
                 "folder or wait for it",
                 options.folder.c_str());
}

Result<StepReport> TrainingRun::takeStep() {
  StepReport report;
  report.learningRate = options.schedule.learningRate(stepsDone);
  std::vector<int64_t> samples = order.batchOf(stepsDone);
  int64_t epoch = order.epochOf(stepsDone);
  int64_t count = static_cast<int64_t>(samples.size());
  int64_t parts = std::min(options.parts, count);
  double lossSum = 0, weightSum = 0;
  for (int64_t part = 0; part < parts; ++part) {
    int64_t begin = count * part / parts, end = count * (part + 1) / parts;
    size_t length = static_cast<size_t>(data.length());
    size_t rows = static_cast<size_t>(end - begin) * length;
    ids.resize(rows);
    labels.resize(rows);
    std::vector<hyb_segment> segments;
    for (int64_t i = begin; i < end; ++i) {
      size_t place = static_cast<size_t>(i - begin) * length;
      data.read(epoch, samples[static_cast<size_t>(i)], ids.data() + place,
                labels.data() + place);
      segments.push_back({data.length(), 0});
    }
    hyb_batch batch = {};
    batch.ids = ids.data();
    batch.labels = labels.data();
    batch.tokens = static_cast<int64_t>(rows);
    batch.segments = segments.data();
    batch.segment_count = end - begin;
    double loss, weight;
    HYB_TRY(trainer->accumulate(batch, &loss, &weight));
    lossSum += loss;
    weightSum += weight;
    tokensSeen += batch.tokens;
  }
  HYB_TRY(
      trainer->update(static_cast<float>(report.learningRate), &report.update));
  ++stepsDone;
  report.step = stepsDone;
  report.tokens = tokensSeen;
  report.loss = weightSum > 0 ? lossSum / weightSum : 0;
  return report;
}

Status TrainingRun::writeLog(const std::string &line) {
  // A line at a time reaches the file, so that a kill costs at most the last.
  if (std::fputs((line + "\n").c_str(), log) < 0 || std::fflush(log) != 0)
    return systemFailure("write", path(kLogFile), errno);
  lastLogged = line;
  return Status();
}

Status TrainingRun::logStep(const StepReport &report, double tokensPerSecond) {
  nlohmann::ordered_json line;
  line["step"] = report.step;
  line["bytes"] = report.tokens;
  line["loss"] = report.loss;
  line["bits_per_byte"] = report.loss / 0.6931471805599453;
  line["learning_rate"] = report.learningRate;
  // JSON has no infinity: null stands for a norm that is not finite.
  line["gradient_norm"] = report.update.gradient_norm;
  line["skipped"] = report.update.skipped != 0;
  line["tokens_per_second"] = tokensPerSecond;
  return writeLog(line.dump());
}

Status TrainingRun::logValidation(const Evaluation &result, bool quick) {
  nlohmann::ordered_json line;
  line["step"] = stepsDone;
  line["bytes"] = tokensSeen;
  line["valid_bits_per_byte"] = result.bitsPerByte();
  line["valid_tokens"] = result.rows;
  line["quick"] = quick;
  std::string text = line.dump();
  return text == lastLogged ? Status() : writeLog(text);
}

Status TrainingRun::save() {
  std::map<std::string, std::string> metadata;
  for (const auto &[name, value] : settings())
    metadata["setting " + name] = value;
  metadata["spec"] = context.model().meta().spec;
  metadata["step"] = std::to_string(stepsDone);
  metadata["tokens"] = std::to_string(tokensSeen);
  HYB_TRY(trainer->save(path(kCheckpointFile), metadata));
  nlohmann::ordered_json note;
  note["model"] = context.model().meta().name;
  note["step"] = stepsDone;
  note["total_steps"] = totalSteps();
  note["tokens"] = tokensSeen;
  for (const auto &[name, value] : settings())
    note["settings"][name] = value;
  return writeFileAtomically(path(kCheckpointNote), note.dump(2) + "\n");
}

Result<std::string> recordedSpec(const std::string &weights) {
  HYB_ASSIGN(SafetensorsFile file, SafetensorsFile::open(weightFile(weights)));
  auto it = file.view.metadata().find("spec");
  return it == file.view.metadata().end() ? std::string() : it->second;
}

// By the longest common subsequence, which is quick enough for specs: they fit
// on a screen.
std::vector<std::string> differingLines(const std::string &before,
                                        const std::string &after) {
  auto split = [](const std::string &text) {
    std::vector<std::string> lines;
    size_t begin = 0;
    for (size_t end; begin < text.size(); begin = end + 1) {
      end = std::min(text.find('\n', begin), text.size());
      lines.push_back(text.substr(begin, end - begin));
    }
    return lines;
  };
  std::vector<std::string> a = split(before), b = split(after);
  std::vector<std::vector<uint32_t>> common(
      a.size() + 1, std::vector<uint32_t>(b.size() + 1));
  for (size_t i = a.size(); i-- > 0;)
    for (size_t k = b.size(); k-- > 0;)
      common[i][k] = a[i] == b[k]
                         ? common[i + 1][k + 1] + 1
                         : std::max(common[i + 1][k], common[i][k + 1]);
  std::vector<std::string> result;
  size_t i = 0, k = 0;
  while (i < a.size() || k < b.size()) {
    if (i < a.size() && k < b.size() && a[i] == b[k])
      ++i, ++k;
    else if (i < a.size() &&
             (k == b.size() || common[i + 1][k] >= common[i][k + 1]))
      result.push_back("- " + a[i++]);
    else
      result.push_back("+ " + b[k++]);
  }
  return result;
}

} // namespace hyb::rt
