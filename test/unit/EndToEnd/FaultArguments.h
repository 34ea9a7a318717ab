//===- FaultArguments.h - arguments and comparisons of faults -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TEST_UNIT_ENDTOEND_FAULTARGUMENTS_H
#define HYBRID_TEST_UNIT_ENDTOEND_FAULTARGUMENTS_H

#include "CompiledFunction.h"

namespace hybrid::test {

cpu::Level bestLevel();

/// Largest difference relative to the largest value, or to 1e-3 where all are 0
/// but for rounding; infinite where a value is not finite.
double distance(const cases::Tensor &found, const cases::Tensor &expected);

void expectNear(llvm::ArrayRef<cases::Tensor> found,
                llvm::ArrayRef<cases::Tensor> expected, double tolerance);
void expectSameBits(llvm::ArrayRef<cases::Tensor> found,
                    llvm::ArrayRef<cases::Tensor> expected);

/// As f32 holds them: what a kernel leaves alone is compared too.
std::vector<cases::Tensor> rounded(std::vector<cases::Tensor> arguments);

cases::RecurrenceShape gla(int64_t heads, int64_t width);
cases::RecurrenceShape gdn(int64_t heads, int64_t width);

/// Random-looking arguments of a recurrence over `tokens` tokens; gates are
/// `gate` everywhere, or ordinary ones.
std::vector<cases::Tensor>
recurrenceArguments(const cases::RecurrenceShape &shape, int64_t tokens,
                    int64_t slots, std::optional<double> gate = {});

/// With a window there are two sinks.
cases::AttentionShape attention(int64_t heads, int64_t kvHeads, int64_t width,
                                int64_t window = 0);
std::vector<cases::Tensor>
attentionArguments(const cases::AttentionShape &shape, int64_t tokens);

} // namespace hybrid::test

#endif // HYBRID_TEST_UNIT_ENDTOEND_FAULTARGUMENTS_H
