//===- Status.cpp ---------------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/Status.h"

#include <cstdarg>
#include <cstring>

namespace hyb::rt {

Status failure(hyb_status code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  va_list again;
  va_copy(again, arguments);
  int length = std::vsnprintf(nullptr, 0, format, arguments);
  va_end(arguments);
  std::string text(length > 0 ? static_cast<size_t>(length) : 0, '\0');
  std::vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  return Status(code, std::move(text));
}

Status systemFailure(const char *action, const std::string &path,
                     int errorNumber) {
  // strerror_r: the text is not shared between threads.
  char buffer[256];
  const char *reason = strerror_r(errorNumber, buffer, sizeof(buffer));
  return failure(errorNumber == ENOMEM ? HYB_OUT_OF_MEMORY : HYB_IO,
                 "cannot %s %s: %s", action, path.c_str(), reason);
}

} // namespace hyb::rt
