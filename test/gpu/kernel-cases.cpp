//===- kernel-cases.cpp - runs recorded kernels on a card -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   HYBRID_GPU_CASES=cases build/dev/test/unit/bin/HybridTargetNVPTXTests
//   kernel-cases cases/*.case
//
// Runs what the unit tests of the NVPTX target recorded: a cubin, its
// arguments, and what the interpreter of tile programs says they are
// afterwards. Needs the driver alone. Every kernel runs three times from the
// same state; results must be equal to the bit, and shared memory holds
// whatever the kernel before left.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <string>
#include <vector>

namespace {

// Of the driver's API, which is opened by name: nothing of a toolkit is needed.
using CUresult = int;
using CUdevice = int;
using CUcontext = struct CUctx_st *;
using CUmodule = struct CUmod_st *;
using CUfunction = struct CUfunc_st *;
using CUstream = struct CUstream_st *;
using CUdeviceptr = unsigned long long;
constexpr CUresult kSuccess = 0;
constexpr int kMaxDynamicShared = 8;

/// The driver's functions, by name.
struct Driver {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);

  template <typename... Arguments>
  void call(const char *name, Arguments... arguments) {
    using Function = CUresult (*)(Arguments...);
    auto function = reinterpret_cast<Function>(dlsym(library, name));
    if (!function) {
      std::printf("no %s in the driver\n", name);
      std::exit(1);
    }
    CUresult result = function(arguments...);
    if (result != kSuccess) {
      std::printf("%s failed with %d in %s\n", name, int(result),
                  where.c_str());
      std::exit(1);
    }
  }
  std::string where;
};

struct View {
  bool isReal;
  int64_t sizes[4], strides[4];
  std::vector<uint32_t> before, expected;
};

struct Case {
  std::string symbol, cubin;
  int64_t threads, sharedBytes, tasks, grid[4];
  double tolerance;
  std::vector<View> views;
};

class Reader {
public:
  explicit Reader(const char *path)
      : path(path), stream(path, std::ios::binary) {}
  template <typename T> T get() {
    T value;
    read(&value, sizeof value);
    return value;
  }
  std::string text() {
    std::string bytes(get<int64_t>(), '\0');
    read(bytes.data(), bytes.size());
    return bytes;
  }
  std::vector<uint32_t> words(int64_t count) {
    std::vector<uint32_t> values(count);
    read(values.data(), 4 * values.size());
    return values;
  }

private:
  void read(void *to, size_t bytes) {
    if (stream.read(static_cast<char *>(to), bytes))
      return;
    std::printf("%s ends too early; record it again\n", path);
    std::exit(1);
  }

  const char *path;
  std::ifstream stream;
};

Case readCase(const char *path) {
  Reader in(path);
  Case c;
  c.symbol = in.text();
  c.cubin = in.text();
  c.threads = in.get<int64_t>();
  c.sharedBytes = in.get<int64_t>();
  c.tasks = in.get<int64_t>();
  for (int64_t &size : c.grid)
    size = in.get<int64_t>();
  c.tolerance = in.get<double>();
  c.views.resize(in.get<int64_t>());
  for (View &view : c.views) {
    view.isReal = in.get<int64_t>();
    int64_t count = in.get<int64_t>();
    for (int64_t &size : view.sizes)
      size = in.get<int64_t>();
    for (int64_t &stride : view.strides)
      stride = in.get<int64_t>();
    view.before = in.words(count);
    view.expected = in.words(count);
  }
  return c;
}

float realOf(uint32_t word) {
  float value;
  std::memcpy(&value, &word, 4);
  return value;
}

/// struct hyb_view
struct KernelView {
  CUdeviceptr base;
  int64_t sizes[4], strides[4];
};

