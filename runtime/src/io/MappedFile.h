//===- MappedFile.h - A file as read-only memory ----------------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_IO_MAPPEDFILE_H
#define HYBRID_RUNTIME_IO_MAPPEDFILE_H

#include "core/Status.h"

#include <cstddef>
#include <cstdint>

namespace hyb::rt {

/// Some bytes that somebody else owns.
struct Bytes {
  const uint8_t *data = nullptr;
  size_t size = 0;

  const uint8_t *begin() const { return data; }
  const uint8_t *end() const { return data + size; }
};

/// A regular file, mapped. Its size is taken once. The bytes are hostile but
/// must not change while mapped: whoever truncates a file in use gets SIGBUS,
/// as with every mapped file.
class MappedFile {
public:
  static Result<MappedFile> open(const std::string &path);

  MappedFile() = default;
  MappedFile(MappedFile &&other) noexcept { swap(other); }
  MappedFile &operator=(MappedFile &&other) noexcept {
    swap(other);
    return *this;
  }
  ~MappedFile();

  Bytes bytes() const { return content; }

private:
  void swap(MappedFile &other) { std::swap(content, other.content); }

  Bytes content;
};

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_IO_MAPPEDFILE_H
