//===- CompiledModel.h - an artefact in the runtime, watched -------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_VERIFY_COMPILEDMODEL_H
#define HYBRID_LIB_VERIFY_COMPILEDMODEL_H

#include "Reference.h"
#include "hybrid/Oracle/Oracle.h"
#include "hybrid/Verify/Verify.h"
#include "hybrid/runtime.h"
#include <set>

namespace hybrid {

/// What a launch wrote, as a value of the graph.
struct Written {
  int64_t layer;
  std::string op, kernel;
  oracle::Tensor tensor;
};

/// Collects values of the graph while calls run.
class Recorder {
public:
  explicit Recorder(const Reference &reference) : reference(reference) {}

  /// Forgets what was collected; the next launches belong to `call`.
  void begin(const oracle::Call &nextCall) {
    call = nextCall;
    values.clear();
  }
  /// Null for values that no launch has stored.
  const Written *find(mlir::Value value) const {
    auto found = values.find(value);
    return found == values.end() ? nullptr : &found->second;
  }
  /// Algorithms of which launches wrote nothing that the graph has.
  const std::set<std::string> &withoutValue() const { return algorithms; }
  /// Not empty when the launches are not those of the reference.
  const std::string &mismatch() const { return problem; }

  void record(const hyb_launch &launch);

private:
  const Reference &reference;
  oracle::Call call;
  llvm::DenseMap<mlir::Value, Written> values;
  std::set<std::string> algorithms;
  std::string problem;
};

/// The packed tokens of one call.
struct Tokens {
  std::vector<int32_t> ids, labels;
  std::vector<float> weights;
  std::vector<hyb_segment> segments;

  hyb_batch view() const;
};

/// An artefact, its weights and a state in the runtime.
class CompiledModel {
public:
  llvm::Error open(const std::string &path, const VerifyOptions &options);
  llvm::Error createState(int64_t slots, int64_t capacity, int64_t chunk);
  /// From now on every launch is given to `recorder`, which must outlive this.
  llvm::Error watch(Recorder &recorder);

  hyb_model_info info() const;
  /// What its code was made for: "cpu" or "cuda:sm_90a".
  std::string target() const;
  /// The parameter as the oracle takes it; empty when the model has none of
  /// that path.
  oracle::Tensor parameter(llvm::StringRef path) const;

  llvm::Error loss(const Tokens &tokens);
  /// Gradients are added to zeros.
  llvm::Error backward(const Tokens &tokens);
  llvm::Error extend(const Tokens &tokens, hyb_logits which);

private:
  template <auto Destroy> struct Destroyer {
    template <typename Handle> void operator()(Handle *handle) const {
      Destroy(handle);
    }
  };
  template <typename Handle, auto Destroy>
  using Owner = std::unique_ptr<Handle, Destroyer<Destroy>>;

  Owner<hyb_runtime, hyb_runtime_destroy> runtime;
  Owner<hyb_model, hyb_model_destroy> model;
  Owner<hyb_context, hyb_context_destroy> context;
  Owner<hyb_state, hyb_state_destroy> state;
};

} // namespace hybrid

#endif // HYBRID_LIB_VERIFY_COMPILEDMODEL_H
