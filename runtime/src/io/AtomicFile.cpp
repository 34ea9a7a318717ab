//===- AtomicFile.cpp -----------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "io/AtomicFile.h"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <memory>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hyb::rt {

namespace {

std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos)
    return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// Makes the rename itself durable.
Status syncFolder(const std::string &folder) {
  int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    return systemFailure("open folder", folder, errno);
  Status status;
  // Some file systems cannot sync a folder and say EINVAL; there the rename is
  // as durable as it gets.
  if (::fsync(descriptor) != 0 && errno != EINVAL)
    status = systemFailure("sync folder", folder, errno);
  ::close(descriptor);
  return status;
}

/// `path`, or where it leads if it is a symbolic link.
Result<std::string> followLink(const std::string &path) {
  struct stat link;
  if (::lstat(path.c_str(), &link) != 0 || !S_ISLNK(link.st_mode))
    return path;
  std::unique_ptr<char, decltype(&std::free)> real(
      ::realpath(path.c_str(), nullptr), &std::free);
  if (!real)
    return systemFailure("follow the link", path, errno);
  return std::string(real.get());
}

/// Whether the path names something that a rename would replace by a file, or a
/// stream that somebody else has open.
bool isWrittenThrough(const std::string &path) {
  for (const char *streams :
       {"/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/self/fd/"})
    if (path.rfind(streams, 0) == 0)
      return true;
  struct stat present;
  return ::stat(path.c_str(), &present) == 0 &&
         (S_ISCHR(present.st_mode) || S_ISFIFO(present.st_mode));
}

} // namespace

Result<AtomicFile> AtomicFile::create(const std::string &path) {
  AtomicFile file;
  size_t slash = path.rfind('/');
  std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  if (name.empty())
    return failure(
        HYB_INVALID_ARGUMENT,
        "cannot write '%s': the path names a folder; add a file name",
        path.c_str());
  if (isWrittenThrough(path)) {
    file.target = path;
    // At the end, where a stream goes to a file.
    file.descriptor =
        ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
    if (file.descriptor < 0)
      return systemFailure("open", path, errno);
    return file;
  }
  struct stat present;
  if (::stat(path.c_str(), &present) == 0 && !S_ISREG(present.st_mode))
    return failure(
        HYB_IO,
        "cannot write %s: it is there and not a file that can be replaced; "
        "choose another path",
        path.c_str());
  // What a link names is replaced, not the link.
  HYB_ASSIGN(file.target, followLink(path));
  name = file.target.substr(file.target.rfind('/') + 1);
  file.partial = folderOf(file.target) + "/." + name + ".partial";
  file.descriptor = ::open(file.partial.c_str(),
                           O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (file.descriptor < 0)
    return systemFailure("create", file.partial, errno);
  if (::flock(file.descriptor, LOCK_EX | LOCK_NB) != 0) {
    // Another process writes it: leave its partial file alone.
    ::close(std::exchange(file.descriptor, -1));
    return failure(HYB_IO,
                   "cannot write %s: another process is writing it; choose "
                   "another path or wait",
                   path.c_str());
  }
  // The lock may be on a file that was renamed over the target after we opened
  // it: truncating that would destroy the checkpoint just written.
  struct stat opened, named;
  if (::fstat(file.descriptor, &opened) != 0 ||
      ::stat(file.partial.c_str(), &named) != 0 ||
      opened.st_ino != named.st_ino) {
    ::close(std::exchange(file.descriptor, -1));
    return failure(HYB_IO,
                   "cannot write %s: another process has just written it; "
                   "choose another path or try again",
                   path.c_str());
  }
  if (::ftruncate(file.descriptor, 0) != 0)
    return systemFailure("truncate", file.partial, errno);
  return file;
}

AtomicFile::~AtomicFile() {
  if (descriptor < 0)
    return;
  if (!partial.empty())
    ::unlink(partial.c_str());
  ::close(descriptor);
}

Status AtomicFile::write(const void *data, size_t size) {
  const char *next = static_cast<const char *>(data);
  while (size > 0) {
    // The system call takes at most 2 GiB at a time.
    size_t piece = size < (size_t(1) << 30) ? size : size_t(1) << 30;
    ssize_t written = ::write(descriptor, next, piece);
    if (written < 0) {
      if (errno == EINTR)
        continue;
      return systemFailure("write", target, errno);
    }
    next += written;
    size -= static_cast<size_t>(written);
  }
  return Status();
}

Status AtomicFile::commit() {
  if (partial.empty()) {
    // Some file systems find a full disk no earlier.
    int failed = ::close(std::exchange(descriptor, -1)) != 0 ? errno : 0;
    return failed ? systemFailure("write", target, failed) : Status();
  }
  if (::fsync(descriptor) != 0)
    return systemFailure("sync", target, errno);
  if (::rename(partial.c_str(), target.c_str()) != 0)
    return systemFailure("replace", target, errno);
  ::close(std::exchange(descriptor, -1));
  return syncFolder(folderOf(target));
}

Status writeFileAtomically(const std::string &path,
                           const std::string &content) {
  HYB_ASSIGN(AtomicFile file, AtomicFile::create(path));
  HYB_TRY(file.write(content.data(), content.size()));
  return file.commit();
}

} // namespace hyb::rt
