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
#include "io/Safetensors.h"

#include <CLI/CLI.hpp>
#include <cinttypes>
#include <cstring>

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
              "\nparameters     %" PRId64 " in %zu tensors\n",
              printable(tables.meta.name).c_str(),
              printable(tables.meta.toolchain).c_str(), tables.meta.vocabulary,
              tables.meta.trainedLength, tables.meta.layers,
              tables.parameters.scalars(), tables.parameters.parameters.size());
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

void printSafetensors(const SafetensorsView &view) {
  for (const auto &[key, value] : view.metadata())
    if (key != "spec")
      std::printf("%s: %s\n", printable(key).c_str(), printable(value).c_str());
  std::printf("\n%-56s %-5s shape\n", "tensor", "type");
  for (const TensorEntry &entry : view.tensors())
    std::printf("%-56s %-5s %s\n", printable(entry.name).c_str(),
                dtypeName(entry.type), shapeText(entry.shape).c_str());
}

Status inform(const InfoArguments &arguments) {
  HYB_ASSIGN(MappedFile file, MappedFile::open(arguments.file));
  Bytes bytes = file.bytes();
  bool isArtefact = bytes.size >= 3 && std::memcmp(bytes.data, "HBX", 3) == 0;
  if (!isArtefact) {
    Result<SafetensorsFile> weights = SafetensorsFile::open(arguments.file);
    if (!weights.ok())
      return weights.status().within(
          "neither an artefact (.hbx) nor weights (.safetensors)");
    printSafetensors(weights->view);
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
      "info", "show an artefact or a weight file; never runs any of it");
  command->footer("Two examples:\n"
                  "  hybrid-run info demo.hbx --parameters\n"
                  "  hybrid-run info run/checkpoint.safetensors");
  auto arguments = std::make_shared<InfoArguments>();
  command->add_option("file", arguments->file, ".hbx or .safetensors")
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