std::vector<std::vector<uint32_t>> run(Driver &driver, const Case &c,
                                       CUfunction kernel) {
  std::vector<CUdeviceptr> memory;
  std::vector<char> arguments(sizeof(KernelView) * c.views.size() + 32);
  for (size_t n = 0; n < c.views.size(); ++n) {
    const View &view = c.views[n];
    size_t bytes = std::max<size_t>(4 * view.before.size(), 4);
    CUdeviceptr pointer;
    driver.call("cuMemAlloc_v2", &pointer, bytes);
    driver.call("cuMemcpyHtoD_v2", pointer,
                static_cast<const void *>(view.before.data()),
                4 * view.before.size());
    memory.push_back(pointer);
    KernelView argument{pointer, {}, {}};
    std::copy(view.sizes, view.sizes + 4, argument.sizes);
    std::copy(view.strides, view.strides + 4, argument.strides);
    std::memcpy(arguments.data() + n * sizeof argument, &argument,
                sizeof argument);
  }
  std::memcpy(arguments.data() + arguments.size() - 32, c.grid, 32);
  void *parameters[] = {arguments.data()};
  if (c.tasks > 0)
    driver.call("cuLaunchKernel", kernel, unsigned(c.tasks), 1u, 1u,
                unsigned(c.threads), 1u, 1u, unsigned(c.sharedBytes),
                CUstream(nullptr), static_cast<void **>(parameters),
                static_cast<void **>(nullptr));
  driver.call("cuCtxSynchronize");
  std::vector<std::vector<uint32_t>> results;
  for (size_t n = 0; n < c.views.size(); ++n) {
    results.emplace_back(c.views[n].before.size());
    driver.call("cuMemcpyDtoH_v2", static_cast<void *>(results.back().data()),
                memory[n], 4 * results.back().size());
    driver.call("cuMemFree_v2", memory[n]);
  }
  return results;
}

/// Reports elements that are off and returns the largest error, relative to the
/// largest magnitude of the buffer or 1.
double compare(const Case &c, const std::vector<std::vector<uint32_t>> &got) {
  double worst = 0.0;
  for (size_t n = 0; n < c.views.size(); ++n) {
    const View &view = c.views[n];
    double largest = 1.0;
    for (uint32_t word : view.expected)
      if (view.isReal && std::isfinite(realOf(word)))
        largest = std::max<double>(largest, std::fabs(realOf(word)));
    int reports = 0;
    for (size_t i = 0; i < view.expected.size(); ++i) {
      uint32_t word = got[n][i], expected = view.expected[i];
      if (word == expected)
        continue;
      double x = realOf(word), y = realOf(expected);
      double error = view.isReal ? std::fabs(x - y) / largest : INFINITY;
      if (std::isnan(x) && std::isnan(y))
        continue;
      if (std::isnan(error))
        error = INFINITY;
      worst = std::max(worst, error);
      if (error > c.tolerance && ++reports <= 2)
        std::printf("  argument %zu element %zu of %zu is %g (%08x), not %g "
                    "(%08x)\n",
                    n, i, view.expected.size(), x, word, y, expected);
    }
  }
  return worst;
}

} // namespace

int main(int count, char **paths) {
  Driver driver;
  if (!driver.library) {
    std::printf("no CUDA driver: %s\n", dlerror());
    return 1;
  }
  CUdevice device;
  CUcontext context;
  driver.call("cuInit", 0u);
  driver.call("cuDeviceGet", &device, 0);
  driver.call("cuDevicePrimaryCtxRetain", &context, device);
  driver.call("cuCtxSetCurrent", context);
  int failures = 0;
  for (int n = 1; n < count; ++n) {
    Case c = readCase(paths[n]);
    driver.where = paths[n];
    CUmodule module;
    CUfunction kernel;
    driver.call("cuModuleLoadData", &module,
                static_cast<const void *>(c.cubin.data()));
    driver.call("cuModuleGetFunction", &kernel, module, c.symbol.c_str());
    driver.call("cuFuncSetAttribute", kernel, kMaxDynamicShared,
                int(c.sharedBytes));
    auto first = run(driver, c, kernel);
    double error = compare(c, first);
    bool isSame = true;
    for (int again = 0; again < 2; ++again)
      isSame &= run(driver, c, kernel) == first;
    bool isRight = error <= c.tolerance && isSame;
    failures += !isRight;
    const char *name = std::strrchr(paths[n], '/');
    std::printf("%s %s: error %.2g of %.2g%s\n", isRight ? "ok  " : "FAIL",
                name ? name + 1 : paths[n], error, c.tolerance,
                isSame ? "" : ", differs from run to run");
    driver.call("cuModuleUnload", module);
  }
  std::printf("%d of %d cases failed\n", failures, count - 1);
  return failures != 0;
}
