//===- BatchTest.cpp -----------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/Batch.h"

#include <gtest/gtest.h>

namespace hyb::rt {
namespace {

/// Rows (token, id, end) of ids below 7.
std::vector<std::vector<int32_t>> tokensById(const std::vector<int32_t> &ids,
                                             std::vector<int32_t> &places) {
  hyb_batch batch = {};
  batch.ids = ids.data();
  batch.tokens = static_cast<int64_t>(ids.size());
  std::vector<int32_t> table(3 * ids.size(), -1);
  fillTokensById(batch, 7, places, table.data());
  std::vector<std::vector<int32_t>> rows;
  for (auto row = table.begin(); row != table.end(); row += 3)
    rows.emplace_back(row, row + 3);
  return rows;
}

TEST(BatchTest, TokensInTheOrderOfTheirIds) {
  using Rows = std::vector<std::vector<int32_t>>;
  // What an earlier call left behind does not matter.
  std::vector<int32_t> places(20, 99);
  EXPECT_EQ(tokensById({}, places), Rows());
  EXPECT_EQ(tokensById({6}, places), (Rows{{0, 6, 1}}));
  EXPECT_EQ(
      tokensById({4, 0, 4, 6, 4, 0}, places),
      (Rows{{1, 0, 2}, {5, 0, 1}, {0, 4, 5}, {2, 4, 3}, {4, 4, 4}, {3, 6, 6}}));
  EXPECT_EQ(tokensById({3, 3, 3}, places),
            (Rows{{0, 3, 3}, {1, 3, 1}, {2, 3, 2}}));
}

} // namespace
} // namespace hyb::rt
