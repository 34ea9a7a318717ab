//===- SharedTensor.cpp --------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/SharedTensor.h"

#include <cstring>

namespace hyb::rt {

namespace {

/// What a tensor that is given out keeps alive.
struct Share {
  hyb_dl_managed managed = {};
  std::vector<int64_t> shape;
  DeviceMemory memory;
};

} // namespace

hyb_dl_type dlTypeOf(ElementType type) {
  uint8_t code = type == ElementType::I32    ? HYB_DL_INT
                 : type == ElementType::BF16 ? HYB_DL_BFLOAT
                                             : HYB_DL_FLOAT;
  return {code, static_cast<uint8_t>(8 * elementBytes(type)), 1};
}

hyb_dl_managed *shareTensor(const Device &device, const DeviceMemory &memory,
                            int64_t byteOffset, std::vector<int64_t> shape,
                            ElementType type) {
  auto *share = new Share();
  share->shape = std::move(shape);
  share->memory = memory;
  hyb_dl_tensor &tensor = share->managed.tensor;
  // The offset is in the address: not every library reads `byte_offset`.
  tensor.data = static_cast<char *>(memory.data()) + byteOffset;
  tensor.device = device.dlDevice();
  tensor.rank = static_cast<int32_t>(share->shape.size());
  tensor.type = dlTypeOf(type);
  tensor.shape = share->shape.data();
  share->managed.manager = share;
  share->managed.deleter = [](hyb_dl_managed *self) {
    delete static_cast<Share *>(self->manager);
  };
  return &share->managed;
}

Result<std::vector<int32_t>> readIds(const Device &device,
                                     const hyb_dl_tensor &tensor) {
  bool contiguous =
      tensor.rank == 1 &&
      (!tensor.strides || tensor.strides[0] == 1 || tensor.shape[0] <= 1);
  bool integers = tensor.type.code == HYB_DL_INT && tensor.type.lanes == 1 &&
                  (tensor.type.bits == 32 || tensor.type.bits == 64);
  if (!contiguous || !integers)
    return failure(HYB_INVALID_ARGUMENT,
                   "ids have rank %d, type code %d of %d bits and %s; give a "
                   "contiguous vector of i32 or i64",
                   tensor.rank, tensor.type.code, tensor.type.bits,
                   contiguous ? "no gaps" : "gaps or another rank");
  hyb_dl_device ours = device.dlDevice();
  bool onHost = tensor.device.type == HYB_DL_CPU ||
                tensor.device.type == HYB_DL_CUDA_HOST;
  if (!onHost &&
      (tensor.device.type != ours.type || tensor.device.index != ours.index))
    return failure(HYB_INVALID_ARGUMENT,
                   "ids are on device %d:%d, the model is on %s; move them to "
                   "it or to the host",
                   tensor.device.type, tensor.device.index, device.name());
  size_t count = static_cast<size_t>(tensor.shape[0]);
  size_t width = tensor.type.bits / 8u;
  std::vector<char> bytes(count * width);
  const char *source =
      static_cast<const char *>(tensor.data) + tensor.byte_offset;
  if (!onHost)
    HYB_TRY(
        device.read(bytes.data(), source, static_cast<int64_t>(bytes.size())));
  else if (count > 0)
    std::memcpy(bytes.data(), source, bytes.size());
  std::vector<int32_t> ids(count);
  for (size_t i = 0; i < count; ++i) {
    int64_t value = 0;
    if (width == 4) {
      std::memcpy(&ids[i], bytes.data() + 4 * i, 4);
      continue;
    }
    std::memcpy(&value, bytes.data() + 8 * i, 8);
    ids[i] = value < 0 || value > INT32_MAX ? -1 : static_cast<int32_t>(value);
  }
  return ids;
}

} // namespace hyb::rt
