//===- hybrid-run.cpp - Train, evaluate and run compiled models ----------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "Session.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstring>

using namespace hyb::run;

namespace {

/// The command that the command line names, or null.
const CLI::App *commandOf(const CLI::App &app, int argc, char **argv) {
  for (const CLI::App *command : app.get_subcommands(nullptr))
    if (argc > 1 && command->get_name() == argv[1])
      return command;
  return nullptr;
}

/// Wrong usage in our own words; empty where the parser's will do.
std::string usageProblem(const CLI::App &app, int argc, char **argv) {
  std::string commands, first = argc < 2 ? "" : argv[1];
  bool known = commandOf(app, argc, argv) || first == "-h" ||
               first == "--help" || first == "--version";
  for (const CLI::App *command : app.get_subcommands(nullptr))
    commands += (commands.empty() ? "" : ", ") + command->get_name();
  if (argc < 2)
    return "a command is required; write one of " + commands;
  if (!known)
    return "'" + first + "' is no command; write one of " + commands;
  // The parser would take the next argument for the value.
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    // The parser would take the letters for options of one letter each.
    if (argument.size() > 2 && argument[0] == '-' && std::isalpha(argument[1]))
      return "'" + argument + "' begins with one dash; write -" + argument;
    if (argument.rfind("--", 0) == 0 &&
        argument.find('=') + 1 == argument.size()) {
      argument.pop_back();
      const CLI::App *command = commandOf(app, argc, argv);
      const CLI::Option *option =
          command ? command->get_option_no_throw(argument) : nullptr;
      return argument + " has no value; write one behind the '='" +
             (option && option->get_required() ? ""
                                               : " or leave the option out");
    }
  }
  return {};
}

int usageError(const std::string &problem, const CLI::App *command) {
  std::string name = command ? " " + command->get_name() : "";
  std::fprintf(stderr, "error: %s\nhybrid-run%s --help shows the usage\n",
               problem.c_str(), name.c_str());
  return 2;
}

/// Writes what is still in the buffer of the standard output, which may lie on
/// a full disk; empty when all of it has arrived.
std::string outputProblem() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0)
    return {};
  return std::string("cannot write the standard output: ") +
         (errno ? std::strerror(errno) : "an earlier write failed");
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Trains, evaluates and runs models that hybridc compiled.",
               "hybrid-run");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("hybrid-run ") + hyb_version());
  app.footer("Two examples:\n"
             "  hybrid-run train demo.hbx --text=train.txt --valid=valid.txt "
             "--out=run\n"
             "  hybrid-run generate demo.hbx --weights=run "
             "--prompt='In the beginning' --bytes=400\n"
             "\n"
             "Exit codes: 0 done, 1 bad input, 2 wrong usage, 130 interrupted. "
             "Each command has its own --help.");
  Action action;
  addTrain(app, action);
  addEval(app, action);
  addGenerate(app, action);
  addBench(app, action);
  addInfo(app, action);
  addVerify(app, action);
  if (std::string problem = usageProblem(app, argc, argv); !problem.empty())
    return usageError(problem, commandOf(app, argc, argv));
  auto refuse = [&](const CLI::ParseError &problem) {
    std::string text = problem.what();
    size_t twice = text.find(": At Most 1 required");
    if (twice != std::string::npos)
      text = text.substr(0, twice) + " is given more than once; give it once";
    return usageError(text, commandOf(app, argc, argv));
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &wanted) {
    return app.exit(wanted); // --help, --version
  } catch (const CLI::ParseError &problem) {
    return refuse(problem);
  }
  // A limit on file sizes is an error of the write, not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  // Memory of the size of the model is allocated with a status; this is for the
  // small things.
  try {
    hyb::rt::Status status = action();
    std::string problem = outputProblem();
    if (status.ok() && problem.empty())
      return 0;
    std::fprintf(stderr, "error: %s\n",
                 problem.empty() ? status.message().c_str() : problem.c_str());
    if (status.code() == HYB_CANCELLED && interrupted)
      return 128 + interrupted;
  } catch (const CLI::ParseError &problem) {
    return refuse(problem); // an option that does not fit the artefact
  } catch (const std::bad_alloc &) {
    std::fprintf(stderr, "error: out of memory\n");
  }
  return 1;
}
