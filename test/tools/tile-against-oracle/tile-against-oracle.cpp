//===- tile-against-oracle.cpp - compares dispatches with the definition -===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Reads a module in which @dispatched says with tile programs what @definition
// says with graph operations, or (--definitions) one whose functions have been
// scheduled, beside a file with the functions as they were. Runs both on random
// data, the programs in the tile interpreter and the definition in the oracle,
// prints how far the results are apart, and exits with 1 where that is too far.
//
//===----------------------------------------------------------------------===//

#include "Dispatches.h"

#include "hybrid/Hybrid/HybridDialect.h"
#include "hybrid/Tile/TileDialect.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/SourceMgr.h"
#include <cmath>
#include <limits>
#include <random>

using namespace mlir;
using namespace hybrid;
namespace cl = llvm::cl;

static cl::opt<std::string> inputFile(cl::Positional, cl::desc("<module>"),
                                      cl::init("-"));
static cl::opt<std::string>
    definitionsFile("definitions",
                    cl::desc("module with the unscheduled functions"));
static cl::list<std::string>
    entries("entries", cl::CommaSeparated,
            cl::desc("functions to compare (default all)"));
static cl::list<int64_t> lengths("lengths", cl::CommaSeparated,
                                 cl::desc("tokens of each segment"));
static cl::list<int64_t>
    positions("positions", cl::CommaSeparated,
              cl::desc("first position of each segment (default 0)"));
static cl::opt<int64_t> context("context", cl::desc("token capacity of a slot"),
                                cl::init(0));
static cl::opt<int64_t> depth("depth", cl::desc("rollback depth"), cl::init(0));
static cl::opt<int64_t>
    idLimit("ids", cl::desc("ids and labels are below this"), cl::init(8));
static cl::opt<uint64_t> seed("seed", cl::desc("of the random data"),
                              cl::init(1));
static cl::opt<bool> inF32("f32", cl::desc("interpret in f32 instead of f64"));
static cl::opt<bool>
    byMeanSquare("rms", cl::desc("the root mean square of the difference, "
                                 "relative to that of the values, in place of "
                                 "the largest"));
static cl::opt<double>
    tolerance("tolerance",
              cl::desc("largest difference, relative to the largest value"),
              cl::init(1e-10));

/// Segments in the slots from the last one down, so that a slot is not mistaken
/// for a segment; one slot has none.
static oracle::Call makeCall() {
  oracle::Call call = oracle::Call::packed(ArrayRef<int64_t>(lengths));
  call.slots = lengths.size() + 1;
  call.context = context;
  call.depth = depth;
  for (auto [n, segment] : llvm::enumerate(call.segments)) {
    segment.slot = lengths.size() - n;
    segment.position = n < positions.size() ? positions[n] : 0;
  }
  return call;
}

/// Normal, or uniform in the attribute `random.range` of the argument, as f32
/// could hold it; ids are uniform.
static oracle::Tensor makeArgument(func::FuncOp function, unsigned n,
                                   ArrayRef<int64_t> symbols,
                                   std::mt19937_64 &generator) {
  auto type = dyn_cast<RankedTensorType>(function.getArgumentTypes()[n]);
  if (!type)
    return {};
  oracle::Tensor tensor(sizesOf(type, symbols));
  auto range = function.getArgAttrOfType<DenseF64ArrayAttr>(n, "random.range");
  std::normal_distribution<double> normal;
  for (double &x : tensor.data) {
    if (type.getElementType().isInteger(32)) {
      x = static_cast<double>(generator() % static_cast<uint64_t>(idLimit));
      continue;
    }
    double unit = static_cast<double>(generator() >> 11) * 0x1p-53;
    x = range ? range[0] + (range[1] - range[0]) * unit : normal(generator);
    x = static_cast<float>(x);
  }
  if (isa<BFloat16Type, Float16Type>(type.getElementType()))
    return oracle::roundTo(std::move(tensor), type);
  return tensor;
}

