//===- Numbers.cpp - numbers as people read them -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Numbers.h"

#include "llvm/Support/FormatVariadic.h"

std::string hybrid::formatCount(int64_t count) {
  std::string digits = std::to_string(count);
  for (int64_t at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(at, ",");
  return digits;
}

std::string hybrid::formatShort(double value) {
  static const char *const units[] = {"", " k", " M", " G", " T", " P"};
  unsigned unit = 0;
  for (; value >= 999.95 && unit + 1 < std::size(units); ++unit)
    value /= 1000.0;
  return llvm::formatv("{0:F1}{1}", value, units[unit]).str();
}

std::string hybrid::formatBytes(double bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  unsigned unit = 0;
  for (; bytes >= 1023.95 && unit + 1 < std::size(units); ++unit)
    bytes /= 1024.0;
  return llvm::formatv(unit ? "{0:F1} {1}" : "{0:F0} {1}", bytes, units[unit])
      .str();
}

std::string hybrid::formatSeconds(double seconds) {
  static const char *const units[] = {"s", "ms", "µs", "ns"};
  unsigned unit = 0;
  for (; seconds < 0.9995 && unit + 1 < std::size(units); ++unit)
    seconds *= 1000.0;
  return llvm::formatv("{0:F2} {1}", seconds, units[unit]).str();
}
