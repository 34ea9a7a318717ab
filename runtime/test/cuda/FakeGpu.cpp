//===- FakeGpu.cpp -------------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeGpu.h"

#include "FakeImage.h"
#include "cpu/KernelBorder.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <sys/mman.h>

namespace hyb::test {

using namespace rt::cuda;

namespace {

constexpr int kInvalidValue = 1, kInvalidHandle = 400;
constexpr size_t kPage = 4096;

size_t pages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

void *mapPages(size_t bytes, int protection) {
  void *address =
      ::mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return address == MAP_FAILED ? nullptr : address;
}

bool within(const std::map<uint64_t, uint64_t> &blocks, uint64_t address,
            uint64_t bytes) {
  auto it = blocks.upper_bound(address);
  if (it == blocks.begin())
    return false;
  --it;
  return address + bytes <= it->first + it->second;
}

/// One past the last byte that a view reaches.
uint64_t reach(const rt::KernelView &view, uint64_t elementBytes) {
  uint64_t last = 0;
  for (int d = 0; d < 4; ++d) {
    bool unused = view.sizes[d] == 0 && view.strides[d] == 0;
    if (view.sizes[d] == 0 && !unused)
      return 0;
    if (!unused)
      last += static_cast<uint64_t>((view.sizes[d] - 1) * view.strides[d]);
  }
  return elementBytes * (last + 1);
}

} // namespace

FakeGpu &FakeGpu::instance() {
  static FakeGpu gpu;
  return gpu;
}

FakeGpu::FakeGpu() {
  const char *settings = std::getenv("HYBRID_FAKE_CUDA");
  std::istringstream list(settings ? settings : "");
  for (std::string item; std::getline(list, item, ',');) {
    size_t equals = item.find('=');
    std::string key = item.substr(0, equals);
    int64_t value = std::atoll(item.c_str() + equals + 1);
    for (auto [name, field] : {std::pair{"devices", &control.devices},
                               {"version", &control.version},
                               {"memory", &control.memory},
                               {"capability", &control.capability},
                               {"fail_allocation", &control.failAllocation},
                               {"fail_launch", &control.failLaunch},
                               {"fail_choice", &control.failChoice},
                               {"fail_product", &control.failProduct},
                               {"lose_device", &control.loseDevice}})
      if (key == name)
        *field = value;
  }
  streams[nullptr];
}

int FakeGpu::inject(int64_t &counter, int code) {
  if (counter <= 0 || --counter > 0)
    return kSuccess;
  counter = -1;
  return code;
}

int FakeGpu::complain(const std::string &what, int code) {
  if (control.complaints++ == 0)
    std::snprintf(control.complaint, sizeof(control.complaint), "%s",
                  what.c_str());
  std::fprintf(stderr, "fake driver: %s\n", what.c_str());
  return code;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

// A guard page on either side; the end of the block touches the second one, up
// to the alignment.
int FakeGpu::allocate(Pointer *address, size_t bytes) {
  if (bytes == 0)
    return complain("allocation of no bytes", kInvalidValue);
  if (int code = inject(control.failAllocation, kOutOfMemory))
    return code;
  if (control.liveBytes + static_cast<int64_t>(bytes) > control.memory)
    return kOutOfMemory;
  char *base =
      static_cast<char *>(mapPages(pages(bytes) + 2 * kPage, PROT_NONE));
  if (!base)
    return kOutOfMemory;
  char *begin = base + kPage;
  ::mprotect(begin, pages(bytes), PROT_READ | PROT_WRITE);
  std::memset(begin, 0xff, pages(bytes));
  ::mprotect(begin, pages(bytes), PROT_NONE);
  *address = static_cast<Pointer>(reinterpret_cast<uintptr_t>(begin));
  deviceBlocks[*address] = bytes;
  control.liveBytes += static_cast<int64_t>(bytes);
  ++control.liveAllocations;
  ++control.allocations;
  return kSuccess;
}

int FakeGpu::release(Pointer address) {
  auto it = deviceBlocks.find(address);
  if (it == deviceBlocks.end())
    return complain("memory is freed that is not allocated", kInvalidValue);
  int code = waitForAll();
  ::munmap(reinterpret_cast<char *>(static_cast<uintptr_t>(address)) - kPage,
           pages(it->second) + 2 * kPage);
  control.liveBytes -= static_cast<int64_t>(it->second);
  --control.liveAllocations;
  deviceBlocks.erase(it);
  return code;
}

int FakeGpu::pin(void **address, size_t bytes) {
  if (int code = inject(control.failPinned, kOutOfMemory))
    return code;
  *address = mapPages(pages(bytes), PROT_READ | PROT_WRITE);
  if (!*address)
    return kOutOfMemory;
  std::memset(*address, 0xff, bytes);
  pinnedBlocks[reinterpret_cast<uintptr_t>(*address)] = bytes;
  ++control.livePinned;
  ++control.pinned;
  return kSuccess;
}

int FakeGpu::unpin(void *address) {
  auto it = pinnedBlocks.find(reinterpret_cast<uintptr_t>(address));
  if (it == pinnedBlocks.end())
    return complain("memory is unpinned that is not pinned", kInvalidValue);
  int code = waitForAll();
  ::munmap(address, pages(it->second));
  pinnedBlocks.erase(it);
  --control.livePinned;
  return code;
}

bool FakeGpu::isPinned(const void *address, size_t bytes) const {
  return within(pinnedBlocks, reinterpret_cast<uintptr_t>(address), bytes);
}

bool FakeGpu::isDevice(uint64_t address, uint64_t bytes) const {
  return within(deviceBlocks, address, bytes);
}

void FakeGpu::protect(bool open) {
  for (const auto &[address, bytes] : deviceBlocks)
    ::mprotect(reinterpret_cast<void *>(address), pages(bytes),
               open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

int FakeGpu::load(const void *image, FakeModule **module) {
  if (int code = inject(control.failModule, kNoBinaryForGpu))
    return code;
  const char *text = static_cast<const char *>(image);
  size_t magic = std::strlen(kFakeMagic);
  if (std::strncmp(text, kFakeMagic, magic) != 0)
    return std::strncmp(text,
                        "\x7f"
                        "ELF",
                        4) == 0
               ? kNoBinaryForGpu
               : kInvalidPtx;
  size_t objectSize = std::strtoull(text + magic, nullptr, 10);
  const char *object = std::strstr(text, "\n\n") + 2;
  std::istringstream lines(std::string(std::strchr(text, '\n') + 1, object));
  auto made = std::make_unique<FakeModule>();
  auto loaded = rt::CodeImage::load(
      rt::Bytes{reinterpret_cast<const uint8_t *>(object), objectSize});
  if (!loaded.ok())
    return complain(loaded.status().message(), kNoBinaryForGpu);
  made->image = std::move(*loaded);
  for (std::string line; std::getline(lines, line) && !line.empty();) {
    std::istringstream words(line);
    FakeFunction function;
    std::string views;
    words >> function.symbol >> views >> function.scratch >> function.maps;
    for (char digit : views == "-" ? "" : views)
      function.views.push_back(static_cast<uint64_t>(digit - '0'));
    function.kernel = made->image.function(function.symbol);
    if (function.kernel)
      made->functions[function.symbol] = function;
  }
  *module = made.get();
  modules.push_back(std::move(made));
  ++control.liveModules;
  return kSuccess;
}

int FakeGpu::prepare(const KernelNode &node, FakeLaunch *launch) {
  auto *function = reinterpret_cast<const FakeFunction *>(node.function);
  if (!function || !node.parameters || node.extra)
    return complain("launch without a kernel or its parameters", kInvalidValue);
  if (node.gridX == 0 || node.gridX > INT32_MAX || node.gridY != 1 ||
      node.gridZ != 1 || node.blockX == 0 || node.blockX > 1024 ||
      node.blockY != 1 || node.blockZ != 1)
    return complain("launch with a bad grid or block", kInvalidValue);
  if (static_cast<int>(node.sharedBytes) > function->dynamicShared)
    return complain("launch with more shared memory than was asked for",
                    kInvalidValue);
  const auto *words = static_cast<const uint64_t *>(node.parameters[0]);
  launch->function = function;
  launch->tasks = node.gridX;
  launch->parameters.assign(words, words + 9 * function->views.size() + 4);
  // Each map was encoded here, of memory that is still there, and lies as the
  // driver wants it.
  for (size_t n = 0; n < function->maps; ++n) {
    const auto *map = static_cast<const uint64_t *>(node.parameters[1 + n]);
    if (reinterpret_cast<uintptr_t>(map) % 64 != 0 || map[0] != kFakeMapMagic ||
        !isDevice(map[1], map[2]))
      return complain("launch with a tensor map that is none", kInvalidValue);
  }
  return kSuccess;
}

int FakeGpu::encode(TensorMap *map, unsigned rank, uint64_t address,
                    const uint64_t *sizes, const uint64_t *strides,
                    const unsigned *box, const unsigned *steps) {
  if (reinterpret_cast<uintptr_t>(map) % 64 != 0 || rank < 1 || rank > 5)
    return complain("tensor map at a bad place or of a bad rank",
                    kInvalidValue);
  bool isGood = address % 16 == 0 && box[0] * 2 == 128;
  uint64_t bytes = 2;
  for (unsigned n = 0; n < rank; ++n) {
    uint64_t stride = n == 0 ? 2 : strides[n - 1];
    isGood &= sizes[n] >= 1 && sizes[n] <= uint64_t(1) << 32 && box[n] >= 1 &&
              box[n] <= 256 && steps[n] == 1 && (n == 0 || stride % 16 == 0);
    bytes += (sizes[n] - 1) * stride;
  }
  // What the real driver answers, too, is no misuse.
  if (!isGood)
    return kInvalidValue;
  if (!isDevice(address, bytes))
    return complain("tensor map outside device memory", kInvalidValue);
  ++control.tensorMaps;
  map->words[0] = kFakeMapMagic;
  map->words[1] = address;
  map->words[2] = bytes;
  return kSuccess;
}

int FakeGpu::execute(const FakeLaunch &launch) {
  ++control.launches;
  control.blocks += launch.tasks;
  if (inject(control.loseDevice, kIllegalAddress))
    lastingError = kIllegalAddress;
  if (lastingError)
    return lastingError;
  const auto *views =
      reinterpret_cast<const rt::KernelView *>(launch.parameters.data());
  const int64_t *grid = reinterpret_cast<const int64_t *>(
      launch.parameters.data() + 9 * launch.function->views.size());
  for (size_t i = 0; i < launch.function->views.size(); ++i) {
    uint64_t bytes = reach(views[i], launch.function->views[i]);
    uint64_t base = reinterpret_cast<uintptr_t>(views[i].base);
    if (bytes > 0 && !isDevice(base, bytes)) {
      lastingError =
          complain("view " + std::to_string(i) + " of kernel " +
                       launch.function->symbol + " lies outside device memory",
                   kIllegalAddress);
      return lastingError;
    }
  }
  std::vector<char> scratch(static_cast<size_t>(launch.function->scratch) +
                            128);
  uintptr_t aligned =
      (reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64;
  rt::Launch plain = {launch.function->kernel, views, grid, launch.tasks};
  for (int64_t task = 0; task < launch.tasks; ++task)
    rt::kernelOf(plain)(views, grid, task, reinterpret_cast<void *>(aligned));
  return kSuccess;
}

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

int FakeGpu::enqueue(Stream stream, std::function<int()> work) {
  auto it = streams.find(stream);
  if (it == streams.end())
    return complain("work for a stream that does not exist", kInvalidHandle);
  if (lastingError)
    return lastingError;
  FakeGraph *recorded = it->second.recorded;
  (recorded ? recorded->work : it->second.work).push_back(std::move(work));
  return kSuccess;
}

int FakeGpu::beginRecording(Stream stream) {
  auto it = streams.find(stream);
  if (!stream || it == streams.end() || it->second.recorded)
    return complain("a stream that cannot be recorded", kInvalidHandle);
  it->second.recorded = new FakeGraph();
  return kSuccess;
}

int FakeGpu::endRecording(Stream stream, FakeGraph **graph) {
  auto it = streams.find(stream);
  if (it == streams.end() || !it->second.recorded)
    return complain("the end of a recording that never began", kInvalidHandle);
  *graph = std::exchange(it->second.recorded, nullptr);
  return kSuccess;
}

int FakeGpu::enqueueLaunch(Stream stream, FakeLaunch launch) {
  if (int code = inject(control.failLaunch, kLaunchOutOfResources))
    return code;
  return enqueue(
      stream, [this, launch = std::move(launch)] { return execute(launch); });
}

int FakeGpu::wait(Stream stream) {
  auto it = streams.find(stream);
  if (it == streams.end())
    return complain("wait for a stream that does not exist", kInvalidHandle);
  if (it->second.recorded)
    return complain("wait for a stream that is recorded", kInvalidHandle);
  std::vector<std::function<int()>> work = std::move(it->second.work);
  it->second.work.clear();
  if (work.empty())
    return lastingError;
  protect(/*open=*/true);
  int code = lastingError;
  for (const std::function<int()> &step : work)
    if (code == kSuccess)
      code = step();
  protect(/*open=*/false);
  return code;
}

int FakeGpu::waitForAll() {
  int code = kSuccess;
  for (auto &[stream, state] : streams)
    if (int result = wait(stream))
      code = result;
  return code;
}

} // namespace hyb::test
