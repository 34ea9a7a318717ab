//===- OnlyModel.h - The one model of a file --------------------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_HYBRID_ONLYMODEL_H
#define HYBRID_HYBRID_ONLYMODEL_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"

namespace hybrid {

/// Where a module begins. The one that the parser puts around a file has line
/// and column 0, which no editor opens.
inline mlir::Location beginOf(mlir::ModuleOp module) {
  auto place = mlir::dyn_cast<mlir::FileLineColLoc>(module.getLoc());
  if (!place || place.getLine() != 0)
    return module.getLoc();
  return mlir::FileLineColLoc::get(place.getFilename(), 1, 1);
}

/// The only operation of a kind that holds a model; an error where there is
/// none, or at the second one where there are several.
template <typename ModelOpT>
mlir::FailureOr<ModelOpT> getOnlyModel(mlir::ModuleOp module) {
  auto models = llvm::to_vector(module.getOps<ModelOpT>());
  if (models.size() == 1)
    return models.front();
  if (models.empty())
    return mlir::emitError(beginOf(module))
           << "has no hybrid.model; write one, as docs/spec-language.md shows";
  mlir::InFlightDiagnostic diagnostic =
      mlir::emitError(models[1].getLoc())
      << "has " << models.size()
      << " models where one is expected, because the entry points are named "
         "after what they do; write one hybrid.model per file";
  models.erase(models.begin() + 1);
  for (ModelOpT model : models)
    diagnostic.attachNote(model.getLoc()) << "another model is here";
  return diagnostic;
}

} // namespace hybrid

#endif // HYBRID_HYBRID_ONLYMODEL_H
