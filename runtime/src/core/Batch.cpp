//===- Batch.cpp ---------------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/Batch.h"

#include "core/Plan.h"

#include <cinttypes>
#include <numeric>

namespace hyb::rt {

Status checkBatch(const hyb_batch &batch, int64_t vocabulary) {
  if (batch.tokens < 0 || batch.tokens > INT32_MAX || batch.segment_count < 0 ||
      batch.segment_count > INT32_MAX)
    return failure(HYB_INVALID_ARGUMENT,
                   "batch has %" PRId64 " tokens and %" PRId64
                   " segments; both must be in 0 to 2147483647",
                   batch.tokens, batch.segment_count);
  if ((batch.tokens > 0 && !batch.ids) ||
      (batch.segment_count > 0 && !batch.segments))
    return failure(HYB_INVALID_ARGUMENT, "batch has no %s; set the field",
                   batch.tokens > 0 && !batch.ids ? "ids" : "segments");
  int64_t sum = 0;
  for (int64_t i = 0; i < batch.segment_count; ++i) {
    int64_t length = batch.segments[i].length;
    if (length < 0 || length > batch.tokens - sum)
      return failure(HYB_INVALID_ARGUMENT,
                     "segment %" PRId64 " has length %" PRId64 ", but %" PRId64
                     " of %" PRId64 " tokens are left",
                     i, length, batch.tokens - sum, batch.tokens);
    sum += length;
  }
  if (sum != batch.tokens)
    return failure(HYB_INVALID_ARGUMENT,
                   "segment lengths sum to %" PRId64 ", the batch has %" PRId64
                   " tokens",
                   sum, batch.tokens);
  for (int64_t i = 0; i < batch.tokens; ++i)
    if (batch.ids[i] < 0 || batch.ids[i] >= vocabulary)
      return failure(HYB_OUT_OF_RANGE,
                     "token %" PRId64 " has id %d, the vocabulary has %" PRId64
                     " ids from 0",
                     i, batch.ids[i], vocabulary);
  return Status();
}

Status checkLabels(const hyb_batch &batch, int64_t vocabulary) {
  if (batch.tokens > 0 && !batch.labels)
    return failure(HYB_INVALID_ARGUMENT, "batch has no labels; set the field");
  for (int64_t i = 0; i < batch.tokens; ++i) {
    int32_t label = batch.labels[i];
    if (label != kIgnoreLabel && (label < 0 || label >= vocabulary))
      return failure(HYB_OUT_OF_RANGE,
                     "token %" PRId64 " has label %d, expected %d (no label) "
                     "or an id of the vocabulary of %" PRId64,
                     i, label, kIgnoreLabel, vocabulary);
  }
  return Status();
}

void fillSegmentTables(const std::vector<SegmentRows> &segments, int32_t *table,
                       int32_t *tokenSegment) {
  int32_t begin = 0;
  for (size_t i = 0; i < segments.size(); ++i) {
    const SegmentRows &segment = segments[i];
    int32_t end = begin + static_cast<int32_t>(segment.length);
    int32_t *row = table + 4 * i;
    row[0] = begin;
    row[1] = end;
    row[2] = static_cast<int32_t>(segment.slot);
    row[3] = static_cast<int32_t>(segment.firstPosition);
    std::fill(tokenSegment + begin, tokenSegment + end,
              static_cast<int32_t>(i));
    begin = end;
  }
}

void fillTokensById(const hyb_batch &batch, int64_t vocabulary,
                    std::vector<int32_t> &places, int32_t *table) {
  // Counted at the next id, so that the sums are where an id begins.
  places.assign(static_cast<size_t>(vocabulary) + 1, 0);
  for (int64_t i = 0; i < batch.tokens; ++i)
    ++places[static_cast<size_t>(batch.ids[i]) + 1];
  std::partial_sum(places.begin(), places.end(), places.begin());
  for (int64_t i = 0; i < batch.tokens; ++i) {
    int32_t id = batch.ids[i];
    int32_t place = places[static_cast<size_t>(id)]++;
    int32_t *row = table + kTokensByIdColumns * place;
    row[0] = static_cast<int32_t>(i);
    row[1] = id;
    row[2] = place;
  }
  // Every place is now where the id ends.
  for (int32_t first = 0; first < batch.tokens;) {
    int32_t *row = table + kTokensByIdColumns * first;
    first = row[2] = places[static_cast<size_t>(row[1])];
  }
}

} // namespace hyb::rt
