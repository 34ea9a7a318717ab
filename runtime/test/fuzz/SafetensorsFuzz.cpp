//===- SafetensorsFuzz.cpp ------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// Input: a header text, then data. The length field is written by the harness
// most of the time, because a random one is refused at once; an input that
// starts with 0xff gives the whole file.
//
//===----------------------------------------------------------------------===//

#include "io/Safetensors.h"

#include <cstdlib>
#include <cstring>

using namespace hyb::rt;

/// What was accepted must be whole: every tensor readable, every byte owned.
static void checkAccepted(const SafetensorsView &view, size_t dataBytes) {
  uint64_t sum = 0;
  unsigned char folded = 0;
  for (const TensorEntry &entry : view.tensors()) {
    Bytes data = view.data(entry);
    for (uint8_t byte : data)
      folded ^= byte;
    sum += data.size;
    if (view.find(entry.name) != &entry)
      std::abort();
  }
  [[maybe_unused]] volatile unsigned char used = folded;
  if (sum != dataBytes)
    std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size > 0 && data[0] == 0xff) {
    auto view = SafetensorsView::parse({data + 1, size - 1});
    if (!view.ok() && view.status().message().empty())
      std::abort();
    return 0;
  }
  // The header ends where its brackets do.
  size_t header = 0;
  int depth = 0;
  while (header < size) {
    depth += data[header] == '{' ? 1 : data[header] == '}' ? -1 : 0;
    ++header;
    if (depth <= 0)
      break;
  }
  std::string file(8 + size, '\0');
  uint64_t length = header;
  std::memcpy(file.data(), &length, sizeof(length));
  if (size)
    std::memcpy(file.data() + 8, data, size);
  auto view = SafetensorsView::parse(
      {reinterpret_cast<const uint8_t *>(file.data()), file.size()});
  if (view.ok())
    checkAccepted(*view, size - header);
  else if (view.status().message().empty())
    std::abort();
  return 0;
}
