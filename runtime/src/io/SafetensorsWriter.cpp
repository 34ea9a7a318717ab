//===- SafetensorsWriter.cpp ----------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "io/AtomicFile.h"
#include "io/Safetensors.h"

#include "io/Json.h"

namespace hyb::rt {

namespace {
std::string numbersText(const std::vector<uint64_t> &numbers) {
  std::string text;
  for (uint64_t number : numbers)
    text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}
} // namespace

Status writeSafetensors(const std::string &path,
                        const std::vector<TensorToWrite> &tensors,
                        const std::map<std::string, std::string> &metadata) {
  // Invalid UTF-8 in a name or text is replaced, never thrown about.
  std::string text = "{";
  const char *separator = "";
  if (!metadata.empty()) {
    text += "\"__metadata__\":{";
    for (const auto &[key, value] : metadata) {
      text += separator + jsonQuoted(key) + ":" + jsonQuoted(value);
      separator = ",";
    }
    text += "}";
  }
  uint64_t offset = 0;
  std::vector<uint64_t> sizes;
  for (const TensorToWrite &tensor : tensors) {
    uint64_t bytes = dtypeSize(tensor.type);
    for (uint64_t size : tensor.shape)
      bytes *= size;
    text += separator + jsonQuoted(tensor.name) + ":{\"dtype\":\"" +
            dtypeName(tensor.type) + "\",\"shape\":[" +
            numbersText(tensor.shape) + "],\"data_offsets\":[" +
            numbersText({offset, offset + bytes}) + "]}";
    separator = ",";
    offset += bytes;
    sizes.push_back(bytes);
  }
  text += "}";
  // Spaces after the object are allowed; they align the data.
  text.resize((text.size() + 8 + 63) / 64 * 64 - 8, ' ');

  HYB_ASSIGN(AtomicFile file, AtomicFile::create(path));
  uint64_t length = text.size();
  HYB_TRY(file.write(&length, sizeof(length)));
  HYB_TRY(file.write(text.data(), text.size()));
  for (size_t i = 0; i < tensors.size(); ++i)
    HYB_TRY(file.write(tensors[i].data, static_cast<size_t>(sizes[i])));
  return file.commit();
}

} // namespace hyb::rt
