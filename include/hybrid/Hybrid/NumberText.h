//===- NumberText.h - real numbers as a spec writes them -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_HYBRID_NUMBERTEXT_H
#define HYBRID_HYBRID_NUMBERTEXT_H

#include <string>

namespace hybrid {

/// The shortest text that reads back as the same number: 5, -4.5, 1.0e-05.
std::string formatNumber(double number);

} // namespace hybrid

#endif // HYBRID_HYBRID_NUMBERTEXT_H
