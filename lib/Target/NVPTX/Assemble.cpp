//===- Assemble.cpp - PTX to a cubin with ptxas -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Target/NVPTX/Compile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include <cstdlib>

using namespace mlir;
using namespace hybrid::nvptx;

/// Folders of CUDA toolkits, those that the user names first, then by version,
/// the newest first.
static std::vector<std::string> toolkitFolders() {
  std::vector<std::string> folders;
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char *root = std::getenv(variable))
      folders.push_back(std::string(root) + "/bin");
  std::vector<std::string> installed;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it("/usr/local", error), end;
       !error && it != end; it.increment(error))
    if (llvm::sys::path::filename(it->path()).starts_with("cuda"))
      installed.push_back(it->path() + "/bin");
  auto version = [](StringRef path) {
    std::pair<unsigned, unsigned> number{0, 0};
    auto [name, digits] =
        llvm::sys::path::filename(llvm::sys::path::parent_path(path))
            .split('-');
    auto [major, minor] = digits.split('.');
    (void)major.getAsInteger(10, number.first);
    (void)minor.getAsInteger(10, number.second);
    return number;
  };
  llvm::sort(installed, [&](StringRef a, StringRef b) {
    return std::pair(version(a), a) > std::pair(version(b), b);
  });
  llvm::append_range(folders, installed);
  return folders;
}

std::string hybrid::nvptx::findAssembler(const AssembleOptions &options) {
  if (!options.ptxas.empty()) {
    auto found = llvm::sys::findProgramByName(options.ptxas);
    return found && llvm::sys::fs::can_execute(*found) ? *found : "";
  }
  if (auto found = llvm::sys::findProgramByName("ptxas"))
    return *found;
  for (const std::string &folder : toolkitFolders())
    if (auto found = llvm::sys::findProgramByName("ptxas", {StringRef(folder)}))
      return *found;
  return "";
}

/// The number before `unit` in a line such as
/// `Used 62 registers, used 1 barriers, 408 bytes cmem[0]`.
static int64_t numberBefore(StringRef line, StringRef unit) {
  auto [before, after] = line.split(unit);
  int64_t number = 0;
  (void)before.rtrim().rsplit(' ').second.getAsInteger(10, number);
  return number;
}

/// Reads what `ptxas -v` prints: for each kernel a line that names it, lines of
/// what it uses, and warnings in between.
static std::vector<KernelResources> readReport(StringRef log) {
  std::vector<KernelResources> kernels;
  auto current = [&]() -> KernelResources & {
    if (kernels.empty())
      kernels.emplace_back();
    return kernels.back();
  };
  for (StringRef line : llvm::split(log, '\n')) {
    if (line.contains("Compiling entry function")) {
      kernels.emplace_back();
      kernels.back().symbol = line.split('\'').second.split('\'').first.str();
    } else if (line.contains("bytes stack frame")) {
      current().stack = numberBefore(line, " bytes stack frame");
      current().spillStores = numberBefore(line, " bytes spill stores");
      current().spillLoads = numberBefore(line, " bytes spill loads");
    } else if (line.contains("Used ") && line.contains(" registers")) {
      current().registers = numberBefore(line, " registers");
      current().barriers = numberBefore(line, " barriers");
    } else if (line.contains("warning") || line.contains("Potential")) {
      current().notices.push_back(line.trim().str());
    }
  }
  return kernels;
}

namespace {
/// A file that is gone when the object is.
class TemporaryFile {
public:
  explicit TemporaryFile(StringRef suffix) {
    error = llvm::sys::fs::createTemporaryFile("hybridc", suffix, path);
    remover.setFile(path);
  }
  std::error_code error;
  SmallString<128> path;

private:
  llvm::FileRemover remover;
};
} // namespace

static std::string contentOf(StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : "";
}

FailureOr<AssembledCode>
hybrid::nvptx::assemble(Location loc, StringRef ptx, StringRef chip,
                        const AssembleOptions &options) {
  std::string ptxas = findAssembler(options);
  if (ptxas.empty()) {
    if (!options.ptxas.empty())
      return emitError(loc, "no assembler at '") << options.ptxas << "'";
    return emitError(loc, "no ptxas to assemble the kernels of ")
           << chip
           << " with: neither in PATH, nor in bin of CUDA_HOME, CUDA_PATH or "
              "/usr/local/cuda*; install the CUDA toolkit, or keep PTX alone";
  }
  TemporaryFile source("ptx"), object("cubin"), log("log");
  for (const TemporaryFile *file : {&source, &object, &log})
    if (file->error)
      return emitError(loc, "cannot make a temporary file: ")
             << file->error.message();
  std::error_code error;
  {
    llvm::raw_fd_ostream stream(source.path, error);
    stream << ptx;
    stream.close();
    if (stream.has_error()) {
      error = stream.error();
      stream.clear_error();
    }
  }
  if (error)
    return emitError(loc, "cannot write '")
           << source.path << "': " << error.message();

  std::string arch = ("-arch=" + chip).str();
  // Kernels are optimised in parallel. The cubin records the number, so it is
  // one number for all machines.
  StringRef arguments[] = {ptxas, "-v",        "--split-compile=8", arch,
                           "-o",  object.path, source.path};
  // ptxas reads no input, so it keeps ours: see the linker of the CPU.
  std::optional<StringRef> redirects[] = {std::nullopt, StringRef(log.path),
                                          StringRef(log.path)};
  std::string failure;
  int status = llvm::sys::ExecuteAndWait(ptxas, arguments, std::nullopt,
                                         redirects, 0, 0, &failure);
  std::string report = contentOf(log.path);
  if (status != 0)
    return emitError(loc, "ptxas refuses the code for ")
           << chip << ": " << (failure.empty() ? report : failure);
  return AssembledCode{contentOf(object.path), readReport(report)};
}
