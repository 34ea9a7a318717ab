//===- Evaluate.h - How well a model predicts -------------------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_TRAIN_EVALUATE_H
#define HYBRID_RUNTIME_TRAIN_EVALUATE_H

#include "core/Context.h"
#include "train/Data.h"

#include <functional>

namespace hyb::rt {

struct Evaluation {
  double nats = 0;
  /// Rows that were scored.
  int64_t rows = 0;
  /// Summed loss and scored rows by position in the sequence.
  std::vector<double> natsAt;
  std::vector<int64_t> rowsAt;
  /// Runs of neighbouring labelled rows, and those whose every row has its
  /// label as the likeliest token; counted when asked for.
  int64_t spans = 0, exactSpans = 0;

  double loss() const { return rows ? nats / static_cast<double>(rows) : 0; }
  double bitsPerByte() const { return loss() / 0.6931471805599453; }
  /// An error when the loss is not a number or infinite.
  Status checkFinite() const;
};

/// Called with the share done, 0 to 1; anything but 0 stops with HYB_CANCELLED.
using EvaluationProgress = std::function<int(double)>;

/// Called with windows after they were scored; labels are of the rows that
/// were.
using EvaluationLearner = std::function<Status(const hyb_batch &)>;

/// Every byte of a text but the first is scored exactly once, in windows of
/// `length` that advance by `stride`: the first window is scored whole, of the
/// others the last `stride` rows, with what is before them as context.
/// `learner` may change the parameters between two batches of windows: a byte
/// is then predicted by a model that has learnt from bytes before it alone.
Result<Evaluation> evaluateText(Context &context, Bytes text, int64_t length,
                                int64_t stride, int64_t batch,
                                const EvaluationProgress &progress = nullptr,
                                const EvaluationLearner &learner = nullptr);

/// All samples of a data set; with `exactMatch` also the spans.
Result<Evaluation>
evaluateSamples(Context &context, const Dataset &data, int64_t batch,
                bool exactMatch, const EvaluationProgress &progress = nullptr);

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_TRAIN_EVALUATE_H
