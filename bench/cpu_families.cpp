//===- cpu_families.cpp - speed of mixing programs on one core -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   cpu-families [filter [level]]
//
// One line per program: shortest time of several runs, nanoseconds per token
// and head, GFLOP/s counting the products of the plain chunked algorithm, and
// what it took to compile.
//
//===----------------------------------------------------------------------===//

#include "LoadedProgram.h"
#include "hybrid/Tile/Families/Recurrence.h"
#include "hybrid/Tile/Families/Softmax.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace hybrid;
using bench::LoadedProgram;

namespace {

constexpr int64_t kTokens = 2048, kSegments = 4, kHeads = 4, kDim = 64;
constexpr int64_t kLength = kTokens / kSegments;

struct Runner {
  StringRef filter;
  cpu::Level level;

  void report(const std::string &name, LoadedProgram &program,
              double flops) const {
    if (!program.error.empty()) {
      llvm::errs() << name << ": " << program.error << "\n";
      return;
    }
    double seconds = program.shortestSeconds();
    llvm::outs() << llvm::format(
        "%-34s %9.3f ms %8.0f ns/token/head %7.1f GFLOP/s"
        "   compile %.2f s, code %zu kB, scratch %lld kB\n",
        name.c_str(), 1e3 * seconds, 1e9 * seconds / (kTokens * kHeads),
        1e-9 * flops / seconds, program.compileSeconds,
        program.codeBytes / 1024, (long long)program.scratchBytes / 1024);
    llvm::outs().flush();
  }
  bool wants(const std::string &name) const {
    return StringRef(name).contains(filter);
  }
};

float wave(int64_t n) { return 0.5f * std::sin(0.37f * float(n % 10007)); }

void addSegments(LoadedProgram &program) {
  std::vector<int32_t> table, segmentOf;
  for (int32_t s = 0; s < kSegments; ++s) {
    for (int64_t entry :
         {s * kLength, (s + 1) * kLength, int64_t(s), int64_t(0)})
      table.push_back(entry);
    segmentOf.insert(segmentOf.end(), kLength, s);
  }
  program.addIntegers({kSegments, 4}, table);
  program.addIntegers({kTokens}, segmentOf);
}

const int64_t kSymbols[] = {kTokens, kSegments, kLength, kSegments, 0, 0};

void softmax(const Runner &runner) {
  tile::SoftmaxShape shape;
  shape.heads = shape.kvHeads = kHeads;
  shape.dim = shape.valueDim = kDim;
  shape.scale = 0.125;
  shape.windows.assign(kHeads, 0);
  shape.sinks.assign(kHeads, 0);
  double pairs = 0.5 * kSegments * kHeads * kLength * kLength;
  int64_t rows[] = {kTokens, kHeads, kDim};
  if (std::string name = "softmax forward"; runner.wants(name)) {
    LoadedProgram program(
        [&](OpBuilder &b, Location loc) {
          return tile::buildSoftmaxForward(b, loc, shape);
        },
        kSymbols, runner.level);
    for (int n = 0; n < 3; ++n)
      program.addView(rows, wave);
    addSegments(program);
    program.addView(rows, wave);
    program.addView({kTokens, kHeads}, wave);
    runner.report(name, program, 4 * pairs * kDim);
  }
  if (std::string name = "softmax backward"; runner.wants(name)) {
    LoadedProgram program(
        [&](OpBuilder &b, Location loc) {
          return tile::buildSoftmaxBackward(b, loc, shape);
        },
        kSymbols, runner.level);
    for (int n = 0; n < 4; ++n)
      program.addView(rows, wave);
    program.addView({kTokens, kHeads}, [](int64_t) { return 5.0f; });
    program.addView(rows, wave);
    addSegments(program);
    for (int n = 0; n < 3; ++n)
      program.addView(rows, wave);
    runner.report(name, program, 10 * pairs * kDim);
  }
}

void recurrence(const Runner &runner, const std::string &kind,
                tile::RecurrenceUpdate update, tile::RecurrenceDecay decay) {
  tile::RecurrenceShape shape;
  shape.update = update;
  shape.decay = decay;
  shape.heads = shape.kvHeads = kHeads;
  shape.keyDim = shape.valueDim = kDim;
  shape.scale = 0.125;
  shape.hasState = true;
  int64_t rows[] = {kTokens, kHeads, kDim};
  auto addOperands = [&](LoadedProgram &program) {
    for (int n = 0; n < 3; ++n)
      program.addView(rows, [](int64_t i) { return 0.2f * wave(i); });
    addSegments(program);
    if (shape.hasDecay())
      program.addView({kTokens, kHeads, shape.decayDim()}, [](int64_t i) {
        return -0.05f - 0.1f * std::fabs(wave(i));
      });
    if (shape.hasBeta())
      program.addView({kTokens, kHeads}, [](int64_t) { return 0.5f; });
    program.addView({kSegments, kHeads, kDim, kDim},
                    [](int64_t) { return 0.0f; });
  };
  // State and output products, and those inside a chunk.
  double chunk = shape.chunkSize();
  double flops = 2.0 * kTokens * kHeads * kDim *
                 (2 * kDim + chunk + (shape.isDelta() ? kDim + chunk : 0));
  if (std::string name = kind + " forward"; runner.wants(name)) {
    LoadedProgram program(
        [&](OpBuilder &b, Location loc) {
          return tile::buildRecurrenceForward(b, loc, shape);
        },
        kSymbols, runner.level);
    addOperands(program);
    program.addView(rows, wave);
    runner.report(name, program, flops);
  }
  if (std::string name = kind + " backward"; runner.wants(name)) {
    SmallVector<SmallVector<int64_t>> workspaces;
    LoadedProgram program(
        [&](OpBuilder &b, Location loc) {
          SmallVector<Attribute> symbols;
          for (int64_t symbol : kSymbols)
            symbols.push_back(b.getI64IntegerAttr(symbol));
          for (const auto &space :
               tile::recurrenceBackwardWorkspaces(b.getContext(), shape)) {
            SmallVector<Attribute> size;
            if (failed(space.rows.constantFold(symbols, size)))
              continue;
            workspaces.push_back({cast<IntegerAttr>(size.front()).getInt()});
            llvm::append_range(workspaces.back(), space.sizes);
          }
          return tile::buildRecurrenceBackward(b, loc, shape);
        },
        kSymbols, runner.level);
    addOperands(program);
    program.addView(rows, wave);
    for (int n = 0; n < 3; ++n)
      program.addView(rows, wave);
    if (shape.hasDecay())
      program.addView({kTokens, kHeads, shape.decayDim()}, wave);
    if (shape.hasBeta())
      program.addView({kTokens, kHeads}, wave);
    program.addView({kSegments, kHeads, kDim, kDim}, wave);
    for (ArrayRef<int64_t> sizes : workspaces)
      program.addView(sizes, wave);
    runner.report(name, program, 3 * flops);
  }
}

} // namespace

int main(int argc, char **argv) {
  using tile::RecurrenceDecay;
  using tile::RecurrenceUpdate;
  for (cpu::Level level : bench::levelsHere()) {
    if (argc > 2 && cpu::traitsOf(level).name != argv[2])
      continue;
    Runner runner{argc > 1 ? argv[1] : "", level};
    llvm::outs() << cpu::traitsOf(level).name << ", " << kTokens
                 << " tokens in " << kSegments << " segments, " << kHeads
                 << " heads of " << kDim << "\n";
    softmax(runner);
    recurrence(runner, "additive", RecurrenceUpdate::Additive,
               RecurrenceDecay::None);
    recurrence(runner, "additive, decay per head", RecurrenceUpdate::Additive,
               RecurrenceDecay::PerHead);
    recurrence(runner, "additive, decay per channel",
               RecurrenceUpdate::Additive, RecurrenceDecay::PerChannel);
    recurrence(runner, "delta, decay per head", RecurrenceUpdate::Delta,
               RecurrenceDecay::PerHead);
  }
}
