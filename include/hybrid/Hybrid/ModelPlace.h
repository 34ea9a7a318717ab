//===- ModelPlace.h - where in the model an operation stands -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_HYBRID_MODELPLACE_H
#define HYBRID_HYBRID_MODELPLACE_H

#include "mlir/IR/Location.h"

namespace hybrid {

/// A graph operation's location is named after its place in the model,
/// `layers.3.mixer.q_proj`: layer 3 and the part `mixer.q_proj`. Outside the
/// layers (`norm`, `head`) the layer is -1.
struct ModelPlace {
  int64_t layer = -1;
  llvm::StringRef part;
};

/// Empty when nothing in `loc` has a name.
ModelPlace getModelPlace(mlir::Location loc);

} // namespace hybrid

#endif // HYBRID_HYBRID_MODELPLACE_H
