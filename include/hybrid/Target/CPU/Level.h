//===- Level.h - the instruction sets that code is made for -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TARGET_CPU_LEVEL_H
#define HYBRID_TARGET_CPU_LEVEL_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>

namespace hybrid::cpu {

/// A level of the x86-64 psABI.
enum class Level : uint8_t { Base, V3, V4 };

inline constexpr Level kLevels[] = {Level::Base, Level::V3, Level::V4};

/// What code generation has to know of a level.
struct LevelTraits {
  /// The psABI's name, which is also LLVM's processor name.
  llvm::StringRef name;
  /// f32 lanes of a vector register. No vector value is wider.
  int64_t lanes;
  /// A register block of a product: `rows` x `columns` accumulators leave
  /// registers for the operands.
  int64_t rows, columns;
};

inline LevelTraits traitsOf(Level level) {
  switch (level) {
  case Level::Base:
    return {"x86-64", 4, 4, 8};
  case Level::V3:
    return {"x86-64-v3", 8, 6, 16};
  case Level::V4:
    break;
  }
  return {"x86-64-v4", 16, 6, 64};
}

inline std::optional<Level> levelNamed(llvm::StringRef name) {
  for (Level level : kLevels)
    if (traitsOf(level).name == name)
      return level;
  return std::nullopt;
}

} // namespace hybrid::cpu

#endif // HYBRID_TARGET_CPU_LEVEL_H
