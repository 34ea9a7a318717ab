//===- Page.h - what a model costs, as a page -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A report as one HTML page that needs nothing else: the stack head by head,
// memory over the launches of a call, a roofline of its operations, and tables.
// Memory and launches are those of the plan that would be compiled.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_REPORT_PAGE_H
#define HYBRID_REPORT_PAGE_H

#include "hybrid/Report/Report.h"

namespace hybrid {

/// What a machine can do at most.
struct Device {
  /// On the command line.
  std::string name;
  std::string title;
  /// The plan's target.
  std::string target;
  /// Operations per second that a product of f32 data can reach, and where the
  /// number is from.
  double flops = 0;
  std::string flopsNote;
  /// Bytes per second of memory.
  double bandwidth = 0;
};

llvm::ArrayRef<Device> getDevices();

/// One operation of the fused graph and the launches that carry it out.
struct OperationReport {
  int64_t layer = -1;
  std::string place; // mixer.q_proj
  /// product, attention, recurrence, row-wise or other.
  std::string kind;
  /// Names of the programs in launch order; doubles are counted.
  std::string kernels;
  unsigned launches = 0;
  Work work;
};

/// One call of an entry.
struct CallReport {
  std::string title;
  /// What the caller holds, by what it is, in the order of the plan.
  std::vector<std::pair<std::string, uint64_t>> bound;
  /// Size of the arena, and what it would be without reuse.
  uint64_t arena = 0, withoutReuse = 0;
  /// Bytes of the arena in use at each launch, and the launch's place.
  std::vector<uint64_t> live;
  std::vector<std::string> places;
  std::vector<OperationReport> operations;

  uint64_t getBound() const;
};

/// What a training step holds under one choice of what is computed again.
struct RecomputeReport {
  std::string name; // none, layer, selective
  /// Whether the model asks for it.
  bool isChosen = false;
  uint64_t arena = 0, total = 0;
  unsigned recomputed = 0, launches = 0;
};

struct PlanReport {
  std::vector<CallReport> calls;
  std::vector<RecomputeReport> recompute;
};

/// Plans a copy of `model` for `target`, and reports on a training step and a
/// prefill of as many tokens as the work is counted for, and on one decoding
/// step behind them. Fails with an error on the model.
mlir::FailureOr<PlanReport> analysePlan(ModelOp model, llvm::StringRef target,
                                        const ReportOptions &options);

struct PageModel {
  ModelReport report;
  PlanReport plan;
};

/// Writes the page of one model, or of two side by side. Text of a spec appears
/// escaped; the page is well-formed XML too.
void writePage(llvm::raw_ostream &os, llvm::ArrayRef<PageModel> models,
               const Device &device);

} // namespace hybrid

#endif // HYBRID_REPORT_PAGE_H
