//===- Sampling.h - From logits to a token ----------------------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CORE_SAMPLING_H
#define HYBRID_RUNTIME_CORE_SAMPLING_H

#include "core/Context.h"
#include "core/State.h"

namespace hyb::rt {

Status checkSampling(const hyb_sampling &sampling);

/// Draw number `step` of the seed. Ties go to the smallest id, which makes the
/// result a function of the logits alone.
Result<int32_t> sampleToken(const float *logits, int64_t vocabulary,
                            const hyb_sampling &sampling, uint64_t step);

Status generate(Context &context, State &state, int64_t slot,
                const int32_t *prompt, int64_t promptTokens,
                const hyb_sampling &sampling, hyb_token_callback callback,
                void *user);

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_CORE_SAMPLING_H
