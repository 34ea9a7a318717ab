//===- CpuLevel.h - Which code the processor can run ------------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CPU_CPULEVEL_H
#define HYBRID_RUNTIME_CPU_CPULEVEL_H

#include "core/Status.h"

#include <string_view>

namespace hyb::rt {

/// The micro-architecture levels of the x86-64 psABI that code is made for.
enum class CpuLevel : uint8_t { X86_64 = 0, X86_64_v3 = 1, X86_64_v4 = 2 };
inline constexpr CpuLevel kCpuLevels[] = {CpuLevel::X86_64, CpuLevel::X86_64_v3,
                                          CpuLevel::X86_64_v4};

const char *cpuLevelName(CpuLevel level);
std::optional<CpuLevel> cpuLevelByName(std::string_view name);

/// The highest level that this processor and its operating system support;
/// nothing on another kind of machine.
std::optional<CpuLevel> hostCpuLevel();

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_CPU_CPULEVEL_H
