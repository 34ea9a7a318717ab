//===- Container.cpp - the bytes of a .hbx file -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Artefact/Container.h"

#include "core/HbxFormat.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Errno.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

using namespace llvm;

//===----------------------------------------------------------------------===//
// Container
//===----------------------------------------------------------------------===//

static Error checkSections(ArrayRef<hybrid::ArtefactSection> sections) {
  if (sections.size() > hyb::kHbxMaxSections)
    return createStringError(
        "artefact has %zu sections, at most %u are allowed", sections.size(),
        hyb::kHbxMaxSections);
  StringSet<> names;
  for (const hybrid::ArtefactSection &section : sections) {
    for (StringRef text : {StringRef(section.kind), StringRef(section.name)})
      if (text.size() > sizeof(hyb::HbxSection::kind) || text.contains('\0'))
        return createStringError(
            "section kind or name '%s' has %zu bytes, at most %zu are allowed",
            text.str().c_str(), text.size(), sizeof(hyb::HbxSection::kind));
    if (section.kind.empty())
      return createStringError("section '%s' has no kind",
                               section.name.c_str());
    if (!names.insert(section.kind + '\0' + section.name).second)
      return createStringError("section '%s' named '%s' occurs twice",
                               section.kind.c_str(), section.name.c_str());
  }
  return Error::success();
}

Expected<std::string>
hybrid::serialiseArtefact(ArrayRef<ArtefactSection> sections) {
  if (Error error = checkSections(sections))
    return std::move(error);

  std::vector<hyb::HbxSection> table(sections.size());
  uint64_t end =
      sizeof(hyb::HbxHeader) + table.size() * sizeof(hyb::HbxSection);
  for (auto [entry, section] : llvm::zip_equal(table, sections)) {
    std::memset(&entry, 0, sizeof(entry));
    std::memcpy(entry.kind, section.kind.data(), section.kind.size());
    std::memcpy(entry.name, section.name.data(), section.name.size());
    entry.offset = hyb::hbxAlign(end);
    entry.size = section.bytes.size();
    entry.checksum =
        hyb::hbxChecksum(section.bytes.data(), section.bytes.size());
    end = entry.offset + entry.size;
  }

  hyb::HbxHeader header;
  std::memset(&header, 0, sizeof(header));
  std::memcpy(header.magic, hyb::kHbxMagic, sizeof(header.magic));
  header.major = hyb::kHbxMajor;
  header.minor = hyb::kHbxMinor;
  header.sectionCount = table.size();
  header.fileSize = end;
  size_t tableBytes = table.size() * sizeof(hyb::HbxSection);
  header.tableChecksum = hyb::hbxChecksum(table.data(), tableBytes);

  std::string bytes(end, '\0');
  std::memcpy(bytes.data(), &header, sizeof(header));
  if (!table.empty())
    std::memcpy(bytes.data() + sizeof(header), table.data(), tableBytes);
  for (auto [entry, section] : llvm::zip_equal(table, sections))
    std::memcpy(bytes.data() + entry.offset, section.bytes.data(), entry.size);
  return bytes;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static Error lastError(const Twine &what, StringRef path) {
  int code = errno;
  return createStringError(std::error_code(code, std::generic_category()),
                           "cannot " + what + " '" + path +
                               "': " + sys::StrError(code));
}

static Error writeAll(int descriptor, StringRef bytes, StringRef path) {
  while (!bytes.empty()) {
    ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR)
        continue;
      return lastError("write", path);
    }
    bytes = bytes.drop_front(written);
  }
  // A rename may reach the disk before the data does. Devices have no disk.
  if (::fsync(descriptor) != 0 && errno != EINVAL)
    return lastError("write", path);
  return Error::success();
}

/// Makes the rename itself durable. Some file systems refuse to synchronise a
/// folder; the file is complete there all the same.
static void synchroniseFolder(StringRef path) {
  SmallString<128> folder = sys::path::parent_path(path);
  int descriptor = ::open(folder.empty() ? "." : folder.c_str(),
                          O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    return;
  ::fsync(descriptor);
  ::close(descriptor);
}

/// Renaming over a device or a pipe would replace it by a file.
static Error writeToDevice(StringRef path, StringRef bytes) {
  int descriptor = ::open(path.str().c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0)
    return lastError("write", path);
  Error error = writeAll(descriptor, bytes, path);
  if (::close(descriptor) != 0 && !error)
    error = lastError("write", path);
  return error;
}

Error hybrid::writeFileAtomically(StringRef path, StringRef bytes) {
  sys::fs::file_status status;
  if (!sys::fs::status(path, status) && sys::fs::is_other(status))
    return writeToDevice(path, bytes);
  // What a link names is replaced, not the link: it may be /dev/stdout.
  SmallString<128> target(path), temporary;
  if (sys::fs::is_symlink_file(path))
    if (std::error_code code = sys::fs::real_path(path, target))
      return createStringError(code, "cannot write '" + path +
                                         "': it is a link to a file that "
                                         "cannot be found: " +
                                         code.message());
  int descriptor = -1;
  if (std::error_code code = sys::fs::createUniqueFile(
          target + ".%%%%%%%%.partial", descriptor, temporary))
    return createStringError(code,
                             "cannot write '" + path + "': " + code.message());
  // An interrupt leaves nothing half-written beside the place of the file.
  sys::RemoveFileOnSignal(temporary);
  llvm::scope_exit keep([&] { sys::DontRemoveFileOnSignal(temporary); });
  Error error = writeAll(descriptor, bytes, path);
  if (::close(descriptor) != 0 && !error)
    error = lastError("write", path);
  if (!error && ::rename(temporary.c_str(), target.c_str()) != 0)
    error = lastError("write", path);
  if (error) {
    ::unlink(temporary.c_str());
    return error;
  }
  synchroniseFolder(target);
  return Error::success();
}
