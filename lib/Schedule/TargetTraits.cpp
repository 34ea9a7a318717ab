//===- TargetTraits.cpp - what strategies know of a target ----------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TargetTraits.h"

#include "llvm/ADT/STLExtras.h"

using namespace hybrid;

/// On the CPU a tile of b stays in a first-level cache and row-wise tiles are
/// 32 KiB, so that a few of them do. What a token costs inside a chunk grows
/// with the chunk's length, what it costs through the state does not; 16 rows
/// are enough for the products with the state to be efficient. The adjoint also
/// writes the state of every chunk to memory, half as often with 32.
/// (docs/rationale/recurrence.md)
static constexpr TargetTraits kCPU = {
    /*name=*/"cpu",
    /*productRows=*/128,
    /*productColumns=*/128,
    /*productDepth=*/128,
    /*productTail=*/16,
    /*fewRows=*/8,
    /*stepColumns=*/32,
    /*singleRows=*/8,
    /*stepTokens=*/4,
    /*queryTile=*/64,
    /*keyTile=*/64,
    /*takesTurns=*/true,
    /*backwardElements=*/64 * 512,
    /*stepQueries=*/1,
    /*stepKeys=*/128,
    /*headsEnough=*/4,
    /*splitRows=*/4,
    /*splitContext=*/2048,
    /*splits=*/4,
    /*chunkForward=*/16,
    /*chunkBackward=*/32,
    /*chunkPerChannel=*/16,
    /*valueColumns=*/tile::RecurrenceShape::kMaxDim,
    /*longestStep=*/16,
    /*rowwiseElements=*/8192,
    /*lossRows=*/8,
    /*lossColumns=*/1024,
    /*optimiserBlock=*/16384,
};

/// On a GPU a tile is shared by the threads of a block: products are tiles of
/// the matrix units with a short depth that is staged in shared memory, and
/// row-wise tiles are a few registers of each thread.
static constexpr TargetTraits kCUDA = {
    /*name=*/"cuda",
    /*productRows=*/128,
    /*productColumns=*/128,
    /*productDepth=*/32,
    /*productTail=*/0,
    /*fewRows=*/16,
    /*stepColumns=*/128,
    /*singleRows=*/0,
    /*stepTokens=*/4,
    /*queryTile=*/64,
    /*keyTile=*/64,
    /*takesTurns=*/false,
    /*backwardElements=*/4096,
    /*stepQueries=*/64,
    /*stepKeys=*/64,
    /*headsEnough=*/64,
    /*splitRows=*/4,
    /*splitContext=*/2048,
    /*splits=*/16,
    /*chunkForward=*/64,
    /*chunkBackward=*/32,
    /*chunkPerChannel=*/16,
    /*valueColumns=*/32,
    /*longestStep=*/16,
    /*rowwiseElements=*/4096,
    /*lossRows=*/4,
    /*lossColumns=*/1024,
    /*optimiserBlock=*/4096,
};

static constexpr TargetTraits kTargets[] = {kCPU, kCUDA};

llvm::ArrayRef<TargetTraits> hybrid::targetTraits() { return kTargets; }

const TargetTraits *hybrid::lookupTarget(llvm::StringRef name) {
  const TargetTraits *found = llvm::find_if(
      kTargets, [&](const TargetTraits &known) { return known.name == name; });
  return found == std::end(kTargets) ? nullptr : found;
}
