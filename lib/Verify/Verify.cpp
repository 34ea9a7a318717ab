//===- Verify.cpp - a compiled model beside the oracle -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Verify/Verify.h"

#include "CompiledModel.h"
#include "Evaluate.h"
#include "core/Random.h"

#include <cmath>
#include <random>

using namespace mlir;
using namespace hybrid;
using oracle::Tensor;

/// f32 against f64. An operation is given the compiled model's own values; a
/// whole call adds up the errors of its operations.
static constexpr double kOperation = 1e-5, kForward = 5e-5, kBackward = 5e-4;
/// The same of a model that computes in a narrower type, in units of that
/// type's spacing: an operation rounds its result, and may round operands of
/// products; over a call the errors of all operations add up, and gradients of
/// a trained model are small differences of large terms.
static constexpr double kNarrowOperation = 1, kNarrowForward = 4,
                        kNarrowBackward = 32;

/// The spacing of numbers just above 1 in the type, 0 for f32.
static double spacingOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !isa<BFloat16Type, Float16Type>(tensor.getElementType()))
    return 0;
  auto element = cast<FloatType>(tensor.getElementType());
  return std::ldexp(1.0, 1 - static_cast<int>(element.getFPMantissaWidth()));
}

static double spacingOf(Operation *op) {
  double widest = 0;
  for (Type type : op->getOperandTypes())
    widest = std::max(widest, spacingOf(type));
  for (Type type : op->getResultTypes())
    widest = std::max(widest, spacingOf(type));
  return widest;
}

/// Of the widest that an entry computes in.
static double spacingOf(func::FuncOp function) {
  double widest = 0;
  for (Operation &op : function.getBody().front())
    widest = std::max(widest, spacingOf(&op));
  return widest;
}

namespace {

class Verifier {
public:
  Verifier(const Reference &reference, CompiledModel &model,
           const VerifyOptions &options, VerifyReport &report)
      : reference(reference), model(model), options(options), report(report),
        recorder(reference), random(options.seed) {}

  llvm::Error run();

private:
  llvm::Error verifyTraining();
  llvm::Error verifyInference();
  llvm::Error compare(StringRef callName, StringRef entryName,
                      const Tokens &tokens, const oracle::Call &call);
  Tokens randomTokens(ArrayRef<int64_t> lengths);
  Tensor argument(BlockArgument argument, const Tokens &tokens,
                  const oracle::Call &call,
                  const llvm::StringMap<Tensor> &states) const;
  void compareOperation(StringRef callName, Operation *op,
                        const oracle::Call &call,
                        MutableArrayRef<Tensor> expected);
  void note(StringRef callName, const Written &written, double error,
            double spacing);
  VerifyRow &row(StringRef callName, int64_t layer, StringRef op,
                 StringRef kernel, double bound);
  void noteResults(StringRef callName, func::FuncOp function,
                   ArrayRef<Tensor> found, ArrayRef<Tensor> expected);

  const Reference &reference;
  CompiledModel &model;
  const VerifyOptions &options;
  VerifyReport &report;
  Recorder recorder;
  std::mt19937 random;
  /// Of the compiled model, and of the oracle alone; zero where missing.
  llvm::StringMap<Tensor> compiledStates, oracleStates;
};

} // namespace

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

VerifyRow &Verifier::row(StringRef callName, int64_t layer, StringRef op,
                         StringRef kernel, double bound) {
  kernel = algorithmOf(kernel);
  for (VerifyRow &known : report.rows)
    if (known.call == callName && known.layer == layer && known.op == op &&
        known.kernel == kernel && known.bound == bound)
      return known;
  report.rows.push_back(
      {callName.str(), layer, op.str(), kernel.str(), 0, bound});
  return report.rows.back();
}

void Verifier::note(StringRef callName, const Written &written, double error,
                    double spacing) {
  VerifyRow &known = row(callName, written.layer, written.op, written.kernel,
                         kOperation + kNarrowOperation * spacing);
  known.error = std::max(known.error, error);
}

