//===- usage.cpp - reading the command line -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "usage.h"

#include "report.h"
#include "verify.h"

#include "hybrid/Artefact/Assemble.h"
#include "hybrid/Driver/Compile.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Regex.h"

using namespace hybrid;
namespace cl = llvm::cl;

static constexpr llvm::StringLiteral compileExamples = R"(
Examples:
  Compile a spec for the CPU and look at the artefact:
    hybridc examples/specs/demo.mlir -o demo.hbx
    hybrid-run info demo.hbx

  For the CPU and one kind of GPU:
    hybridc demo.mlir --target=cpu,cuda:sm_90a -o demo.hbx

  See which kernel each layer became, the memory a training step takes, and the
  assembly:
    hybridc demo.mlir --compile-to=schedule --remarks=schedule -o schedule.mlir
    hybridc demo.mlir --print-memory-plan --tokens=8192 --segments=8
    hybridc demo.mlir --emit=asm --cpu-levels=x86-64-v4 -o demo.s

Subcommands, each with its own --help:
    hybridc report a.mlir b.mlir      what a mix costs, or two side by side
    hybridc verify demo.hbx           compiled code beside the oracle

Passes can be watched with --mlir-timing and --mlir-print-ir-after-all;
--help-hidden lists all of these.
Exit codes: 0 done, 1 bad input, 2 bad command line, 70 internal error.
)";

static constexpr llvm::StringLiteral reportExamples = R"(
Examples:
  Parameters, bytes of cache and state, and work of each layer:
    hybridc report examples/specs/demo.mlir
  Two mixes side by side, when 65,536 tokens have been seen:
    hybridc report rope_nope_376m.mlir gdn_nope_376m.mlir --context=65536
  The same as a page with drawings, and the roofline of an H200:
    hybridc report demo.mlir --html=demo.html --device=h200

Exit codes: 0 done, 1 bad input, 2 bad command line.
)";

static constexpr llvm::StringLiteral verifyExamples = R"(
Examples:
  Every kernel of an artefact with weights drawn from the spec's distributions:
    hybridc verify demo.hbx
  With trained weights, as JSON:
    hybridc verify demo.hbx --weights=run/checkpoint.safetensors --json

Exit codes: 0 all rows are within their bounds, 1 one is not, or bad input,
2 bad command line.
)";

/// The subcommand that the command line names, or nothing.
static llvm::StringRef subcommandOf(int argc, char **argv) {
  llvm::StringRef first = argc > 1 ? argv[1] : "";
  return first == "report" || first == "verify" ? first : llvm::StringRef();
}

static std::string helpCommand(llvm::StringRef subcommand) {
  return subcommand.empty() ? "hybridc --help"
                            : ("hybridc " + subcommand + " --help").str();
}

/// The parser's words, which know neither our subcommands nor what the
/// arguments are.
static std::string inOurWords(llvm::StringRef problem,
                              llvm::StringRef subcommand) {
  llvm::StringRef input = subcommand == "verify" ? "ARTEFACT" : "SPEC";
  if (problem.contains("Not enough positional"))
    return ("hybridc: error: no " + input + " is given; name a file\n").str();
  if (problem.contains("Too many positional"))
    return ("hybridc: error: more than one " + input +
            " is given; give one, or one of the subcommands report and verify "
            "first\n")
        .str();
  return llvm::Regex("  Try: '[^']*'").sub("", problem);
}

bool readCommandLine(int argc, char **argv) {
  llvm::StringRef subcommand = subcommandOf(argc, argv);
  cl::extrahelp examples(subcommand == "report"   ? reportExamples
                         : subcommand == "verify" ? verifyExamples
                                                  : compileExamples);
  cl::SetVersionPrinter(
      [](llvm::raw_ostream &os) { os << toolchainName() << "\n"; });
  std::string problem;
  llvm::raw_string_ostream os(problem);
  if (cl::ParseCommandLineOptions(
          argc, argv, "hybridc: from the spec of a hybrid stack to an artefact",
          &os))
    return true;
  llvm::errs() << inOurWords(problem, subcommand) << "hybridc: see "
               << helpCommand(subcommand) << "\n";
  return false;
}

int usageError(const llvm::Twine &message) {
  llvm::StringRef subcommand = isReport()   ? "report"
                               : isVerify() ? "verify"
                                            : "";
  llvm::errs() << "hybridc: error: " << message << "; see "
               << helpCommand(subcommand) << "\n";
  return static_cast<int>(Outcome::Usage);
}
