//===- ModelPlace.cpp - where in the model an operation stands -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Hybrid/ModelPlace.h"

#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;
using namespace hybrid;

ModelPlace hybrid::getModelPlace(Location loc) {
  StringRef name;
  loc->walk([&](Location nested) {
    auto named = dyn_cast<NameLoc>(nested);
    if (!named)
      return WalkResult::advance();
    name = named.getName();
    return WalkResult::interrupt();
  });
  StringRef rest = name;
  int64_t layer;
  if (rest.consume_front("layers.") && !rest.consumeInteger(10, layer) &&
      rest.consume_front("."))
    return {layer, rest};
  return {-1, name};
}
