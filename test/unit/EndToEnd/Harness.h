//===- Harness.h - a spec, compiled and beside the oracle -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TEST_UNIT_ENDTOEND_HARNESS_H
#define HYBRID_TEST_UNIT_ENDTOEND_HARNESS_H

#include "hybrid/Oracle/Oracle.h"
#include "hybrid/Plan/Plan.h"
#include "hybrid/Target/CPU/Compile.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include "core/Context.h"
#include "core/State.h"

#include <map>
#include <memory>

namespace hybrid::test {

/// All dialects; registers all passes too.
mlir::DialectRegistry makeRegistry();

/// A model that was compiled to an artefact in memory, opened by the runtime,
/// and the graph of its spec, for the oracle: as it is built, before any pass
/// that makes it faster.
class CompiledModel {
public:
  /// Compiles `spec` for one level of the CPU. `module` is null after an error,
  /// which `report` tells.
  explicit CompiledModel(llvm::StringRef spec,
                         llvm::StringRef level = "x86-64-v3", int threads = 2,
                         cpu::ProgramCache *cache = nullptr);

  bool ok() const { return model != nullptr; }

  /// Random tokens; labels are the next token, a few left out.
  struct Batch {
    std::vector<int64_t> lengths;
    std::vector<int32_t> ids, labels;
    std::vector<float> weights;
    std::vector<hyb_segment> segments;

    hyb_batch view() const;
    oracle::Call call() const { return oracle::Call::packed(lengths); }
  };
  Batch randomBatch(std::vector<int64_t> lengths, unsigned seed) const;

  // What the runtime says.
  std::vector<float> loss(const Batch &batch);
  /// Gradients by parameter path, of the summed loss; `losses` gets the loss.
  std::map<std::string, std::vector<float>>
  backward(const Batch &batch, std::vector<float> &losses);
  /// Logits of every token of one sequence, fed in pieces of these sizes;
  /// `finalState` gets what the states hold afterwards, one after another.
  std::vector<float> logits(const std::vector<int32_t> &ids,
                            const std::vector<int64_t> &pieces,
                            std::vector<float> *finalState = nullptr);

  // What the oracle says.
  std::vector<double> oracleLoss(const Batch &batch);
  /// `losses`, if given, gets the loss.
  std::map<std::string, std::vector<double>>
  oracleBackward(const Batch &batch, std::vector<double> *losses = nullptr);
  std::vector<double> oracleLogits(const std::vector<int32_t> &ids);

  std::string artefact, report;
  Plan plan;
  std::unique_ptr<hyb::rt::Model> model;
  std::unique_ptr<hyb::rt::Context> context;

private:
  void compile(llvm::StringRef spec, llvm::StringRef level,
               cpu::ProgramCache *cache);
  void open(llvm::StringRef level, int threads);
  mlir::func::FuncOp entry(llvm::StringRef name);
  std::vector<oracle::Tensor> evaluate(llvm::StringRef name, const Batch &batch,
                                       const oracle::Call &call);
  oracle::Tensor argument(mlir::func::FuncOp function, unsigned index,
                          const Batch &batch, const oracle::Call &call);

  mlir::MLIRContext mlirContext;
  mlir::OwningOpRef<mlir::ModuleOp> graph;
  std::unique_ptr<hyb::rt::Runtime> runtime;
  /// Of what is left out, by the runtime and by the oracle.
  hyb::rt::CallSeed seedOfBackward = {7, 3};
};

/// The largest |a - b| relative to the largest |b|.
double distance(llvm::ArrayRef<float> a, llvm::ArrayRef<double> b);

} // namespace hybrid::test

#endif // HYBRID_TEST_UNIT_ENDTOEND_HARNESS_H
