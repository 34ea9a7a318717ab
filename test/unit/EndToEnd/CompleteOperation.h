//===- CompleteOperation.h - an operation with its adjoint ----------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TEST_UNIT_ENDTOEND_COMPLETEOPERATION_H
#define HYBRID_TEST_UNIT_ENDTOEND_COMPLETEOPERATION_H

#include "RandomOperations.h"

namespace hybrid::test {

/// Adds the adjoint to the text of an operation, where it is wanted, and random
/// cotangents to its arguments. Returns how many results stand in front of the
/// gradients.
unsigned completeOperation(cases::RandomOperation &op, uint64_t seed);

} // namespace hybrid::test

#endif // HYBRID_TEST_UNIT_ENDTOEND_COMPLETEOPERATION_H
