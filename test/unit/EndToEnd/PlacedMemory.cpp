//===- PlacedMemory.cpp - kernels on memory in awkward places -------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PlacedMemory.h"

#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;
using namespace hybrid;
using namespace hybrid::test;
using hybrid::cpu::KernelView;
using hybrid::tile::HostView;

namespace {

/// Zero pages that cost nothing until they are touched, the last one closed.
class Pages {
public:
  explicit Pages(size_t bytes) {
    size_t page = sysconf(_SC_PAGESIZE);
    size = llvm::alignTo(bytes, page) + page;
    base = static_cast<char *>(mmap(nullptr, size, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                                    -1, 0));
    EXPECT_NE(base, MAP_FAILED);
    guard = base + size - page;
    EXPECT_EQ(mprotect(guard, page, PROT_NONE), 0);
  }
  ~Pages() { munmap(base, size); }
  Pages(const Pages &) = delete;

  char *base, *guard;

private:
  size_t size;
};

/// One view in memory of its own.
struct Placed {
  std::unique_ptr<Pages> pages;
  KernelView view;
  bool isReal;
};

/// Calls `visit(element of the host, address of the kernel's)` for each
/// element.
void forEach(const HostView &host, const KernelView &view,
             llvm::function_ref<void(double &, char *)> visit) {
  SmallVector<int64_t> index(host.sizes.size(), 0);
  int64_t count = 1;
  for (int64_t size : host.sizes)
    count *= size;
  for (int64_t n = 0; n < count; ++n) {
    int64_t from = host.offset, to = 0;
    for (size_t d = 0; d < index.size(); ++d) {
      from += index[d] * host.strides[d];
      to += index[d] * view.strides[d];
    }
    visit(host.memory[from], static_cast<char *>(view.base) + 4 * to);
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < host.sizes[d])
        break;
      index[d] = 0;
    }
  }
}

void store(double value, char *address, bool isReal) {
  float real = value;
  int32_t integer = isReal ? 0 : int32_t(value);
  std::memcpy(address, isReal ? (void *)&real : (void *)&integer, 4);
}

double load(const char *address, bool isReal) {
  float real;
  int32_t integer;
  std::memcpy(&real, address, 4);
  std::memcpy(&integer, address, 4);
  return isReal ? double(real) : double(integer);
}

/// Lays out views by `place`, copies in, runs, and copies out.
LogicalResult
runPlaced(const cpu::LoadedKernel &kernel, tile::ProgramOp program,
          ArrayRef<HostView> views, ArrayRef<int64_t> symbols,
          llvm::function_ref<Placed(const HostView &, tile::ViewType)> place) {
  std::vector<Placed> placed;
  SmallVector<KernelView> arguments;
  for (auto [host, argument] : llvm::zip_equal(views, program.getViews())) {
    auto type = cast<tile::ViewType>(argument.getType());
    placed.push_back(place(host, type));
    Placed &copy = placed.back();
    copy.isReal = type.getElementType().isF32();
    forEach(host, copy.view,
            [&](double &x, char *address) { store(x, address, copy.isReal); });
    arguments.push_back(copy.view);
  }
  FailureOr<cpu::Grid> grid = cpu::gridOf(program, symbols);
  if (failed(grid))
    return failure();
  kernel.run(arguments, grid->sizes, grid->parallel);
  for (auto [host, copy] : llvm::zip_equal(views, placed))
    forEach(host, copy.view, [&, &copy = copy](double &x, char *address) {
      x = load(address, copy.isReal);
    });
  return success();
}

int64_t extentOf(const HostView &host, ArrayRef<int64_t> strides) {
  int64_t last = 0;
  for (auto [size, stride] : llvm::zip(host.sizes, strides)) {
    if (size == 0)
      return 0;
    last += (size - 1) * stride;
  }
  return last + 1;
}

} // namespace

LogicalResult test::runBeforeGuardPages(const cpu::LoadedKernel &kernel,
                                        tile::ProgramOp program,
                                        ArrayRef<HostView> views,
                                        ArrayRef<int64_t> symbols) {
  return runPlaced(kernel, program, views, symbols,
                   [](const HostView &host, tile::ViewType) {
                     int64_t bytes = 4 * extentOf(host, host.strides);
                     Placed placed{std::make_unique<Pages>(bytes), {}, true};
                     placed.view.base = placed.pages->guard - bytes;
                     llvm::copy(host.sizes, placed.view.sizes);
                     llvm::copy(host.strides, placed.view.strides);
                     return placed;
                   });
}

LogicalResult test::runOnDistantRows(const cpu::LoadedKernel &kernel,
                                     tile::ProgramOp program,
                                     ArrayRef<HostView> views,
                                     ArrayRef<int64_t> symbols) {
  auto place = [](const HostView &host, tile::ViewType type) {
    SmallVector<int64_t> strides(host.strides.begin(), host.strides.end());
    int64_t rows = host.sizes[0];
    if (rows > 1 && ShapedType::isDynamic(type.getStrides()[0]))
      strides[0] =
          llvm::alignTo((int64_t(1) << 31) / (rows - 1) + strides[0], 16);
    Placed placed{
        std::make_unique<Pages>(4 * extentOf(host, strides)), {}, true};
    placed.view.base = placed.pages->base;
    llvm::copy(host.sizes, placed.view.sizes);
    llvm::copy(strides, placed.view.strides);
    return placed;
  };
  return runPlaced(kernel, program, views, symbols, place);
}
