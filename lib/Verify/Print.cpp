//===- Print.cpp - what verification found, as a table -------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Verify/Verify.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace hybrid;

static std::string layerOf(const VerifyRow &row) {
  return row.layer < 0 ? "-" : std::to_string(row.layer);
}

void hybrid::printVerifyReport(const VerifyReport &report,
                               llvm::raw_ostream &os) {
  size_t opWidth = 2, kernelWidth = 6;
  for (const VerifyRow &row : report.rows) {
    opWidth = std::max(opWidth, row.op.size());
    kernelWidth = std::max(kernelWidth, row.kernel.size());
  }
  os << report.model << ", " << report.code
     << ": compiled code against the oracle\n\n";
  auto line = [&](llvm::StringRef call, llvm::StringRef layer,
                  llvm::StringRef op, llvm::StringRef kernel,
                  llvm::StringRef error, llvm::StringRef bound,
                  llvm::StringRef verdict) {
    os << llvm::formatv("{0,-9}{1,5}  {2}  {3}  {4,8}  {5,8}  {6}\n", call,
                        layer, llvm::left_justify(op, opWidth),
                        llvm::left_justify(kernel, kernelWidth), error, bound,
                        verdict);
  };
  line("call", "layer", "op", "kernel", "error", "bound", "");
  unsigned failures = 0;
  for (const VerifyRow &row : report.rows) {
    failures += !row.ok();
    line(row.call, layerOf(row), row.op, row.kernel,
         llvm::formatv("{0:e1}", row.error).str(),
         llvm::formatv("{0:e1}", row.bound).str(), row.ok() ? "ok" : "FAIL");
  }
  if (!report.withoutValue.empty())
    os << "\nthrough the launch after them: "
       << llvm::join(report.withoutValue, ", ") << "\n";
  if (failures)
    os << "\n"
       << failures << " of " << report.rows.size()
       << " rows are over their bound\n";
  else
    os << "\nall " << report.rows.size() << " rows are within their bounds\n";
}

void hybrid::printVerifyReportAsJSON(const VerifyReport &report,
                                     llvm::raw_ostream &os) {
  llvm::json::Array rows;
  for (const VerifyRow &row : report.rows)
    rows.push_back(llvm::json::Object{
        {"call", row.call},
        {"layer", row.layer},
        {"op", row.op},
        {"kernel", row.kernel},
        // JSON has no infinity.
        {"error", std::isfinite(row.error) ? llvm::json::Value(row.error)
                                           : llvm::json::Value(nullptr)},
        {"bound", row.bound},
        {"ok", row.ok()}});
  os << llvm::formatv("{0:2}\n", llvm::json::Value(llvm::json::Object{
                                     {"model", report.model},
                                     {"code", report.code},
                                     {"ok", report.ok()},
                                     {"rows", std::move(rows)}}));
}
