//===- TokensById.h - the tokens in the order of their ids -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TEST_TOOLS_TILE_AGAINST_ORACLE_TOKENSBYID_H
#define HYBRID_TEST_TOOLS_TILE_AGAINST_ORACLE_TOKENSBYID_H

#include "hybrid/Tile/Interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace hybrid::tile {

/// What the runtime gives beside ids, [tokens, 3]: rows (token, id, end), where
/// `end` is the row behind the last of an id in the first of it, else the row's
/// own number.
inline HostBuffer tokensById(llvm::ArrayRef<double> ids) {
  auto tokens = static_cast<int64_t>(ids.size());
  llvm::SmallVector<int64_t> order(tokens);
  for (auto [n, token] : llvm::enumerate(order))
    token = static_cast<int64_t>(n);
  llvm::sort(order, [&](int64_t a, int64_t b) {
    return std::pair(ids[a], a) < std::pair(ids[b], b);
  });
  HostBuffer table({tokens, 3}, 0.0);
  for (int64_t n = 0; n < tokens; ++n) {
    double id = ids[order[n]];
    bool isFirst = n == 0 || ids[order[n - 1]] != id;
    table({n, 0}) = static_cast<double>(order[n]);
    table({n, 1}) = id;
    table({n, 2}) = static_cast<double>(isFirst ? n + llvm::count(ids, id) : n);
  }
  return table;
}

} // namespace hybrid::tile

#endif // HYBRID_TEST_TOOLS_TILE_AGAINST_ORACLE_TOKENSBYID_H
