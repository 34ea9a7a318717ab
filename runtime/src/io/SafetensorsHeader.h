//===- SafetensorsHeader.h - The JSON header --------------------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_IO_SAFETENSORSHEADER_H
#define HYBRID_RUNTIME_IO_SAFETENSORSHEADER_H

#include "io/Safetensors.h"

namespace hyb::rt {

struct SafetensorsHeader {
  /// In the order of the file; ranges as stated, not yet checked.
  std::vector<TensorEntry> entries;
  std::map<std::string, std::string> metadata;
};

/// `offset` is where the text starts in the file, for messages.
Result<SafetensorsHeader> parseSafetensorsHeader(Bytes text, size_t offset);

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_IO_SAFETENSORSHEADER_H