/// What a caller gets, from everything the call did.
void Verifier::noteResults(StringRef callName, func::FuncOp function,
                           ArrayRef<Tensor> found, ArrayRef<Tensor> expected) {
  double spacing = spacingOf(function);
  double gradients = 0;
  for (auto [index, tensor] : llvm::enumerate(expected))
    if (function.getResultAttrOfType<StringAttr>(index, "hybrid.role") ==
        "gradient")
      gradients = std::max(gradients, largestOf(tensor));
  for (auto [index, pair] : llvm::enumerate(llvm::zip_equal(found, expected))) {
    auto role = function.getResultAttrOfType<StringAttr>(index, "hybrid.role");
    auto path = function.getResultAttrOfType<StringAttr>(index, "hybrid.path");
    if (role == "state")
      continue;
    std::string name = "all: " + role.getValue().str();
    if (path)
      name += " of " + path.getValue().str();
    double bound = role == "gradient" ? kBackward + kNarrowBackward * spacing
                                      : kForward + kNarrowForward * spacing;
    VerifyRow &known = row(callName, -1, name, "", bound);
    known.error = std::max(known.error,
                           relativeError(std::get<0>(pair), std::get<1>(pair),
                                         role == "gradient" ? gradients : 0));
  }
}

//===----------------------------------------------------------------------===//
// One call
//===----------------------------------------------------------------------===//

Tokens Verifier::randomTokens(ArrayRef<int64_t> lengths) {
  Tokens tokens;
  int64_t vocabulary = model.info().vocabulary;
  for (auto [slot, length] : llvm::enumerate(lengths)) {
    tokens.segments.push_back({length, static_cast<int64_t>(slot)});
    for (int64_t i = 0; i < length; ++i) {
      tokens.ids.push_back(random() % vocabulary);
      tokens.labels.push_back(random() % 8 ? random() % vocabulary : -100);
      tokens.weights.push_back(0.5f + random() % 100 / 100.0f);
    }
  }
  return tokens;
}

Tensor Verifier::argument(BlockArgument argument, const Tokens &tokens,
                          const oracle::Call &call,
                          const llvm::StringMap<Tensor> &states) const {
  auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  unsigned index = argument.getArgNumber();
  StringRef role = function.getArgAttrOfType<StringAttr>(index, "hybrid.role");
  auto path = function.getArgAttrOfType<StringAttr>(index, "hybrid.path");
  if (role == "param")
    return model.parameter(path);
  if (role == "state")
    if (auto found = states.find(path); found != states.end())
      return found->second;
  Tensor tensor(
      oracle::getShape(cast<RankedTensorType>(argument.getType()), call));
  if (role == "ids")
    tensor.data.assign(tokens.ids.begin(), tokens.ids.end());
  else if (role == "labels")
    tensor.data.assign(tokens.labels.begin(), tokens.labels.end());
  else if (role == "weights")
    tensor.data.assign(tokens.weights.begin(), tokens.weights.end());
  else if (role == "random_key") // of the first call of a new trainer
    tensor.data = {static_cast<double>(
        static_cast<int32_t>(hyb::rt::CallSeed().keyOf(path.getValue())))};
  return tensor;
}

/// Compares the results that launches have stored, and puts them in the place
/// of the expected ones.
void Verifier::compareOperation(StringRef callName, Operation *op,
                                const oracle::Call &call,
                                MutableArrayRef<Tensor> expected) {
  std::vector<Tensor> found(expected.begin(), expected.end());
  for (OpResult result : op->getResults())
    if (const Written *written = recorder.find(result))
      found[result.getResultNumber()] = written->tensor;
  oracle::clearUnspecified(op, found, call);
  oracle::clearUnspecified(op, expected, call);
  double beside = 0;
  for (const Tensor &tensor : expected)
    beside = std::max(beside, largestOf(tensor));
  for (OpResult result : op->getResults()) {
    unsigned index = result.getResultNumber();
    if (const Written *written = recorder.find(result))
      note(callName, *written,
           relativeError(found[index], expected[index], beside), spacingOf(op));
    expected[index] = std::move(found[index]);
  }
}

