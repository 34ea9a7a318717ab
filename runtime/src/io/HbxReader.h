//===- HbxReader.h - Check and take apart an artefact -----------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_IO_HBXREADER_H
#define HYBRID_RUNTIME_IO_HBXREADER_H

#include "io/MappedFile.h"

#include <vector>

namespace hyb::rt {

/// The sections of a container whose every byte was checked: either it is
/// covered by a checksum, or it has the one value that it may have. Loader,
/// `info` and fuzzer use this one reader. Does not own the bytes.
class HbxReader {
public:
  struct Section {
    std::string kind;
    std::string name;
    Bytes content;
  };

  static Result<HbxReader> parse(Bytes file);

  const std::vector<Section> &sections() const { return parts; }
  const Section *find(std::string_view kind, std::string_view name = "") const;
  /// find(), or an error that says what is missing.
  Result<Bytes> get(std::string_view kind, std::string_view name = "") const;

private:
  std::vector<Section> parts;
};

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_IO_HBXREADER_H
