//===- random-artefacts.cpp - random stacks, for another machine ---------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   random-artefacts FOLDER TARGET FIRST COUNT [DTYPE [wide]]
//
// Compiles random stacks for the processor and for TARGET, a GPU or `cpu`:
// random-SEED.hbx, random-DTYPE-SEED.hbx and random-wide-DTYPE-SEED.hbx, each
// with the lengths of its call in a .json beside it. What is there and newer
// than this program stays.
//
// One process for all, because what small models cost is programs that they
// have in common. Code for a GPU stays PTX, which the driver assembles.
//
//===----------------------------------------------------------------------===//

#include "Harness.h"
#include "RandomStacks.h"

#include "hybrid/Artefact/Assemble.h"
#include "hybrid/Driver/Compile.h"
#include "hybrid/Driver/Phases.h"
#include "hybrid/Graph/ModelTables.h"
#include "hybrid/Target/NVPTX/Compile.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace hybrid;
namespace json = llvm::json;

namespace {

[[noreturn]] void fail(const llvm::Twine &message) {
  llvm::errs() << "random-artefacts: " << message << "\n";
  std::exit(1);
}

/// Under another name until it is whole, because what is there stays.
void write(const llvm::Twine &path, StringRef bytes) {
  std::string part = (path + ".part").str();
  std::error_code code;
  {
    llvm::raw_fd_ostream os(part, code);
    if (!code)
      os << bytes;
  }
  if (!code)
    code = llvm::sys::fs::rename(part, path);
  if (code)
    fail("cannot write '" + path + "': " + code.message());
}

class Packer {
public:
  Packer(StringRef folder, StringRef target, StringRef program)
      : folder(folder), target(target), program(program),
        context(test::makeRegistry()) {}

  void pack(const cases::RandomStack &stack, StringRef name);

private:
  void run(ModuleOp module, Phase begin, Phase end, StringRef target);
  ArtefactTarget codeFor(ModuleOp graph, StringRef target);
  void makeCode(ModuleOp module, ArtefactTarget &made);
  bool isNewer(const llvm::Twine &path) const;

  StringRef folder, target, program;
  MLIRContext context;
  cpu::ProgramCache programs;
  nvptx::ProgramCache kernels;
};

bool Packer::isNewer(const llvm::Twine &path) const {
  llvm::sys::fs::file_status mine, made;
  return !llvm::sys::fs::status(path, made) &&
         !llvm::sys::fs::status(program, mine) &&
         made.getLastModificationTime() > mine.getLastModificationTime();
}

void Packer::run(ModuleOp module, Phase begin, Phase end, StringRef target) {
  for (const PhaseInfo &info : phases()) {
    std::string pipeline = phasePipeline(info.phase, target);
    if (info.phase < begin || info.phase > end || pipeline.empty())
      continue;
    PassManager passes(&context);
    if (failed(parsePassPipeline(pipeline, passes)) ||
        failed(passes.run(module)))
      fail("phase " + info.name + " fails");
  }
}

void Packer::makeCode(ModuleOp module, ArtefactTarget &made) {
  SmallVector<StringRef> symbols;
  for (const PlanKernel &kernel : made.plan.kernels)
    symbols.push_back(kernel.symbol);
  if (made.name == "cpu") {
    cpu::Options options;
    options.cache = &programs;
    auto code =
        cpu::compile(module, symbols, *cpu::levelNamed("x86-64"), options);
    if (failed(code))
      fail("no code for the processor");
    for (auto [kernel, compiled] :
         llvm::zip_equal(made.plan.kernels, code->kernels))
      kernel.scratch = compiled.scratchBytes;
    made.code.push_back({"code", "x86-64", code->elf});
    return;
  }
  StringRef chip = made.planName();
  nvptx::CompileOptions options;
  options.cache = &kernels;
  auto code = nvptx::compile(module, symbols, chip, options);
  if (failed(code))
    fail("no code for " + chip);
  describeKernels(made.plan, *code);
  made.code.push_back({"ptx", chip.str(), std::move(code->ptx)});
}

ArtefactTarget Packer::codeFor(ModuleOp graph, StringRef target) {
  OwningOpRef<ModuleOp> module = graph.clone();
  run(*module, Phase::Schedule, Phase::Plan, target);
  FailureOr<Plan> plan = buildPlan(*module);
  if (failed(plan))
    fail("no plan for " + target);
  ArtefactTarget made{target.str(), std::move(*plan), {}};
  makeCode(*module, made);
  return made;
}

void Packer::pack(const cases::RandomStack &stack, StringRef name) {
  std::string stem = (folder + "/" + name).str();
  json::Array lengths(stack.lengths);
  write(stem + ".json",
        llvm::formatv("{0}\n",
                      json::Value(json::Object{{"lengths", std::move(lengths)},
                                               {"vocab", stack.vocab}}))
            .str());
  if (isNewer(stem + ".hbx"))
    return;
  auto module = parseSourceString<ModuleOp>(stack.spec, &context);
  if (!module)
    fail("no spec: " + stack.spec);
  run(*module, Phase::Spec, Phase::Fuse, "");
  auto tables = getModelTables(*module);
  if (failed(tables))
    fail("no tables");
  std::vector<ArtefactTarget> targets = {codeFor(*module, "cpu")};
  if (target != "cpu")
    targets.push_back(codeFor(*module, target));
  auto bytes = assembleArtefact(stack.spec, *tables, targets);
  if (!bytes)
    fail(llvm::toString(bytes.takeError()));
  write(stem + ".hbx", *bytes);
}

} // namespace

int main(int count, char **arguments) {
  llvm::ArrayRef<const char *> given(arguments + 1, arguments + count);
  uint64_t first, number;
  bool isWide = given.size() == 6 && StringRef(given[5]) == "wide";
  if (given.size() < 4 || given.size() > (isWide ? 6 : 5) ||
      StringRef(given[2]).getAsInteger(10, first) ||
      StringRef(given[3]).getAsInteger(10, number)) {
    llvm::errs() << "usage: random-artefacts FOLDER TARGET FIRST COUNT "
                    "[DTYPE [wide]]\n";
    return 2;
  }
  StringRef dtype = given.size() > 4 ? given[4] : "";
  Packer packer(given[0], given[1], arguments[0]);
  for (uint64_t seed = first; seed < first + number; ++seed) {
    cases::RandomStack stack = cases::drawDropout(
        isWide ? cases::makeWideStack(seed) : cases::makeRandomStack(seed));
    if (!dtype.empty())
      stack.spec = cases::inType(std::move(stack.spec), dtype);
    packer.pack(stack,
                llvm::formatv("random-{0}{1}{2}{3}", isWide ? "wide-" : "",
                              dtype, dtype.empty() ? "" : "-", seed)
                    .str());
  }
  return 0;
}
