//===- CudaProgram.cpp ---------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "cuda/CudaProgram.h"

#include "io/HbxReader.h"

#include <algorithm>
#include <cstdio>

namespace hyb::rt::cuda {

namespace {

/// Dynamic shared memory above this must be asked for.
constexpr int64_t kSharedWithoutAsking = 48 << 10;

/// "sm_90a": the capability and whether it is for that one alone.
struct Chip {
  int capability;
  bool exact;
};

std::optional<Chip> parseChip(const std::string &name) {
  if (name.compare(0, 3, "sm_") != 0)
    return std::nullopt;
  size_t end = name.find_first_not_of("0123456789", 3);
  std::string digits = name.substr(3, end == std::string::npos ? end : end - 3);
  if (digits.empty() || digits.size() > 4)
    return std::nullopt;
  return Chip{std::stoi(digits), end != std::string::npos};
}

/// How well a section serves: 0 not at all, the larger the better.
int suitability(const HbxReader::Section &section, int capability) {
  std::optional<Chip> chip = parseChip(section.name);
  if (!chip || chip->capability > capability ||
      (chip->exact && chip->capability != capability))
    return 0;
  bool machineCode = section.kind == "cubin";
  // Machine code runs within a generation; PTX on everything that is newer.
  if (machineCode && chip->capability / 10 != capability / 10)
    return 0;
  return (machineCode ? 100000 : 1) + 10 * chip->capability +
         (chip->exact ? 1 : 0);
}

bool isGpuCode(const HbxReader::Section &section) {
  return section.kind == "cubin" || section.kind == "ptx";
}

/// The newest PTX that a driver takes, times ten ("PTX ISA, release notes"); 0
/// for drivers that came after this table.
int newestPtx(int driver) {
  int major = driver / 1000, minor = driver % 1000 / 10;
  switch (major) {
  case 11:
    return 70 + minor;
  case 12: // 12.5 and 12.6 have the same
    return 80 + minor - (minor > 5 ? 1 : 0);
  case 13:
    return 90 + minor;
  default:
    return 0;
  }
}

/// The version of PTX that a text says it is in, times ten; 0 when it says
/// none.
int ptxVersion(const std::string &text) {
  int major = 0, minor = 0;
  size_t at = text.find(".version ");
  if (at == std::string::npos ||
      std::sscanf(text.c_str() + at, ".version %4d.%1d", &major, &minor) != 2)
    return 0;
  return 10 * major + minor;
}

/// What a driver does not say when it refuses PTX that is newer than itself.
std::string needsNewerDriver(const std::string &text, int driver) {
  int version = ptxVersion(text), newest = newestPtx(driver);
  if (newest == 0 || version <= newest)
    return "";
  char said[160];
  std::snprintf(said, sizeof(said),
                "; PTX ISA %d.%d needs a newer driver; this driver (CUDA "
                "%d.%d) accepts up to %d.%d",
                version / 10, version % 10, driver / 1000, driver % 1000 / 10,
                newest / 10, newest % 10);
  return said;
}

/// The log as one line of bounded length.
std::string oneLine(const char *log) {
  std::string text;
  for (; *log && text.size() < 400; ++log) {
    char letter = *log == '\n' || *log == '\t' ? ' ' : *log;
    if (letter >= ' ' &&
        !(letter == ' ' && (text.empty() || text.back() == ' ')))
      text += letter;
  }
  return text;
}

} // namespace

Result<std::string> chooseChip(const HbxReader &artefact, int capability,
                               const std::string &device) {
  const HbxReader::Section *best = nullptr;
  std::string held;
  for (const HbxReader::Section &section : artefact.sections()) {
    if (!isGpuCode(section))
      continue;
    held += (held.empty() ? "" : ", ") + section.kind + " " + section.name;
    int value = suitability(section, capability);
    if (value > 0 && artefact.find("plan", section.name) &&
        (!best || value > suitability(*best, capability)))
      best = &section;
  }
  if (best)
    return best->name;
  return failure(HYB_UNSUPPORTED,
                 "artefact holds %s, %s has compute capability %d.%d; compile "
                 "the spec with --target=cuda:sm_%d%s",
                 held.empty() ? "no GPU code" : held.c_str(), device.c_str(),
                 capability / 10, capability % 10, capability,
                 capability >= 90 ? "a" : "");
}

CudaProgram::~CudaProgram() {
  if (!module)
    return;
  ContextScope scope(*context);
  context->driver().moduleUnload(module);
}

Status CudaProgram::tryImage(const std::string &what, const void *image) {
  char errors[4096] = {}, notes[4096] = {};
  int names[] = {kJitErrorLog, kJitErrorLogSize, kJitInfoLog, kJitInfoLogSize};
  void *values[] = {
      errors, reinterpret_cast<void *>(uintptr_t(sizeof(errors) - 1)), notes,
      reinterpret_cast<void *>(uintptr_t(sizeof(notes) - 1))};
  int code = context->driver().moduleLoad(&module, image, 4, names, values);
  Status status = context->check(code, "load " + what);
  if (status.ok())
    return status;
  module = nullptr;
  std::string log = oneLine(errors[0] ? errors : notes);
  return Status(status.code(),
                status.message() + (log.empty() ? "" : "; its log: " + log));
}

// Machine code of a newer toolkit may be refused by an older driver that takes
// the PTX.
Status CudaProgram::loadModule(const HbxReader &artefact,
                               const std::string &chip) {
  Status first;
  if (const HbxReader::Section *cubin = artefact.find("cubin", chip)) {
    first = tryImage("cubin " + chip, cubin->content.data);
    if (first.ok())
      return first;
  }
  const HbxReader::Section *ptx = artefact.find("ptx", chip);
  if (!ptx)
    return first;
  // The driver wants a terminated text.
  std::string text(ptx->content.begin(), ptx->content.end());
  Status second = tryImage("PTX " + chip, text.c_str());
  if (second.ok()) {
    name = chip + " from PTX";
    return second;
  }
  second = Status(second.code(),
                  second.message() +
                      needsNewerDriver(text, context->driver().version()));
  return first.ok()
             ? second
             : Status(second.code(), first.message() + "; " + second.message());
}

Result<CudaKernel> CudaProgram::loadKernel(const PlanKernel &kernel) const {
  const Driver &driver = context->driver();
  std::string where = "kernel " + kernel.name + " (" + kernel.symbol + ")";
  CudaKernel result;
  result.name = kernel.name;
  int code =
      driver.moduleFunction(&result.function, module, kernel.symbol.c_str());
  if (code == kNotFound)
    return failure(HYB_INVALID_FILE,
                   "code for %s has no kernel '%.64s' (%.64s); compile the "
                   "spec again",
                   name.c_str(), kernel.symbol.c_str(), kernel.name.c_str());
  HYB_TRY(context->check(code, "find " + where));
  int staticShared = 0;
  HYB_TRY(context->check(driver.functionAttribute(&result.maxThreads,
                                                  kFunctionMaxThreads,
                                                  result.function),
                         "read the limits of " + where));
  driver.functionAttribute(&result.registers, kFunctionRegisters,
                           result.function);
  driver.functionAttribute(&staticShared, kFunctionStaticShared,
                           result.function);
  if (kernel.threads < 1 || kernel.threads > result.maxThreads)
    return failure(HYB_UNSUPPORTED,
                   "%s: %s wants %lld threads in a block, with its %d "
                   "registers at most %d fit; compile the spec for this GPU",
                   context->name().c_str(), where.c_str(),
                   static_cast<long long>(kernel.threads), result.registers,
                   result.maxThreads);
  int limit = context->attribute(kMaxSharedPerBlockOptIn) - staticShared;
  if (kernel.sharedBytes > limit)
    return failure(HYB_UNSUPPORTED,
                   "%s: %s needs %lld bytes of shared memory, a block can have "
                   "%d; compile the spec for this GPU",
                   context->name().c_str(), where.c_str(),
                   static_cast<long long>(kernel.sharedBytes), limit);
  if (kernel.sharedBytes + staticShared > kSharedWithoutAsking)
    HYB_TRY(context->check(
        driver.functionSet(result.function, kFunctionMaxDynamicShared,
                           static_cast<int>(kernel.sharedBytes)),
        "give " + where + " its shared memory"));
  // A processor changes how it divides its memory between cache and shared
  // memory only while no block runs on it: a kernel that the driver wanted
  // another division for would begin early nowhere, and where a processor is
  // empty with several blocks. A hint, which may be refused.
  if (kernel.overlaps)
    driver.functionSet(result.function, kFunctionSharedCarveOut, 100);
  result.sharedBytes = static_cast<unsigned>(kernel.sharedBytes);
  result.threads = static_cast<unsigned>(kernel.threads);
  result.maps = kernel.maps;
  result.overlaps = kernel.overlaps;
  // One per processor: they have all of its shared memory.
  if (kernel.persistent)
    result.mostBlocks = context->attribute(kProcessors);
  return result;
}

Result<std::unique_ptr<Program>>
CudaProgram::load(std::shared_ptr<CudaContext> context,
                  const HbxReader &artefact, const std::string &chip,
                  const Plan &plan) {
  auto program = std::make_unique<CudaProgram>();
  program->context = std::move(context);
  program->name = chip;
  ContextScope scope(*program->context);
  HYB_TRY(scope.status());
  HYB_TRY(program->loadModule(artefact, chip));
  for (const PlanKernel &kernel : plan.kernels) {
    HYB_ASSIGN(CudaKernel loaded, program->loadKernel(kernel));
    program->loaded.push_back(std::move(loaded));
    program->handles.push_back(&program->loaded.back());
  }
  return std::unique_ptr<Program>(std::move(program));
}

} // namespace hyb::rt::cuda
