//===- AtomicFile.h - Replace a file or leave it alone ----------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_IO_ATOMICFILE_H
#define HYBRID_RUNTIME_IO_ATOMICFILE_H

#include "core/Status.h"

#include <cstddef>

namespace hyb::rt {

/// Writes `.NAME.partial` beside the target; commit() makes it durable and
/// renames it over the target. Whatever happens before that, a full disk or a
/// loss of power included, the target is the old file. A partial file left by a
/// killed process is overwritten by the next writer. What cannot be replaced, a
/// device, a pipe or an open stream as /dev/stdout, is written to as it is.
class AtomicFile {
public:
  static Result<AtomicFile> create(const std::string &path);

  AtomicFile(AtomicFile &&other) noexcept
      : target(std::move(other.target)), partial(std::move(other.partial)),
        descriptor(std::exchange(other.descriptor, -1)) {}
  AtomicFile &operator=(AtomicFile &&) = delete;
  ~AtomicFile();

  Status write(const void *data, size_t size);
  Status commit();

private:
  AtomicFile() = default;

  std::string target;
  std::string partial; // empty: the target itself is written to
  int descriptor = -1;
};

/// AtomicFile for content that is in memory already.
Status writeFileAtomically(const std::string &path, const std::string &content);

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_IO_ATOMICFILE_H
