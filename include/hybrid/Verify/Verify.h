//===- Verify.h - a compiled model beside the oracle -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An artefact is run, and what every launch wrote is compared with the graph
// that was scheduled, evaluated in fp64 by the plain definition of its
// operations. Each operation is given the values that the compiled model gave
// its kernel, so that an error is charged to the kernel that made it and not to
// those that read it. Then the whole entry is evaluated from its arguments
// alone, and its results are compared.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_VERIFY_VERIFY_H
#define HYBRID_VERIFY_VERIFY_H

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace hybrid {

struct VerifyOptions {
  /// A `.safetensors` file; empty: the spec's distributions, drawn from `seed`.
  std::string weights;
  uint64_t seed = 0;
  /// Length of the longest sequence of training and prefill.
  int64_t tokens = 130;
  /// Steps of one token after the prefill.
  int64_t decodeSteps = 3;
  /// Capacity of the states; more than `tokens` + `decodeSteps`, else that.
  int64_t context = 2048;
  /// Of the runtime: 0 and empty are its defaults.
  int32_t threads = 0;
  std::string cpuLevel;
  /// "auto", "cpu" or "cuda:N".
  std::string device = "auto";
};

/// One operation of the model in one kind of call.
struct VerifyRow {
  /// "loss", "backward", "prefill" or "decode".
  std::string call;
  /// -1 outside layers.
  int64_t layer;
  std::string op;
  /// Name of its program; empty for the results of a whole call.
  std::string kernel;
  /// The largest |found - expected|, relative to the largest |expected| of its
  /// tensor; infinite where a NaN was found.
  double error;
  double bound;

  /// A NaN is not.
  bool ok() const { return error <= bound; }
};

struct VerifyReport {
  /// `code` is the level or chip whose code ran.
  std::string model, code;
  std::vector<VerifyRow> rows;
  /// Kernels of which a launch wrote nothing that the graph has; the operation
  /// is judged by its last launch.
  std::vector<std::string> withoutValue;

  bool ok() const;
};

/// Runs the artefact in `path` and the oracle on the same weights and tokens.
/// `context` must know the dialects and passes of hybridc.
llvm::Expected<VerifyReport> verifyArtefact(mlir::MLIRContext &context,
                                            const std::string &path,
                                            const VerifyOptions &options);

/// A table with one line per row, then what failed; or one JSON object.
void printVerifyReport(const VerifyReport &report, llvm::raw_ostream &os);
void printVerifyReportAsJSON(const VerifyReport &report, llvm::raw_ostream &os);

} // namespace hybrid

#endif // HYBRID_VERIFY_VERIFY_H
