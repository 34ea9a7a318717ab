//===- Options.cpp - which options make sense -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks of options that need no file. A value that no version of hybridc would
// know is a slip of the command line; a target that others have and this one
// has not is a fault of the input, as a missing file is.
//
//===----------------------------------------------------------------------===//

#include "Errors.h"
#include "hybrid/Driver/Compile.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace hybrid;

static constexpr llvm::StringLiteral builtTargets[] = {
    "cpu",         "cuda:sm_80",   "cuda:sm_89",
    "cuda:sm_90a", "cuda:sm_100a", "cuda:sm_120a"};
static constexpr llvm::StringLiteral builtLevels[] = {"x86-64", "x86-64-v3",
                                                      "x86-64-v4"};

static bool isNumber(StringRef text) {
  return !text.empty() && text.size() <= 4 && llvm::all_of(text, llvm::isDigit);
}

bool hybrid::isTargetName(StringRef text) {
  if (text == "cpu")
    return true;
  if (!text.consume_front("cuda:sm_"))
    return false;
  // A chip's own features, or those of its family.
  if (text.ends_with("a") || text.ends_with("f"))
    text = text.drop_back();
  return isNumber(text);
}

bool hybrid::isLevelName(StringRef text) {
  return text == "x86-64" || (text.consume_front("x86-64-v") && isNumber(text));
}

bool hybrid::isDeviceName(StringRef text) {
  return text == "auto" || text == "cpu" || text == "cuda" ||
         (text.consume_front("cuda:") && isNumber(text));
}

/// All that are given are names, and no name is given twice.
static Outcome checkNames(StringRef what, ArrayRef<std::string> given,
                          bool (*isName)(StringRef),
                          ArrayRef<llvm::StringLiteral> built) {
  for (auto [index, name] : llvm::enumerate(given)) {
    if (!isName(name))
      return failUsage("'" + name + "' is no " + what +
                       "; give one or more of " + llvm::join(built, ","));
    if (llvm::is_contained(given.take_front(index), name))
      return failUsage(what + " '" + name + "' is given twice; name it once");
  }
  for (const std::string &name : given)
    if (!llvm::is_contained(built, name))
      return fail(what + " '" + name + "' is not built in; this hybridc has: " +
                  llvm::join(built, ", "));
  return Outcome::Ok;
}

/// Text and objects belong to one kind of target, and to one level of it.
static Outcome checkEmit(const CompileOptions &options) {
  if (options.emit == Emit::Artefact)
    return Outcome::Ok;
  const std::string &target = options.targets.front();
  bool isForCPU = options.emit != Emit::PTX;
  if (isForCPU != (target == "cpu"))
    return failUsage(isForCPU ? "'" + target +
                                    "' has PTX alone; give --emit=ptx, or "
                                    "--target=cpu"
                              : "PTX is code of a GPU, and the target is "
                                "'cpu'; give --target=cuda:sm_90a, or another "
                                "of them");
  if (isForCPU && options.cpuLevels.size() > 1)
    return failUsage("code is written per level, and " +
                     Twine(options.cpuLevels.size()) +
                     " are given: " + llvm::join(options.cpuLevels, ", ") +
                     "; give one --cpu-levels");
  return Outcome::Ok;
}

Outcome hybrid::checkOptions(const CompileOptions &options) {
  if (Outcome outcome =
          checkNames("target", options.targets, isTargetName, builtTargets);
      outcome != Outcome::Ok)
    return outcome;
  if (Outcome outcome =
          checkNames("cpu level", options.cpuLevels, isLevelName, builtLevels);
      outcome != Outcome::Ok)
    return outcome;
  if (options.targets.size() > 1 && options.isOfOneTarget())
    return failUsage("'" + phaseInfo(options.lastPhase).name +
                     "' is made per target, and " +
                     Twine(options.targets.size()) + " are given: " +
                     llvm::join(options.targets, ", ") + "; give one --target");
  return checkEmit(options);
}