/// Largest difference over the largest value (1 at least); infinite where only
/// one side is finite.
static double relativeDistance(const oracle::Tensor &a,
                               const oracle::Tensor &b) {
  double worst = 0.0, largest = 1.0;
  for (auto [x, y] : llvm::zip_equal(a.data, b.data)) {
    if (x == y)
      continue;
    double difference = std::fabs(x - y);
    worst = std::isfinite(difference) ? std::max(worst, difference)
                                      : std::numeric_limits<double>::infinity();
    largest = std::max(largest, std::fabs(y));
  }
  return worst / largest;
}

static double meanSquareDistance(const oracle::Tensor &a,
                                 const oracle::Tensor &b) {
  double difference = 0, size = 1e-30;
  for (auto [x, y] : llvm::zip_equal(a.data, b.data)) {
    if (x == y) // infinities too
      continue;
    difference += (x - y) * (x - y);
    size += y * y;
  }
  return std::sqrt(difference / size);
}

static LogicalResult compare(func::FuncOp dispatched, func::FuncOp definition) {
  oracle::Call call = makeCall();
  std::mt19937_64 generator(seed);
  std::vector<oracle::Tensor> arguments;
  for (unsigned n = 0; n < definition.getNumArguments(); ++n)
    arguments.push_back(
        makeArgument(definition, n, symbolsOf(call), generator));
  auto expected = oracle::evaluate(definition, arguments, call);
  tile::InterpreterOptions options;
  if (inF32)
    options.arithmetic = tile::InterpreterOptions::Arithmetic::f32;
  auto interpret = [&](tile::ProgramOp program, ArrayRef<tile::HostView> views,
                       ArrayRef<int64_t> symbols) {
    return tile::interpret(program, views, symbols, options);
  };
  auto got = DispatchRunner(call, interpret).run(dispatched, arguments);
  if (failed(expected) || failed(got))
    return failure();
  if (got->size() != expected->size())
    return dispatched.emitError("has ")
           << got->size() << " results, the definition has "
           << expected->size();
  bool near = true;
  for (auto [n, tensor] : llvm::enumerate(*expected)) {
    if ((*got)[n].shape != tensor.shape)
      return dispatched.emitError("result ")
             << n << " has another shape than the definition's";
    double distance = byMeanSquare ? meanSquareDistance((*got)[n], tensor)
                                   : relativeDistance((*got)[n], tensor);
    bool fits = distance <= tolerance;
    near &= fits;
    llvm::outs() << llvm::formatv("@{0} result {1}: {2} ({3:e2} apart)\n",
                                  dispatched.getSymName(), n,
                                  fits ? "equal" : "differs", distance);
  }
  return success(near);
}

/// Whether the function holds what this tool runs.
static bool hasDispatches(func::FuncOp function) {
  return function.walk([](DispatchOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

int main(int argc, char **argv) {
  cl::ParseCommandLineOptions(argc, argv,
                              "compares dispatches with the definition\n");
  DialectRegistry registry;
  registry.insert<HybridDialect, tile::TileDialect, func::FuncDialect>();
  MLIRContext mlirContext(registry, MLIRContext::Threading::DISABLED);
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler handler(sources, &mlirContext);
  auto module = parseSourceFile<ModuleOp>(inputFile, sources, &mlirContext);
  OwningOpRef<ModuleOp> definitions;
  if (!definitionsFile.empty())
    definitions = parseSourceFile<ModuleOp>(definitionsFile, &mlirContext);
  if (!module || (!definitionsFile.empty() && !definitions))
    return 1;
  bool ok = true, any = false;
  for (auto function : module->getOps<func::FuncOp>()) {
    bool isAsked =
        entries.empty() || llvm::is_contained(ArrayRef<std::string>(entries),
                                              function.getSymName());
    if (!isAsked || !hasDispatches(function))
      continue;
    auto definition =
        definitions
            ? definitions->lookupSymbol<func::FuncOp>(function.getSymName())
            : module->lookupSymbol<func::FuncOp>("definition");
    if (!definition) {
      function.emitError("has no definition");
      return 1;
    }
    any = true;
    ok &= succeeded(compare(function, definition));
  }
  if (!any)
    llvm::errs() << "no function holds a dispatch\n";
  return ok && any ? 0 : 1;
}
