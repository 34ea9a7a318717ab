//===- Commands.h - The commands of hybrid-run ------------------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TOOLS_HYBRID_RUN_COMMANDS_H
#define HYBRID_TOOLS_HYBRID_RUN_COMMANDS_H

#include "core/Status.h"

#include <functional>

namespace CLI {
class App;
} // namespace CLI

namespace hyb::run {

/// What to do once the command line has been read; set by the command that it
/// names.
using Action = std::function<rt::Status()>;

void addTrain(CLI::App &app, Action &action);
void addEval(CLI::App &app, Action &action);
void addGenerate(CLI::App &app, Action &action);
void addBench(CLI::App &app, Action &action);
void addInfo(CLI::App &app, Action &action);
void addVerify(CLI::App &app, Action &action);

} // namespace hyb::run

#endif // HYBRID_TOOLS_HYBRID_RUN_COMMANDS_H
