//===- SafetensorsWriter.cpp ----------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "io/AtomicFile.h"
#include "io/Safetensors.h"

#include <nlohmann/json.hpp>

namespace hyb::rt {

Status writeSafetensors(const std::string &path,
                        const std::vector<TensorToWrite> &tensors,
                        const std::map<std::string, std::string> &metadata) {
  // ordered_json keeps the order of insertion, which is that of the data.
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty())
    header["__metadata__"] = metadata;
  uint64_t offset = 0;
  std::vector<uint64_t> sizes;
  for (const TensorToWrite &tensor : tensors) {
    uint64_t bytes = dtypeSize(tensor.type);
    for (uint64_t size : tensor.shape)
      bytes *= size;
    header[tensor.name] = {{"dtype", dtypeName(tensor.type)},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
    sizes.push_back(bytes);
  }
  // Invalid UTF-8 in a name or text is replaced, never thrown about.
  std::string text =
      header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
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
