//===- SharedMemorySim.h - how Hopper reads and writes shared memory ------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the copy engine and the tensor cores do with addresses, written from
// NVIDIA's documents and not from the code that is tested with it: PTX ISA,
// "Swizzling Modes" of tensor copies, "Matrix Descriptor" and "Strides" of
// wgmma, and the canonical layouts of CUTLASS (cute/arch/mma_sm90_desc.hpp).
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TEST_UNIT_TARGET_NVPTX_HOPPER_SHAREDMEMORYSIM_H
#define HYBRID_TEST_UNIT_TARGET_NVPTX_HOPPER_SHAREDMEMORYSIM_H

#include <cstdint>

namespace hybrid::hopper::sim {

/// The 128-byte swizzle: bits 7 to 9 of an address change bits 4 to 6.
inline int64_t swizzle128(int64_t address) {
  return address ^ ((address >> 7 & 7) << 4);
}

/// Where the copy engine puts an element of 16 bits of a box whose rows have
/// 128 bytes.
inline int64_t boxAddress(int64_t start, int64_t row, int64_t column) {
  return swizzle128(start + row * 128 + column * 2);
}

/// The fields of a descriptor, distances in bytes.
struct Descriptor {
  int64_t start, leading, stride, swizzle;

  explicit Descriptor(uint64_t bits)
      : start(int64_t(bits & 0x3fff) << 4),
        leading(int64_t(bits >> 16 & 0x3fff) << 4),
        stride(int64_t(bits >> 32 & 0x3fff) << 4), swizzle(bits >> 62) {}

  /// Where one instruction reads the element of an operand of 16 bits: `index`
  /// is its row (left) or column (right), `depth` is below 16.
  ///
  /// K-major: rows of the swizzle's 128 bytes run along the depth, eight of
  /// them are a block, blocks of the index are `stride` apart. MN-major: 64 of
  /// the index are one row, the next 64 are `leading` away; eight of the depth
  /// are a block, blocks of the depth are `stride` apart.
  int64_t address(int64_t index, int64_t depth, bool isMajorIndex) const {
    if (!isMajorIndex)
      return swizzle128(start + index / 8 * stride + index % 8 * 128 +
                        depth * 2);
    return swizzle128(start + index / 64 * leading + index % 64 * 2 +
                      depth / 8 * stride + depth % 8 * 128);
  }
};

} // namespace hybrid::hopper::sim

#endif // HYBRID_TEST_UNIT_TARGET_NVPTX_HOPPER_SHAREDMEMORYSIM_H
