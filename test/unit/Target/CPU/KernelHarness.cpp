//===- KernelHarness.cpp - runs compiled programs beside the interpreter -===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelHarness.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <unistd.h>

using namespace mlir;
using namespace hybrid;
using namespace hybrid::cpu;
using hybrid::tile::HostBuffer;
using hybrid::tile::HostView;

LoadedKernel::LoadedKernel(const CompiledCode &code, StringRef symbol) {
  char path[] = "/tmp/hybrid-kernel-XXXXXX";
  int file = mkstemp(path);
  EXPECT_EQ(write(file, code.elf.data(), code.elf.size()),
            ssize_t(code.elf.size()));
  close(file);
  library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  unlink(path);
  if (!library) {
    ADD_FAILURE() << dlerror();
    return;
  }
  function = reinterpret_cast<Function>(dlsym(library, symbol.str().c_str()));
  EXPECT_TRUE(function) << "no symbol " << symbol.str();
  for (const Kernel &kernel : code.kernels)
    if (kernel.symbol == symbol)
      scratchBytes = kernel.scratchBytes;
}

LoadedKernel::~LoadedKernel() {
  if (library)
    dlclose(library);
}

void LoadedKernel::run(ArrayRef<KernelView> views, ArrayRef<int64_t> grid,
                       ArrayRef<bool> parallel) const {
  int64_t tasks = 1;
  for (auto [size, isParallel] : llvm::zip_equal(grid, parallel))
    if (isParallel)
      tasks *= size;
  // A guard behind the scratch shows a kernel that needs more than it says.
  constexpr size_t kGuard = 64;
  size_t bytes = llvm::alignTo(scratchBytes, 64) + kGuard;
  std::unique_ptr<unsigned char, decltype(&std::free)> scratch(
      static_cast<unsigned char *>(std::aligned_alloc(64, bytes)), &std::free);
  for (int64_t task = 0; task < tasks; ++task) {
    std::memset(scratch.get(), 0xFF, bytes);
    function(views.data(), grid.data(), task, scratch.get());
    for (size_t n = scratchBytes; n < bytes; ++n)
      ASSERT_EQ(scratch.get()[n], 0xFF)
          << "byte " << n << " past the scratch was written";
  }
}

SmallVector<Level> hybrid::cpu::levelsHere() {
  SmallVector<Level> levels{Level::Base};
  if (__builtin_cpu_supports("x86-64-v3"))
    levels.push_back(Level::V3);
  if (__builtin_cpu_supports("x86-64-v4"))
    levels.push_back(Level::V4);
  return levels;
}

FailureOr<Grid> hybrid::cpu::gridOf(tile::ProgramOp program,
                                    ArrayRef<int64_t> symbols) {
  SmallVector<Attribute> constants, results;
  Builder builder(program.getContext());
  for (int64_t symbol : symbols)
    constants.push_back(builder.getI64IntegerAttr(symbol));
  if (failed(program.getGrid().constantFold(constants, results)))
    return failure();
  Grid grid;
  for (auto [dim, size] : llvm::enumerate(results)) {
    grid.sizes.push_back(cast<IntegerAttr>(size).getInt());
    grid.parallel.push_back(program.getOrderOf(dim) == tile::Order::parallel);
  }
  return grid;
}

LogicalResult hybrid::cpu::runCompiled(tile::ProgramOp program,
                                       ArrayRef<HostView> views,
                                       ArrayRef<int64_t> symbols, Level level) {
  auto module = program->getParentOfType<ModuleOp>();
  auto code = compile(module, {program.getSymName()}, level);
  if (failed(code))
    return failure();
  LoadedKernel kernel(*code, program.getSymName());
  return runLoaded(kernel, program, views, symbols);
}

LogicalResult hybrid::cpu::runLoaded(const LoadedKernel &kernel,
                                     tile::ProgramOp program,
                                     ArrayRef<HostView> views,
                                     ArrayRef<int64_t> symbols) {
  // One copy per memory, so that views which share memory still do.
  std::map<double *, std::vector<uint32_t>> copies;
  std::map<double *, Type> elements;
  SmallVector<KernelView> arguments;
  for (auto [view, argument] : llvm::zip_equal(views, program.getViews())) {
    Type element = cast<tile::ViewType>(argument.getType()).getElementType();
    auto [copy, isNew] =
        copies.try_emplace(view.memory.data(), view.memory.size());
    elements[view.memory.data()] = element;
    for (size_t n = 0; isNew && n < view.memory.size(); ++n) {
      float real = view.memory[n];
      int32_t integer = element.isF32() ? 0 : int32_t(view.memory[n]);
      std::memcpy(&copy->second[n],
                  element.isF32() ? (void *)&real : (void *)&integer, 4);
    }
    KernelView converted{copy->second.data() + view.offset, {}, {}};
    llvm::copy(view.sizes, converted.sizes);
    llvm::copy(view.strides, converted.strides);
    arguments.push_back(converted);
  }

  FailureOr<Grid> grid = gridOf(program, symbols);
  if (failed(grid))
    return failure();
  auto before = copies;
  kernel.run(arguments, grid->sizes, grid->parallel);

  for (const HostView &view : views) {
    const std::vector<uint32_t> &copy = copies[view.memory.data()];
    const std::vector<uint32_t> &old = before[view.memory.data()];
    bool isReal = elements[view.memory.data()].isF32();
    for (auto [target, word, oldWord] :
         llvm::zip_equal(view.memory, copy, old)) {
      float real;
      std::memcpy(&real, &word, 4);
      // A word that was not written keeps what double has and f32 has not.
      if (word != oldWord)
        target = isReal ? double(real) : double(int32_t(word));
    }
  }
  return success();
}

void hybrid::target::KernelTest::compare(tile::ProgramOp program,
                                         ArrayRef<HostBuffer *> buffers,
                                         ArrayRef<int64_t> symbols,
                                         double tolerance) {
  // What the kernels see, the interpreter has to see too.
  for (HostBuffer *buffer : buffers)
    for (double &x : buffer->elements())
      x = float(x);
  SmallVector<HostBuffer> before;
  for (HostBuffer *buffer : buffers)
    before.push_back(*buffer);
  run(program, buffers, symbols);
  for (Level level : levelsHere()) {
    SmallVector<HostBuffer> after = before;
    SmallVector<HostView> views;
    for (HostBuffer &buffer : after)
      views.push_back(buffer.view());
    ASSERT_TRUE(succeeded(runCompiled(program, views, symbols, level)))
        << reported;
    for (auto [number, expected, got] : llvm::enumerate(buffers, after)) {
      double largest = 1.0;
      for (double x : expected->elements())
        if (std::isfinite(x))
          largest = std::max(largest, std::fabs(x));
      int reports = 0;
      for (auto [n, x, y] :
           llvm::enumerate(expected->elements(), got.elements())) {
        bool same = (std::isnan(x) && std::isnan(y)) || x == y ||
                    std::fabs(x - y) <= tolerance * largest;
        if (!same && ++reports <= 3)
          ADD_FAILURE() << traitsOf(level).name.str() << ": element " << n
                        << " of argument " << number << " is " << y
                        << ", the interpreter gives " << x;
      }
      EXPECT_TRUE(got.tailIsIntact())
          << traitsOf(level).name.str() << ": argument " << number
          << " was written past its end";
    }
  }
}
