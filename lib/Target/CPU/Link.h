//===- Link.h - an object file to a shared object -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_TARGET_CPU_LINK_H
#define HYBRID_LIB_TARGET_CPU_LINK_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace hybrid::cpu {

/// Links objects in their order with lld, which keeps one of functions that are
/// equal, and checks what comes out: an undefined symbol, a relocation that is
/// not relative, and a segment that is writable and executable are errors.
llvm::Expected<std::string>
linkSharedObject(llvm::ArrayRef<llvm::StringRef> objects,
                 llvm::StringRef linker);

} // namespace hybrid::cpu

#endif // HYBRID_LIB_TARGET_CPU_LINK_H
