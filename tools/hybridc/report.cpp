//===- report.cpp - what specs cost -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "report.h"

#include "usage.h"

#include "hybrid/Artefact/Container.h"
#include "hybrid/Driver/Compile.h"
#include "hybrid/Driver/Register.h"
#include "hybrid/Driver/SpecText.h"
#include "hybrid/Hybrid/OnlyModel.h"
#include "hybrid/Report/Page.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/ADT/StringExtras.h"
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

static cl::opt<std::string>
    htmlPath("html", cl::ValueOptional, cl::value_desc("file"),
             cl::desc("write a page with drawings instead: to the file, or to "
                      "the standard output"),
             cl::sub(report));
static cl::opt<std::string> deviceName(
    "device", cl::value_desc("name"),
    cl::desc("whose roofline the page shows, and whose launches: cpu "
             "(default), h200, h200-bf16"),
    cl::init("cpu"), cl::sub(report));
static cl::opt<double> peak("peak", cl::value_desc("GFLOP/s"),
                            cl::desc("of the device, instead of the table's"),
                            cl::init(0), cl::sub(report));
static cl::opt<double>
    bandwidth("bandwidth", cl::value_desc("GB/s"),
              cl::desc("of the device, instead of the table's"), cl::init(0),
              cl::sub(report));

bool isReport() { return static_cast<bool>(report); }

/// The report of the one model in `path`, with its plan where `device` is not
/// null; errors are printed.
static FailureOr<PageModel> reportOn(MLIRContext &mlirContext,
                                     const std::string &path,
                                     const Device *device) {
  std::string error;
  auto file = openSpecFile(path, error);
  if (!file) {
    llvm::errs() << "hybridc: error: " << error << "\n";
    return failure();
  }
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(file), llvm::SMLoc());
  SourceMgrDiagnosticHandler handler(sources, &mlirContext);
  if (failed(checkSpecText(sources, mlirContext)))
    return failure();
  auto module = parseSpec(sources, mlirContext);
  if (!module)
    return failure();
  FailureOr<ModelOp> model = getOnlyModel<ModelOp>(*module);
  if (failed(model))
    return failure();
  ReportOptions options;
  options.context = context;
  FailureOr<ModelReport> report = analyseModel(*model, options);
  if (failed(report) || !device)
    return failed(report) ? FailureOr<PageModel>(failure())
                          : PageModel{std::move(*report), {}};
  FailureOr<PlanReport> plan = analysePlan(*model, device->target, options);
  if (failed(plan))
    return failure();
  return PageModel{std::move(*report), std::move(*plan)};
}

/// The device of the command line; nothing, and an error, when there is none
/// of the name.
static std::optional<Device> getDevice() {
  auto devices = getDevices();
  const auto *found = llvm::find_if(
      devices, [](const Device &device) { return device.name == deviceName; });
  if (found == devices.end()) {
    auto names = llvm::map_range(
        devices, [](const Device &device) { return device.name; });
    usageError("no device '" + deviceName +
               "'; this hybridc knows: " + llvm::join(names, ", ") +
               "; give --peak and --bandwidth for another");
    return std::nullopt;
  }
  Device device = *found;
  if (peak > 0) {
    device.flops = 1e9 * peak;
    device.flopsNote = "as given";
  }
  if (bandwidth > 0)
    device.bandwidth = 1e9 * bandwidth;
  return device;
}

static Outcome writeHtml(ArrayRef<PageModel> models, const Device &device) {
  if (htmlPath.empty() || htmlPath == "-") {
    writePage(llvm::outs(), models, device);
    return Outcome::Ok;
  }
  std::string page;
  llvm::raw_string_ostream os(page);
  writePage(os, models, device);
  if (llvm::Error error = writeFileAtomically(htmlPath, page)) {
    llvm::errs() << "hybridc: error: " << llvm::toString(std::move(error))
                 << "\n";
    return Outcome::BadInput;
  }
  return Outcome::Ok;
}

int runReport() {
  if (specs.size() > 2 || context < 0)
    return usageError("report takes one or two specs and a context of 1 or "
                      "more");
  if (!(peak >= 0) || !(bandwidth >= 0))
    return usageError("--peak and --bandwidth take positive rates");
  bool isPage = htmlPath.getNumOccurrences();
  if (!isPage && (deviceName.getNumOccurrences() || peak > 0 || bandwidth > 0))
    return usageError("--device, --peak and --bandwidth are for the page; give "
                      "--html=FILE too, or leave them out");
  std::optional<Device> device = getDevice();
  if (!device)
    return static_cast<int>(Outcome::Usage);
  DialectRegistry registry;
  registerAllHybridDialects(registry);
  MLIRContext mlirContext(registry, MLIRContext::Threading::DISABLED);
  std::vector<PageModel> models;
  for (const std::string &path : specs) {
    FailureOr<PageModel> found =
        reportOn(mlirContext, path, isPage ? &*device : nullptr);
    if (failed(found))
      return static_cast<int>(Outcome::BadInput);
    models.push_back(std::move(*found));
  }
  if (isPage)
    return static_cast<int>(writeHtml(models, *device));
  if (models.size() == 1)
    printReport(llvm::outs(), models.front().report);
  else
    printComparison(llvm::outs(), models[0].report, models[1].report);
  return static_cast<int>(Outcome::Ok);
}
