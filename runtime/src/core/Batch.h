//===- Batch.h - The tokens of a call, checked ------------------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CORE_BATCH_H
#define HYBRID_RUNTIME_CORE_BATCH_H

#include "core/Status.h"

#include <vector>

namespace hyb::rt {

/// The label of a row that is left out of the loss.
inline constexpr int32_t kIgnoreLabel = -100;

/// Lengths add up, ids are in the vocabulary, and the counts fit the i32 tables
/// of the kernel border.
Status checkBatch(const hyb_batch &batch, int64_t vocabulary);

/// Every label is in the vocabulary or kIgnoreLabel.
Status checkLabels(const hyb_batch &batch, int64_t vocabulary);

/// A segment of one launch list: rows of the packed stream, and the place in
/// the sequence that it continues.
struct SegmentRows {
  int64_t length;
  int64_t slot;
  int64_t firstPosition;
};

/// Writes the segment table, rows (begin, end, slot, first position), and the
/// segment of every token.
void fillSegmentTables(const std::vector<SegmentRows> &segments, int32_t *table,
                       int32_t *tokenSegment);

/// Writes the tokens in the order of their ids, and of their place where ids
/// are the same, as rows (token, id, end): `end` is the row behind the last of
/// this id where the row is the first of it, else the row's own number. The ids
/// have been checked; `places` is memory that lives from call to call.
void fillTokensById(const hyb_batch &batch, int64_t vocabulary,
                    std::vector<int32_t> &places, int32_t *table);

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_CORE_BATCH_H
