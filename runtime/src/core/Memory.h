//===- Memory.h - Aligned memory that may not be there ----------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CORE_MEMORY_H
#define HYBRID_RUNTIME_CORE_MEMORY_H

#include "core/Status.h"

#include <cstdint>

namespace hyb::rt {

/// A block that starts at a page, holds zeros when new, and is refused with a
/// status instead of an exception. The pages are given out by the system when
/// they are first written.
class Memory {
public:
  static Result<Memory> allocate(int64_t bytes);

  Memory() = default;
  Memory(Memory &&other) noexcept { swap(other); }
  Memory &operator=(Memory &&other) noexcept {
    swap(other);
    return *this;
  }
  ~Memory();

  void *data() const { return address; }
  float *floats() const { return static_cast<float *>(address); }
  int32_t *integers() const { return static_cast<int32_t *>(address); }
  int64_t bytes() const { return size; }

private:
  void swap(Memory &other) {
    std::swap(address, other.address);
    std::swap(size, other.size);
  }

  void *address = nullptr;
  int64_t size = 0;
};

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_CORE_MEMORY_H
