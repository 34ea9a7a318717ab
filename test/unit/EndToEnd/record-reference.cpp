//===- record-reference.cpp - what the oracle says, for another machine --===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   record-reference SPEC FOLDER LENGTH...    weights and one case per length
//   record-reference --format                 the number in every case
//
// A machine with a GPU has no compiler and no oracle. For each length of one
// sequence a case holds the tokens and what the oracle gives in fp64: losses,
// gradients, and the logits of the last two rows, which a prefill and a step
// have to give. Long tensors are sampled, with their root mean square beside.
// Weights are numbers of bf16, so that a case holds for a model that computes
// in bf16 too: its copies of the parameters are the parameters.
// The code of this processor is compared on the way: a case that it does not
// pass is not written.
//
//===----------------------------------------------------------------------===//

#include "Harness.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <random>

using namespace hybrid;
using namespace hybrid::test;
namespace json = llvm::json;

namespace {

/// What a case holds and how it came about. Old cases are recorded again, which
/// takes minutes.
constexpr int kFormat = 3;
/// Numbers of a tensor that are kept at most.
constexpr size_t kSamples = 192;
/// Moved parameters are for the few sequences so short that nothing averages
/// out.
constexpr int64_t kLongestMoved = 65;
/// The largest of few draws is too small: of GLA's q and k at one token 4 give
/// 0.51, 64 give 0.68.
constexpr int kDraws = 64;
/// As random stacks have them.
constexpr double kForward = 5e-5, kBackward = 5e-4, kFloor = 1e-2;

[[noreturn]] void fail(const llvm::Twine &message) {
  llvm::errs() << "record-reference: " << message << "\n";
  std::exit(1);
}

void write(const llvm::Twine &path, llvm::StringRef text) {
  std::error_code code;
  llvm::raw_fd_ostream os(path.str(), code);
  if (code)
    fail("cannot write '" + path + "': " + code.message());
  os << text;
}

double rmsOf(llvm::ArrayRef<double> values) {
  double squares = 0;
  for (double value : values)
    squares += value * value;
  return values.empty() ? 0 : std::sqrt(squares / values.size());
}

/// Every so manieth element, the last one included, and what all come to.
json::Object sample(llvm::ArrayRef<double> values) {
  json::Array indices, kept;
  double largest = 0;
  for (double value : values)
    largest = std::max(largest, std::abs(value));
  size_t count = std::min(values.size(), kSamples);
  for (size_t n = 0; n < count; ++n) {
    size_t index = count == 1 ? 0 : n * (values.size() - 1) / (count - 1);
    indices.push_back(static_cast<int64_t>(index));
    kept.push_back(values[index]);
  }
  return json::Object{{"size", static_cast<int64_t>(values.size())},
                      {"rms", rmsOf(values)},
                      {"largest", largest},
                      {"indices", std::move(indices)},
                      {"values", std::move(kept)}};
}

void compare(llvm::StringRef what, llvm::ArrayRef<float> found,
             llvm::ArrayRef<double> expected, double bound) {
  double largest = 0;
  for (double value : expected)
    largest = std::max(largest, std::abs(value));
  double error = distance(found, expected) * std::max(largest, 1e-30) /
                 std::max(largest, kFloor);
  if (!(error <= bound))
    fail(what + " of this processor is off by " +
         llvm::formatv("{0:e2}, more than {1:e2}", error, bound).str());
}

template <typename T> json::Array array(const std::vector<T> &values) {
  json::Array result;
  for (T value : values)
    result.push_back(value);
  return result;
}

/// `value` or, with `away`, its neighbour of larger size, in f32 still.
float inBf16(float value, bool away) {
  uint32_t bits = llvm::bit_cast<uint32_t>(value);
  bits += 0x7fff + ((bits >> 16) & 1);
  return llvm::bit_cast<float>((bits & 0xffff0000) + (away ? 0x10000 : 0));
}

/// Whether a gradient can be had in bf16 at all: by how much the exact one
/// changes, as a root mean square, when each parameter moves to a neighbour or
/// stays. A normalised output of one token is the sign of its q times k, which
/// may be nearly zero.
json::Object
sensitivity(CompiledModel &model, const CompiledModel::Batch &batch,
            const std::map<std::string, std::vector<double>> &exact) {
  llvm::MutableArrayRef<float> values(model.model->parameters(),
                                      model.model->parameterTable().elements);
  const std::vector<float> original(values.begin(), values.end());
  std::mt19937 random(batch.ids.size());
  std::map<std::string, double> largest;
  for (int draw = 0; draw < kDraws; ++draw) {
    for (auto [value, from] : llvm::zip(values, original))
      value = inBf16(from, random() % 2);
    for (auto &[path, moved] : model.oracleBackward(batch)) {
      for (auto [value, from] : llvm::zip_equal(moved, exact.at(path)))
        value -= from;
      largest[path] = std::max(largest[path], rmsOf(moved));
    }
  }
  llvm::copy(original, values.begin());
  json::Object result;
  for (const auto &[path, change] : largest)
    result[path] = change;
  return result;
}

json::Object record(CompiledModel &model, int64_t length) {
  CompiledModel::Batch batch = model.randomBatch({length}, length);
  std::vector<double> losses = model.oracleLoss(batch);
  std::vector<float> found;
  auto gradients = model.backward(batch, found);
  compare("loss", found, losses, kForward);
  json::Object expected;
  auto exact = model.oracleBackward(batch);
  for (const auto &[path, values] : exact) {
    compare(path, gradients[path], values, kBackward);
    expected[path] = sample(values);
  }
  std::vector<double> logits = model.oracleLogits(batch.ids);
  size_t vocab = logits.size() / length;
  llvm::ArrayRef<double> rows(logits);
  size_t kept = std::min<int64_t>(length, 2);
  json::Object moved;
  if (length <= kLongestMoved)
    moved = sensitivity(model, batch, exact);
  return json::Object{
      {"format", kFormat},
      {"length", length},
      {"ids", array(batch.ids)},
      {"labels", array(batch.labels)},
      {"weights", array(batch.weights)},
      {"loss", sample(losses)},
      {"gradients", std::move(expected)},
      {"moved", std::move(moved)},
      {"last_logits", json::Array(rows.take_back(kept * vocab))}};
}

void roundToBf16(CompiledModel &model) {
  llvm::MutableArrayRef<float> values(model.model->parameters(),
                                      model.model->parameterTable().elements);
  for (float &value : values)
    value = inBf16(value, false);
}

int recordReference(llvm::StringRef specPath, llvm::StringRef folder,
                    llvm::ArrayRef<const char *> lengths) {
  auto text = llvm::MemoryBuffer::getFile(specPath);
  if (!text)
    fail("cannot read '" + specPath + "'");
  CompiledModel model((*text)->getBuffer());
  if (!model.ok())
    fail(specPath + ": " + model.report);
  roundToBf16(model);
  std::string stem = (folder + "/" + llvm::sys::path::stem(specPath)).str();
  hyb::rt::Status saved = model.model->saveWeights(stem + ".safetensors");
  if (!saved.ok())
    fail(saved.message());
  for (llvm::StringRef given : lengths) {
    int64_t length;
    if (given.getAsInteger(10, length) || length < 1)
      fail("length '" + given + "' is no number of 1 or more");
    json::Value value(record(model, length));
    write(stem + "." + given + ".json", llvm::formatv("{0}\n", value).str());
  }
  return 0;
}

} // namespace

int main(int count, char **arguments) {
  llvm::ArrayRef<const char *> given(arguments + 1, arguments + count);
  if (given.size() == 1 && llvm::StringRef(given[0]) == "--format") {
    llvm::outs() << kFormat << "\n";
    return 0;
  }
  if (given.size() >= 3)
    return recordReference(given[0], given[1], given.drop_front(2));
  llvm::errs() << "usage: record-reference SPEC FOLDER LENGTH...\n"
                  "       record-reference --format\n";
  return 2;
}