/// Compares what the recorder has seen of one call with the graph.
llvm::Error Verifier::compare(StringRef callName, StringRef entryName,
                              const Tokens &tokens, const oracle::Call &call) {
  if (!recorder.mismatch().empty())
    return llvm::createStringError(recorder.mismatch() +
                                   "; use the hybridc that made the artefact");
  func::FuncOp function = reference.entry(entryName)->function;
  auto evaluate = [&](llvm::StringMap<Tensor> &states, Visit visit) {
    auto results = evaluateGraph(
        function, call,
        [&](BlockArgument value) {
          return argument(value, tokens, call, states);
        },
        visit);
    if (succeeded(results))
      for (auto [index, result] : llvm::enumerate(*results))
        if (function.getResultAttr(index, "hybrid.role") ==
            StringAttr::get(function.getContext(), "state"))
          states[function.getResultAttrOfType<StringAttr>(
              index, "hybrid.path")] = result;
    return results;
  };
  auto found = evaluate(compiledStates,
                        [&](Operation *op, MutableArrayRef<Tensor> expected) {
                          compareOperation(callName, op, call, expected);
                        });
  auto expected =
      evaluate(oracleStates, [](Operation *, MutableArrayRef<Tensor>) {});
  if (failed(found) || failed(expected))
    return llvm::createStringError("the oracle refuses entry '" + entryName +
                                   "'");
  noteResults(callName, function, *found, *expected);
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// The calls
//===----------------------------------------------------------------------===//

llvm::Error Verifier::verifyTraining() {
  // Ragged, with an empty sequence and one of a single token.
  SmallVector<int64_t> lengths = {options.tokens, 0, options.tokens / 4, 1};
  for (StringRef entry : {"loss", "backward"}) {
    if (!reference.entry(entry))
      continue;
    Tokens tokens = randomTokens(lengths);
    oracle::Call call = oracle::Call::packed(lengths);
    recorder.begin(call);
    if (auto error =
            entry == "loss" ? model.loss(tokens) : model.backward(tokens))
      return error;
    if (auto error = compare(entry, entry, tokens, call))
      return error;
  }
  return llvm::Error::success();
}

llvm::Error Verifier::verifyInference() {
  if (!reference.entry("extend") || !reference.entry("extend_all"))
    return llvm::Error::success();
  SmallVector<int64_t> lengths = {options.tokens, options.tokens / 4};
  int64_t capacity =
      std::max(options.context, options.tokens + options.decodeSteps);
  if (auto error = model.createState(lengths.size(), capacity, options.tokens))
    return error;
  SmallVector<int64_t> positions(lengths.size(), 0);
  for (int64_t step = 0; step <= options.decodeSteps; ++step) {
    if (step > 0)
      lengths.assign(lengths.size(), 1);
    Tokens tokens = randomTokens(lengths);
    oracle::Call call = oracle::Call::packed(lengths);
    call.context = capacity;
    call.chunk = options.tokens;
    for (auto [segment, position] : llvm::zip_equal(call.segments, positions))
      segment.position = position;
    recorder.begin(call);
    if (auto error =
            model.extend(tokens, step ? HYB_LOGITS_LAST : HYB_LOGITS_ALL))
      return error;
    if (auto error = compare(step ? "decode" : "prefill",
                             step ? "extend" : "extend_all", tokens, call))
      return error;
    for (auto [position, length] : llvm::zip_equal(positions, lengths))
      position += length;
  }
  return llvm::Error::success();
}

llvm::Error Verifier::run() {
  if (auto error = model.watch(recorder))
    return error;
  if (auto error = verifyTraining())
    return error;
  if (auto error = verifyInference())
    return error;
  llvm::append_range(report.withoutValue, recorder.withoutValue());
  return llvm::Error::success();
}

bool VerifyReport::ok() const {
  return llvm::all_of(rows, [](const VerifyRow &row) { return row.ok(); });
}

llvm::Expected<VerifyReport>
hybrid::verifyArtefact(MLIRContext &context, const std::string &path,
                       const VerifyOptions &options) {
  CompiledModel model;
  if (auto error = model.open(path, options))
    return std::move(error);
  auto reference =
      Reference::create(context, model.info().spec, model.target());
  if (!reference)
    return reference.takeError();
  VerifyReport report;
  report.model = model.info().name;
  report.code = model.info().cpu_level;
  if (auto error = Verifier(*reference, model, options, report).run())
    return std::move(error);
  if (report.rows.empty())
    return llvm::createStringError(
        "the artefact has none of the entries loss, backward, extend and "
        "extend_all; verify an artefact that was compiled from a model");
  return report;
}
