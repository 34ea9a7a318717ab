//===- Border.h - what every function of the C API does -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The C border: null checks, option structs of other sizes, and exceptions of
// the standard library (out of memory) turned into a status. No logic.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_API_BORDER_H
#define HYBRID_RUNTIME_API_BORDER_H

#include "core/State.h"
#include "train/Trainer.h"

#include <algorithm>
#include <cstring>
#include <new>

struct hyb_runtime {
  std::unique_ptr<hyb::rt::Runtime> impl;
};
struct hyb_model {
  std::unique_ptr<hyb::rt::Model> impl;
};
struct hyb_context {
  std::unique_ptr<hyb::rt::Context> impl;
  std::unique_ptr<hyb::rt::Trace> trace;
};
struct hyb_state {
  std::unique_ptr<hyb::rt::State> impl;
};
struct hyb_snapshot {
  hyb::rt::Snapshot impl;
};
struct hyb_trainer {
  std::unique_ptr<hyb::rt::Trainer> impl;
};

namespace hyb::rt {

/// Fills `error`, which may be NULL.
hyb_status report(const Status &status, hyb_error *error);

/// The same for a fault of ours, without memory of its own.
hyb_status reportUnexpected(const char *what, hyb_error *error);

/// Runs `body`, which returns a Status, and reports it.
template <typename Body> hyb_status guarded(hyb_error *error, Body body) {
  try {
    return report(body(), error);
  } catch (const std::bad_alloc &) {
    return report(Status(HYB_OUT_OF_MEMORY, "out of memory"), error);
  } catch (const std::exception &problem) {
    return reportUnexpected(problem.what(), error);
  }
}

Status missing(const char *argument);

#define HYB_NEED(argument)                                                     \
  do {                                                                         \
    if (!(argument))                                                           \
      return missing(#argument);                                               \
  } while (false)

/// The caller's struct may be of an older or newer header than ours: fields
/// that only one side knows have their defaults.
template <typename T> void giveOut(T value, T *target, size_t size) {
  if (!target)
    return;
  value.size = size;
  std::memset(static_cast<void *>(target), 0, size);
  std::memcpy(static_cast<void *>(target), &value, std::min(size, sizeof(T)));
}

template <typename T>
Result<T> takeIn(const T *given, T value, const char *what) {
  if (!given)
    return value;
  // No struct comes near a page; a larger size was never filled in.
  if (given->size < sizeof(size_t) || given->size > 4096)
    return failure(HYB_INVALID_ARGUMENT,
                   "%s has size %zu; fill it with its init function", what,
                   given->size);
  const char *bytes = reinterpret_cast<const char *>(given);
  for (size_t i = sizeof(T); i < given->size; ++i)
    if (bytes[i] != 0)
      return failure(HYB_UNSUPPORTED,
                     "%s sets an option that this runtime (%s) does not know; "
                     "use a newer one",
                     what, hyb_version());
  std::memcpy(static_cast<void *>(&value), given,
              std::min(given->size, sizeof(T)));
  return value;
}

/// The parameter of that number, or an error.
Result<const ParameterInfo *> parameterAt(const Model &model, int64_t index);

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_API_BORDER_H
