//===- Nvtx.cpp ----------------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "cuda/Nvtx.h"

#include <cstdlib>
#include <dlfcn.h>

namespace hyb::rt::cuda {

namespace {
/// Where a profiler tells the library of ranges to find it.
constexpr const char *kInjection = "NVTX_INJECTION64_PATH";
/// Of CUDA 13, and of the toolkits before it.
constexpr const char *kLibraries[] = {"libnvtx3interop.so.1",
                                      "libnvToolsExt.so.1"};
} // namespace

std::unique_ptr<Nvtx> Nvtx::open() {
  if (!std::getenv(kInjection))
    return nullptr;
  for (const char *path : kLibraries) {
    auto nvtx = std::make_unique<Nvtx>();
    nvtx->library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!nvtx->library)
      continue;
    nvtx->push = reinterpret_cast<int (*)(const char *)>(
        ::dlsym(nvtx->library, "nvtxRangePushA"));
    nvtx->pop =
        reinterpret_cast<int (*)()>(::dlsym(nvtx->library, "nvtxRangePop"));
    if (nvtx->push && nvtx->pop)
      return nvtx;
  }
  return nullptr;
}

Nvtx::~Nvtx() {
  if (library)
    ::dlclose(library);
}

} // namespace hyb::rt::cuda
