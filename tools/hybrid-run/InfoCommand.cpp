//===- InfoCommand.cpp ---------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shows what a file says. Nothing of it is executed: the code of an artefact is
// listed by size and never mapped.
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "core/Model.h"
#include "io/HbxReader.h"
#include "io/Json.h"
#include "io/Safetensors.h"
#include "train/TrainingRun.h"

#include <CLI/CLI.hpp>
#include <cinttypes>
#include <cstring>
#include <filesystem>

namespace hyb::run {

using namespace hyb::rt;

namespace {

struct InfoArguments {
  std::string file;
  bool parameters = false, launches = false, spec = false;
};

/// Text of a file on a terminal: control characters could do anything there.
std::string printable(const std::string &text) {
  std::string result;
  for (unsigned char letter : text)
    result += (letter >= ' ' && letter != 0x7f) || letter == '\n'
                  ? static_cast<char>(letter)
                  : '?';
  return result;
}

std::string shapeOf(const ParameterInfo &info) {
  return shapeText({info.shape.begin(), info.shape.end()});
}

Status printArtefact(const HbxReader &artefact,
                     const InfoArguments &arguments) {
  HYB_ASSIGN(ArtefactTables tables, ArtefactTables::read(artefact));
  std::printf("model          %s\ntoolchain      %s\nvocabulary     %" PRId64
              "\ntrained length %" PRId64 "\nlayers         %" PRId64
              "\nparameters     %" PRId64
              " in %zu tensors\ncompute type   %s\n",
              printable(tables.meta.name).c_str(),
              printable(tables.meta.toolchain).c_str(), tables.meta.vocabulary,
              tables.meta.trainedLength, tables.meta.layers,
              tables.parameters.scalars(), tables.parameters.parameters.size(),
              elementTypeName(tables.plan.computeType()));
  std::printf("\n%-8s %-12s %12s\n", "section", "", "bytes");
  for (const HbxReader::Section &section : artefact.sections())
    std::printf("%-8s %-12s %12zu\n", section.kind.c_str(),
                section.name.c_str(), section.content.size);
  std::printf("\n%-12s %9s %9s\n", "entry", "launches", "buffers");
  for (const auto &[name, entry] : tables.plan.entries)
    std::printf("%-12s %9zu %9zu\n", printable(name).c_str(),
                entry.launches.size(), entry.buffers.size());
  std::printf("%zu kernels, %zu states\n", tables.plan.kernels.size(),
              tables.states.states.size());
  if (arguments.parameters) {
    std::printf("\n%-48s %-16s decay\n", "parameter", "shape");
    for (const ParameterInfo &info : tables.parameters.parameters)
      std::printf("%-48s %-16s %s\n", printable(info.path).c_str(),
                  shapeOf(info).c_str(), info.decay ? "yes" : "no");
  }
  if (arguments.launches)
    for (const auto &[name, entry] : tables.plan.entries) {
      std::printf("\nlaunches of %s\n", printable(name).c_str());
      for (const PlanLaunch &launch : entry.launches)
        for (const PlanAlternative &alternative : launch.alternatives)
          std::printf(
              "  %-40s %s%s\n", printable(launch.label()).c_str(),
              printable(tables.plan.kernels[alternative.kernel].name).c_str(),
              alternative.guard ? " (guarded)" : "");
    }
  if (arguments.spec)
    std::printf("\n%s\n", printable(tables.meta.spec).c_str());
  return Status();
}

void printTensors(const SafetensorsView &view) {
  std::printf("\n%-56s %-5s shape\n", "tensor", "type");
  for (const TensorEntry &entry : view.tensors())
    std::printf("%-56s %-5s %s\n", printable(entry.name).c_str(),
                dtypeName(entry.type), shapeText(entry.shape).c_str());
}

void printSpec(const SafetensorsView &view) {
  auto spec = view.metadata().find("spec");
  std::printf("\n%s\n", spec == view.metadata().end()
                            ? "no spec is recorded"
                            : printable(spec->second).c_str());
}

void printSafetensors(const SafetensorsView &view,
                      const InfoArguments &arguments) {
  for (const auto &[key, value] : view.metadata())
    if (key != "spec")
      std::printf("%s: %s\n", printable(key).c_str(), printable(value).c_str());
  printTensors(view);
  if (arguments.spec)
    printSpec(view);
}

/// "2441" of the note beside a checkpoint, when the note is of the same step.
std::string totalSteps(const std::string &folder, const std::string &step) {
  Result<MappedFile> file = MappedFile::open(folder + "/" + kCheckpointNote);
  if (!file.ok())
    return "";
  const char *text = reinterpret_cast<const char *>(file->bytes().data);
  Json note = Json::parse(text, text + file->bytes().size, nullptr, false);
  if (!note.is_object() || !note.contains("step") ||
      !note.contains("total_steps") || note["step"].dump() != step)
    return "";
  return note["total_steps"].dump();
}

/// A setting as it was given: the record has every bit of a number, and kinds
/// by their number.
std::string settingText(const std::string &name, const std::string &value) {
  if (name == "schedule")
    for (const char *kind : {"cosine", "constant", "wsd"})
      if (value ==
          std::to_string(static_cast<int>(*Schedule::kindByName(kind))))
        return kind;
  char *end = nullptr;
  double number = std::strtod(value.c_str(), &end);
  if (*end != 0 || value.find('.') == std::string::npos)
    return printable(value);
  char text[32];
  std::snprintf(text, sizeof(text), "%.6g", number);
  return text;
}

/// What a run folder's checkpoint is of: how far, by which settings, how much.
void printRun(const std::string &folder, const SafetensorsView &view) {
  auto metadata = view.metadata();
  std::string total = totalSteps(folder, metadata["step"]);
  std::printf("model          %s\nstep           %s%s\ntokens         %s\n",
              printable(metadata["model"]).c_str(),
              printable(metadata["step"]).c_str(),
              total.empty() ? "" : (" of " + printable(total)).c_str(),
              printable(metadata["tokens"]).c_str());
  std::map<std::string, uint64_t> scalars;
  size_t parameters = 0;
  for (const TensorEntry &entry : view.tensors())
    if (entry.name.rfind("moment", 0) != 0) {
      ++parameters;
      scalars[dtypeName(entry.type)] +=
          (entry.end - entry.begin) / dtypeSize(entry.type);
    }
  for (const auto &[type, count] : scalars)
    std::printf("parameters     %" PRIu64 " of %s\n", count, type.c_str());
  std::printf("tensors        %zu, and %zu of the optimiser's moments\n\n",
              parameters, view.tensors().size() - parameters);
  const std::string prefix = "setting ";
  for (const auto &[key, value] : metadata)
    if (key.rfind(prefix, 0) == 0)
      std::printf("%-14s %s\n", printable(key.substr(prefix.size())).c_str(),
                  settingText(key.substr(prefix.size()), value).c_str());
}

Status printFolder(const InfoArguments &arguments) {
  std::string path = weightFile(arguments.file);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    return failure(HYB_IO,
                   "folder %s has no %s; give the folder of a training run, an "
                   "artefact (.hbx) or weights (.safetensors)",
                   arguments.file.c_str(), kCheckpointFile);
  HYB_ASSIGN(SafetensorsFile weights, SafetensorsFile::open(path));
  printRun(arguments.file, weights.view);
  if (arguments.parameters)
    printTensors(weights.view);
  if (arguments.spec)
    printSpec(weights.view);
  return Status();
}

Status inform(const InfoArguments &arguments) {
  std::error_code ignored;
  if (std::filesystem::is_directory(arguments.file, ignored))
    return printFolder(arguments);
  HYB_ASSIGN(MappedFile file, MappedFile::open(arguments.file));
  Bytes bytes = file.bytes();
  bool isArtefact = bytes.size >= 3 && std::memcmp(bytes.data, "HBX", 3) == 0;
  if (!isArtefact) {
    Result<SafetensorsFile> weights = SafetensorsFile::open(arguments.file);
    if (!weights.ok())
      return weights.status().within(
          "neither an artefact (.hbx) nor weights (.safetensors)");
    printSafetensors(weights->view, arguments);
    return Status();
  }
  Result<HbxReader> artefact = HbxReader::parse(bytes);
  if (!artefact.ok())
    return artefact.status().within(arguments.file);
  return printArtefact(*artefact, arguments).within(arguments.file);
}

} // namespace

void addInfo(CLI::App &app, Action &action) {
  CLI::App *command = app.add_subcommand(
      "info", "show an artefact, a weight file or the folder of a training "
              "run; never runs any of it");
  command->footer("Two examples:\n"
                  "  hybrid-run info demo.hbx --parameters\n"
                  "  hybrid-run info run --spec");
  auto arguments = std::make_shared<InfoArguments>();
  command
      ->add_option("file", arguments->file,
                   ".hbx, .safetensors, or the folder of a training run")
      ->required();
  command
      ->add_flag("--parameters", arguments->parameters,
                 "every parameter, and whether weight decay applies")
      ->group("Output");
  command
      ->add_flag("--launches", arguments->launches,
                 "every launch and its kernels")
      ->group("Output");
  command->add_flag("--spec", arguments->spec, "the text of the spec")
      ->group("Output");
  command->callback([&action, arguments] {
    action = [arguments] { return inform(*arguments); };
  });
}

} // namespace hyb::run
