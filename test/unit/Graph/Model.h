//===- Model.h - a built model that the oracle evaluates -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TEST_UNIT_GRAPH_MODEL_H
#define HYBRID_TEST_UNIT_GRAPH_MODEL_H

#include "hybrid/Graph/ModelTables.h"
#include "hybrid/Oracle/Oracle.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringMap.h"

namespace hybrid {

class Model {
public:
  /// Parses, expands and builds `spec`; a failure fails the test. `small`:
  /// shrinks it first.
  explicit Model(const std::string &spec, bool small = false);

  const ModelTables &tables() const { return modelTables; }

  /// The states of a state object that serves `call`, all zero.
  std::vector<oracle::Tensor> zeroStates(const oracle::Call &call) const;

  /// Results of `entry`. `inputs` are by role, `params` by path, states in the
  /// order of the table. No results, and a failed test, on an error.
  std::vector<oracle::Tensor>
  evaluate(llvm::StringRef entry, const oracle::Call &call,
           const llvm::StringMap<oracle::Tensor> &params,
           const llvm::StringMap<oracle::Tensor> &inputs,
           llvm::ArrayRef<oracle::Tensor> states = {});

private:
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  ModelTables modelTables;
};

} // namespace hybrid

#endif // HYBRID_TEST_UNIT_GRAPH_MODEL_H
