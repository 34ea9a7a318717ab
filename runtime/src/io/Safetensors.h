//===- Safetensors.h - Read and write .safetensors --------------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The format: u64 header length, a JSON object from tensor names to dtype,
// shape and byte range (and `__metadata__`, texts to texts), then the bytes.
// A file is accepted whole or refused with a reason, before anything is
// allocated in proportion to a number that it states.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_IO_SAFETENSORS_H
#define HYBRID_RUNTIME_IO_SAFETENSORS_H

#include "core/ElementType.h"
#include "io/MappedFile.h"

#include <map>
#include <vector>

namespace hyb::rt {

/// The element types of the format, in the order of its own table.
enum class DType : uint8_t {
  Bool,
  U8,
  I8,
  F8_E5M2,
  F8_E4M3,
  I16,
  U16,
  F16,
  BF16,
  I32,
  U32,
  F32,
  F64,
  I64,
  U64
};

const char *dtypeName(DType type);
DType dtypeOf(ElementType type);
std::optional<DType> dtypeByName(std::string_view name);
/// Bytes of one element.
uint64_t dtypeSize(DType type);

struct TensorEntry {
  std::string name;
  DType type = DType::F32;
  std::vector<uint64_t> shape;
  /// Range in the data part, which was found to be inside the file.
  uint64_t begin = 0;
  uint64_t end = 0;
};

/// "[64, 64]"
std::string shapeText(const std::vector<uint64_t> &shape);

/// What the header says, and where the data is. Does not own the bytes.
class SafetensorsView {
public:
  static constexpr uint64_t kMaxHeaderBytes = 100'000'000;
  static constexpr size_t kMaxRank = 16;
  static constexpr size_t kMaxNameBytes = 4096;

  static Result<SafetensorsView> parse(Bytes file);

  /// In the order of their data.
  const std::vector<TensorEntry> &tensors() const { return entries; }
  const std::map<std::string, std::string> &metadata() const { return texts; }
  const TensorEntry *find(std::string_view name) const;
  /// Not aligned in general: copy out with memcpy.
  Bytes data(const TensorEntry &entry) const {
    return {content.data + entry.begin,
            static_cast<size_t>(entry.end - entry.begin)};
  }

private:
  std::vector<TensorEntry> entries;
  std::map<std::string, std::string> texts;
  std::map<std::string, size_t, std::less<>> byName;
  Bytes content;
};

/// A mapped file with its view; errors begin with the path.
struct SafetensorsFile {
  static Result<SafetensorsFile> open(const std::string &path);

  MappedFile file;
  SafetensorsView view;
};

/// One tensor to write; `data` is borrowed.
struct TensorToWrite {
  std::string name;
  DType type;
  std::vector<uint64_t> shape;
  const void *data;
};

/// Writes the tensors in the order given, the data 64-byte aligned, and
/// replaces `path` atomically. Equal input gives equal bytes.
Status writeSafetensors(const std::string &path,
                        const std::vector<TensorToWrite> &tensors,
                        const std::map<std::string, std::string> &metadata);

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_IO_SAFETENSORS_H
