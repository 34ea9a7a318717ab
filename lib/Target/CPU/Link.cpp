//===- Link.cpp - an object file to a shared object -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Link.h"

#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Object/ELF.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace {

template <typename... Args>
Error makeError(const char *format, Args &&...args) {
  return createStringError(formatv(format, std::forward<Args>(args)...).str());
}

Expected<std::string> findLinker(StringRef wanted) {
  if (!wanted.empty()) {
    if (sys::fs::can_execute(wanted))
      return wanted.str();
    return makeError("linker '{0}' cannot be executed", wanted);
  }
  for (StringRef name : {"ld.lld", "ld.lld-22"}) {
    if (auto path = sys::findProgramByName(name, {HYBRID_LLVM_TOOLS_DIR}))
      return *path;
    if (auto path = sys::findProgramByName(name))
      return *path;
  }
  return makeError("no ld.lld in '{0}' or on PATH; install lld-22",
                   HYBRID_LLVM_TOOLS_DIR);
}

/// A file that goes away with its last user.
struct TemporaryFile {
  SmallString<128> path;
  FileRemover remover;

  static Expected<std::unique_ptr<TemporaryFile>> create(StringRef suffix) {
    auto file = std::make_unique<TemporaryFile>();
    if (std::error_code error =
            sys::fs::createTemporaryFile("hybrid", suffix, file->path))
      return makeError("cannot create a temporary file: {0}", error.message());
    file->remover.setFile(file->path);
    return file;
  }
  Expected<std::string> read() const {
    auto buffer = MemoryBuffer::getFile(path, /*IsText=*/false,
                                        /*RequiresNullTerminator=*/false);
    if (!buffer)
      return makeError("cannot read '{0}': {1}", path,
                       buffer.getError().message());
    return (*buffer)->getBuffer().str();
  }
};

Error checkSharedObject(StringRef bytes) {
  using ELFFile = object::ELFFile<object::ELF64LE>;
  Expected<ELFFile> file = ELFFile::create(bytes);
  if (!file)
    return file.takeError();
  auto headers = file->program_headers();
  if (!headers)
    return headers.takeError();
  for (const auto &header : *headers)
    if (header.p_type == ELF::PT_LOAD && (header.p_flags & ELF::PF_W) &&
        (header.p_flags & ELF::PF_X))
      return makeError(
          "a segment of the kernels is both writable and executable");
  auto sections = file->sections();
  if (!sections)
    return sections.takeError();
  for (const auto &section : *sections) {
    if (section.sh_type != ELF::SHT_RELA)
      continue;
    auto relocations = file->relas(section);
    if (!relocations)
      return relocations.takeError();
    for (const auto &relocation : *relocations)
      if (relocation.getType(/*isMips64EL=*/false) != ELF::R_X86_64_RELATIVE)
        return makeError("relocation type {0} in the kernels is not relative",
                         relocation.getType(/*isMips64EL=*/false));
  }
  return Error::success();
}

} // namespace

/// A file with these bytes.
static Expected<std::unique_ptr<TemporaryFile>> writeObject(StringRef object) {
  auto file = TemporaryFile::create("o");
  if (!file)
    return file;
  std::error_code error;
  raw_fd_ostream stream((*file)->path, error);
  stream << object;
  stream.close();
  if (error || stream.has_error())
    return makeError("cannot write '{0}': {1}", (*file)->path,
                     (error ? error : stream.error()).message());
  return file;
}

Expected<std::string> hybrid::cpu::linkSharedObject(ArrayRef<StringRef> objects,
                                                    StringRef wanted) {
  Expected<std::string> linker = findLinker(wanted);
  if (!linker)
    return linker.takeError();
  auto output = TemporaryFile::create("so");
  auto log = TemporaryFile::create("log");
  for (auto *file : {&output, &log})
    if (!*file)
      return file->takeError();

  SmallVector<StringRef> arguments = {
      *linker,       "-shared",           "--no-undefined", "--build-id=none",
      "--strip-all", "--hash-style=sysv", "-znoexecstack",  "--icf=all",
      "-o",          (*output)->path};
  std::vector<std::unique_ptr<TemporaryFile>> inputs;
  for (StringRef object : objects) {
    auto file = writeObject(object);
    if (!file)
      return file.takeError();
    arguments.push_back((*file)->path);
    inputs.push_back(std::move(*file));
  }
  // The linker reads no input, so it keeps ours: /dev/null, which LLVM would
  // open for it, is missing in some containers.
  std::optional<StringRef> redirects[] = {std::nullopt, StringRef((*log)->path),
                                          StringRef((*log)->path)};
  std::string message;
  int status =
      sys::ExecuteAndWait(*linker, arguments, std::nullopt, redirects,
                          /*SecondsToWait=*/0, /*MemoryLimit=*/0, &message);
  if (status != 0) {
    if (Expected<std::string> text = (*log)->read())
      message += *text;
    return makeError("'{0}' failed on the kernels: {1}", *linker,
                     StringRef(message).trim());
  }
  Expected<std::string> bytes = (*output)->read();
  if (!bytes)
    return bytes.takeError();
  if (Error error = checkSharedObject(*bytes))
    return std::move(error);
  return bytes;
}
