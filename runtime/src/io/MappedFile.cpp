//===- MappedFile.cpp -----------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "io/MappedFile.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hyb::rt {

Result<MappedFile> MappedFile::open(const std::string &path) {
  // O_NONBLOCK: opening a pipe must not wait for a writer.
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    return systemFailure("open", path, errno);
  struct stat description;
  if (::fstat(descriptor, &description) != 0) {
    Status status = systemFailure("examine", path, errno);
    ::close(descriptor);
    return status;
  }
  if (!S_ISREG(description.st_mode)) {
    ::close(descriptor);
    return failure(HYB_IO, "cannot read %s: not a regular file", path.c_str());
  }
  MappedFile file;
  // An empty mapping is not allowed by the system; an empty file is by us.
  if (description.st_size > 0) {
    size_t size = static_cast<size_t>(description.st_size);
    void *memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (memory == MAP_FAILED) {
      Status status = systemFailure("map", path, errno);
      ::close(descriptor);
      return status;
    }
    file.content = {static_cast<const uint8_t *>(memory), size};
  }
  ::close(descriptor);
  return file;
}

MappedFile::~MappedFile() {
  if (content.data)
    ::munmap(const_cast<uint8_t *>(content.data), content.size);
}

} // namespace hyb::rt
