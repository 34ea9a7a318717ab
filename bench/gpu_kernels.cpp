//===- gpu_kernels.cpp - kernels of the families as cubins -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   gpu-kernels FOLDER [CHIP] [program.mlir | attention]...
//
// Compiles the programs that bench/gpu_kernels.py times, or those of the given
// files, to FOLDER/NAME.cubin and NAME.ptx, and prints one JSON line for each:
// how it is launched and what ptxas says of it. Graph functions of a file are
// scheduled first; a line for each says what it launches. `attention` is the
// softmax family's own for warpgroups, forward and backward (sm_90a).
//
//===----------------------------------------------------------------------===//

#include "gpu_functions.h"

#include "hybrid/Driver/Register.h"
#include "hybrid/Target/NVPTX/Compile.h"
#include "hybrid/Tile/Families/Optimiser.h"
#include "hybrid/Tile/Families/Product.h"
#include "hybrid/Tile/Families/Recurrence.h"
#include "hybrid/Tile/Families/SoftmaxWarpgroups.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/FileSystem.h"
#include <chrono>

using namespace mlir;
using namespace hybrid;

namespace {

class Emitter {
public:
  Emitter(MLIRContext &context, StringRef folder, StringRef chip)
      : context(context), folder(folder), chip(chip) {}

  void emit(StringRef name, ModuleOp module, tile::ProgramOp program) {
    auto start = std::chrono::steady_clock::now();
    auto seconds = [&] {
      std::chrono::duration<double> passed =
          std::chrono::steady_clock::now() - start;
      start = std::chrono::steady_clock::now();
      return passed.count();
    };
    auto code = nvptx::compile(module, program.getSymName(), chip);
    if (failed(code))
      return;
    double compiling = seconds();
    write(name + ".ptx", code->ptx);
    auto made = nvptx::assemble(module.getLoc(), code->ptx, chip);
    if (failed(made))
      return;
    double assembling = seconds();
    write(name + ".cubin", made->cubin);
    const nvptx::Kernel &kernel = code->kernels.front();
    const nvptx::KernelResources &used = made->kernels.front();
    llvm::outs() << "{\"name\": \"" << name << "\", \"symbol\": \""
                 << kernel.symbol << "\", \"threads\": " << kernel.threads
                 << ", \"shared\": " << kernel.sharedBytes
                 << ", \"registers\": " << used.registers
                 << ", \"spills\": " << used.spillStores + used.spillLoads
                 << ", \"maps\": " << mapsOf(kernel)
                 << ", \"persistent\": " << int(kernel.persistent)
                 << ", \"notices\": " << used.notices.size()
                 << ", \"compile_s\": " << llvm::format("%.2f", compiling)
                 << ", \"ptxas_s\": " << llvm::format("%.2f", assembling)
                 << "}\n";
    llvm::outs().flush();
  }

