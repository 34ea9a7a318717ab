//===- CpuLevel.cpp ------------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "cpu/CpuLevel.h"

namespace hyb::rt {

const char *cpuLevelName(CpuLevel level) {
  switch (level) {
  case CpuLevel::X86_64:
    return "x86-64";
  case CpuLevel::X86_64_v3:
    return "x86-64-v3";
  case CpuLevel::X86_64_v4:
    return "x86-64-v4";
  }
  return "";
}

std::optional<CpuLevel> cpuLevelByName(std::string_view name) {
  for (CpuLevel level : kCpuLevels)
    if (name == cpuLevelName(level))
      return level;
  return std::nullopt;
}

std::optional<CpuLevel> hostCpuLevel() {
#if defined(__x86_64__)
  // Includes the question whether the system saves the wide registers.
  __builtin_cpu_init();
  bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
            __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
            __builtin_cpu_supports("f16c") && __builtin_cpu_supports("lzcnt") &&
            __builtin_cpu_supports("movbe");
  bool v4 = v3 && __builtin_cpu_supports("avx512f") &&
            __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512cd") &&
            __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512vl");
  return v4 ? CpuLevel::X86_64_v4 : v3 ? CpuLevel::X86_64_v3 : CpuLevel::X86_64;
#else
  return std::nullopt;
#endif
}

} // namespace hyb::rt
