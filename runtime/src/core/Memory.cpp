//===- Memory.cpp --------------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/Memory.h"

#include <cinttypes>
#include <sys/mman.h>

namespace hyb::rt {

namespace {
/// From here on huge pages save more address translation than they waste.
constexpr int64_t kHugePage = int64_t(2) << 20;
} // namespace

Result<Memory> Memory::allocate(int64_t bytes) {
  Memory memory;
  if (bytes == 0)
    return memory;
  // The extra line lets vector code read past the last row.
  int64_t total = bytes;
  if (bytes < 0 || __builtin_add_overflow(bytes, int64_t(64), &total))
    return failure(HYB_OUT_OF_MEMORY, "cannot allocate %" PRId64 " bytes",
                   bytes);
  // Without NORESERVE, so that the system may say no now and not kill later.
  void *address =
      ::mmap(nullptr, static_cast<size_t>(total), PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED)
    return failure(HYB_OUT_OF_MEMORY,
                   "cannot allocate %" PRId64
                   " bytes; use a smaller batch, context or number of slots",
                   bytes);
  if (total >= kHugePage)
    ::madvise(address, static_cast<size_t>(total), MADV_HUGEPAGE);
  memory.address = address;
  memory.size = bytes;
  return memory;
}

Memory::~Memory() {
  if (address)
    ::munmap(address, static_cast<size_t>(size) + 64);
}

} // namespace hyb::rt
