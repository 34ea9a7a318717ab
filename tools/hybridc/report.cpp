//===- report.cpp - what specs cost -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "report.h"

#include "usage.h"

#include "hybrid/Driver/Compile.h"
#include "hybrid/Driver/Register.h"
#include "hybrid/Driver/SpecText.h"
#include "hybrid/Report/Report.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace hybrid;
namespace cl = llvm::cl;

static cl::SubCommand report("report",
                             "print what a model costs, or two side by side");
static cl::list<std::string> specs(cl::Positional, cl::desc("SPEC [SPEC]"),
                                   cl::OneOrMore, cl::sub(report));
static cl::opt<int64_t>
    context("context", cl::value_desc("tokens"),
            cl::desc("tokens that work is counted for; default: the trained "
                     "length, or 4096"),
            cl::init(0), cl::sub(report));

bool isReport() { return static_cast<bool>(report); }

/// The report of the one model in `path`; errors are printed.
static FailureOr<ModelReport> reportOn(MLIRContext &mlirContext,
                                       const std::string &path) {
  std::string error;
  auto file = openInputFile(path, &error);
  if (!file) {
    llvm::errs() << "hybridc: error: " << error << "\n";
    return failure();
  }
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(file), llvm::SMLoc());
  SourceMgrDiagnosticHandler handler(sources, &mlirContext);
  if (failed(checkSpecText(sources, mlirContext)))
    return failure();
  auto module = parseSourceFile<ModuleOp>(sources, &mlirContext);
  if (!module)
    return failure();
  auto models = llvm::to_vector(module->getOps<ModelOp>());
  if (models.empty())
    return emitError(module->getLoc()) << "has no hybrid.model; write one, as "
                                          "docs/spec-language.md shows";
  if (models.size() != 1)
    return emitError(module->getLoc())
           << "has " << models.size()
           << " models where one is expected; write one hybrid.model per file";
  ReportOptions options;
  options.context = context;
  return analyseModel(models.front(), options);
}

int runReport() {
  if (specs.size() > 2 || context < 0)
    return usageError("report takes one or two specs and a context of 1 or "
                      "more");
  DialectRegistry registry;
  registerAllHybridDialects(registry);
  MLIRContext mlirContext(registry, MLIRContext::Threading::DISABLED);
  std::vector<ModelReport> reports;
  for (const std::string &path : specs) {
    FailureOr<ModelReport> found = reportOn(mlirContext, path);
    if (failed(found))
      return static_cast<int>(Outcome::BadInput);
    reports.push_back(std::move(*found));
  }
  if (reports.size() == 1)
    printReport(llvm::outs(), reports.front());
  else
    printComparison(llvm::outs(), reports[0], reports[1]);
  return static_cast<int>(Outcome::Ok);
}
