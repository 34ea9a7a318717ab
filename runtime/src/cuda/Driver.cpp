//===- Driver.cpp --------------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "cuda/Driver.h"

#include <cstdlib>
#include <dlfcn.h>

namespace hyb::rt::cuda {

namespace {

constexpr const char *kLibrary = "libcuda.so.1";
/// Kernel nodes of graphs have the form used here since CUDA 12.0.
constexpr int kOldestVersion = 12000;

std::string versionText(int version) {
  return std::to_string(version / 1000) + "." +
         std::to_string(version % 1000 / 10);
}

/// Errors after which every call on the context fails.
bool isLasting(int code) {
  return code == kIllegalAddress || (code >= 714 && code <= 719) || code == 46;
}

const char *wayOut(int code) {
  if (code == kOutOfMemory)
    return "; use a smaller batch, context or number of slots";
  if (isLasting(code))
    return "; what is on this GPU is lost: start the process again, and with "
           "working memory poisoned to see which kernel it was";
  return "";
}

} // namespace

Driver::~Driver() {
  if (library)
    ::dlclose(library);
}

Status Driver::resolve(const char *path) {
  library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *reason = ::dlerror();
    return failure(HYB_UNSUPPORTED,
                   "no NVIDIA driver: %.300s; install one, or use --device=cpu",
                   reason ? reason : "unknown reason");
  }
#define HYB_CUDA_RESOLVE(name, symbol, arguments)                              \
  name = reinterpret_cast<int(*) arguments>(::dlsym(library, symbol));         \
  if (!name)                                                                   \
    return failure(HYB_UNSUPPORTED,                                            \
                   "driver library %.200s has no %s: CUDA %s or newer is "     \
                   "needed; update the NVIDIA driver",                         \
                   path, symbol, versionText(kOldestVersion).c_str());
  HYB_CUDA_FUNCTIONS(HYB_CUDA_RESOLVE)
#undef HYB_CUDA_RESOLVE
#define HYB_CUDA_TRY(name, symbol, arguments)                                  \
  name = reinterpret_cast<int(*) arguments>(::dlsym(library, symbol));
  HYB_CUDA_OPTIONAL_FUNCTIONS(HYB_CUDA_TRY)
#undef HYB_CUDA_TRY
  return Status();
}

Result<std::shared_ptr<const Driver>> Driver::open() {
  const char *chosen = std::getenv("HYBRID_CUDA_DRIVER");
  const char *path = chosen && *chosen ? chosen : kLibrary;
  auto driver = std::make_shared<Driver>();
  HYB_TRY(driver->resolve(path));
  int code = driver->init(0);
  if (code == kNoDevice)
    return failure(HYB_UNSUPPORTED,
                   "the NVIDIA driver sees no GPU; use --device=cpu");
  if (code == kStubLibrary)
    return failure(HYB_UNSUPPORTED,
                   "%.200s is the toolkit's stub and no driver; install the "
                   "NVIDIA driver, or use --device=cpu",
                   path);
  HYB_TRY(driver->check(code, "cuda", "start the driver"));
  HYB_TRY(driver->check(driver->driverVersion(&driver->versionNumber), "cuda",
                        "read the driver's version"));
  if (driver->versionNumber < kOldestVersion)
    return failure(HYB_UNSUPPORTED,
                   "the NVIDIA driver supports CUDA %s, %s is needed; update "
                   "it, or use --device=cpu",
                   versionText(driver->versionNumber).c_str(),
                   versionText(kOldestVersion).c_str());
  return std::shared_ptr<const Driver>(std::move(driver));
}

Status Driver::check(int code, const std::string &where,
                     const std::string &action) const {
  if (code == kSuccess)
    return Status();
  const char *name = nullptr, *text = nullptr;
  if (errorName(code, &name) != kSuccess || !name)
    name = "unknown error";
  if (errorText(code, &text) != kSuccess || !text)
    text = "";
  return failure(code == kOutOfMemory ? HYB_OUT_OF_MEMORY : HYB_DEVICE,
                 "%s: cannot %s: %s (%d: %s)%s", where.c_str(), action.c_str(),
                 name, code, text, wayOut(code));
}

} // namespace hyb::rt::cuda
