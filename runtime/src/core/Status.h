//===- Status.h - Errors without exceptions ---------------------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every function of the runtime that can fail returns a Status or a Result.
// A message is lower case, has no full stop, names the thing by its role,
// prints both values and ends with the way out.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CORE_STATUS_H
#define HYBRID_RUNTIME_CORE_STATUS_H

#include "hybrid/runtime.h"

#include <cassert>
#include <optional>
#include <string>
#include <utility>

namespace hyb::rt {

class [[nodiscard]] Status {
public:
  Status() = default;
  Status(hyb_status code, std::string message)
      : statusCode(code), text(std::move(message)) {}

  bool ok() const { return statusCode == HYB_OK; }
  hyb_status code() const { return statusCode; }
  const std::string &message() const { return text; }

  /// The same error, told from further out: "`where`: message".
  Status within(const std::string &where) const {
    return ok() ? *this : Status(statusCode, where + ": " + text);
  }

private:
  hyb_status statusCode = HYB_OK;
  std::string text;
};

/// An error with a printf-formatted message.
[[gnu::format(printf, 2, 3)]] Status failure(hyb_status code,
                                             const char *format, ...);

/// HYB_IO with the text of `errorNumber`: "cannot write /a/b: No space left".
Status systemFailure(const char *action, const std::string &path,
                     int errorNumber);

/// A value or the reason why there is none.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : content(std::move(value)) {}
  Result(Status status) : state(std::move(status)) { assert(!state.ok()); }

  bool ok() const { return content.has_value(); }
  const Status &status() const { return state; }
  T &operator*() { return *content; }
  const T &operator*() const { return *content; }
  T *operator->() { return &*content; }
  const T *operator->() const { return &*content; }

private:
  std::optional<T> content;
  Status state;
};

} // namespace hyb::rt

/// Returns from the calling function when `expression` failed.
#define HYB_TRY(expression)                                                    \
  do {                                                                         \
    if (::hyb::rt::Status hybStatus = (expression); !hybStatus.ok())           \
      return hybStatus;                                                        \
  } while (false)

#define HYB_JOIN_(a, b) a##b
#define HYB_JOIN(a, b) HYB_JOIN_(a, b)
/// `HYB_ASSIGN(auto file, MappedFile::open(path))`: takes the value out of a
/// Result or returns its error.
#define HYB_ASSIGN(declaration, expression)                                    \
  auto HYB_JOIN(hybResult, __LINE__) = (expression);                           \
  if (!HYB_JOIN(hybResult, __LINE__).ok())                                     \
    return HYB_JOIN(hybResult, __LINE__).status();                             \
  declaration = std::move(*HYB_JOIN(hybResult, __LINE__))

#endif // HYBRID_RUNTIME_CORE_STATUS_H
