//===- Plan.h - A launch list over buffers ----------------------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the compiler decided, as data: architecture.md section 6 is the form it
// has in an artefact. Nothing here knows a layer or a mixer.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CORE_PLAN_H
#define HYBRID_RUNTIME_CORE_PLAN_H

#include "core/ElementType.h"
#include "core/Expression.h"
#include "io/MappedFile.h"

#include <map>
#include <set>

namespace hyb::rt {

/// The entry that makes the parameters' copies from all of them.
inline constexpr const char *kCopyEntry = "copy_parameters";

enum class BufferKind : uint8_t {
  Arena,
  Param,
  Gradient,
  State,
  Ids,
  Labels,
  Weights,
  SegmentTable,
  TokenSegment,
  Loss,
  Logits,
  Moment1,
  Moment2,
  Scalars,
  Input,
  Output,
  Constant,
  ParamCopy,
  RandomKey,
  TokensById
};
inline constexpr size_t kBufferKinds = 20;
/// Of a buffer of tokens by id (fillTokensById).
inline constexpr int64_t kTokensByIdColumns = 3;

const char *bufferKindName(BufferKind kind);

/// Of parameters, gradients, ids, tables, losses and logits.
inline constexpr int64_t kElementBytes = 4;
/// The rank of the kernel border's views.
inline constexpr size_t kMaxViewRank = 4;
inline constexpr size_t kMaxGridRank = 8;

/// What a kernel of an accelerator reads through a tensor map: a view whose
/// elements have 16 bits, in boxes of so many along each of its dimensions, the
/// last one 64, in rows of 128 bytes that are swizzled.
struct PlanTensorMap {
  uint32_t view = 0;
  bool isBf16 = true; // else f16
  std::vector<int64_t> box;
};
inline constexpr size_t kMaxTensorMaps = 16;

struct PlanKernel {
  std::string symbol; // in the code
  std::string name;   // for people
  /// When it gives what is not a number from numbers; empty: never.
  std::string caution;
  int64_t scratchBytes = 0;
  /// On an accelerator: shared memory and threads of a task.
  int64_t sharedBytes = 0, threads = 0;
  /// On an accelerator: whether it may begin before the launch in front of it
  /// has ended.
  bool overlaps = false;
  /// On an accelerator: whether its blocks take several tasks, so that no more
  /// have to be started than run at once.
  bool persistent = false;
  /// Its parameters after the views and the grid.
  std::vector<PlanTensorMap> maps;
  std::vector<Expression> grid;
  /// Per grid dimension; the others are loops inside a task.
  std::vector<bool> parallel;
};

struct PlanBuffer {
  std::string name;
  BufferKind kind = BufferKind::Arena;
  ElementType type = ElementType::F32;
  std::vector<Expression> sizes;
  /// Of a parameter or a state, of what a random key is for, or the name of an
  /// input or output; empty for a whole flat buffer and others.
  std::string path;
  /// Of an arena buffer: live from launch `first` to launch `last`.
  uint32_t first = 0, last = 0;
  /// Of an arena buffer that has the rows of a piece: which pieces.
  std::optional<uint32_t> pieces;
  /// Of a constant: its elements, bit by bit, and where they are among all
  /// constants of the plan, in bytes.
  std::vector<uint32_t> data;
  int64_t constantOffset = 0;
};

struct PlanView {
  uint32_t buffer = 0;
  Expression offset; // in elements, as sizes and strides
  std::vector<Expression> sizes, strides;
};

/// That a launch computes c = op(a) op(b) and nothing else, or adds it to c:
/// the numbers of its views. With `parts` it sums what the launch in front of
/// it makes, whose views a and b are; the two together are the product.
struct PlanProduct {
  uint32_t a = 0, b = 0, c = 0;
  bool transposeA = false, transposeB = false, accumulate = false;
  bool parts = false;
};

struct PlanAlternative {
  std::optional<Predicate> guard;
  uint32_t kernel = 0;
  std::vector<PlanView> views;
  std::optional<PlanProduct> product;
};

struct PlanLaunch {
  int64_t layer = -1;
  std::string op;
  std::vector<PlanAlternative> alternatives;

  /// "layer 3 mixer.q_proj"
  std::string label() const;
};

/// Launches `first` to `last` run one after the other for every `rows` rows of
/// the stream. In their expressions `tokens` is the rows of the piece, and
/// `row` the first of them.
struct PlanPieces {
  int64_t rows = 1;
  uint32_t first = 0, last = 0;
};

struct PlanEntry {
  std::string name;
  std::vector<PlanBuffer> buffers;
  std::vector<PlanLaunch> launches;
  /// In the order of their launches, of which they share none.
  std::vector<PlanPieces> pieces;
  /// The buffers that the caller names: inputs, then outputs.
  std::vector<uint32_t> arguments;
  /// The buffers that get a random word for every call.
  std::vector<uint32_t> randomKeys;
  /// Whether launches read the tokens in the order of their ids.
  bool readsTokensById = false;

  /// Of a launch with one that is a product: the alternative that reads the
  /// factors, itself or the one of the launch in front that makes parts.
  const PlanAlternative &factorsOf(uint32_t launch, uint32_t choice) const {
    const PlanAlternative &own = launches[launch].alternatives[choice];
    return own.product->parts ? launches[launch - 1].alternatives.front() : own;
  }
};

struct Plan {
  std::vector<PlanKernel> kernels;
  std::map<std::string, PlanEntry> entries;
  /// The elements of all constants.
  std::vector<uint32_t> constants;

  /// Every index in the result is in range.
  static Result<Plan> parse(Bytes text);

  /// What entries compute in: the type of the parameters' copies, f32 when they
  /// read none. Nothing else of a plan depends on it.
  ElementType computeType() const;
  /// The paths of the parameters that a call reads in f32 where entries compute
  /// in another type; what changes parameters takes all of them.
  std::set<std::string> wideParameters() const;
};

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_CORE_PLAN_H
