//===- KernelHarness.cpp - programs as kernels, assembled -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelHarness.h"

#include <cstdlib>
#include <cstring>
#include <fstream>

using namespace mlir;
using namespace hybrid;
using hybrid::tile::HostBuffer;
using hybrid::tile::HostView;

namespace {

/// Numbers and bytes of a case, little endian, one after another.
class CaseWriter {
public:
  explicit CaseWriter(const std::string &path)
      : stream(path, std::ios::binary) {}

  void number(int64_t value) { raw(&value, sizeof value); }
  void real(double value) { raw(&value, sizeof value); }
  void text(StringRef bytes) {
    number(bytes.size());
    raw(bytes.data(), bytes.size());
  }
  /// As f32 or i32.
  void words(ArrayRef<double> values, bool isReal) {
    for (double value : values) {
      float real = value;
      int32_t integer = isReal ? 0 : int32_t(value);
      raw(isReal ? static_cast<void *>(&real) : &integer, 4);
    }
  }

private:
  void raw(const void *bytes, size_t count) {
    stream.write(static_cast<const char *>(bytes), count);
  }
  std::ofstream stream;
};

std::string currentTest() {
  const testing::TestInfo *info =
      testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::string(info->test_suite_name()) + "." + info->name();
  for (char &c : name)
    if (c == '/')
      c = '-';
  return name;
}

} // namespace

void hybrid::target::KernelTest::writeCase(tile::ProgramOp program,
                                           const nvptx::Kernel &kernel,
                                           StringRef ptx, StringRef cubin,
                                           ArrayRef<HostBuffer *> buffers,
                                           ArrayRef<int64_t> symbols,
                                           double tolerance) {
  const char *folder = std::getenv("HYBRID_GPU_CASES");
  if (!folder)
    return;
  SmallVector<Attribute> constants, results;
  Builder builder(program.getContext());
  for (int64_t symbol : symbols)
    constants.push_back(builder.getI64IntegerAttr(symbol));
  ASSERT_TRUE(succeeded(program.getGrid().constantFold(constants, results)));
  int64_t tasks = 1, grid[4] = {0, 0, 0, 0};
  for (auto [dim, size] : llvm::enumerate(results)) {
    grid[dim] = cast<IntegerAttr>(size).getInt();
    if (program.getOrderOf(dim) == tile::Order::parallel)
      tasks *= grid[dim];
  }

  std::string path =
      std::string(folder) + "/" + currentTest() + "." + std::to_string(cases++);
  std::error_code error;
  llvm::raw_fd_ostream text(path + ".mlir", error);
  text << program << "\n";
  llvm::raw_fd_ostream(path + ".ptx", error) << ptx;
  CaseWriter out(path + ".case");
  out.text(kernel.symbol);
  out.text(cubin);
  out.number(kernel.threads);
  out.number(kernel.sharedBytes);
  out.number(tasks);
  for (int64_t size : grid)
    out.number(size);
  out.real(tolerance);
  SmallVector<HostBuffer> before;
  for (HostBuffer *buffer : buffers)
    before.push_back(*buffer);
  run(program, buffers, symbols);
  out.number(buffers.size());
  for (auto [old, expected, argument] :
       llvm::zip_equal(before, buffers, program.getViews())) {
    bool isReal =
        cast<tile::ViewType>(argument.getType()).getElementType().isF32();
    HostView start = old.view(), end = expected->view();
    out.number(isReal);
    out.number(start.memory.size());
    for (unsigned n = 0; n < 4; ++n)
      out.number(n < start.sizes.size() ? start.sizes[n] : 0);
    for (unsigned n = 0; n < 4; ++n)
      out.number(n < start.strides.size() ? start.strides[n] : 0);
    out.words(start.memory, isReal);
    out.words(end.memory, isReal);
  }
}

void hybrid::target::KernelTest::compare(tile::ProgramOp program,
                                         ArrayRef<HostBuffer *> buffers,
                                         ArrayRef<int64_t> symbols,
                                         double tolerance) {
  // What the kernels see, the interpreter has to see too.
  for (HostBuffer *buffer : buffers)
    for (double &x : buffer->elements())
      x = float(x);
  constexpr StringRef chip = "sm_90a";
  auto code = nvptx::compile(*module, program.getSymName(), chip);
  ASSERT_TRUE(succeeded(code)) << reported;
  if (nvptx::findAssembler().empty())
    GTEST_SKIP() << "no ptxas";
  auto assembled = nvptx::assemble(UnknownLoc::get(&context), code->ptx, chip);
  ASSERT_TRUE(succeeded(assembled)) << reported << code->ptx;
  for (const nvptx::KernelResources &kernel : assembled->kernels)
    RecordProperty(kernel.symbol + ".registers", int(kernel.registers));
  writeCase(program, code->kernels.front(), code->ptx, assembled->cubin,
            buffers, symbols, tolerance);
}
