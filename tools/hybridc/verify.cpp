//===- verify.cpp - a compiled model beside the oracle -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "verify.h"

#include "usage.h"

#include "hybrid/Driver/Compile.h"
#include "hybrid/Driver/Register.h"
#include "hybrid/Verify/Verify.h"
#include "llvm/Support/CommandLine.h"

using namespace hybrid;
namespace cl = llvm::cl;

static cl::SubCommand
    verify("verify", "run an artefact beside the oracle: a row per operation");
static cl::opt<std::string> artefact(cl::Positional, cl::desc("ARTEFACT"),
                                     cl::Required, cl::sub(verify));
static cl::opt<std::string>
    weights("weights", cl::value_desc("file"),
            cl::desc("weights as .safetensors; default: the spec's "
                     "distributions, drawn from the seed"),
            cl::sub(verify));
static cl::opt<int64_t>
    tokens("tokens", cl::init(VerifyOptions().tokens),
           cl::desc("length of the longest sequence; default: 130"),
           cl::sub(verify));
static cl::opt<int64_t> decode("decode", cl::init(VerifyOptions().decodeSteps),
                               cl::desc("steps of one token; default: 3"),
                               cl::sub(verify));
static cl::opt<int64_t>
    context("context", cl::init(VerifyOptions().context),
            cl::desc("capacity of the states in tokens; default: 2048"),
            cl::sub(verify));
static cl::opt<uint64_t> seed("seed", cl::init(0),
                              cl::desc("of tokens and weights; default: 0"),
                              cl::sub(verify));
static cl::opt<int32_t> threads("threads", cl::init(0),
                                cl::desc("default: one per processor"),
                                cl::sub(verify));
static cl::opt<std::string>
    cpuLevel("cpu-level", cl::value_desc("level"),
             cl::desc("code to verify; default: the processor's best"),
             cl::sub(verify));
static cl::opt<std::string>
    device("device", cl::init("auto"), cl::value_desc("name"),
           cl::desc("auto, cpu or cuda:N; default: auto"), cl::sub(verify));
static cl::opt<bool> json("json",
                          cl::desc("one JSON object instead of a table"),
                          cl::sub(verify));

bool isVerify() { return static_cast<bool>(verify); }

int runVerify() {
  if (tokens < 1 || context < 1 || decode < 0 || threads < 0)
    return usageError("verify takes 1 token or more, a context of 1 or more, "
                      "and no negative numbers");
  if (!isDeviceName(device))
    return usageError("'" + device +
                      "' is no device; give auto, cpu or cuda:N");
  if (!cpuLevel.empty() && !isLevelName(cpuLevel))
    return usageError("'" + cpuLevel +
                      "' is no cpu level; give x86-64, x86-64-v3 or x86-64-v4");
  VerifyOptions options;
  options.weights = weights;
  options.seed = seed;
  options.tokens = tokens;
  options.decodeSteps = decode;
  options.context = context;
  options.threads = threads;
  options.cpuLevel = cpuLevel;
  options.device = device;

  mlir::DialectRegistry registry;
  registerAllHybridDialects(registry);
  mlir::MLIRContext mlirContext(registry,
                                mlir::MLIRContext::Threading::DISABLED);
  llvm::Expected<VerifyReport> report =
      verifyArtefact(mlirContext, artefact, options);
  if (!report) {
    llvm::errs() << "hybridc: error: " << llvm::toString(report.takeError())
                 << "\n";
    return static_cast<int>(Outcome::BadInput);
  }
  if (json)
    printVerifyReportAsJSON(*report, llvm::outs());
  else
    printVerifyReport(*report, llvm::outs());
  return static_cast<int>(report->ok() ? Outcome::Ok : Outcome::BadInput);
}
