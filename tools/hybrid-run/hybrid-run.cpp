//===- hybrid-run.cpp - Train, evaluate and run compiled models ----------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"

#include <CLI/CLI.hpp>

using namespace hyb::run;

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
             "Exit codes: 0 done, 1 bad input or interrupted, 2 wrong usage. "
             "Each command has its own --help.");
  Action action;
  addTrain(app, action);
  addEval(app, action);
  addGenerate(app, action);
  addBench(app, action);
  addInfo(app, action);
  addVerify(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &wanted) {
    return app.exit(wanted); // --help, --version
  } catch (const CLI::ParseError &problem) {
    std::fprintf(stderr, "error: %s\nhybrid-run --help shows the usage\n",
                 problem.what());
    return 2;
  }
  // Memory of the size of the model is allocated with a status; this is for the
  // small things.
  try {
    hyb::rt::Status status = action();
    if (status.ok())
      return 0;
    std::fprintf(stderr, "error: %s\n", status.message().c_str());
  } catch (const std::bad_alloc &) {
    std::fprintf(stderr, "error: out of memory\n");
  }
  return 1;
}
