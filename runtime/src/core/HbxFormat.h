//===- HbxFormat.h - Byte layout of an artefact ---------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The `.hbx` container, shared by the compiler that writes it and the runtime
// that reads it. Plain C++ without LLVM. All integers are little endian, and
// every host this project builds for is little endian, so the structs are the
// bytes. docs/rationale/architecture.md section 6 is the specification.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CORE_HBXFORMAT_H
#define HYBRID_RUNTIME_CORE_HBXFORMAT_H

#include <cstddef>
#include <cstdint>

// Header-only use: neither the compiler nor the runtime gains a shared library.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace hyb {

inline constexpr char kHbxMagic[4] = {'H', 'B', 'X', '\x1a'};
/// A reader accepts its own major version with any minor version up to its own.
inline constexpr uint16_t kHbxMajor = 1;
inline constexpr uint16_t kHbxMinor = 0;
/// Sections start at multiples of this; the gaps are zero.
inline constexpr uint64_t kHbxAlignment = 64;
/// More sections than any artefact needs; bounds what a reader allocates.
inline constexpr uint32_t kHbxMaxSections = 1024;

struct HbxHeader {
  char magic[4];
  uint16_t major;
  uint16_t minor;
  uint32_t sectionCount;
  uint32_t zero;
  uint64_t fileSize;
  /// XXH64 (seed 0) of the section table, which follows the header.
  uint64_t tableChecksum;
  uint8_t padding[32];
};

struct HbxSection {
  /// Zero padded; a kind or name of all 16 characters has no terminator.
  char kind[16];
  char name[16];
  uint64_t offset;
  uint64_t size;
  /// XXH64 (seed 0) of the section's bytes.
  uint64_t checksum;
  uint64_t reserved;
};

static_assert(sizeof(HbxHeader) == 64 && offsetof(HbxHeader, fileSize) == 16 &&
              offsetof(HbxHeader, tableChecksum) == 24);
static_assert(sizeof(HbxSection) == 64 && offsetof(HbxSection, offset) == 32);
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "the artefact is little endian");

inline uint64_t hbxChecksum(const void *bytes, size_t size) {
  return XXH64(bytes, size, /*seed=*/0);
}

/// `value` rounded up to the section alignment; the caller bounds `value`.
inline uint64_t hbxAlign(uint64_t value) {
  return (value + kHbxAlignment - 1) / kHbxAlignment * kHbxAlignment;
}

} // namespace hyb

#endif // HYBRID_RUNTIME_CORE_HBXFORMAT_H
