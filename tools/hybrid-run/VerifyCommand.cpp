//===- VerifyCommand.cpp -------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The oracle evaluates the graph of the compiler, so the compiler does the work
// and this program only finds it.
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "OptionChecks.h"
#include "train/TrainingRun.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cinttypes>
#include <climits>
#include <cstring>
#include <unistd.h>

namespace hyb::run {

using namespace hyb::rt;

namespace {

struct VerifyArguments {
  std::string artefact, weights, compiler, level, device = "auto";
  int64_t tokens = 130, decode = 3, context = 2048;
  uint64_t seed = 0;
  int threads = 0;
  bool json = false;
};

/// The compiler in the folder of this program, where an installation has it.
std::string compilerBesideUs() {
  char self[PATH_MAX];
  ssize_t length = ::readlink("/proc/self/exe", self, sizeof(self));
  if (length <= 0 || length == sizeof(self))
    return "";
  std::string path(self, static_cast<size_t>(length));
  path = path.substr(0, path.rfind('/') + 1) + "hybridc";
  return ::access(path.c_str(), X_OK) == 0 ? path : "";
}

std::vector<std::string> commandLine(const VerifyArguments &arguments) {
  std::vector<std::string> line = {
      arguments.compiler,
      "verify",
      arguments.artefact,
      "--tokens=" + std::to_string(arguments.tokens),
      "--decode=" + std::to_string(arguments.decode),
      "--context=" + std::to_string(arguments.context),
      "--seed=" + std::to_string(arguments.seed),
      "--threads=" + std::to_string(arguments.threads),
      "--device=" + arguments.device};
  if (!arguments.weights.empty())
    line.push_back("--weights=" + weightFile(arguments.weights));
  if (!arguments.level.empty())
    line.push_back("--cpu-level=" + arguments.level);
  if (arguments.json)
    line.emplace_back("--json");
  return line;
}

/// Becomes the compiler; returns when that is not possible.
Status verify(VerifyArguments arguments) {
  bool isGiven = !arguments.compiler.empty();
  if (!isGiven)
    arguments.compiler = compilerBesideUs();
  if (arguments.compiler.empty())
    arguments.compiler = "hybridc";
  std::vector<std::string> line = commandLine(arguments);
  std::vector<char *> words;
  words.reserve(line.size() + 1);
  for (std::string &word : line)
    words.push_back(word.data());
  words.push_back(nullptr);
  ::execvp(words[0], words.data());
  if (isGiven)
    return failure(HYB_IO, "cannot run the compiler '%s': %s", words[0],
                   std::strerror(errno));
  return failure(HYB_IO,
                 "verify needs the compiler, and 'hybridc' is neither in the "
                 "folder of this program nor on PATH; give --hybridc=PATH");
}

} // namespace

void addVerify(CLI::App &app, Action &action) {
  CLI::App *command = app.add_subcommand(
      "verify", "compiled code against the fp64 oracle, a row per operation");
  command->footer(
      "Two examples:\n"
      "  hybrid-run verify demo.hbx\n"
      "  hybrid-run verify demo.hbx --weights=run --tokens=512 --json\n"
      "\n"
      "Exit code 1 when a row is over its bound. Needs the compiler hybridc.");
  auto arguments = std::make_shared<VerifyArguments>();
  command->add_option("artefact", arguments->artefact, "compiled model (.hbx)")
      ->required();
  auto add = [&](const char *group, const char *name, auto &value,
                 const char *help) {
    return command->add_option(name, value, help)->group(group);
  };
  add("Model", "--weights", arguments->weights,
      "folder of a training run, or a .safetensors file; default: the spec's "
      "distributions, drawn from the seed");
  add("Calls", "--tokens", arguments->tokens, "length of the longest sequence")
      ->check(wholeNumber(1))
      ->capture_default_str();
  add("Calls", "--decode", arguments->decode, "steps of one token")
      ->check(wholeNumber(0))
      ->capture_default_str();
  add("Calls", "--context", arguments->context, "tokens a slot can hold")
      ->check(wholeNumber(1))
      ->capture_default_str();
  add("Calls", "--seed", arguments->seed, "of tokens and weights")
      ->check(seedNumber())
      ->capture_default_str();
  add("Machine", "--device", arguments->device, "auto, cpu or cuda:N")
      ->check(deviceName())
      ->capture_default_str();
  add("Machine", "--threads", arguments->threads, "0: one per processor")
      ->check(wholeNumber(0, 1024));
  add("Machine", "--cpu-level", arguments->level,
      "x86-64, x86-64-v3 or x86-64-v4; default: the best")
      ->check(levelName());
  add("Machine", "--hybridc", arguments->compiler,
      "the compiler; default: beside this program, else on PATH");
  command->add_flag("--json", arguments->json, "one JSON object")
      ->group("Output");
  command->callback([&action, arguments] {
    action = [arguments] { return verify(*arguments); };
  });
}

} // namespace hyb::run
