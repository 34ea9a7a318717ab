//===- Report.h - what a model costs -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parameters, caches, states and the work of every graph operation, read from
// the graph that would be compiled, whose types give the bytes. Work counts
// the plain definition of an operation: a multiplication and an addition are
// two operations, attention works on the visible keys, a recurrence runs token
// by token; what a kernel adds to that (chunks, recomputation) is not in it.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_REPORT_REPORT_H
#define HYBRID_REPORT_REPORT_H

#include "hybrid/Hybrid/HybridOps.h"

#include <string>
#include <vector>

namespace hybrid {

struct ReportOptions {
  /// Tokens of the sequence that work is counted for; 0: the trained length, or
  /// 4096 without one.
  int64_t context = 0;
};

/// Floating-point operations, and bytes of operands and results.
struct Work {
  double flops = 0;
  double bytes = 0;
  Work &operator+=(const Work &other) {
    flops += other.flops;
    bytes += other.bytes;
    return *this;
  }
};

/// What a slot holds: `perToken` bytes for each token of the context, and
/// `fixed` bytes whatever the context (decoding one token at a time, no
/// rollback).
struct StateBytes {
  int64_t perToken = 0;
  int64_t fixed = 0;
  StateBytes &operator+=(const StateBytes &other) {
    perToken += other.perToken;
    fixed += other.fixed;
    return *this;
  }
  int64_t at(int64_t context) const { return fixed + perToken * context; }
};

/// What the keys of a softmax head, or the history of a recurrent one, are.
struct HeadKind {
  /// `softmax`, or the name of the recurrence.
  std::string mixer;
  /// nope, rope, ...; empty for a recurrence.
  std::string position;
  /// Keys that a query sees, or tokens of a bounded history; 0: all.
  int64_t window = 0;
  /// First tokens that stay visible, and tokens per state of a bounded history.
  int64_t sinks = 0, stride = 0;
  bool isLogN = false;
  bool operator==(const HeadKind &other) const {
    return mixer == other.mixer && position == other.position &&
           window == other.window && sinks == other.sinks &&
           stride == other.stride && isLogN == other.isLogN;
  }
};

struct GroupReport {
  std::string mixer; // gdn, 12 heads of 128, ...
  HeadKind kind;
  int64_t heads = 0;
  int64_t params = 0;
  StateBytes state;
};

struct LayerReport {
  int64_t params = 0; // norms and feed-forward part included
  std::vector<GroupReport> groups;
  int64_t feedForward = 0; // hidden channels, 0 without that part
  StateBytes getState() const;
  /// One line for all groups; layers of one description are alike.
  std::string getMixers() const;
};

/// All operations of one place in the model.
struct PlaceReport {
  std::string name; // mixer.q_proj
  Work forward;     // `loss` over the context
  Work decode;      // `extend` by one token behind the context
};

struct ModelReport {
  std::string name;
  int64_t width = 0;
  int64_t vocab = 0;
  int64_t context = 0;
  int64_t params = 0;
  int64_t embeddingParams = 0; // embedding and head
  std::vector<LayerReport> layers;
  /// Places per layer, and those outside of layers last.
  std::vector<std::vector<PlaceReport>> work;

  StateBytes getState() const;
  Work getForward() const;
  Work getDecode() const;
};

/// Expands and builds a copy of `model`; fails with an error on it when that
/// fails.
mlir::FailureOr<ModelReport> analyseModel(ModelOp model,
                                          const ReportOptions &options);

void printReport(llvm::raw_ostream &os, const ModelReport &report);

/// Two models side by side.
void printComparison(llvm::raw_ostream &os, const ModelReport &a,
                     const ModelReport &b);

} // namespace hybrid

#endif // HYBRID_REPORT_REPORT_H
