//===- Evaluate.cpp ------------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "train/Evaluate.h"

#include "core/State.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>

namespace hyb::rt {

Status Evaluation::checkFinite() const {
  if (std::isfinite(nats))
    return Status();
  return failure(HYB_MISMATCH,
                 "loss over %" PRId64 " tokens is %g, not a finite number; "
                 "hybrid-run eval --check-finite names the weight or the "
                 "kernel that it comes from",
                 rows, nats);
}

namespace {

/// Sequences that are run together.
struct SequenceBatch {
  std::vector<int32_t> ids, labels;
  std::vector<hyb_segment> segments;

  void clear() {
    ids.clear();
    labels.clear();
    segments.clear();
  }
  hyb_batch view() const {
    hyb_batch batch = {};
    batch.ids = ids.data();
    batch.labels = labels.data();
    batch.tokens = static_cast<int64_t>(ids.size());
    batch.segments = segments.data();
    batch.segment_count = static_cast<int64_t>(segments.size());
    return batch;
  }
};

Status addLoss(Context &context, const SequenceBatch &batch,
               Evaluation &evaluation) {
  const float *losses;
  HYB_TRY(context.loss(batch.view(), &losses));
  size_t row = 0;
  for (const hyb_segment &segment : batch.segments) {
    size_t length = static_cast<size_t>(segment.length);
    if (evaluation.natsAt.size() < length) {
      evaluation.natsAt.resize(length);
      evaluation.rowsAt.resize(length);
    }
    for (size_t i = 0; i < length; ++i, ++row) {
      if (batch.labels[row] == kIgnoreLabel)
        continue;
      evaluation.nats += static_cast<double>(losses[row]);
      evaluation.natsAt[i] += static_cast<double>(losses[row]);
      ++evaluation.rows;
      ++evaluation.rowsAt[i];
    }
  }
  return Status();
}

/// Teacher forcing: every row sees the right tokens before it.
Status addSpans(Context &context, State &state, const SequenceBatch &batch,
                Evaluation &evaluation) {
  for (int64_t slot = 0; slot < state.slotCount(); ++slot)
    HYB_TRY(state.reset(slot));
  const float *logits;
  HYB_TRY(context.extend(state, batch.view(), HYB_LOGITS_ALL, &logits));
  int64_t vocabulary = context.model().meta().vocabulary;
  size_t row = 0;
  for (const hyb_segment &segment : batch.segments) {
    bool inSpan = false, exact = true;
    auto endSpan = [&] {
      evaluation.spans += inSpan;
      evaluation.exactSpans += inSpan && exact;
      inSpan = false;
      exact = true;
    };
    for (int64_t i = 0; i < segment.length; ++i, ++row) {
      if (batch.labels[row] == kIgnoreLabel) {
        endSpan();
        continue;
      }
      const float *values = logits + static_cast<int64_t>(row) * vocabulary;
      int64_t best = std::max_element(values, values + vocabulary) - values;
      inSpan = true;
      exact &= best == batch.labels[row];
    }
    endSpan();
  }
  return Status();
}

Status report(const EvaluationProgress &progress, int64_t done, int64_t total) {
  if (progress &&
      progress(static_cast<double>(done) / static_cast<double>(total)) != 0)
    return failure(HYB_CANCELLED, "evaluation was stopped");
  return Status();
}

} // namespace

Result<Evaluation> evaluateText(Context &context, Bytes text, int64_t length,
                                int64_t stride, int64_t batch,
                                const EvaluationProgress &progress,
                                const EvaluationLearner &learner) {
  if (length < 1 || stride < 1 || stride > length || batch < 1)
    return failure(HYB_INVALID_ARGUMENT,
                   "length %" PRId64 ", stride %" PRId64 ", batch %" PRId64
                   ": each is at least 1, and the stride at most the length",
                   length, stride, batch);
  if (context.model().meta().vocabulary < 256)
    return failure(HYB_MISMATCH,
                   "text is read as bytes, but the vocabulary has %" PRId64
                   " ids",
                   context.model().meta().vocabulary);
  Evaluation evaluation;
  SequenceBatch pending;
  // Rows [0, rows) predict bytes 1 to the last.
  int64_t rows = static_cast<int64_t>(text.size) - 1;
  int64_t scored = 0;
  while (scored < rows) {
    int64_t end =
        scored == 0 ? std::min(length, rows) : std::min(scored + stride, rows);
    int64_t begin = std::max<int64_t>(0, end - length);
    for (int64_t row = begin; row < end; ++row) {
      pending.ids.push_back(text.data[row]);
      pending.labels.push_back(row < scored ? kIgnoreLabel
                                            : text.data[row + 1]);
    }
    pending.segments.push_back({end - begin, 0});
    scored = end;
    if (static_cast<int64_t>(pending.segments.size()) == batch ||
        scored == rows) {
      HYB_TRY(addLoss(context, pending, evaluation));
      if (learner && scored < rows)
        HYB_TRY(learner(pending.view()));
      pending.clear();
      HYB_TRY(report(progress, scored, rows));
    }
  }
  return evaluation;
}

Result<Evaluation> evaluateSamples(Context &context, const Dataset &data,
                                   int64_t batch, bool exactMatch,
                                   const EvaluationProgress &progress) {
  Evaluation evaluation;
  std::unique_ptr<State> state;
  if (exactMatch) {
    hyb_state_options options;
    hyb_state_options_init(&options, sizeof(options));
    options.slots = batch;
    options.context = data.length();
    HYB_ASSIGN(state, State::create(context.model(), options));
  }
  SequenceBatch pending;
  size_t length = static_cast<size_t>(data.length());
  for (int64_t begin = 0; begin < data.samples(); begin += batch) {
    int64_t count = std::min(batch, data.samples() - begin);
    pending.clear();
    pending.ids.resize(static_cast<size_t>(count) * length);
    pending.labels.resize(pending.ids.size());
    for (int64_t i = 0; i < count; ++i) {
      data.read(/*epoch=*/0, begin + i,
                pending.ids.data() + static_cast<size_t>(i) * length,
                pending.labels.data() + static_cast<size_t>(i) * length);
      pending.segments.push_back({data.length(), i});
    }
    HYB_TRY(addLoss(context, pending, evaluation));
    if (exactMatch)
      HYB_TRY(addSpans(context, *state, pending, evaluation));
    HYB_TRY(report(progress, begin + count, data.samples()));
  }
  return evaluation;
}

} // namespace hyb::rt
