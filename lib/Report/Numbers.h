//===- Numbers.h - numbers as people read them -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_REPORT_NUMBERS_H
#define HYBRID_LIB_REPORT_NUMBERS_H

#include <cstdint>
#include <string>

namespace hybrid {

/// 1234567 as 1,234,567.
std::string formatCount(int64_t count);

/// Three digits and a power of thousand: 804.6 M.
std::string formatShort(double value);

/// Bytes in powers of 1024: 1.5 MiB.
std::string formatBytes(double bytes);

/// Seconds in the unit that suits them: 12.3 µs.
std::string formatSeconds(double seconds);

} // namespace hybrid

#endif // HYBRID_LIB_REPORT_NUMBERS_H
