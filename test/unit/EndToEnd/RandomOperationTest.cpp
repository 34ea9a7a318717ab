//===- RandomOperationTest.cpp - random operations against the oracle -----===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each operation is scheduled as in a model, and its tile programs run in the
// interpreter, where fp64 must agree to the last digits, and as machine code of
// one level. HYBRID_RANDOM_OPERATIONS=first:count chooses the seeds; a failure
// names its seed, and HYBRID_RANDOM_OPERATIONS=seed:1 repeats it.
// HYBRID_RANDOM_LEVELS=all compiles for every level of the processor.
//
//===----------------------------------------------------------------------===//

#include "CompiledFunction.h"
#include "CompleteOperation.h"
#include "RandomStacks.h"

#include "hybrid/Driver/Register.h"

#include <cstdlib>

using namespace mlir;
using namespace hybrid;
using namespace hybrid::test;
using cases::RandomOperation;
using oracle::Tensor;

unsigned hybrid::test::completeOperation(RandomOperation &op, uint64_t seed) {
  DialectRegistry registry;
  registerAllHybridDialects(registry);
  MLIRContext context(registry);
  auto module = parseSourceString<ModuleOp>(op.text, &context);
  if (!module) {
    ADD_FAILURE() << op.text;
    return 0;
  }
  auto function = module->lookupSymbol<func::FuncOp>("main");
  if (!op.adjoint)
    return function.getNumResults();
  auto adjoint = cases::appendAdjoint(function);
  if (failed(adjoint)) {
    ADD_FAILURE() << op.text;
    return 0;
  }
  cases::Random random(seed);
  for (RankedTensorType type : adjoint->cotangents) {
    Tensor cotangent(oracle::getShape(type, op.call));
    for (double &x : cotangent.data)
      x = static_cast<float>(random.uniform(-1, 1));
    op.arguments.push_back(std::move(cotangent));
  }
  op.text.clear();
  llvm::raw_string_ostream(op.text) << *module;
  return adjoint->forwardResults;
}

namespace {

/// Relative to the largest value of the tensor, 1 at least.
constexpr double kExact = 1e-9, kForward = 2e-5, kBackward = 2e-4;

/// The distance of two tensors over the largest finite value; infinite where
/// one is a number and the other is not.
double distance(const Tensor &found, const Tensor &expected) {
  double worst = 0, largest = 1;
  for (auto [x, y] : llvm::zip_equal(found.data, expected.data)) {
    if (x == y || (std::isnan(x) && std::isnan(y)))
      continue;
    double difference = std::fabs(x - y);
    if (!std::isfinite(difference))
      return std::numeric_limits<double>::infinity();
    worst = std::max(worst, difference);
  }
  for (double y : expected.data)
    if (std::isfinite(y))
      largest = std::max(largest, std::fabs(y));
  return worst / largest;
}

/// `exact` asks for fp64, else for f32 that carries numbers of `magnitude`.
void expectResults(llvm::ArrayRef<Tensor> found,
                   llvm::ArrayRef<Tensor> expected, unsigned forward,
                   bool exact, double magnitude) {
  ASSERT_EQ(found.size(), expected.size());
  double scale = std::max(1.0, magnitude / 20);
  for (auto [n, ours, theirs] : llvm::enumerate(found, expected)) {
    ASSERT_EQ(ours.shape, theirs.shape) << "result " << n;
    double tolerance = n < forward ? kForward * scale : kBackward * scale;
    EXPECT_LE(distance(ours, theirs), exact ? kExact : tolerance)
        << (n < forward ? "result " : "gradient ")
        << (n < forward ? n : n - forward);
  }
}

LogicalResult interpret(const cpu::LoadedKernel &, tile::ProgramOp program,
                        llvm::ArrayRef<tile::HostView> views,
                        llvm::ArrayRef<int64_t> symbols) {
  return tile::interpret(program, views, symbols);
}

void check(uint64_t seed) {
  RandomOperation op = cases::makeRandomOperation(seed);
  std::string lengths;
  for (const oracle::Segment &segment : op.call.segments)
    lengths += " " + std::to_string(segment.length()) + "@" +
               std::to_string(segment.position);
  SCOPED_TRACE("HYBRID_RANDOM_OPERATIONS=" + std::to_string(seed) + ":1, " +
               op.name + ", segments" + lengths);
  unsigned forward = completeOperation(op, seed);

  llvm::SmallVector<cpu::Level> levels = cpu::levelsHere();
  if (!std::getenv("HYBRID_RANDOM_LEVELS"))
    levels = {levels[seed / 8 % levels.size()]};
  for (cpu::Level level : levels) {
    SCOPED_TRACE(cpu::traitsOf(level).name.str());
    CompiledFunction function(op.text, level);
    std::vector<Tensor> expected = function.oracle(op.arguments, op.call);
    op.forget(expected);
    for (bool exact : {true, false}) {
      function.runKernel = exact ? interpret : cpu::runLoaded;
      std::vector<Tensor> found = function.evaluate(op.arguments, op.call);
      op.forget(found);
      SCOPED_TRACE(exact ? "interpreted" : "compiled");
      expectResults(found, expected, forward, exact, op.magnitude);
    }
  }
}

} // namespace

TEST(RandomOperations, MatchTheOracle) {
  uint64_t first = 0, count = 16;
  if (const char *chosen = std::getenv("HYBRID_RANDOM_OPERATIONS")) {
    auto [firstText, countText] = llvm::StringRef(chosen).split(':');
    ASSERT_FALSE(firstText.getAsInteger(10, first) ||
                 countText.getAsInteger(10, count))
        << "HYBRID_RANDOM_OPERATIONS is '" << chosen << "'; write first:count";
  }
  for (uint64_t seed = first; seed < first + count; ++seed)
    check(seed);
}
