//===- Checkpoint.h - tensors of a safetensors file -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TEST_UNIT_GRAPH_CHECKPOINT_H
#define HYBRID_TEST_UNIT_GRAPH_CHECKPOINT_H

#include "hybrid/Oracle/Oracle.h"
#include "llvm/ADT/StringMap.h"

namespace hybrid {

/// All tensors of a fixture, bf16, f32 and i32 as doubles. The file is trusted:
/// the runtime has the reader for files of users.
llvm::StringMap<oracle::Tensor> readCheckpoint(const std::string &path);

} // namespace hybrid

#endif // HYBRID_TEST_UNIT_GRAPH_CHECKPOINT_H
