//===- GenerateCommand.cpp -----------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "OptionChecks.h"
#include "Session.h"
#include "core/Sampling.h"
#include "train/TrainingRun.h"

#include <CLI/CLI.hpp>

namespace hyb::run {

using namespace hyb::rt;

namespace {

struct GenerateArguments {
  SessionOptions session;
  std::string prompt;
  int64_t bytes = 256, context = 0;
  double temperature = 0.8, topP = 0.95;
  int topK = 0;
  uint64_t seed = 0;
  bool greedy = false;
};

int printByte(void *, int32_t token) {
  std::fputc(token, stdout);
  std::fflush(stdout);
  return std::ferror(stdout) || interrupted ? 1 : 0;
}

Status generateText(const GenerateArguments &arguments) {
  HYB_ASSIGN(Session session, Session::open(arguments.session));
  if (session.model->meta().vocabulary < 256)
    return failure(HYB_MISMATCH,
                   "text is written as bytes, but the vocabulary has %lld ids; "
                   "use the C API for other tokens",
                   static_cast<long long>(session.model->meta().vocabulary));
  std::vector<int32_t> prompt;
  for (unsigned char byte : arguments.prompt)
    prompt.push_back(byte);
  int64_t needed = static_cast<int64_t>(prompt.size()) + arguments.bytes;
  hyb_state_options room;
  hyb_state_options_init(&room, sizeof(room));
  room.context = arguments.context > 0 ? arguments.context : needed;
  if (room.context < needed)
    return failure(HYB_OUT_OF_RANGE,
                   "prompt and output have %lld bytes, the context %lld; give "
                   "a larger --context or fewer --bytes",
                   static_cast<long long>(needed),
                   static_cast<long long>(room.context));
  HYB_ASSIGN(std::unique_ptr<State> state, State::create(*session.model, room));
  hyb_sampling sampling;
  hyb_sampling_init(&sampling, sizeof(sampling));
  sampling.temperature =
      arguments.greedy ? 0.0f : static_cast<float>(arguments.temperature);
  sampling.top_k = arguments.topK;
  sampling.top_p = static_cast<float>(arguments.topP);
  sampling.seed = arguments.seed;
  sampling.max_tokens = arguments.bytes;
  HYB_TRY(checkSampling(sampling)); // before the prompt is printed
  catchInterrupts();
  std::fputs(arguments.prompt.c_str(), stdout);
  Status status = generate(*session.context, *state, 0, prompt.data(),
                           static_cast<int64_t>(prompt.size()), sampling,
                           printByte, nullptr);
  std::fputc('\n', stdout);
  HYB_TRY(session.saveTrace());
  return status;
}

} // namespace

void addGenerate(CLI::App &app, Action &action) {
  CLI::App *command =
      app.add_subcommand("generate", "write text, byte by byte");
  command->footer("Two examples:\n"
                  "  hybrid-run generate demo.hbx --weights=run "
                  "--prompt='In the beginning'\n"
                  "  hybrid-run generate demo.hbx --weights=run "
                  "--prompt='And ' --greedy --bytes=1000");
  auto arguments = std::make_shared<GenerateArguments>();
  arguments->session.addTo(*command, /*withWeights=*/true);
  auto add = [&](const char *name, auto &value, const char *help,
                 const char *group) {
    return command->add_option(name, value, help)
        ->group(group)
        ->capture_default_str();
  };
  add("--prompt", arguments->prompt, "text to continue", "Text")
      ->required()
      ->check(someText());
  add("--bytes", arguments->bytes, "to write", "Text")->check(wholeNumber(1));
  add("--context", arguments->context,
      "tokens that the state can hold; 0: what is needed", "Text")
      ->check(wholeNumber(0));
  command->add_flag("--greedy", arguments->greedy, "always the likeliest byte")
      ->group("Sampling");
  add("--temperature", arguments->temperature, "0: greedy", "Sampling")
      ->check(realNumber(0));
  add("--top-k", arguments->topK, "of the k likeliest; 0: of all", "Sampling")
      ->check(wholeNumber(0, INT32_MAX));
  add("--top-p", arguments->topP, "of the smallest set with this mass",
      "Sampling")
      ->check(shareAboveZero());
  add("--seed", arguments->seed, "the same seed writes the same text",
      "Sampling")
      ->check(seedNumber());
  command->callback([&action, arguments] {
    action = [arguments] { return generateText(*arguments); };
  });
}

} // namespace hyb::run
