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
    /*processors=*/0,
    /*leastStepColumns=*/32,
    /*mediumTile=*/0,
    /*readingRows=*/0,
    /*readColumns=*/0,
    /*readBytes=*/0,
    /*shareBytes=*/0,
    /*mostSplits=*/1,
    /*splitElements=*/0,
    /*warpgroups=*/0,
    /*warpgroupColumns=*/0,
    /*warpgroupDepth=*/0,
    /*copyBytes=*/0,
    /*persistentDepth=*/0,
    /*singleRows=*/8,
    /*stepTokens=*/4,
    /*overlaps=*/false,
    /*queryTile=*/64,
    /*keyTile=*/64,
    /*keyElements=*/128 * 512,
    /*windowedKeyElements=*/128 * 512,
    /*queryBytes=*/0,
    /*takesTurns=*/true,
    /*backwardElements=*/64 * 512,
    /*backwardQueries=*/64,
    /*stepQueries=*/1,
    /*stepKeys=*/128,
    /*stepKeyBytes=*/0,
    /*headsEnough=*/4,
    /*splitRows=*/4,
    /*splitContext=*/2048,
    /*splits=*/4,
    /*joinedBytes=*/0,
    /*chunkForward=*/16,
    /*chunkBackward=*/32,
    /*chunkPerChannel=*/16,
    /*phasedChunk=*/0,
    /*phasedDim=*/0,
    /*chunkElements=*/64 * 512,
    /*chunkBackwardElements=*/64 * 512,
    /*valueColumns=*/tile::RecurrenceShape::kMaxDim,
    /*backwardValueColumns=*/tile::RecurrenceShape::kMaxDim,
    /*stepValueColumns=*/tile::RecurrenceShape::kMaxDim,
    /*stateElements=*/
    tile::RecurrenceShape::kMaxDim *tile::RecurrenceShape::kMaxDim,
    /*wideKeys=*/tile::RecurrenceShape::kMaxDim,
    /*splitTokens=*/0,
    /*longestStep=*/16,
    /*walkedTokens=*/0,
    /*backwardWalkedTokens=*/0,
    /*rowwiseElements=*/8192,
    /*lossRows=*/8,
    /*lossColumns=*/1024,
    /*pieceElements=*/1 << 22,
    /*leastPieceRows=*/256,
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
    /*processors=*/132,
    /*leastStepColumns=*/16,
    /*mediumTile=*/64,
    /*readingRows=*/4,
    /*readColumns=*/8,
    /*readBytes=*/32 << 10,
    /*shareBytes=*/0,
    /*mostSplits=*/16,
    /*splitElements=*/1 << 24,
    /*warpgroups=*/0,
    /*warpgroupColumns=*/0,
    /*warpgroupDepth=*/0,
    /*copyBytes=*/0,
    /*persistentDepth=*/0,
    /*singleRows=*/0,
    /*stepTokens=*/4,
    /*overlaps=*/true,
    /*queryTile=*/64,
    /*keyTile=*/64,
    /*keyElements=*/4096,
    /*windowedKeyElements=*/2048,
    /*queryBytes=*/64 << 10,
    /*takesTurns=*/false,
    /*backwardElements=*/4096,
    /*backwardQueries=*/64,
    /*stepQueries=*/1,
    /*stepKeys=*/64,
    /*stepKeyBytes=*/8 << 10,
    /*headsEnough=*/64,
    /*splitRows=*/16,
    /*splitContext=*/256,
    /*splits=*/64,
    /*joinedBytes=*/80 << 10,
    /*chunkForward=*/32,
    /*chunkBackward=*/32,
    /*chunkPerChannel=*/16,
    /*phasedChunk=*/32,
    /*phasedDim=*/128,
    /*chunkElements=*/4096,
    /*chunkBackwardElements=*/4096,
    /*valueColumns=*/32,
    /*backwardValueColumns=*/32,
    /*stepValueColumns=*/16,
    /*stateElements=*/4096,
    /*wideKeys=*/128,
    /*splitTokens=*/4096,
    /*longestStep=*/16,
    /*walkedTokens=*/8,
    /*backwardWalkedTokens=*/4,
    /*rowwiseElements=*/4096,
    /*lossRows=*/4,
    /*lossColumns=*/1024,
    /*pieceElements=*/1 << 26,
    /*leastPieceRows=*/4096,
    /*optimiserBlock=*/4096,
};

/// Blocks of these chips have 99 KiB of shared memory in place of 163 or 227.
/// ptxas also needs a few registers more for them: an attention of head dim 128
/// with 32 keys has 8 bytes too few. The gradients of all chunks at once want
/// the states of both ends of one beside its operands; those of one chunk after
/// another 109 KiB for 32 tokens of head dim 128.
static constexpr TargetTraits withLittleSharedMemory(llvm::StringLiteral name) {
  TargetTraits traits = kCUDA;
  traits.name = name;
  traits.keyElements = 2048;
  traits.queryBytes = 32 << 10;
  traits.backwardQueries = 32;
  traits.chunkBackwardElements = 2048;
  traits.phasedChunk = 0;
  return traits;
}

/// Chips with 227 KiB a block: gradients of a chunk of 64 tokens want 180, and
/// half of it is room for a processor's share of a step's matrices while that
/// of the launch in front is there.
static constexpr TargetTraits withMuchSharedMemory(llvm::StringLiteral name) {
  TargetTraits traits = kCUDA;
  traits.name = name;
  traits.phasedChunk = 64;
  traits.queryBytes = 128 << 10;
  traits.shareBytes = 132 << 10;
  return traits;
}

/// Hopper's products of warpgroups: 128 x 256 sums are 128 registers of each
/// thread, and four copies of the operands 192 KiB (docs/rationale/hopper.md).
static constexpr TargetTraits withWarpgroupProducts(llvm::StringLiteral name) {
  TargetTraits traits = withMuchSharedMemory(name);
  traits.warpgroups = 2;
  traits.warpgroupColumns = 256;
  traits.warpgroupDepth = 64;
  traits.copyBytes = 192 << 10;
  traits.persistentDepth = 8192;
  return traits;
}

static constexpr TargetTraits kTargets[] = {
    kCPU,
    kCUDA,
    withLittleSharedMemory("cuda:sm_89"),
    withLittleSharedMemory("cuda:sm_120a"),
    withMuchSharedMemory("cuda:sm_100a"),
    withWarpgroupProducts("cuda:sm_90a")};

llvm::ArrayRef<TargetTraits> hybrid::targetTraits() { return kTargets; }

const TargetTraits *hybrid::lookupTarget(llvm::StringRef name) {
  for (llvm::StringRef wanted : {name, name.split(':').first})
    for (const TargetTraits &known : kTargets)
      if (known.name == wanted)
        return &known;
  return nullptr;
}