  template <typename Build> void build(StringRef name, Build build) {
    OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
    OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
    emit(name, *module, build(builder, builder.getUnknownLoc()));
  }

private:
  /// [[view, box...], ...]
  static std::string mapsOf(const nvptx::Kernel &kernel) {
    std::string text;
    for (const nvptx::TensorMap &map : kernel.maps) {
      text += (text.empty() ? "[" : ", [") + std::to_string(map.view);
      for (int64_t size : map.box)
        text += ", " + std::to_string(size);
      text += "]";
    }
    return "[" + text + "]";
  }
  void write(const Twine &name, StringRef bytes) {
    std::error_code error;
    llvm::raw_fd_ostream(SmallString<128>(folder + "/" + name.str()), error)
        << bytes;
  }
  MLIRContext &context;
  std::string folder;
  StringRef chip;
};

void emitFamilies(Emitter &emitter) {
  auto product = [&](StringRef name, int64_t rows, int64_t columns,
                     int64_t depth) {
    emitter.build(name, [&](OpBuilder &b, Location loc) {
      tile::ProductShape s;
      s.columns = s.depth = 4096;
      s.transposeB = true;
      s.rowTile = rows, s.columnTile = columns, s.depthTile = depth;
      return tile::buildProduct(b, loc, s);
    });
  };
  product("product_f32_128x128x32", 128, 128, 32);
  product("product_f32_128x64x32", 128, 64, 32);
  product("product_f32_64x64x32", 64, 64, 32);
  auto softmax = [&](int64_t dim, int64_t queries, int64_t keys) {
    tile::SoftmaxShape s;
    s.heads = s.kvHeads = 16;
    s.dim = s.valueDim = dim;
    s.scale = 0.08838834764831845;
    s.windows.assign(16, 0);
    s.sinks.assign(16, 0);
    s.queryTile = queries, s.keyTile = keys;
    return s;
  };
  constexpr int64_t kTiles[][2] = {{64, 64}, {64, 32}, {128, 64}};
  for (const auto &tiles : kTiles)
    emitter.build("softmax_forward_f32_" + std::to_string(tiles[0]) + "x" +
                      std::to_string(tiles[1]),
                  [&](OpBuilder &b, Location loc) {
                    return tile::buildSoftmaxForward(
                        b, loc, softmax(128, tiles[0], tiles[1]));
                  });
  emitter.build("softmax_backward_f32", [&](OpBuilder &b, Location loc) {
    return tile::buildSoftmaxBackward(b, loc, softmax(128, 64, 32));
  });
  for (int64_t chunk : {64, 32})
    for (bool backward : {false, true})
      emitter.build(std::string("delta_") +
                        (backward ? "backward" : "forward") + "_f32_" +
                        std::to_string(chunk),
                    [&](OpBuilder &b, Location loc) {
                      tile::RecurrenceShape s;
                      s.update = tile::RecurrenceUpdate::Delta;
                      s.decay = tile::RecurrenceDecay::PerHead;
                      s.heads = s.kvHeads = 16;
                      s.keyDim = s.valueDim = 128;
                      s.scale = 0.08838834764831845;
                      s.chunk = chunk;
                      return backward ? tile::buildRecurrenceBackward(b, loc, s)
                                      : tile::buildRecurrenceForward(b, loc, s);
                    });
  emitter.build("adamw", [&](OpBuilder &b, Location loc) {
    tile::OptimiserShape s;
    s.elements = s.decayElements = 1 << 26;
    return tile::buildAdamW(b, loc, s);
  });
}

/// Attention of warpgroups, forward and backward: heads of both sizes, grouped
/// heads, and heads with a window and pinned positions.
void emitAttention(Emitter &emitter, MLIRContext &context) {
  struct Case {
    StringRef name;
    int64_t dim, kvHeads, window, sinks;
  };
  constexpr Case kCases[] = {{"128", 128, 16, 0, 0},
                             {"64", 64, 16, 0, 0},
                             {"128_grouped", 128, 4, 0, 0},
                             {"128_window", 128, 16, 512, 4}};
  using Build =
      tile::ProgramOp (*)(OpBuilder &, Location, const tile::SoftmaxShape &);
  constexpr std::pair<StringRef, Build> kBuilds[] = {
      {"forward", tile::buildSoftmaxForwardWarpgroups},
      {"terms", tile::buildSoftmaxRowTerms},
      {"keys", tile::buildSoftmaxBackwardKeysWarpgroups},
      {"queries", tile::buildSoftmaxBackwardQueriesWarpgroups}};
  for (const Case &c : kCases)
    for (auto [name, build] : kBuilds)
      emitter.build(("attention_" + name + "_" + c.name).str(),
                    [&, build = build](OpBuilder &b, Location loc) {
                      tile::SoftmaxShape s;
                      s.heads = 16;
                      s.kvHeads = c.kvHeads;
                      s.dim = s.valueDim = c.dim;
                      s.scale = 1.0 / std::sqrt(double(c.dim));
                      s.windows.assign(16, c.window);
                      s.sinks.assign(16, c.sinks);
                      s.element = BFloat16Type::get(&context);
                      return build(b, loc, s);
                    });
}

} // namespace

int main(int count, char **arguments) {
  if (count < 2) {
    llvm::errs() << "usage: gpu-kernels FOLDER [CHIP] "
                    "[program.mlir | attention]...\n";
    return 2;
  }
  DialectRegistry registry;
  registerAllHybridDialects(registry);
  registerAllHybridPasses();
  registerTransformsPasses();
  MLIRContext context(registry);
  context.loadDialect<tile::TileDialect, arith::ArithDialect, math::MathDialect,
                      scf::SCFDialect, tensor::TensorDialect>();
  StringRef chip = count > 2 ? arguments[2] : "sm_90a";
  Emitter emitter(context, arguments[1], chip);
  for (int n = 3; n < count; ++n) {
    if (StringRef(arguments[n]) == "attention") {
      emitAttention(emitter, context);
      continue;
    }
    auto module = parseSourceFile<ModuleOp>(arguments[n], &context);
    if (!module || failed(scheduleFunctions(*module, ("cuda:" + chip).str())))
      return 1;
    for (auto program : module->getOps<tile::ProgramOp>())
      emitter.emit(program.getSymName(), *module, program);
    // Whole tiles and less than one, then what is timed.
    describeFunctions(*module, {1, 200, 1000, 32768});
  }
  if (count <= 3)
    emitFamilies(emitter);
  return 0;
}
