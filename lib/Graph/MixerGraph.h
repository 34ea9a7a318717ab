//===- MixerGraph.h - head groups as graph operations -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_GRAPH_MIXERGRAPH_H
#define HYBRID_LIB_GRAPH_MIXERGRAPH_H

#include "EntryBuilder.h"

namespace hybrid {

/// The heads of one group side by side, [tokens, heads · value_dim], from the
/// normed layer input [tokens, width].
mlir::Value buildSoftmax(EntryBuilder &entry, SoftmaxOp group, mlir::Value x);
mlir::Value buildRecurrent(EntryBuilder &entry, RecurrentOp group,
                           mlir::Value x);

} // namespace hybrid

#endif // HYBRID_LIB_GRAPH_MIXERGRAPH_H
