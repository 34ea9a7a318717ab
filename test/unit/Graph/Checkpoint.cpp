//===- Checkpoint.cpp - tensors of a safetensors file -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Checkpoint.h"

#include "llvm/Support/Endian.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace hybrid;
namespace endian = llvm::support::endian;

static double readElement(llvm::StringRef dtype, const char *at) {
  if (dtype == "I32")
    return static_cast<int32_t>(endian::read32le(at));
  uint32_t bits = dtype == "BF16" ? uint32_t(endian::read16le(at)) << 16
                                  : endian::read32le(at);
  return llvm::bit_cast<float>(bits);
}

llvm::StringMap<oracle::Tensor>
hybrid::readCheckpoint(const std::string &path) {
  auto buffer = llvm::cantFail(
      llvm::errorOrToExpected(llvm::MemoryBuffer::getFile(path)));
  llvm::StringRef bytes = buffer->getBuffer();
  uint64_t headerSize = endian::read64le(bytes.data());
  llvm::json::Value header =
      llvm::cantFail(llvm::json::parse(bytes.substr(8, headerSize)));
  const char *data = bytes.data() + 8 + headerSize;

  llvm::StringMap<oracle::Tensor> tensors;
  for (const auto &[name, value] : *header.getAsObject()) {
    const llvm::json::Object &row = *value.getAsObject();
    if (name == "__metadata__")
      continue;
    llvm::SmallVector<int64_t> shape;
    for (const llvm::json::Value &size : *row.getArray("shape"))
      shape.push_back(*size.getAsInteger());
    oracle::Tensor tensor(shape);
    llvm::StringRef dtype = *row.getString("dtype");
    int64_t begin = *(*row.getArray("data_offsets"))[0].getAsInteger();
    int64_t size = dtype == "BF16" ? 2 : 4;
    for (int64_t i = 0; i < tensor.size(); ++i)
      tensor.data[i] = readElement(dtype, data + begin + i * size);
    tensors[llvm::StringRef(name)] = std::move(tensor);
  }
  return tensors;
}
