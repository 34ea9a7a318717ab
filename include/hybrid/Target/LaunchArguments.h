//===- LaunchArguments.h - what a launch gives a kernel ---------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TARGET_LAUNCHARGUMENTS_H
#define HYBRID_TARGET_LAUNCHARGUMENTS_H

#include <cstdint>

namespace hybrid {

/// struct hyb_view { void *base; int64_t sizes[4]; int64_t strides[4]; };
inline constexpr int64_t kViewBytes = 72, kSizesOffset = 8, kStridesOffset = 40;
/// int64_t grid[4], on a GPU after the views.
inline constexpr int64_t kGridBytes = 32;

} // namespace hybrid

#endif // HYBRID_TARGET_LAUNCHARGUMENTS_H
