//===- ParameterLayout.cpp - parameters in one flat buffer -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Graph/ParameterLayout.h"

#include "llvm/Support/MathExtras.h"

using namespace hybrid;

/// In elements: 64 bytes, a cache line and the widest vector register.
static constexpr int64_t parameterAlignment = 16;

ParameterLayout::ParameterLayout(llvm::ArrayRef<ParameterRow> parameters) {
  for (bool decay : {true, false}) {
    for (const ParameterRow &parameter : parameters) {
      if (parameter.decay != decay)
        continue;
      int64_t count = 1;
      for (int64_t size : parameter.shape)
        count *= size;
      rows.push_back({&parameter, elements});
      elements += llvm::alignTo(count, parameterAlignment);
    }
    if (decay)
      decayElements = elements;
  }
}
