//===- ParameterLayout.h - parameters in one flat buffer -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_GRAPH_PARAMETERLAYOUT_H
#define HYBRID_GRAPH_PARAMETERLAYOUT_H

#include "hybrid/Graph/ModelTables.h"
#include <vector>

namespace hybrid {

/// Where each parameter starts in the flat buffers of parameters, gradients and
/// moments: those with weight decay first, each on 64 bytes (a multiple of 16
/// elements). The optimiser steps over the two ranges of the whole buffer.
struct ParameterLayout {
  struct Row {
    const ParameterRow *parameter;
    int64_t offset;
  };
  /// Ascending by offset. Points into the rows given.
  std::vector<Row> rows;
  /// Elements of each buffer, padding included, and of its part with decay.
  int64_t elements = 0, decayElements = 0;

  explicit ParameterLayout(llvm::ArrayRef<ParameterRow> parameters);
};

} // namespace hybrid

#endif // HYBRID_GRAPH_PARAMETERLAYOUT_H
