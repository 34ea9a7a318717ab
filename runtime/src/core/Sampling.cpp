//===- Sampling.cpp ------------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/Sampling.h"

#include "core/Random.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <numeric>

namespace hyb::rt {

Status checkSampling(const hyb_sampling &sampling) {
  if (!(sampling.temperature >= 0) || !std::isfinite(sampling.temperature))
    return failure(HYB_INVALID_ARGUMENT,
                   "temperature is %g; give 0 for greedy or a positive number",
                   static_cast<double>(sampling.temperature));
  if (!(sampling.top_p > 0 && sampling.top_p <= 1))
    return failure(HYB_INVALID_ARGUMENT,
                   "top_p is %g; give a mass above 0 and up to 1",
                   static_cast<double>(sampling.top_p));
  if (sampling.top_k < 0 || sampling.max_tokens < 0)
    return failure(HYB_INVALID_ARGUMENT,
                   "top_k is %d and max_tokens %" PRId64
                   "; neither may be negative",
                   sampling.top_k, sampling.max_tokens);
  return Status();
}

Result<int32_t> sampleToken(const float *logits, int64_t vocabulary,
                            const hyb_sampling &sampling, uint64_t step) {
  for (int64_t i = 0; i < vocabulary; ++i)
    if (std::isnan(logits[i]))
      return failure(
          HYB_MISMATCH,
          "logit %" PRId64 " is not a number; check the weights for damage", i);
  const float *greatest = std::max_element(logits, logits + vocabulary);
  if (*greatest == -INFINITY)
    return failure(HYB_MISMATCH,
                   "all %" PRId64
                   " logits are negative infinity, which leaves no token to "
                   "draw; check the weights for damage",
                   vocabulary);
  if (sampling.temperature == 0 || std::isinf(*greatest))
    return static_cast<int32_t>(greatest - logits);

  std::vector<int32_t> order(static_cast<size_t>(vocabulary));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  if (sampling.top_k > 0 && sampling.top_k < vocabulary)
    order.resize(static_cast<size_t>(sampling.top_k));
  std::vector<double> mass;
  double total = 0;
  for (int32_t id : order) {
    mass.push_back(std::exp((static_cast<double>(logits[id]) - *greatest) /
                            sampling.temperature));
    total += mass.back();
  }
  // The smallest prefix that holds top_p of the mass; never empty.
  size_t kept = 0;
  double keptMass = 0;
  while (kept < mass.size() && (kept == 0 || keptMass < sampling.top_p * total))
    keptMass += mass[kept++];

  double left = RandomStream(sampling.seed, "sample").uniform(step) * keptMass;
  for (size_t i = 0; i + 1 < kept; ++i) {
    left -= mass[i];
    if (left < 0)
      return order[i];
  }
  return order[kept - 1];
}

Status generate(Context &context, State &state, int64_t slot,
                const int32_t *prompt, int64_t promptTokens,
                const hyb_sampling &sampling, hyb_token_callback callback,
                void *user) {
  HYB_TRY(checkSampling(sampling));
  HYB_TRY(state.checkSlot(slot));
  if (promptTokens < 1)
    return failure(HYB_INVALID_ARGUMENT,
                   "prompt has %" PRId64
                   " tokens; give at least one, a model continues text",
                   promptTokens);
  int64_t vocabulary = context.model().meta().vocabulary;
  std::vector<int32_t> next(prompt, prompt + promptTokens);
  for (int64_t step = 0; step < sampling.max_tokens; ++step) {
    hyb_segment segment = {static_cast<int64_t>(next.size()), slot};
    hyb_batch batch = {};
    batch.ids = next.data();
    batch.tokens = segment.length;
    batch.segments = &segment;
    batch.segment_count = 1;
    const float *logits;
    HYB_TRY(context.extend(state, batch, HYB_LOGITS_LAST, &logits));
    HYB_ASSIGN(int32_t token, sampleToken(logits, vocabulary, sampling,
                                          static_cast<uint64_t>(step)));
    if (callback && callback(user, token) != 0)
      return failure(HYB_CANCELLED,
                     "cancelled by the callback after %" PRId64 " tokens",
                     step + 1);
    if (token == sampling.stop_token || state.remaining(slot) == 0)
      break;
    next.assign(1, token);
  }
  return Status();
}

} // namespace hyb::rt
