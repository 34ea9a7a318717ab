//===- OptionChecks.cpp --------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OptionChecks.h"

#include <cerrno>
#include <cinttypes>
#include <cmath>
#include <cstring>

namespace hyb::run {

namespace {

/// The check fails with the value and what is expected in its place.
CLI::Validator expecting(std::string expected,
                         std::function<bool(const char *)> accepts) {
  return CLI::Validator(
      [expected, accepts](std::string &text) {
        return accepts(text.c_str()) ? std::string()
                                     : "'" + text + "' is not " + expected;
      },
      /*validator_desc=*/"");
}

std::string shortText(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", value);
  return text;
}

/// Whether all of the text is a number, and which.
bool readReal(const char *text, double &value) {
  char *end = nullptr;
  value = std::strtod(text, &end);
  return end != text && *end == 0 && std::isfinite(value);
}

/// Whether the text is `begin` and a number.
bool isNumbered(const char *text, const char *begin) {
  size_t length = std::strlen(begin);
  if (std::strncmp(text, begin, length) != 0)
    return false;
  size_t digits = std::strspn(text + length, "0123456789");
  return digits > 0 && digits <= 4 && text[length + digits] == 0;
}

} // namespace

CLI::Validator wholeNumber(int64_t least, int64_t most) {
  std::string expected = "a whole number from " + std::to_string(least);
  expected += most == INT64_MAX ? " up" : " to " + std::to_string(most);
  return expecting(expected, [least, most](const char *text) {
    char *end = nullptr;
    errno = 0;
    int64_t value = std::strtoll(text, &end, 10);
    return end != text && *end == 0 && errno == 0 && value >= least &&
           value <= most;
  });
}

CLI::Validator seedNumber() {
  return expecting("a whole number from 0 to 18446744073709551615",
                   [](const char *text) {
                     char *end = nullptr;
                     errno = 0;
                     std::strtoull(text, &end, 10);
                     return std::isdigit(static_cast<unsigned char>(*text)) &&
                            *end == 0 && errno == 0;
                   });
}

CLI::Validator realNumber(double least, double most) {
  std::string expected = "a number from " + shortText(least);
  expected += most == static_cast<double>(std::numeric_limits<float>::max())
                  ? " up"
                  : " to " + shortText(most);
  return expecting(expected, [least, most](const char *text) {
    double value;
    return readReal(text, value) && value >= least && value <= most;
  });
}

CLI::Validator shareAboveZero() {
  return expecting("a number above 0 and up to 1", [](const char *text) {
    double value;
    return readReal(text, value) && value > 0 && value <= 1;
  });
}

CLI::Validator shareBelowOne() {
  return expecting("a number from 0 and below 1", [](const char *text) {
    double value;
    return readReal(text, value) && value >= 0 && static_cast<float>(value) < 1;
  });
}

CLI::Validator someText() {
  return expecting("a text of one byte or more",
                   [](const char *text) { return *text != 0; });
}

CLI::Validator deviceName() {
  return expecting("a device; give auto, cpu or cuda:N", [](const char *text) {
    for (const char *name : {"auto", "cpu", "cuda"})
      if (std::strcmp(text, name) == 0)
        return true;
    return isNumbered(text, "cuda:");
  });
}

CLI::Validator productsName() {
  return expecting("a way to compute products; give compiled, cublaslt or auto",
                   [](const char *text) {
                     for (const char *name : {"compiled", "cublaslt", "auto"})
                       if (std::strcmp(text, name) == 0)
                         return true;
                     return false;
                   });
}

CLI::Validator levelName() {
  return expecting("a processor level; give x86-64, x86-64-v3 or x86-64-v4",
                   [](const char *text) {
                     return std::strcmp(text, "x86-64") == 0 ||
                            isNumbered(text, "x86-64-v");
                   });
}

} // namespace hyb::run
