//===- CodeImage.h - Code of an artefact, mapped ----------------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CPU_CODEIMAGE_H
#define HYBRID_RUNTIME_CPU_CODEIMAGE_H

#include "io/MappedFile.h"

#include <string_view>
#include <unordered_map>

namespace hyb::rt {

/// An ELF shared object from memory, laid out, relocated and protected by us:
/// no `dlopen`, no temporary file, no code of the object's own at load time.
///
/// The object may need nothing: no libraries, no undefined symbols, no thread
/// local storage, no initialisers, and no relocations but R_X86_64_RELATIVE.
/// What it holds is mapped read-only, read-execute or read-write, never both
/// writable and executable.
class CodeImage {
public:
  static Result<CodeImage> load(Bytes object);

  CodeImage() = default;
  CodeImage(CodeImage &&other) noexcept { swap(other); }
  CodeImage &operator=(CodeImage &&other) noexcept {
    swap(other);
    return *this;
  }
  ~CodeImage();

  /// The address of a function that the object defines, or null.
  const void *function(std::string_view name) const;

private:
  void swap(CodeImage &other) {
    std::swap(base, other.base);
    std::swap(size, other.size);
    std::swap(functions, other.functions);
  }

  uint8_t *base = nullptr;
  size_t size = 0;
  std::unordered_map<std::string, const void *> functions;
};

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_CPU_CODEIMAGE_H
